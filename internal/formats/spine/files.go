package spine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// The optional interfaces that the format implements.
var (
	_ engine.UnopenedAccount = Protocol{}
	_ engine.RunNumbers      = Protocol{}
)

// Format is that of loops with a folder in .loops.
func Format() format.Format {
	return format.Format{Name: loop.ProtocolSpine, Protocol: Protocol{}, Files: files{}, Readable: CheckMerged, KeepsLog: true, New: Scaffold}
}

// files are the definitions in .loops.
type files struct{}

// Place implements format.Files: the folders are those of every loop.
func (files) Place() format.Place { return format.Place{} }

// Find implements format.Files.
func (f files) Find(root string) ([]format.Source, error) {
	entries, err := os.ReadDir(filepath.Join(root, definition.LoopsDir))
	if err := format.Unlistable("list loops", err); err != nil {
		return nil, err
	}
	found := make([]format.Source, 0, len(entries))
	for _, e := range entries {
		if s, ok := f.source(root, e.Name()); ok {
			found = append(found, s)
		}
	}
	return found, nil
}

// FindNamed implements format.Files.
func (f files) FindNamed(root, name string) (format.Source, bool, error) {
	s, ok := f.source(root, name)
	if !ok { // For the error if .loops cannot be listed.
		if _, err := os.Lstat(filepath.Join(root, s.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			_, err = f.Find(root)
			return s, false, err
		}
	}
	return s, ok, nil
}

func (files) source(root, name string) (format.Source, bool) {
	s := format.Source{Name: name, Format: loop.ProtocolSpine, File: definition.Path(name)}
	s.Infos = format.Lstat(root, s.File)
	return s, s.Infos.Exist() && (name != definition.BootFolder || !definition.BootOwnsFolder(root))
}

// Read implements format.Files.
func (f files) Read(root string, s format.Source) (format.Text, error) {
	file := filepath.Join(root, s.File)
	body, err := definition.Read(file)
	if errors.Is(err, loop.ErrNotFound) {
		err = f.Missing(root, s.Name)
	}
	return format.Text{File: s.File, Body: body, Document: func(called string, body []byte) (*definition.Document, error) {
		if called == s.File {
			called = file
		}
		return definition.Parse(called, body)
	}}, err
}

// Missing implements format.Files.
func (files) Missing(_, name string) *loop.Fault { return definition.MissingFault(name) }
