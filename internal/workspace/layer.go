package workspace

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
)

// backdated is how far before its making the files of a layer seem written. An
// edit then differs in its second, however early it comes, and git need not
// read a file that is as old as the index. The files of one layer are equally
// old, so that no build takes one of them for newer than another.
const backdated = 10 * time.Second

// style is how the files of a layer are left.
func (s *layerCache) style(dir string) style {
	as := style{owner: s.trees.owner()}
	if now, ok := present(dir); ok {
		as.when = time.Unix(0, now).Add(-backdated)
	}
	return as
}

// base writes the complete checkout of a tree.
func (s *layerCache) base(ctx context.Context, l *layer, blobs *object.Blobs, tree string) error {
	t, entries, err := s.trees.describe(blobs, "", l.files(), tree)
	if err != nil {
		return err
	}
	if err := t.fill(ctx, l.files(), s.style(l.files()), entries, blobs); err != nil {
		return err
	}
	g, err := s.trees.gitDir()
	if err != nil {
		return err
	}
	if err := g.common(filepath.Join(l.files(), ".git"), t.indexed()); err != nil {
		return err
	}
	partial, err := t.partial(l.files())
	if err == nil {
		err = l.savePartial(partial)
	}
	if err != nil {
		return err
	}
	return writeListing(l.listing(), t.entries(), g.repo.Format.NameLen())
}

// entries is what the tree holds, sorted by path, in today's modes.
func (t *Tree) entries() []object.Entry {
	list := make([]object.Entry, len(t.paths))
	for i, p := range t.paths {
		list[i] = object.Entry{Path: p, Mode: t.marks[i].mode, ID: t.marks[i].id}
	}
	slices.SortFunc(list, func(a, b object.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// indexed is what an index says of the files as they were left.
func (t *Tree) indexed() []index.Entry {
	list := make([]index.Entry, len(t.paths))
	for i, p := range t.paths {
		m := &t.marks[i]
		list[i] = index.Entry{
			Entry:    object.Entry{Path: p, Mode: m.mode, ID: m.id, Size: m.size},
			Modified: m.modified, Changed: time.Unix(0, m.stamp.changed), Inode: m.stamp.inode,
		}
	}
	slices.SortFunc(list, func(a, b index.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// delta writes what makes another tree of a base.
func (s *layerCache) delta(ctx context.Context, l *layer, blobs *object.Blobs, base *layer, diff object.Differences) error {
	var entries []object.Entry
	for _, c := range diff.Paths {
		if c.New.Mode != 0 {
			entries = append(entries, c.New)
		}
	}
	t, err := s.trees.survey("", l.files(), "", entries)
	if err != nil {
		return err
	}
	hidden := t.hidden(diff)
	for _, path := range hidden {
		t.admitFolders(path)
	}
	if err := t.fill(ctx, l.files(), s.style(l.files()), entries, blobs); err != nil {
		return err
	}
	for _, path := range hidden {
		if err := whiteout(filepath.Join(l.files(), filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	for _, path := range diff.Gone {
		// A submodule's folder would show what the folder before it held.
		if i, there := t.index[path]; there && t.marks[i].mode == object.ModeGitlink {
			if err := setOpaque(filepath.Join(l.files(), filepath.FromSlash(path))); err != nil {
				return err
			}
		}
	}
	partial, err := t.partial(l.files())
	if err == nil {
		err = l.savePartial(partial)
	}
	if err == nil {
		err = s.deltaIndex(l, base, t, diff)
	}
	if err != nil {
		return err
	}
	return writeListing(l.listing(), t.changed(diff), s.trees.repo.Format.NameLen())
}

// hidden lists what of the base has to be hidden: files and whole folders at
// whose path there is nothing any more.
func (t *Tree) hidden(diff object.Differences) []string {
	gone := make(map[string]bool, len(diff.Gone))
	var list []string
	for _, path := range diff.Gone {
		gone[path] = true
		if _, there := t.index[path]; !there {
			list = append(list, path)
		}
	}
	for _, c := range diff.Paths {
		if c.New.Mode == 0 && !t.folder[c.Path] && !within(gone, c.Path) {
			list = append(list, c.Path)
		}
	}
	return list
}

// within reports whether a path lies below one of the folders.
func within(folders map[string]bool, path string) bool {
	for dir := parent(path); dir != ""; dir = parent(dir) {
		if folders[dir] {
			return true
		}
	}
	return false
}

// changed is the listing of a delta. The folder of an entry that is a file in
// one tree and a folder in the other needs no word: its files are there.
func (t *Tree) changed(diff object.Differences) []object.Entry {
	list := make([]object.Entry, 0, len(diff.Paths))
	for _, c := range diff.Paths {
		e := object.Entry{Path: c.Path, ID: c.Old.ID}
		if i, there := t.index[c.Path]; there {
			e = object.Entry{Path: c.Path, Mode: t.marks[i].mode, ID: t.marks[i].id}
		}
		list = append(list, e)
	}
	return list
}

// deltaIndex writes the index of the whole tree: what the base's says, but for
// the changed paths.
func (s *layerCache) deltaIndex(l, base *layer, t *Tree, diff object.Differences) error {
	data, err := os.ReadFile(base.index())
	if err != nil {
		return err
	}
	gone := make([]string, len(diff.Paths))
	for i, c := range diff.Paths {
		gone[i] = c.Path
	}
	g, err := s.trees.gitDir()
	if err != nil {
		return err
	}
	dotGit := filepath.Join(l.files(), ".git")
	if err := g.folder(dotGit); err != nil {
		return err
	}
	return g.stream(filepath.Join(dotGit, "index"), func(w io.Writer) error {
		return index.Patch(w, g.repo.Format, data, gone, t.indexed())
	})
}
