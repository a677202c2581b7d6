package workspace

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/sandbox"
)

// Overlay says what to mount as the tree, nil for a tree that is a directory.
func (t *Tree) Overlay() *sandbox.Overlay { return t.form.overlay(t.pushed) }

// Entries lists what the git tree holds that the copy was made from, sorted by
// path.
func (t *Tree) Entries() ([]object.Entry, error) {
	files, err := t.form.base()
	if err != nil {
		return nil, fmt.Errorf("list tree %s: %w", t.Name, err)
	}
	return files.entries(), nil
}

// Named lists the regular files of the git tree that the copy was made from whose
// last path element is name. Where they cannot be read the list is empty, and
// Changes returns the error.
func (t *Tree) Named(name string) []object.Entry {
	files, err := t.form.base()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(files.named(name), func(e object.Entry) bool {
		return e.Mode != object.ModeFile && e.Mode != object.ModeExec
	})
}

// Holds reports whether the git tree that the copy was made from has a file at
// path.
func (t *Tree) Holds(path string) (bool, error) {
	files, err := t.form.base()
	if err != nil {
		return false, fmt.Errorf("look up %q in tree %s: %w", path, t.Name, err)
	}
	_, held := files.find(path)
	return held, nil
}

// record says what a later process has to know of the tree.
func (t *Tree) record(pushed []string) record {
	layers := t.form.layerNames()
	r := record{From: t.From, Rev: t.From, Lower: layers, Pushed: pushed, Filled: t.filled, Whole: len(layers) == 0}
	if t.Base != "" {
		r.Rev = t.Base
	}
	return r
}

// place is the host directory that has the name of the tree.
func (t *Tree) place() string { return filepath.Join(t.trees.root, t.Name) }
