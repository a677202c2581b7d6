package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/sandbox"
)

// layers is what a tree is that is a directory only where a sandbox mounts it:
// layers from the cache, which nobody writes to, below an upper directory.
type layers struct {
	upper, work string
	lower       []*layer // topmost first; they stay as long as they are held
	pushed      []string // above them, topmost first
	listed      stack    // of lower; read when it is needed
}

const (
	upperName = "upper"
	workName  = "work"
)

func layersAt(dir string) *layers {
	return &layers{upper: filepath.Join(dir, upperName), work: filepath.Join(dir, workName)}
}

// release lets go of the layers, which then may be collected.
func (l *layers) release() {
	for _, at := range l.lower {
		at.release()
	}
}

// Overlay says what to mount as the tree, nil for a tree that is a directory.
func (t *Tree) Overlay() *sandbox.Overlay {
	if t.layers == nil {
		return nil
	}
	lower := slices.Clone(t.layers.pushed)
	for _, at := range t.layers.lower {
		lower = append(lower, at.files())
	}
	return &sandbox.Overlay{Lower: lower, Upper: t.layers.upper, Work: t.layers.work}
}

// Push adds what is in one more directory, by its absolute path, to a tree that
// no program has seen yet. It is not a change of the tree, as long as it stays as
// it is in the directory, which must stay too. Below layers it is put on top of
// the lower ones; into a directory it is copied, where the tree has nothing at
// its path.
func (t *Tree) Push(ctx context.Context, layer string) error {
	if !filepath.IsAbs(layer) {
		return fmt.Errorf("put %q below tree %s: it is not an absolute path", layer, t.Name)
	}
	to := &t.pushed
	if t.layers != nil {
		to = &t.layers.pushed
	}
	pushed := append([]string{layer}, *to...)
	err := t.trees.writeRecord(t.Name, t.record(pushed))
	if err == nil && t.layers == nil {
		err = t.copyIn(ctx, layer)
	}
	if err != nil {
		return fmt.Errorf("put %s below tree %s: %w", layer, t.Name, err)
	}
	*to = pushed
	return nil
}

func (t *Tree) record(pushed []string) record {
	r := record{From: t.From, Rev: t.From, Pushed: pushed, Filled: t.filled, Whole: t.layers == nil}
	if t.Base != "" {
		r.Rev = t.Base
	}
	if t.layers != nil {
		for _, at := range t.layers.lower {
			r.Lower = append(r.Lower, at.name)
		}
	}
	return r
}

// layered returns a tree of rev that has its layers below it and no upper
// directory yet.
func (t *Trees) layered(ctx context.Context, name, rev string) (*Tree, error) {
	from, lower, err := t.layerCache().open(ctx, rev)
	if err != nil {
		return nil, err
	}
	tree := &Tree{Name: name, From: from, trees: t, layers: layersAt(filepath.Join(t.root, name))}
	tree.layers.lower = lower
	if rev != from {
		tree.Base = rev
	}
	return tree, nil
}

func (t *Trees) makeLayered(ctx context.Context, name, rev string) (*Tree, error) {
	tree, err := t.layered(ctx, name, rev)
	if err != nil {
		return nil, err
	}
	if err := tree.raise(ctx); err != nil {
		tree.layers.release()
		return nil, err
	}
	return tree, afterMake.Hit(ctx)
}

// raise makes the upper directory and gives the tree its name.
func (t *Tree) raise(ctx context.Context) error {
	made := t.trees.hidden(t.Name, suffixNew)
	err := t.trees.clear(made)
	if err == nil {
		err = t.upperAt(ctx, layersAt(made))
	}
	if err == nil {
		err = beforeMake.Hit(ctx)
	}
	if err == nil {
		err = t.trees.writeRecord(t.Name, t.record(nil))
	}
	if err == nil {
		err = os.Rename(made, t.place())
	}
	if err != nil {
		return errors.Join(err, sandbox.Discard(made), t.trees.dropRecord(t.Name))
	}
	return nil
}

// upperAt makes both directories. The git directory gets what belongs to this tree
// alone: all else of it is in the layers below.
func (t *Tree) upperAt(ctx context.Context, l *layers) error {
	g := gitDir{repo: t.trees.repo, owner: t.trees.owner(), mirror: t.trees.options.Mirror}
	dotGit := filepath.Join(l.upper, ".git")
	for _, dir := range []string{l.upper, l.work, dotGit} {
		if err := g.folder(dir); err != nil {
			return err
		}
	}
	return g.own(ctx, dotGit, t)
}

// adoptLayered takes up layers. If those below are gone, they are made again:
// any that show the same tree do.
func (t *Trees) adoptLayered(ctx context.Context, name, rev string, r record) (*Tree, error) {
	tree, err := t.layered(ctx, name, rev)
	if err != nil {
		return nil, err
	}
	tree.layers.pushed, tree.filled = r.Pushed, r.Filled
	info, err := os.Lstat(tree.layers.upper)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: %w", tree.layers.upper, loop.ErrNotFound)
	}
	if err == nil {
		err = t.writeRecord(name, tree.record(r.Pushed))
	}
	if err != nil {
		tree.layers.release()
		return nil, err
	}
	return tree, nil
}

// place is the host directory that has the name of the tree.
func (t *Tree) place() string { return filepath.Join(t.trees.root, t.Name) }

// named lists files of the tree by their last path element. Where the listing
// cannot be read it names nothing, and Changes says why.
func (l *layers) named(name string) []object.Entry {
	s, err := l.stack()
	if err != nil {
		return nil
	}
	return s.named(name)
}
