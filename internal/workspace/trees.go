// Package workspace makes the directories in which agents and gates work: each
// is a copy of exactly one git tree, outside the checkout, written byte for
// byte without filters. Afterwards it says what changed in one, as a list that
// package git turns into a commit, and what it found there that can never be
// part of a commit.
//
// It never reads or writes the user's checkout, follows no symbolic link in a
// tree, runs nothing that lies in one, and never decides who owns a tree or
// whether a change is allowed. It does not expect anybody to write to a tree
// while it reads it; what changes nevertheless is noticed by package git.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/sandbox"
)

var (
	beforeMake   = fault.New("workspace.make.before")
	afterMake    = fault.New("workspace.make.after")
	beforeRemove = fault.New("workspace.remove.before")
	beforeSnap   = fault.New("workspace.snapshot.before")
	afterSnap    = fault.New("workspace.snapshot.after")
)

// Limits bound what one tree may hold in changes. A zero field means its
// default.
type Limits struct {
	Files     int   // changed files; 20,000
	Bytes     int64 // of all changed files together; 256 MiB
	FileBytes int64 // of one changed file; 64 MiB

	// Skip says for each of some paths that the base does not hold whether it is
	// no change, such as what the ignore rules of the base name. They are entries
	// of one folder; the path of a directory ends with a slash. It is asked about
	// a directory before anything below it. Nil skips nothing.
	Skip func(paths []string) []bool
}

func (l Limits) withDefaults() Limits {
	if l.Files <= 0 {
		l.Files = 20_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	if l.FileBytes <= 0 {
		l.FileBytes = 64 << 20
	}
	if l.Skip == nil {
		l.Skip = func(paths []string) []bool { return make([]bool, len(paths)) }
	}
	return l
}

// Trees are the directories below one root. Several processes may share a root
// as long as they use different names. It holds nothing open.
type Trees struct {
	root    string
	repo    *git.Repo
	limits  Limits
	options Options
}

// Tree is one git tree to work in: a directory of its own, or layers that are
// one where they are mounted.
type Tree struct {
	Name string
	Dir  string // absolute path; empty for layers
	Base string // the commit it was made from; empty if it was made from a tree
	From string // the tree it was made from

	trees  *Trees
	layers *layers        // nil for a directory, and then the rest describes it
	index  map[string]int // path → place in the two slices
	paths  []string
	marks  []mark
	folder map[string]bool // directories that hold files of From
	pushed []string        // directories that were copied into it, the last one first

	filled string           // of what was pushed, where what the tree only names came from; empty: nowhere
	given  map[string]*mark // of what came from there into a directory
}

// A tree appears under its name only when it is complete, and leaves it before
// it is taken apart: whatever has the name after a crash is worth saving.
const (
	suffixNew  = ".new"
	suffixGone = ".gone"
)

var nameRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

func (t *Trees) path(name string) (string, error) {
	if !nameRule.MatchString(name) {
		return "", fmt.Errorf("tree name %q is not made of letters, digits, dots, dashes and underscores", name)
	}
	return filepath.Join(t.root, name), nil
}

func (t *Trees) hidden(name, suffix string) string {
	return filepath.Join(t.root, "."+name+suffix)
}

// Make writes the tree of rev, a commit or tree by its full object name, into a
// new directory. A directory of that name must not exist (fs.ErrExist). On an
// error nothing is left under the name.
func (t *Trees) Make(ctx context.Context, name, rev string) (*Tree, error) {
	tree, err := t.make(ctx, name, rev)
	if err != nil {
		return nil, fmt.Errorf("make tree %s of %s: %w", name, rev, err)
	}
	return tree, nil
}

func (t *Trees) make(ctx context.Context, name, rev string) (*Tree, error) {
	dir, err := t.path(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s: %w", dir, fs.ErrExist)
	}
	switch t.options.Kind {
	case Layered:
		return t.makeLayered(ctx, name, rev)
	case Pooled:
		return t.makePooled(ctx, name, rev)
	case Plain:
	}
	return t.makePlain(ctx, name, dir, rev)
}

func (t *Trees) makePlain(ctx context.Context, name, dir, rev string) (*Tree, error) {
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	tree, entries, err := t.describe(blobs, name, dir, rev)
	if err != nil {
		return nil, err
	}
	made := t.hidden(name, suffixNew)
	if err := errors.Join(t.dropRecord(name), t.clear(made)); err != nil {
		return nil, err
	}
	err = tree.fill(ctx, made, style{owner: t.owner()}, entries, blobs)
	if err == nil {
		tree.seal(made)
		err = beforeMake.Hit(ctx)
	}
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		return nil, errors.Join(err, sandbox.Discard(made))
	}
	return tree, afterMake.Hit(ctx)
}

// clear makes room for a new directory.
func (t *Trees) clear(dir string) error {
	if err := os.MkdirAll(t.root, 0o700); err != nil {
		return err
	}
	if err := sandbox.Discard(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// Adopt takes up a directory that an earlier process made from rev. What that
// process knew about it is lost, so Changes reads every file. A directory that
// was never complete is loop.ErrNotFound: there is nothing in it to save.
func (t *Trees) Adopt(ctx context.Context, name, rev string) (*Tree, error) {
	tree, err := t.adopt(ctx, name, rev)
	if err != nil {
		return nil, fmt.Errorf("adopt tree %s of %s: %w", name, rev, err)
	}
	return tree, nil
}

func (t *Trees) adopt(ctx context.Context, name, rev string) (*Tree, error) {
	dir, err := t.path(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s: %w", dir, loop.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	r, layered, err := t.readRecord(name)
	if err != nil {
		// It says too little, and rev says enough.
		_, notThere := os.Lstat(filepath.Join(dir, upperName))
		layered = notThere == nil
	}
	if layered {
		return t.adoptLayered(ctx, name, rev, r)
	}
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	tree, _, err := t.describe(blobs, name, dir, rev)
	if err != nil {
		return nil, err
	}
	tree.pushed, tree.filled = r.Pushed, r.Filled
	return tree, nil
}

// describe lists rev and refuses what must not be written to a file system.
func (t *Trees) describe(blobs *object.Blobs, name, dir, rev string) (*Tree, []object.Entry, error) {
	from, entries, err := blobs.Tree(rev)
	if err != nil {
		return nil, nil, err
	}
	tree, err := t.survey(name, dir, from, entries)
	if err != nil {
		return nil, nil, err
	}
	if rev != from {
		tree.Base = rev
	}
	return tree, entries, nil
}

// survey describes files of a tree and refuses what must not be written.
func (t *Trees) survey(name, dir, from string, entries []object.Entry) (*Tree, error) {
	tree := &Tree{
		Name: name, Dir: dir, From: from, trees: t,
		index: make(map[string]int, len(entries)), folder: map[string]bool{},
		paths: make([]string, len(entries)), marks: make([]mark, len(entries)),
	}
	for i, e := range entries {
		if err := tree.admit(i, e); err != nil {
			return nil, err
		}
	}
	for _, path := range tree.paths {
		if tree.folder[path] {
			return nil, fmt.Errorf("path %q is a file and a directory", path)
		}
	}
	return tree, nil
}

func (t *Tree) admit(i int, e object.Entry) error {
	if err := object.CheckPath(e.Path); err != nil {
		return err
	}
	if _, twice := t.index[e.Path]; twice {
		return fmt.Errorf("path %q is there twice", e.Path)
	}
	mode, err := plainMode(e)
	if err != nil {
		return err
	}
	t.index[e.Path], t.paths[i] = i, e.Path
	t.marks[i] = mark{mode: mode, id: e.ID}
	t.admitFolders(e.Path)
	return nil
}

// admitFolders notes the folders above a path.
func (t *Tree) admitFolders(path string) {
	for dir := parent(path); dir != "" && !t.folder[dir]; dir = parent(dir) {
		t.folder[dir] = true
	}
}

// plainMode is what git makes of a mode in a tree: old trees hold 0100664.
func plainMode(e object.Entry) (uint32, error) {
	switch {
	case e.Mode == object.ModeSymlink, e.Mode == object.ModeGitlink:
		return e.Mode, nil
	case e.Mode&0o170000 == 0o100000 && e.Mode&0o100 != 0:
		return object.ModeExec, nil
	case e.Mode&0o170000 == 0o100000:
		return object.ModeFile, nil
	}
	return 0, fmt.Errorf("path %q has the mode %o", e.Path, e.Mode)
}

// parent is the directory of a slash separated path, empty at the top.
func parent(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}

// Left returns the names of all trees below the root, sorted, with those that
// were never completed or only partly removed. Whose they are, the caller must
// know; Remove takes each of them.
func (t *Trees) Left() ([]string, error) {
	entries, err := os.ReadDir(t.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list trees: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if hidden, ok := strings.CutPrefix(name, "."); ok {
			for _, suffix := range []string{suffixRecord, suffixNew, suffixGone, suffixUnit} {
				hidden = strings.TrimSuffix(hidden, suffix)
			}
			name = hidden
		}
		if nameRule.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
