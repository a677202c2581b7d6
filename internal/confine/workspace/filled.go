package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/git/index"
)

// A git tree only names some of what programs expect in a checkout: of a submodule
// it has the commit, of a file that git LFS keeps a pointer. Where the clone has
// the content, a tree is filled with it from a directory that nobody writes to.
// Filled files are no change of the tree as long as they stay as they are, and
// no content that is written in their place is ever part of one.

// Write writes the files of rev, a commit or tree by its full object name, into dir, the
// absolute path of an empty directory, without a git directory.
func (t *Trees) Write(ctx context.Context, dir, rev string) error {
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return err
	}
	defer blobs.Close()
	files, err := readCheckout(blobs, rev)
	if err == nil {
		err = files.writeFiles(ctx, dir, style{owner: t.programOwner()}, nil, blobs)
	}
	if err != nil {
		return fmt.Errorf("write tree %s: %w", rev, err)
	}
	return nil
}

// MayLackContent reports whether content of the tree may be missing: there are
// submodules, or attributes that name git LFS. It must be called before a program has
// seen the tree.
func (t *Tree) MayLackContent() (bool, error) {
	partial, err := t.form.mayLackContent()
	if err != nil {
		return false, fmt.Errorf("look at tree %s: %w", t.Name, err)
	}
	return partial, nil
}

// Fill adds the missing content of a tree from a directory, by its absolute path: files
// below its submodules, and files in place of pointers. No program may have seen the tree
// yet. Otherwise it is like Push, and is called before it.
func (t *Tree) Fill(ctx context.Context, from string) error {
	t.filled = from
	err := t.Push(ctx, from)
	if err == nil {
		err = t.fillIndex(from)
	}
	if err != nil {
		return fmt.Errorf("fill tree %s: %w", t.Name, err)
	}
	return nil
}

// fillIndex writes the files that replace pointers into the index of the agent's git, so
// that it takes none of them for changed.
func (t *Tree) fillIndex(from string) error {
	files, err := t.form.baseFiles()
	if err != nil {
		return err
	}
	var entries []index.Entry
	err = filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == from {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		was, known := files.findEntry(filepath.ToSlash(rel))
		switch {
		case e.IsDir() && known:
			return fs.SkipDir
		case e.IsDir() || !known:
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		stamp, _ := stampOf(info)
		was.Size = info.Size()
		entries = append(entries, index.Entry{Entry: was, Modified: info.ModTime(), Changed: time.Unix(0, stamp.changed), Inode: stamp.inode})
		return nil
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	slices.SortFunc(entries, func(a, b index.Entry) int { return cmp.Compare(a.Path, b.Path) })
	data, err := os.ReadFile(t.form.gitIndex())
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It is a plain copy without git.
	}
	if err != nil {
		return err
	}
	paths := make([]string, len(entries))
	for i, e := range entries {
		paths[i] = e.Path
	}
	g := gitDir{repo: t.trees.repo, owner: t.trees.programOwner()}
	dotGit := filepath.Join(t.form.writableDir(), ".git")
	next := filepath.Join(dotGit, "index.filled")
	err = g.writeStream(next, func(w io.Writer) error { return index.Patch(w, g.repo.Format, data, paths, entries) })
	if err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dotGit, "index"))
}

// filled compares a tree with what it was filled with. The zero filled is for a tree that
// was not filled.
type filled struct {
	from  *os.Root         // what the tree was filled with; nil: nothing
	marks map[string]*mark // of the files that were copied into a directory
}

// infoAt describes what the tree was filled with at a path; nil: nothing.
func (f filled) infoAt(path string) fs.FileInfo {
	if f.from == nil {
		return nil
	}
	info, err := f.from.Lstat(filepath.FromSlash(path))
	if err != nil {
		return nil
	}
	return info
}

// submodule is a walk through the folder of a submodule.
type submodule struct {
	*judge
	whole bool // the folder is complete: there are no layers below it, or it hides them
}

// walkSubmodule walks through the folder of a submodule. It contains what it was filled
// with and what was pushed, or is empty.
func (j *judge) walkSubmodule(path string, info fs.FileInfo, whole bool) error {
	if j.filled.from == nil {
		entries, err := os.ReadDir(j.hostPath(path))
		if err != nil {
			j.addProblem(path, RuleUnread)
		} else if len(entries) > 0 {
			j.addProblem(path, RuleSubmodule)
		}
		return nil
	}
	return submodule{j, whole}.walkFolder(path, info)
}

func (s submodule) walkFolder(path string, info fs.FileInfo) error {
	entries, err := s.listFolder(path, info)
	if err == nil && !s.whole {
		s.whole, err = isOpaque(s.hostPath(path))
	}
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if err != nil {
		s.noteUnseen(path)
		return nil //nolint:nilerr // It is reported as a problem; the walk continues.
	}
	if s.whole {
		s.addMissing(path, entries)
	}
	return s.visitEach(path, entries, s)
}

// addMissing adds the entries that the folder was filled with and that are gone. If all
// of a folder is gone, it adds the folder.
func (s submodule) addMissing(folder string, there []fs.DirEntry) {
	f, err := s.filled.from.Open(filepath.FromSlash(folder))
	if err != nil {
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		s.addProblem(folder, RuleUnread)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == name }) {
			s.addProblem(path.Join(folder, name), RuleSubmodule)
		}
	}
}

func (s submodule) isKnown(path string, info fs.FileInfo) bool {
	return isWhiteout(info) || s.filled.infoAt(path) != nil
}

func (s submodule) noteUnseen(path string) { s.addProblem(path, RuleUnread) }

func (s submodule) visitEntry(path string, info fs.FileInfo) error {
	was := s.filled.infoAt(path)
	m := s.filled.marks[path]
	switch {
	case isWhiteout(info) && was == nil:
	case info.IsDir() && (was == nil || was.IsDir()):
		return s.walkFolder(path, info)
	case m != nil && m.isUntouched(info):
	case s.pushed.isAsPushed(path, info):
	default:
		s.addProblem(path, RuleSubmodule)
	}
	return nil
}
