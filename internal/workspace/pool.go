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
	files, err := readCheckout(blobs, rev)
	if err != nil {
		return nil, err
	}
	tree := t.newDirectory(name, rev, files)
	u := unit{dir: t.hidden(name, suffixUnit), tree: tree, files: files}
	err = errors.Join(os.MkdirAll(t.root, 0o700), sandbox.RemoveTree(u.dir), sandbox.RemoveTree(t.hidden(name, suffixNew)), t.dropRecord(name))
	if err == nil {
		err = u.prepare(ctx, blobs)
	}
	if err == nil {
		err = beforeMake.Hit(ctx)
	}
	if err == nil {
		err = os.Rename(u.copyDir(), tree.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, sandbox.RemoveTree(u.dir))
	}
	return tree, afterMake.Hit(ctx)
}

// unit is a unit whose copy becomes a tree.
type unit struct {
	dir   string
	tree  *Tree
	files *checkout // of the tree
}

func (u unit) copyDir() string { return filepath.Join(u.dir, unitTree) }

// prepare leaves a complete copy in the unit. A parked one that cannot be reset
// is thrown away.
func (u unit) prepare(ctx context.Context, blobs *object.Blobs) error {
	trees := u.tree.trees
	if trees.layerCache().lease(u.dir) {
		kept, err := u.reset(ctx)
		if err == nil {
			err = u.complete(ctx, kept, blobs)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		// The reset may have broken the connection to git by giving up.
		fresh, err := trees.repo.Blobs(ctx)
		if err != nil {
			return err
		}
		defer fresh.Close()
		blobs = fresh
		if err := sandbox.RemoveTree(u.dir); err != nil {
			return err
		}
	}
	g := gitDir{owner: trees.owner()}
	if err := errors.Join(os.Mkdir(u.dir, 0o700), g.folder(u.copyDir())); err != nil {
		return err
	}
	return u.complete(ctx, nil, blobs)
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
func (u unit) complete(ctx context.Context, kept map[int]bool, blobs *object.Blobs) error {
	trees, dir := u.tree.trees, u.copyDir()
	if err := u.files.write(ctx, dir, style{owner: trees.owner()}, kept, blobs); err != nil {
		return err
	}
	u.files.seal(dir)
	g, err := trees.gitDir()
	if err != nil {
		return err
	}
	dotGit := filepath.Join(dir, ".git")
	list := u.files.indexEntries()
	if err := g.common(dotGit, list); err != nil {
		return err
	}
	if err := g.own(ctx, dotGit, u.tree); err != nil {
		return err
	}
	return u.saveMarks(list)
}

// saveMarks keeps how the files were left. A mark that proves nothing gets a
// time that no file has.
func (u unit) saveMarks(list []index.Entry) error {
	boot, err := bootID()
	if err != nil {
		return nil //nolint:nilerr // Without marks the copy is not used again.
	}
	for i := range list {
		if !u.files.marks[u.files.index[list[i].Path]].sure {
			list[i].Changed = time.Unix(0, 0)
		}
	}
	var b bytes.Buffer
	b.WriteString(boot + "\n")
	if err := index.Write(&b, u.tree.trees.repo.Format, list); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(u.dir, unitMarks), b.Bytes(), 0o600)
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
		return sandbox.RemoveTree(unit)
	}
	s := t.layerCache()
	there, err := os.ReadDir(s.parked())
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(there) >= maxParked {
		return sandbox.RemoveTree(unit)
	}
	if err := errors.Join(beforePark.Hit(ctx), os.MkdirAll(s.parked(), 0o700), sandbox.RemoveTree(filepath.Join(unit, unitTree))); err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(unit, unitTree)); err != nil {
		return sandbox.RemoveTree(unit)
	}
	if err := os.Rename(unit, filepath.Join(s.parked(), rand.Text())); err != nil {
		return err
	}
	return afterPark.Hit(ctx)
}
