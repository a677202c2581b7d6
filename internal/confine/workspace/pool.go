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

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/dirglob"
	"github.com/pawl-run/pawl/internal/ground/fault"
)

var (
	beforePark = fault.New("workspace.park.before")
	afterPark  = fault.New("workspace.park.after")
)

// A unit is a copy that is parked between two uses: the directory, and the marks of its
// files, which no program in the directory can write. The process that renames a parked
// unit owns it. While the tree is in use, the unit has only the marks.
const (
	suffixUnit = ".unit"
	unitTree   = "tree"
	unitMarks  = "marks"

	parkedName = "parked"
	maxParked  = 4 // of one repository and user
)

// parkedDir returns the folder of parked copies that belong to the user of the trees:
// another user could not write to them.
func (s *layerCache) parkedDir() string {
	name := parkedName
	if o := s.trees.programOwner(); !o.isPawl() {
		name += "-" + strconv.Itoa(o.uid)
	}
	return filepath.Join(s.dir, name)
}

// allParkedDirs returns the folders of parked copies of all users.
func (s *layerCache) allParkedDirs() []string {
	return append([]string{filepath.Join(s.dir, parkedName)}, dirglob.Find(s.dir, parkedName+"-*")...)
}

// makePooled resets a parked copy, or writes a new one.
func (t *Trees) makePooled(ctx context.Context, name, rev string) (*Tree, error) {
	if err := t.checkCache(); err != nil {
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
	u := unit{dir: t.hiddenPath(name, suffixUnit), tree: tree, files: files}
	err = errors.Join(os.MkdirAll(t.root, 0o700), sandbox.RemoveTree(u.dir), sandbox.RemoveTree(t.hiddenPath(name, suffixNew)), t.dropRecord(name))
	if err == nil {
		err = u.prepareCopy(ctx, blobs)
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

// prepareCopy makes a complete copy in the unit. A parked one that cannot be reset is
// removed.
func (u unit) prepareCopy(ctx context.Context, blobs *object.Blobs) error {
	trees := u.tree.trees
	if trees.layerCache().leaseUnit(u.dir) {
		kept, err := u.resetCopy(ctx)
		if err == nil {
			err = u.completeCopy(ctx, kept, blobs)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		// The failed reset may have broken the connection to git.
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
	g := gitDir{owner: trees.programOwner()}
	if err := errors.Join(os.Mkdir(u.dir, 0o700), g.makeFolder(u.copyDir())); err != nil {
		return err
	}
	return u.completeCopy(ctx, nil, blobs)
}

// leaseUnit takes one parked unit, and reports false if there is none.
func (s *layerCache) leaseUnit(unit string) bool {
	entries, err := os.ReadDir(s.parkedDir())
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Name()[0] != '.' && os.Rename(filepath.Join(s.parkedDir(), e.Name()), unit) == nil {
			return true
		}
	}
	return false
}

// completeCopy writes the files that are not kept, the git directory and the marks.
func (u unit) completeCopy(ctx context.Context, kept map[int]bool, blobs *object.Blobs) error {
	trees, dir := u.tree.trees, u.copyDir()
	if err := u.files.writeFiles(ctx, dir, style{owner: trees.programOwner()}, kept, blobs); err != nil {
		return err
	}
	u.files.sealMarks(dir)
	g, err := trees.gitDir()
	if err != nil {
		return err
	}
	dotGit := filepath.Join(dir, ".git")
	list := u.files.indexEntries()
	if err := g.writeCommon(dotGit, list); err != nil {
		return err
	}
	if err := g.writeOwn(ctx, dotGit, u.tree); err != nil {
		return err
	}
	return u.saveMarks(list)
}

// saveMarks writes the marks of the files. A mark that is not sure gets a time that no
// file has.
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

// parkCopy parks a copy that is not needed any more, if it is of the pool and the pool is
// not full.
func (t *Trees) parkCopy(ctx context.Context, name, dir string) error {
	unit := t.hiddenPath(name, suffixUnit)
	if _, err := os.Lstat(filepath.Join(unit, unitMarks)); err != nil || t.options.Kind != Pooled {
		return sandbox.RemoveTree(unit)
	}
	s := t.layerCache()
	there, err := os.ReadDir(s.parkedDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(there) >= maxParked {
		return sandbox.RemoveTree(unit)
	}
	if err := errors.Join(beforePark.Hit(ctx), os.MkdirAll(s.parkedDir(), 0o700), sandbox.RemoveTree(filepath.Join(unit, unitTree))); err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(unit, unitTree)); err != nil {
		return sandbox.RemoveTree(unit)
	}
	if err := os.Rename(unit, filepath.Join(s.parkedDir(), rand.Text())); err != nil {
		return err
	}
	return afterPark.Hit(ctx)
}
