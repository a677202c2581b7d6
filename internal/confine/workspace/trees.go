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
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
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

	// Skip reports for each of some paths, which the base does not have, whether it is
	// left out of the changes, such as an ignored file. The paths are entries of one
	// folder; that of a directory ends with a slash. Skip is called for a directory
	// before anything below it. Nil skips nothing.
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

// Trees are the directories below one root. Several processes may share a root if they
// use different names. It keeps no file open.
type Trees struct {
	root    string
	repo    *git.Repo
	options Options
}

// Tree is one git tree to work in: a directory, or layers that are mounted as one.
type Tree struct {
	Name string
	Dir  string // absolute path; empty for layers
	Base string // the commit it was made from; empty if it was made from a tree
	From string // the tree it was made from

	trees  *Trees
	form   form
	pushed []string // directories that were added to it, the last one first
	filled string   // the one of pushed that Fill added; empty if missing
}

// form is how a tree is stored on disk. Its content does not depend on it.
type form interface {
	writableDir() string                          // the directory of the host to which programs write
	gitIndex() string                             // the index that git in the tree starts with
	baseFiles() (fileList, error)                 // what the git tree holds, whatever was written since
	mayLackContent() (bool, error)                // of Tree.Partial
	layerNames() []string                         // topmost first; none for a directory
	overlaySpec(pushed []string) *sandbox.Overlay // nil for a directory

	// addFiles makes the files of a directory part of the tree. If it fills the tree,
	// they replace pointers of the tree.
	addFiles(ctx context.Context, from string, fills bool) error

	// scanWritten passes everything that programs may have written to a judge. info
	// describes writableDir.
	scanWritten(j *judge, info fs.FileInfo) error

	release() // the form is not used any more
}

// fileList is the files of a git tree.
type fileList interface {
	findEntry(path string) (object.Entry, bool)
	entriesNamed(name string) []object.Entry // whose last path element is name
	allEntries() []object.Entry              // sorted by path
}

// A tree gets its name only when it is complete, and is renamed before it is removed:
// after a crash, whatever has the name is worth saving.
const (
	suffixNew  = ".new"
	suffixGone = ".gone"
)

var nameRule = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

func (t *Trees) treePath(name string) (string, error) {
	if !nameRule.MatchString(name) {
		return "", fmt.Errorf("tree name %q is not made of letters, digits, dots, dashes and underscores", name)
	}
	return filepath.Join(t.root, name), nil
}

func (t *Trees) hiddenPath(name, suffix string) string {
	return filepath.Join(t.root, "."+name+suffix)
}

// Make writes the tree of rev, a commit or tree by its full object name, into a
// new directory. A directory of that name must not exist (fs.ErrExist). On an
// error nothing is left under the name.
func (t *Trees) Make(ctx context.Context, name, rev string) (*Tree, error) {
	tree, err := t.makeTree(ctx, name, rev)
	if err != nil {
		return nil, fmt.Errorf("make tree %s of %s: %w", name, rev, err)
	}
	return tree, nil
}

func (t *Trees) makeTree(ctx context.Context, name, rev string) (*Tree, error) {
	dir, err := t.treePath(name)
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
	return t.makePlain(ctx, name, rev)
}

func (t *Trees) makePlain(ctx context.Context, name, rev string) (*Tree, error) {
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return nil, err
	}
	defer blobs.Close()
	files, err := readCheckout(blobs, rev)
	if err != nil {
		return nil, err
	}
	made := t.hiddenPath(name, suffixNew)
	if err := errors.Join(t.dropRecord(name), t.makeRoom(made)); err != nil {
		return nil, err
	}
	err = files.writeFiles(ctx, made, style{owner: t.programOwner()}, nil, blobs)
	if err == nil {
		files.sealMarks(made)
		err = beforeMake.Hit(ctx)
	}
	tree := t.newDirectory(name, rev, files)
	if err == nil {
		err = os.Rename(made, tree.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, sandbox.RemoveTree(made))
	}
	return tree, afterMake.Hit(ctx)
}

// newDirectory describes a tree of rev that is a directory.
func (t *Trees) newDirectory(name, rev string, files *checkout) *Tree {
	dir := filepath.Join(t.root, name)
	tree := t.newTree(name, rev, files.tree, &directory{dir: dir, owner: t.programOwner(), checkout: files})
	tree.Dir = dir
	return tree
}

func (t *Trees) newTree(name, rev, from string, form form) *Tree {
	tree := &Tree{Name: name, From: from, trees: t, form: form}
	if rev != from {
		tree.Base = rev
	}
	return tree
}

// makeRoom makes an empty directory in place of whatever is there.
func (t *Trees) makeRoom(dir string) error {
	if err := os.MkdirAll(t.root, 0o700); err != nil {
		return err
	}
	if err := sandbox.RemoveTree(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// Adopt takes up a directory that an earlier process made from rev. The marks of that
// process are lost, so that Changes reads every file. If the directory was never complete,
// the error is loop.ErrNotFound: there is nothing in it to save.
func (t *Trees) Adopt(ctx context.Context, name, rev string) (*Tree, error) {
	tree, err := t.adoptTree(ctx, name, rev)
	if err != nil {
		return nil, fmt.Errorf("adopt tree %s of %s: %w", name, rev, err)
	}
	return tree, nil
}

func (t *Trees) adoptTree(ctx context.Context, name, rev string) (*Tree, error) {
	dir, err := t.treePath(name)
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
		// The record cannot be used; rev is enough.
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
	files, err := readCheckout(blobs, rev)
	if err != nil {
		return nil, err
	}
	tree := t.newDirectory(name, rev, files)
	tree.pushed, tree.filled = r.Pushed, r.Filled
	return tree, nil
}

// TreeNames returns the sorted names of all trees below the root, also of those that were
// never completed or only partly removed. Remove removes each of them.
func (t *Trees) TreeNames() ([]string, error) {
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
