package workspace

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git/object"
)

// Overlay returns what to mount as the tree, nil for a tree that is a directory.
func (t *Tree) Overlay() *sandbox.Overlay { return t.form.overlaySpec(t.pushed) }

// Entries returns the entries of the git tree that the copy was made from, sorted by
// path.
func (t *Tree) Entries() ([]object.Entry, error) {
	files, err := t.form.baseFiles()
	if err != nil {
		return nil, fmt.Errorf("list tree %s: %w", t.Name, err)
	}
	return files.allEntries(), nil
}

// EntriesNamed returns the regular files of the git tree that the copy was made from
// whose last path element is name. If the entries cannot be read, the list is empty, and
// Changes returns the error.
func (t *Tree) EntriesNamed(name string) []object.Entry {
	files, err := t.form.baseFiles()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(files.entriesNamed(name), func(e object.Entry) bool {
		return e.Mode != object.ModeFile && e.Mode != object.ModeExec
	})
}

// HoldsFile reports whether the git tree that the copy was made from has a file at
// path.
func (t *Tree) HoldsFile(path string) (bool, error) {
	files, err := t.form.baseFiles()
	if err != nil {
		return false, fmt.Errorf("look up %q in tree %s: %w", path, t.Name, err)
	}
	_, held := files.findEntry(path)
	return held, nil
}

// newRecord returns what a later process has to know about the tree.
func (t *Tree) newRecord(pushed []string) record {
	layers := t.form.layerNames()
	r := record{From: t.From, Rev: t.From, Lower: layers, Pushed: pushed, Filled: t.filled, Whole: len(layers) == 0}
	if t.Base != "" {
		r.Rev = t.Base
	}
	return r
}

// hostDir returns the host directory with the name of the tree.
func (t *Tree) hostDir() string { return filepath.Join(t.trees.root, t.Name) }
