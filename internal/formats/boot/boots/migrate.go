package boots

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/pawl-run/pawl/internal/formats/boot/bootdef"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// MigrateRequest says what an older link does not.
type MigrateRequest struct {
	Boot    string `json:"boot,omitempty"`         // REPOSITORY@REF, where the link names none
	Version string `json:"boot_version,omitempty"` // that is expected; empty: that of the boot repository
	Project string `json:"project,omitempty"`      // where STATE.json names none; empty: the name of the workspace's folder
}

// Migration is what Migrate would change or has changed, schema pawl.boot-migration/v1.
type Migration struct {
	Schema  string         `json:"schema"`
	Files   []MigratedFile `json:"files"` // that change; none: all have the form of today
	Written bool           `json:"written"`
}

// MigratedFile is one file that changes.
type MigratedFile struct {
	Path  string   `json:"path"`
	Notes []string `json:"notes,omitempty"` // what was changed, in words
	Diff  string   `json:"diff"`            // unified

	before, after []byte
}

// Outdated says what Migrate would change, and writes nothing.
func (s *Service) Outdated(ctx context.Context, r MigrateRequest) (Migration, error) {
	m := Migration{Schema: "pawl.boot-migration/v1", Files: []MigratedFile{}}
	link, err := s.migrateLink(ctx, &m, r)
	if err != nil {
		return m, err
	}
	schemas := bootstate.FormatSchemas()
	if contract, err := s.contract(ctx, link.Link); err == nil {
		schemas = contract.Schemas
	}
	at := memory{ws: s.ws, link: link}
	project := r.Project
	if project == "" {
		project = projectOf(s.ws.Root)
	}
	now := s.ws.Now()
	for _, one := range []struct {
		name    string
		migrate func([]byte) ([]byte, []string, []bootstate.Finding)
	}{
		{link.State, func(src []byte) ([]byte, []string, []bootstate.Finding) {
			return schemas.MigrateState(src, project, now)
		}},
		{link.Tasks, func(src []byte) ([]byte, []string, []bootstate.Finding) { return schemas.MigrateTodo(src, now) }},
	} {
		file := at.read(ctx, one.name)
		if file.Problem != "" {
			return m, &loop.Fault{Exit: loop.ExitUnreadable, What: one.name + " cannot be read", Why: file.Problem, Fix: "put a regular, readable file there"}
		}
		if !file.Exists {
			continue
		}
		after, notes, wrong := one.migrate(file.Content)
		if len(wrong) > 0 {
			lines := make([]string, len(wrong))
			for i, f := range wrong {
				lines[i] = memoryFinding(one.name, f).String()
			}
			return m, &loop.Fault{
				Exit: loop.ExitUnreadable, What: one.name + " cannot be brought into the form of today", Why: strings.Join(lines, "\n"),
				Fix: "correct these by hand, and do this again; places are those of the migrated text",
			}
		}
		m.add(one.name, file.Content, after, notes)
	}
	return m, nil
}

func (m *Migration) add(name string, before, after []byte, notes []string) {
	if !bytes.Equal(before, after) {
		text := diff.Diff("a/"+name, before, "b/"+name, after)
		m.Files = append(m.Files, MigratedFile{Path: name, Notes: notes, Diff: string(text), before: before, after: after})
	}
}

// migrateLink returns the link as it is, or will be.
func (s *Service) migrateLink(ctx context.Context, m *Migration, r MigrateRequest) (bootdef.Link, error) {
	link, err := bootdef.Read(s.ws.Root)
	if err != nil || len(link.Findings) == 0 {
		return link, err
	}
	var other bootlink.Link
	if r.Boot != "" {
		if other.Repository, other.Reference, err = splitBoot(r.Boot); err != nil {
			return link, err
		}
	}
	if r.Version != "" {
		version, ok := bootlink.ParseVersion(r.Version)
		if !ok {
			return link, &loop.Fault{Exit: loop.ExitUsage, What: r.Version + " is not a version", Fix: "write three numbers, like 1.0.0"}
		}
		other.Version = version
	}
	text, findings := bootlink.MigrateLink(link.Source, other)
	named, _ := bootlink.ParseLink([]byte(text))
	if named.Version == (bootlink.Version{}) && named.Repository != "" && named.Reference != "" {
		contract, err := s.contract(ctx, named) // An error about the version is what is expected.
		if contract.Version.Version == (bootlink.Version{}) {
			return link, &loop.Fault{
				Exit: exitOf(err), What: "the link names no boot version, and that of the boot repository is not known", Why: err.Error(), Err: err,
				Fix: "say it: {1}", Actions: []loop.Command{loop.PawlCommand("boot migrate").WithFlag("boot-version", "1.0.0").WithBlanks("1.0.0")},
			}
		}
		other.Version = contract.Version.Version
		text, findings = bootlink.MigrateLink(link.Source, other)
	}
	source := link.Source
	link = bootdef.Link{Source: []byte(text), Findings: findings}
	if f, ok := errors.AsType[*loop.Fault](link.Fault()); ok {
		f.What, f.Fix = bootdef.LinkFile+" cannot be brought into the form of today", "correct it by hand, or say what it lacks: {1}"
		f.Actions = []loop.Command{loop.PawlCommand("boot migrate").WithFlag("boot", "REPOSITORY@REF").WithBlanks("REPOSITORY@REF")}
		return link, f
	}
	link.Link, _ = bootlink.ParseLink(link.Source)
	m.add(bootdef.LinkFile, source, link.Source, nil)
	return link, nil
}

func exitOf(err error) int {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f.Exit
	}
	return loop.ExitError
}

// Migrate brings the link, the state and the tasks of the checkout into the form of
// today. It commits nothing, and a second call changes nothing.
func (s *Service) Migrate(ctx context.Context, r MigrateRequest) (Migration, error) {
	m, err := s.Outdated(ctx, r)
	if err != nil || len(m.Files) == 0 {
		return m, err
	}
	w, closeRoot, err := s.openWriter()
	if err != nil {
		return m, err
	}
	for _, f := range m.Files {
		if err := w.replace(f.Path, f.before, f.after); err != nil {
			return m, errors.Join(err, closeRoot())
		}
	}
	m.Written = true
	return m, closeRoot()
}
