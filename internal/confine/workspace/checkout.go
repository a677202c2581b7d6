package workspace

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
)

// checkout is the files of one git tree, or some of them, as written to a directory, with
// the mark of each.
type checkout struct {
	tree    string         // object name; empty if these are some files of a tree
	index   map[string]int // path → place in paths and marks
	paths   []string
	marks   []mark
	folders map[string]bool // all folders above the paths
}

// readCheckout lists the files of rev, a commit or a tree, and refuses entries that must
// not be written to a file system. It writes nothing.
func readCheckout(blobs *object.Blobs, rev string) (*checkout, error) {
	tree, entries, err := blobs.Tree(rev)
	if err != nil {
		return nil, err
	}
	c, err := newCheckout(entries)
	if err != nil {
		return nil, err
	}
	c.tree = tree
	return c, nil
}

// newCheckout refuses entries that must not be written to a file system.
func newCheckout(entries []object.Entry) (*checkout, error) {
	c := &checkout{
		index: make(map[string]int, len(entries)), folders: map[string]bool{},
		paths: make([]string, len(entries)), marks: make([]mark, len(entries)),
	}
	for i, e := range entries {
		if err := object.CheckPath(e.Path); err != nil {
			return nil, err
		}
		if _, twice := c.index[e.Path]; twice {
			return nil, fmt.Errorf("path %q is there twice", e.Path)
		}
		mode, err := plainMode(e)
		if err != nil {
			return nil, err
		}
		c.index[e.Path], c.paths[i] = i, e.Path
		c.marks[i] = mark{mode: mode, id: e.ID}
		c.addFolders(e.Path)
	}
	for _, path := range c.paths {
		if c.folders[path] {
			return nil, fmt.Errorf("path %q is a file and a directory", path)
		}
	}
	return c, nil
}

// addFolders adds the folders above a path.
func (c *checkout) addFolders(path string) {
	for dir := parent(path); dir != "" && !c.folders[dir]; dir = parent(dir) {
		c.folders[dir] = true
	}
}

// plainMode returns the mode that git writes today: old trees have 0100664.
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

// parent returns the folder of a slash-separated path, empty at the top.
func parent(path string) string {
	return path[:max(0, strings.LastIndexByte(path, '/'))]
}

func (c *checkout) entryAt(place int) object.Entry {
	return object.Entry{Path: c.paths[place], Mode: c.marks[place].mode, ID: c.marks[place].id}
}

// findEntry returns the entry of a path.
func (c *checkout) findEntry(path string) (object.Entry, bool) {
	place, known := c.index[path]
	if !known {
		return object.Entry{}, false
	}
	return c.entryAt(place), true
}

// allEntries returns the files sorted by path, with the modes that git writes today.
func (c *checkout) allEntries() []object.Entry {
	list := make([]object.Entry, len(c.paths))
	for i := range c.paths {
		list[i] = c.entryAt(i)
	}
	slices.SortFunc(list, func(a, b object.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// entriesNamed returns the entries whose last path element is name.
func (c *checkout) entriesNamed(name string) []object.Entry {
	var list []object.Entry
	for i, p := range c.paths {
		if path.Base(p) == name {
			list = append(list, c.entryAt(i))
		}
	}
	return list
}

// indexEntries returns the files sorted by path, as entries of git's index with their
// marks.
func (c *checkout) indexEntries() []index.Entry {
	list := make([]index.Entry, len(c.paths))
	for i, p := range c.paths {
		m := &c.marks[i]
		list[i] = index.Entry{
			Entry:    object.Entry{Path: p, Mode: m.mode, ID: m.id, Size: m.size},
			Modified: m.modified, Changed: time.Unix(0, m.stamp.changed), Inode: m.stamp.inode,
		}
	}
	slices.SortFunc(list, func(a, b index.Entry) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

const attributesName = ".gitattributes"

// mayLackContent reports whether content of the files, which are in dir, may be missing:
// there are submodules, or attributes that name git LFS.
func (c *checkout) mayLackContent(dir string) (bool, error) {
	for i, p := range c.paths {
		switch mode := c.marks[i].mode; {
		case mode == object.ModeGitlink:
			return true, nil
		case mode == object.ModeSymlink || !strings.HasSuffix(p, attributesName) || path.Base(p) != attributesName:
		default:
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(p)))
			if err != nil {
				return false, err
			}
			if NamesLFS(string(text)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// NamesLFS reports whether attributes may give a file to git LFS.
func NamesLFS(attributes string) bool { return strings.Contains(attributes, "lfs") }
