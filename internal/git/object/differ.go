package object

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrManyChanges means that two trees differ in more paths than the caller
// wants to know.
var ErrManyChanges = errors.New("too many changes")

// Difference is one path at which two trees hold another mode or content. A
// file that becomes a folder is gone, and the files of the folder are new.
type Difference struct {
	Path     string
	Old, New Entry // without sizes; the zero Entry: no file is there
}

// Differences is by what one tree differs from another.
type Differences struct {
	Paths []Difference // sorted by path

	// Gone are the folders of the first tree at whose path the second has none,
	// the topmost only, in no order.
	Gone []string

	// Beside are the files, and the folders that hold files, which both trees
	// have in the folders of the first tree that anything differs below. They
	// stand folder by folder in git's order.
	Beside []string

	Files int // in the first tree, if that is less than what is enough; else no less than that
}

// Differ compares two trees, or the trees of commits. It reads only the folders
// that are not the same on both sides, and a few more to count the files of
// from until it knows that there are enough; 0 is enough without any. More than
// limit paths are ErrManyChanges, found out before all is read; math.MaxInt is
// no limit.
func (b *Blobs) Differ(from, to string, limit, enough int) (Differences, error) {
	d := differ{blobs: b, limit: limit}
	err := d.compareTrees(from, to)
	if err == nil {
		err = d.countObjects(enough)
	}
	if err != nil {
		return Differences{}, fmt.Errorf("compare %s with %s: %w", to, from, err)
	}
	d.found.Beside = d.remainingPaths()
	slices.SortFunc(d.found.Paths, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return d.found, nil
}

// differ is one comparison.
type differ struct {
	blobs   *Blobs
	limit   int // of paths
	found   Differences
	folders []*folder // that differ and were read, parents first
	below   []*folder // that differ and are still to be read
	same    []Entry   // folders of the first tree that are the same in the second
	entries int       // read so far
}

// folder is one that differs. A side without a tree has no such folder.
type folder struct {
	up       *folder
	path     string // ends with a slash; empty at the top
	old, now string
	left     []neighbour // files of the first tree, and all folders that differ
	holds    bool        // a file of the first tree that is still there
}

// neighbour is an entry of the first tree that is still there, which for a
// folder that differs depends on what is below it.
type neighbour struct {
	path  string
	below *folder
}

// keepPath says that an entry of the folder is still there.
func (f *folder) keepPath(path string) {
	f.left = append(f.left, neighbour{path: path})
	for ; f != nil && !f.holds; f = f.up {
		f.holds = true
	}
}

func (d *differ) compareTrees(from, to string) error {
	old, before, err := d.blobs.readTreeOf(from)
	if err != nil {
		return err
	}
	now, after, err := d.blobs.readTreeOf(to)
	if err != nil {
		return err
	}
	if old == now {
		return d.countTree(before)
	}
	err = d.compareFolder(&folder{old: old, now: now}, before, after)
	for err == nil && len(d.below) > 0 {
		level := d.below
		d.below = nil
		err = d.compareLevel(level)
	}
	return err
}

// compareLevel reads folders of the same depth at once.
func (d *differ) compareLevel(folders []*folder) error {
	var ids []string
	for _, f := range folders {
		ids = append(ids, f.old, f.now)
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
	bodies, err := d.blobs.readTrees(ids)
	if err != nil {
		return err
	}
	next := func(id string) (body []byte) {
		if id != "" {
			body, bodies = bodies[0], bodies[1:]
		}
		return body
	}
	for _, f := range folders {
		before := next(f.old)
		if err := d.compareFolder(f, before, next(f.now)); err != nil {
			return err
		}
	}
	return nil
}

// compareFolder compares by name what both sides of one folder hold. Each folder that
// is still to be read differs in a path at least.
func (d *differ) compareFolder(f *folder, before, after []byte) error {
	d.folders = append(d.folders, f)
	old, _, err := d.parseTree(f, before)
	if err != nil {
		return err
	}
	now, added, err := d.parseTree(f, after)
	if err != nil {
		return err
	}
	for _, was := range old {
		d.compareEntry(f, was.Path, was, added[was.Path])
		delete(added, was.Path)
	}
	for _, is := range now {
		if _, isNew := added[is.Path]; isNew {
			d.compareEntry(f, is.Path, Entry{}, is)
		}
	}
	if len(d.found.Paths)+len(d.below) > d.limit {
		return ErrManyChanges
	}
	return nil
}

// parseTree lists a folder in git's order, and by path.
func (d *differ) parseTree(f *folder, body []byte) ([]Entry, map[string]Entry, error) {
	list, err := d.blobs.parseEntries(f.path, body)
	if d.entries += len(list); err == nil && d.entries > maxEntries {
		err = fmt.Errorf("more than %d entries are to be compared", maxEntries)
	}
	byPath := make(map[string]Entry, len(list))
	for _, e := range list {
		byPath[e.Path] = e
	}
	if err == nil && len(byPath) < len(list) {
		err = fmt.Errorf("folder %q holds a name twice", f.path)
	}
	return list, byPath, err
}

// compareEntry compares what both trees have at one path: a file and a folder there
// are two things.
func (d *differ) compareEntry(f *folder, path string, was, is Entry) {
	file := Difference{Path: path, Old: was, New: is}
	var old, now string
	if was.Mode == ModeTree {
		old, file.Old = was.ID, Entry{}
	}
	if is.Mode == ModeTree {
		now, file.New = is.ID, Entry{}
	}
	d.addDifference(f, file)
	if old != now {
		d.queueFolder(&folder{up: f, path: path + "/", old: old, now: now})
	} else if old != "" {
		f.keepPath(path)
		d.same = append(d.same, was)
	}
}

// addDifference notes one that differs, and counts those of the first tree.
func (d *differ) addDifference(f *folder, c Difference) {
	if c.Old != c.New {
		d.found.Paths = append(d.found.Paths, c)
	}
	if c.Old.ID == "" {
		return
	}
	d.found.Files++
	if c.New.ID != "" {
		f.keepPath(c.Path)
	}
}

// queueFolder notes a folder that differs, to be read with the others of its depth.
func (d *differ) queueFolder(f *folder) {
	d.below = append(d.below, f)
	path := f.path[:len(f.path)-1]
	f.up.left = append(f.up.left, neighbour{path, f})
	if f.now == "" && f.up.now != "" {
		d.found.Gone = append(d.found.Gone, path)
	}
}

// remainingPaths lists what is left of the first tree in the folders that differ.
func (d *differ) remainingPaths() []string {
	var paths []string
	for _, f := range d.folders {
		for _, n := range f.left {
			if n.below == nil || n.below.holds {
				paths = append(paths, n.path)
			}
		}
	}
	return paths
}

// countObjects reads folders that are the same on both sides until they hold enough
// files. A folder that was not read holds one.
func (d *differ) countObjects(enough int) error {
	for len(d.same) > 0 && d.found.Files+len(d.same) < enough {
		bodies, err := d.blobs.readTrees(idsOf(d.same))
		if err != nil {
			return err
		}
		d.same = nil
		for _, body := range bodies {
			if err := d.countTree(body); err != nil {
				return err
			}
		}
	}
	d.found.Files += len(d.same)
	return nil
}

// countTree counts what lies in a folder that is the same on both sides.
func (d *differ) countTree(body []byte) error {
	files, folders, err := d.blobs.splitTree("", body, nil, nil)
	d.found.Files += len(files)
	d.same = append(d.same, folders...)
	return err
}

// readTrees reads trees at once.
func (b *Blobs) readTrees(ids []string) ([][]byte, error) {
	bodies := make([][]byte, len(ids))
	err := b.eachObject(ids, func(i int, kind string, size int64, r io.Reader) (err error) {
		bodies[i], err = readObject("tree", kind, size, r)
		return err
	})
	return bodies, err
}
