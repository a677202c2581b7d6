package loops

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// rewritableGates returns a note for each gate that the agent can rewrite, because its
// files in the checkout are in the scope. A run finds the same in its base. A
// definition outside of .loops gets no note.
func (c Checked) rewritableGates() []readiness.Finding {
	top := c.Root("")
	if top == "" {
		return nil
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	def := c.Definition
	at := map[string]readiness.Value{"verify": c.Config.Verify, "guard": c.Config.Guard}
	for line, v := range map[*string]readiness.Value{&def.Verify: c.Config.Verify, &def.Guard: c.Config.Guard} {
		if !readiness.IsFilled(v.Text) {
			*line = ""
		}
	}
	judges, err := gate.JudgesOf(def, checkout{root})
	if err != nil {
		return nil // The scope is reported by its own check.
	}
	var notes []readiness.Finding
	for _, r := range judges.Rewritable {
		place := at[r.Gate]
		notes = append(notes, readiness.Finding{
			Kind: readiness.KindNote, Severity: readiness.SeverityWarning, Key: r.Gate, Line: max(1, place.Line), Column: max(1, place.Column),
			Message: r.Gate + ": " + readiness.Printable(r.String()),
		})
	}
	return notes
}

// checkout reads the files of a checkout.
type checkout struct{ root *os.Root }

// Read implements judging.Tree.
func (t checkout) Read(name string) ([]byte, error) {
	info, err := t.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, fs.ErrNotExist // Also for a name that leads out of the checkout.
	}
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		to, err := t.root.Readlink(filepath.FromSlash(name))
		return []byte(filepath.ToSlash(to)), err
	case !info.Mode().IsRegular():
		return nil, fs.ErrNotExist
	}
	f, err := t.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	const most = 16 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}

// Names implements judging.Tree. It lists at most 500,000 names.
func (t checkout) Names() ([]string, error) {
	const most = 500_000
	var names []string
	err := fs.WalkDir(t.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // A folder that cannot be listed hides what it holds, here as from a run.
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.IsDir():
			names = append(names, name)
		}
		if len(names) == most {
			return fs.SkipAll
		}
		return nil
	})
	return names, err
}
