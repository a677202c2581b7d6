package boot

import (
	"errors"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The optional interfaces that the format implements.
var (
	_ engine.MemoryNotes    = (*session)(nil)
	_ engine.DiscardedFiles = (*session)(nil)
	_ engine.FirstQuestion  = (*session)(nil)
	_ engine.OwedEffects    = (*session)(nil)
	_ engine.BranchMemory   = (*session)(nil)
)

// Format is that of the loop that an AGENT_LINK.md makes.
func Format(contracts bootrepo.Cache) format.Format {
	return format.Format{
		Name: loop.ProtocolBoot, Protocol: Protocol{Contracts: contracts}, Files: files{},
		Memory: func(root string) []string {
			link, err := bootdef.Read(root)
			if err != nil {
				return nil // A link that cannot be read names no files.
			}
			return link.Paths()
		},
	}
}

// files are AGENT_LINK.md and the loop.config.yaml of the folder boot, which belongs to it
// unless a person has called a spine loop boot.
type files struct{}

// Place implements format.Files.
func (files) Place() format.Place {
	return format.Place{Name: bootdef.Name, Marks: []string{bootdef.LinkFile}, Elsewhere: "only the loop has that " + bootdef.LinkFile + " makes"}
}

// Find implements format.Files.
func (f files) Find(root string) ([]format.Source, error) {
	if s, found, _ := f.FindNamed(root, bootdef.Name); found {
		return []format.Source{s}, nil
	}
	return nil, nil
}

// FindNamed implements format.Files.
func (files) FindNamed(root, name string) (s format.Source, found bool, err error) {
	if name != bootdef.Name {
		return s, false, nil
	}
	s = format.Source{Name: name, Format: loop.ProtocolBoot, File: bootdef.LinkFile, Infos: format.Lstat(root, bootdef.LinkFile, definition.Path(name))}
	if s.Infos[1] != nil && !definition.BootOwnsFolder(root) {
		s.Infos[1] = nil
	}
	if s.Infos[1] != nil {
		s.Config = definition.Path(name)
	}
	if s.Infos[0] == nil {
		s.File = s.Config
	}
	return s, s.Infos.Exist(), nil
}

// Read implements format.Files.
func (f files) Read(root string, s format.Source) (t format.Text, err error) {
	link, err := bootdef.Read(root)
	if err != nil {
		return t, err
	}
	t = format.Text{File: s.Edited(), Body: link.Source, Rest: link.Source}
	for _, f := range link.Findings { // Links on disk count, too.
		t.Rest = append(append(t.Rest[:len(t.Rest):len(t.Rest)], 0), f.String()...)
	}
	if s.Config != "" {
		t.Body, err = definition.Read(filepath.Join(root, s.Config))
		if errors.Is(err, loop.ErrNotFound) {
			err = definition.MissingFault(s.Name)
		}
	}
	t.Document = func(file string, body []byte) (*definition.Document, error) {
		if err := link.Fault(); err != nil {
			return nil, err
		}
		if s.Config == "" {
			body = nil // It is the link's own.
		}
		return link.Document(file, body)
	}
	return t, err
}

// Missing implements format.Files.
func (files) Missing(root, _ string) *loop.Fault { return bootdef.MissingFault(root) }
