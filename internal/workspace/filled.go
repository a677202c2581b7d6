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
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
)

// A git tree only names some of what programs expect in a checkout: of a submodule
// it has the commit, of a file that git LFS keeps a pointer. Where the clone has
// the content, a tree is filled with it from a directory that nobody writes to.
// Filled files are no change of the tree as long as they stay as they are, and
// no content that is written in their place is ever part of one.

// Write writes the files of rev, a commit or tree by its full object name, into
// dir, an absolute path of an empty directory. There is no git directory in it.
func (t *Trees) Write(ctx context.Context, dir, rev string) error {
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return err
	}
	defer blobs.Close()
	tree, entries, err := t.describe(blobs, "", dir, rev)
	if err == nil {
		err = tree.fill(ctx, dir, style{owner: t.owner()}, entries, blobs)
	}
	if err != nil {
		return fmt.Errorf("write tree %s: %w", rev, err)
	}
	return nil
}

// partialName is the file beside a layer that says whether what is in the layer
// may name content that it does not hold.
const partialName = "partial"

func (l *layer) savePartial(partial bool) error {
	return os.WriteFile(filepath.Join(l.dir, partialName), fmt.Append(nil, partial), 0o600)
}

// Partial reports whether the tree may name content that it does not hold:
// submodules, or attributes that name git LFS. It is to be asked before a program
// has seen the tree.
func (t *Tree) Partial() (bool, error) {
	if t.layers == nil {
		return t.partial(t.Dir)
	}
	for _, at := range t.layers.lower {
		text, err := os.ReadFile(filepath.Join(at.dir, partialName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("look at tree %s: %w", t.Name, err)
		}
		if string(text) != "false" {
			return true, nil // A version that did not write the file may have made the layer.
		}
	}
	return false, nil
}

// partial looks at the files of the tree, which are in dir.
func (t *Tree) partial(dir string) (bool, error) {
	for i, p := range t.paths {
		switch mode := t.marks[i].mode; {
		case mode == object.ModeGitlink:
			return true, nil
		case mode == object.ModeSymlink || !strings.HasSuffix(p, attributesName) || path.Base(p) != attributesName:
		default:
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p)))
			if err != nil {
				return false, fmt.Errorf("look at tree %s: %w", t.Name, err)
			}
			if NamesLFS(string(text)) {
				return true, nil
			}
		}
	}
	return false, nil
}

const attributesName = ".gitattributes"

// NamesLFS reports whether lines of attributes could give a file to git LFS.
func NamesLFS(attributes string) bool { return strings.Contains(attributes, "lfs") }

// Entries lists what the tree holds, sorted by path.
func (t *Tree) Entries() ([]object.Entry, error) {
	if t.layers == nil {
		return t.entries(), nil
	}
	s, err := t.layers.stack()
	if err != nil {
		return nil, fmt.Errorf("list tree %s: %w", t.Name, err)
	}
	var list []object.Entry
	s.below("", func(e object.Entry) bool {
		list = append(list, e)
		return true
	})
	return list, nil
}

// find returns what the tree has at a path.
func (t *Tree) find(path string) (e object.Entry, known bool, err error) {
	if t.layers == nil {
		place, known := t.index[path]
		if known {
			e = object.Entry{Path: path, Mode: t.marks[place].mode, ID: t.marks[place].id}
		}
		return e, known, nil
	}
	s, err := t.layers.stack()
	if err == nil {
		e, known = s.find(path)
	}
	return e, known, err
}

// Fill puts what the tree names from a directory, by its absolute path, into a tree
// that no program has seen yet: files below its submodules, and files in place of
// pointers. Otherwise it is as Push, and comes before it.
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

// fillIndex tells the agent's own git how the files are that stand in place of
// pointers, so that it takes none for changed.
func (t *Tree) fillIndex(from string) error {
	var entries []index.Entry
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == from {
			return err
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		was, known, err := t.find(filepath.ToSlash(rel))
		switch {
		case err != nil:
			return err
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
	dotGit := filepath.Join(t.Dir, ".git")
	before := filepath.Join(dotGit, "index")
	if t.layers != nil {
		dotGit = filepath.Join(t.layers.upper, ".git")
		before = t.layers.lower[0].index()
	}
	data, err := os.ReadFile(before)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // A plain copy, in which there is no git.
	}
	if err != nil {
		return err
	}
	paths := make([]string, len(entries))
	for i, e := range entries {
		paths[i] = e.Path
	}
	g := gitDir{repo: t.trees.repo, owner: t.trees.owner()}
	next := filepath.Join(dotGit, "index.filled")
	err = g.stream(next, func(w io.Writer) error { return index.Patch(w, g.repo.Format, data, paths, entries) })
	if err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dotGit, "index"))
}

// sealFilled makes the marks of what was copied into a directory sure.
func (t *Tree) sealFilled() {
	now, ok := present(filepath.Join(t.Dir, ".git"))
	if !ok {
		return // They prove nothing, and the files are read.
	}
	for _, m := range t.given {
		m.seal(now)
	}
}

// openFilled gives a judge what the tree was filled with.
func (j *judge) openFilled(t *Tree) (err error) {
	if t.filled == "" {
		return nil
	}
	pushed := t.pushed
	if t.layers != nil {
		pushed = t.layers.pushed
	}
	if j.filled.pushed, err = openPushed(j.dir, pushed); err != nil {
		return err
	}
	j.filled.from, err = os.OpenRoot(t.filled)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // It was collected, and all that came from it counts as new.
	}
	j.filled.given = t.given
	return err
}

// filled compares a tree with what it was filled with. The zero filled holds
// nothing.
type filled struct {
	pushed pushed
	from   *os.Root         // what the tree was filled with; nil: nothing
	given  map[string]*mark // how files of it were left in a directory
}

func (f filled) close() {
	f.pushed.close()
	if f.from != nil {
		f.from.Close()
	}
}

// at is what the tree was filled with at a path; nil: nothing.
func (f filled) at(path string) fs.FileInfo {
	if f.from == nil {
		return nil
	}
	info, err := f.from.Lstat(filepath.FromSlash(path))
	if err != nil {
		return nil
	}
	return info
}

// stands reports whether a file that stands in place of a pointer has the content
// that the tree was filled with.
func (f filled) stands(path string, info fs.FileInfo) bool {
	was := f.at(path)
	return was != nil && was.Mode().IsRegular() && info.Mode().IsRegular() && was.Size() == info.Size() &&
		same(f.from, f.pushed.tree, filepath.FromSlash(path))
}

// submodule is a walk through the folder of one.
type submodule struct {
	*judge
	whole bool // the folder shows nothing but what is in it: there are no layers below it, or it hides them
}

// submodule looks into the folder of a submodule, which holds what it was filled
// with and what else was pushed, or is empty.
func (j *judge) submodule(path string, info fs.FileInfo, whole bool) error {
	if j.filled.from == nil {
		entries, err := os.ReadDir(j.host(path))
		if err != nil {
			j.problem(path, RuleUnread)
		} else if len(entries) > 0 {
			j.problem(path, RuleSubmodule)
		}
		return nil
	}
	return submodule{j, whole}.folder(path, info)
}

func (s submodule) folder(path string, info fs.FileInfo) error {
	entries, err := s.entries(path, info)
	if err == nil && !s.whole {
		s.whole, err = isOpaque(s.host(path))
	}
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	if err != nil {
		s.unseen(path)
		return nil //nolint:nilerr // The problem says it; the rest is still to be walked.
	}
	if s.whole {
		s.gone(path, entries)
	}
	return s.each(path, entries, s)
}

// gone names what the folder was filled with and is not in it any more. Where all
// of a folder is gone, the folder is named.
func (s submodule) gone(folder string, there []fs.DirEntry) {
	f, err := s.filled.from.Open(filepath.FromSlash(folder))
	if err != nil {
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		s.problem(folder, RuleUnread)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.ContainsFunc(there, func(e fs.DirEntry) bool { return e.Name() == name }) {
			s.problem(path.Join(folder, name), RuleSubmodule)
		}
	}
}

func (s submodule) holds(path string, info fs.FileInfo) bool {
	return isWhiteout(info) || s.filled.at(path) != nil
}

func (s submodule) unseen(path string) { s.problem(path, RuleUnread) }

func (s submodule) entry(path string, info fs.FileInfo) error {
	was := s.filled.at(path)
	m := s.filled.given[path]
	switch {
	case isWhiteout(info) && was == nil:
	case info.IsDir() && (was == nil || was.IsDir()):
		return s.folder(path, info)
	case m != nil && m.holds(info):
	case s.filled.pushed.holds(path, info):
	default:
		s.problem(path, RuleSubmodule)
	}
	return nil
}
