package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/dirglob"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/sandbox"
)

var (
	beforePark = fault.New("workspace.park.before")
	afterPark  = fault.New("workspace.park.after")
)

// A unit is a copy that is parked between two uses: the directory, and how its
// files were left when it was filled last, where no program in it can write.
// Whoever renames a parked unit has it. While the tree is in use the unit waits
// without it.
const (
	suffixUnit = ".unit"
	unitTree   = "tree"
	unitMarks  = "marks"

	parkedName = "parked"
	maxParked  = 4 // of one repository and user
)

// parked is where copies wait that belong to the user of the trees: another one
// could not write to them.
func (s *layerCache) parked() string {
	name := parkedName
	if o := s.trees.owner(); !o.isPawl() {
		name += "-" + strconv.Itoa(o.uid)
	}
	return filepath.Join(s.dir, name)
}

// allParked lists the folders of parked copies, of all users.
func (s *layerCache) allParked() []string {
	others, _ := dirglob.Find(s.dir, parkedName+"-*") // The pattern is a good one.
	return append([]string{filepath.Join(s.dir, parkedName)}, others...)
}

// makePooled makes a copy out of a parked one, or writes a new one.
func (t *Trees) makePooled(ctx context.Context, name, rev string) (*Tree, error) {
	if err := t.cached(); err != nil {
		return nil, err
	}
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	dir := filepath.Join(t.root, name)
	tree, entries, err := t.describe(blobs, name, dir, rev)
	if err != nil {
		return nil, err
	}
	unit := t.hidden(name, suffixUnit)
	err = errors.Join(os.MkdirAll(t.root, 0o700), sandbox.Discard(unit), sandbox.Discard(t.hidden(name, suffixNew)), t.dropRecord(name))
	if err == nil {
		err = tree.prepare(ctx, unit, entries, blobs)
	}
	if err == nil {
		err = beforeMake.Hit(ctx)
	}
	if err == nil {
		err = os.Rename(filepath.Join(unit, unitTree), dir)
	}
	if err != nil {
		return nil, errors.Join(err, sandbox.Discard(unit))
	}
	return tree, afterMake.Hit(ctx)
}

// prepare leaves a complete copy in the unit. A parked one that cannot be reset
// is thrown away.
func (t *Tree) prepare(ctx context.Context, unit string, entries []object.Entry, blobs *object.Blobs) error {
	if t.trees.layerCache().lease(unit) {
		kept, err := t.reset(ctx, unit)
		if err == nil {
			err = t.complete(ctx, unit, kept, entries, blobs)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		// The reset may have broken the connection to git by giving up.
		fresh, err := t.trees.repo.Blobs(ctx)
		if err != nil {
			return err
		}
		defer fresh.Close()
		blobs = fresh
		if err := sandbox.Discard(unit); err != nil {
			return err
		}
	}
	g := gitDir{owner: t.trees.owner()}
	if err := errors.Join(os.Mkdir(unit, 0o700), g.folder(filepath.Join(unit, unitTree))); err != nil {
		return err
	}
	return t.complete(ctx, unit, nil, entries, blobs)
}

// lease takes one parked unit.
func (s *layerCache) lease(unit string) bool {
	entries, err := os.ReadDir(s.parked())
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name()[0] != '.' && os.Rename(filepath.Join(s.parked(), e.Name()), unit) == nil {
			return true
		}
	}
	return false
}

// complete writes what is not kept, the git directory and the marks.
func (t *Tree) complete(ctx context.Context, unit string, kept map[int]bool, entries []object.Entry, blobs *object.Blobs) error {
	dir := filepath.Join(unit, unitTree)
	f := &filler{tree: t, dir: dir, as: style{owner: t.trees.owner()}, kept: kept}
	if err := f.run(ctx, entries, blobs); err != nil {
		return err
	}
	t.seal(dir)
	g, err := t.trees.gitDir()
	if err != nil {
		return err
	}
	dotGit := filepath.Join(dir, ".git")
	if err := g.common(dotGit, t.indexed()); err != nil {
		return err
	}
	if err := g.own(ctx, dotGit, t); err != nil {
		return err
	}
	return t.saveMarks(filepath.Join(unit, unitMarks))
}

// saveMarks keeps how the files were left. A mark that proves nothing gets a
// time that no file has.
func (t *Tree) saveMarks(path string) error {
	boot, err := bootID()
	if err != nil {
		return nil //nolint:nilerr // Without marks the copy is not used again.
	}
	list := t.indexed()
	for i := range list {
		if !t.marks[t.index[list[i].Path]].sure {
			list[i].Changed = time.Unix(0, 0)
		}
	}
	var b bytes.Buffer
	b.WriteString(boot + "\n")
	if err := index.Write(&b, t.trees.repo.Format, list); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

var errParked = errors.New("the parked copy cannot be trusted")

// readMarks returns the marks of a unit by path.
func (t *Trees) readMarks(path string) (map[string]index.Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	data, same := bytes.CutPrefix(data, []byte(boot+"\n"))
	if !same {
		return nil, errParked
	}
	list, err := index.Read(t.repo.Format, data)
	if err != nil {
		return nil, err
	}
	marks := make(map[string]index.Entry, len(list))
	for _, e := range list {
		marks[e.Path] = e
	}
	return marks, nil
}

// park puts a copy that is not needed any more where the next one is taken
// from, if it is of the pool and there is room.
func (t *Trees) park(ctx context.Context, name, dir string) error {
	unit := t.hidden(name, suffixUnit)
	if _, err := os.Lstat(filepath.Join(unit, unitMarks)); err != nil || t.options.Kind != Pooled {
		return sandbox.Discard(unit)
	}
	s := t.layerCache()
	there, err := os.ReadDir(s.parked())
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(there) >= maxParked {
		return sandbox.Discard(unit)
	}
	if err := errors.Join(beforePark.Hit(ctx), os.MkdirAll(s.parked(), 0o700), sandbox.Discard(filepath.Join(unit, unitTree))); err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(unit, unitTree)); err != nil {
		return sandbox.Discard(unit)
	}
	if err := os.Rename(unit, filepath.Join(s.parked(), rand.Text())); err != nil {
		return err
	}
	return afterPark.Hit(ctx)
}
