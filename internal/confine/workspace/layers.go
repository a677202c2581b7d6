package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// layers is the form of a tree that a sandbox mounts as one directory: layers of the
// cache, which nobody writes to, below an upper directory.
type layers struct {
	upper, work string
	lower       []*layer // topmost first, locked
	listed      stack    // of lower; read on first use
}

const (
	upperName = "upper"
	workName  = "work"
)

func layersAt(dir string) *layers {
	return &layers{upper: filepath.Join(dir, upperName), work: filepath.Join(dir, workName)}
}

// release unlocks the layers, which then may be collected.
func (l *layers) release() {
	for _, at := range l.lower {
		at.releaseLock()
	}
}

func (l *layers) writableDir() string { return l.upper }
func (l *layers) gitIndex() string    { return l.lower[0].indexPath() }

func (l *layers) baseFiles() (fileList, error) { return l.readStack() }

func (l *layers) layerNames() []string {
	names := make([]string, len(l.lower))
	for i, at := range l.lower {
		names[i] = at.name
	}
	return names
}

func (l *layers) overlaySpec(pushed []string) *sandbox.Overlay {
	lower := slices.Clone(pushed)
	for _, at := range l.lower {
		lower = append(lower, at.filesDir())
	}
	return &sandbox.Overlay{Lower: lower, Upper: l.upper, Work: l.work}
}

// addFiles does nothing: pushed directories are mounted on top of the lower layers.
func (l *layers) addFiles(context.Context, string, bool) error { return nil }

func (l *layers) mayLackContent() (bool, error) {
	for _, at := range l.lower {
		text, err := os.ReadFile(filepath.Join(at.dir, partialName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if string(text) != "false" {
			return true, nil // An older version made the layer without the file.
		}
	}
	return false, nil
}

// readStack reads the listings of the layers, once.
func (l *layers) readStack() (stack, error) {
	if l.listed != nil {
		return l.listed, nil
	}
	var s stack
	for _, at := range l.lower {
		list, err := readListing(at.listingPath())
		if err != nil {
			return nil, err
		}
		s = append(s, list)
	}
	l.listed = s
	return s, nil
}

// openLayered returns a tree of rev with its lower layers, and no upper directory yet.
func (t *Trees) openLayered(ctx context.Context, name, rev string) (*Tree, *layers, error) {
	from, lower, err := t.layerCache().openLayers(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	l := layersAt(filepath.Join(t.root, name))
	l.lower = lower
	return t.newTree(name, rev, from, l), l, nil
}

func (t *Trees) makeLayered(ctx context.Context, name, rev string) (*Tree, error) {
	tree, l, err := t.openLayered(ctx, name, rev)
	if err != nil {
		return nil, err
	}
	made := t.hiddenPath(name, suffixNew)
	if err = t.makeRoom(made); err == nil {
		err = tree.makeUpper(ctx, layersAt(made))
	}
	if err == nil {
		err = beforeMake.Hit(ctx)
	}
	if err == nil {
		err = t.writeRecord(name, tree.newRecord(nil))
	}
	if err == nil {
		err = os.Rename(made, tree.hostDir())
	}
	if err != nil {
		defer l.release()
		return nil, errors.Join(err, sandbox.RemoveTree(made), t.dropRecord(name))
	}
	return tree, afterMake.Hit(ctx)
}

// makeUpper makes the upper and the work directory. The upper git directory gets only the
// part of this tree: the layers have the rest.
func (t *Tree) makeUpper(ctx context.Context, l *layers) error {
	g := gitDir{repo: t.trees.repo, owner: t.trees.programOwner(), mirror: t.trees.options.Mirror}
	dotGit := filepath.Join(l.upper, ".git")
	for _, dir := range []string{l.upper, l.work, dotGit} {
		if err := g.makeFolder(dir); err != nil {
			return err
		}
	}
	return g.writeOwn(ctx, dotGit, t)
}

// adoptLayered takes up a tree of layers. If the lower layers are gone, they are made
// again: any layers of the same tree will do.
func (t *Trees) adoptLayered(ctx context.Context, name, rev string, r record) (*Tree, error) {
	tree, l, err := t.openLayered(ctx, name, rev)
	if err != nil {
		return nil, err
	}
	tree.pushed, tree.filled = r.Pushed, r.Filled
	info, err := os.Lstat(l.upper)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		err = fmt.Errorf("%s: %w", l.upper, loop.ErrNotFound)
	}
	if err == nil {
		err = t.writeRecord(name, tree.newRecord(r.Pushed))
	}
	if err != nil {
		l.release()
		return nil, err
	}
	return tree, nil
}
