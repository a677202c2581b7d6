package runenv

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Disk remembers how large the copies of one run were when they were made, to find out
// how much was written to them since. The zero value is ready for use, by several
// goroutines. All environments with the same id share it.
type Disk struct {
	full   atomic.Bool // see Full
	mu     sync.Mutex
	copies map[string]countedCopy // by the name of the tree
}

// Full marks the run as taking up too much: its copies are then deleted, and not kept
// for the next use.
func (d *Disk) Full() { d.full.Store(true) }

// begun is a copy that programs may write to.
type countedCopy struct {
	dirs    []string // where the host finds what they write
	before  int64    // bytes that were in there before
	folders map[string]int64
}

// Usage is how much disk the files of one run take up.
type Usage struct {
	Bytes   int64
	Largest []string // folders with the most of it and how much that is, the largest first; names are an agent's to choose
}

// namedFolders is how many of the largest folders a Usage names, and folderDepth
// how many elements such a name has.
const (
	namedFolders = 3
	folderDepth  = 2
)

// startCounting notes a copy that is complete: from now on what is written to it counts. A
// copy in layers has a directory of its own for that.
func (d *Disk) startCounting(ctx context.Context, k *Copy) error {
	if d == nil {
		return nil
	}
	k.disk = d
	b := countedCopy{dirs: []string{k.Dir}}
	if layers := k.Overlay(); layers != nil {
		b.dirs = []string{layers.Upper, layers.Work}
	} else {
		m := measure{folders: map[string]int64{}}
		if err := m.addFolder(ctx, k.Dir, ".", 0); err != nil {
			return fmt.Errorf("measure %s: %w", k.Dir, err)
		}
		b.before, b.folders = m.bytes, m.folders
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.copies == nil {
		d.copies = map[string]countedCopy{}
	}
	d.copies[k.Name] = b
	return nil
}

// countedCopies lists the copies.
func (d *Disk) countedCopies() map[string]countedCopy {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.copies)
}

// Usage measures what the programs of the run environment have written so far to files that
// are the run's own: its copies and what lies beside them. What is gone already
// does not count, nor does what is in a folder that pawl cannot read. It needs a
// look at every file, and may be called while programs run.
func (s Env) Usage(ctx context.Context) (Usage, error) {
	var u Usage
	all := map[string]int64{}
	add := func(label string, b countedCopy) error {
		m := measure{folders: map[string]int64{}, seen: map[[2]uint64]bool{}}
		for _, dir := range b.dirs {
			if err := m.addFolder(ctx, dir, ".", 0); err != nil {
				return err
			}
		}
		u.Bytes += max(0, m.bytes-b.before)
		for name, bytes := range m.folders {
			all[label+name] += bytes - b.folders[name]
		}
		return nil
	}
	for name, b := range s.Disk.countedCopies() {
		label := strings.TrimPrefix(name, s.ID+"-")
		if label == string(ForAct) {
			label = ""
		} else {
			label += ": "
		}
		if err := add(label, b); err != nil {
			return u, err
		}
	}
	if err := add("beside the tree: ", countedCopy{dirs: []string{s.RunDir(s.ID)}}); err != nil {
		return u, err
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), strings.Compare(a, b)) })
	for _, name := range names[:min(len(names), namedFolders)] {
		if all[name] < u.Bytes/100 && u.Largest != nil {
			break
		}
		u.Largest = append(u.Largest, name+" ("+SizeText(all[name])+")")
	}
	return u, nil
}

// SizeText is a number of bytes as people read it.
func SizeText(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// measure adds up what files take up on the disk.
type measure struct {
	bytes   int64
	folders map[string]int64 // by the first elements of the path
	seen    map[[2]uint64]bool
}

// manyFolders is the most folders that are counted separately.
const manyFolders = 10_000

// addFolder adds a directory and all below it. What goes away meanwhile, and what
// cannot be read, is left out.
func (m *measure) addFolder(ctx context.Context, dir, name string, depth int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil // It is gone, or nobody but its programs can look into it.
	}
	defer f.Close()
	for {
		const some = 1024
		entries, err := f.ReadDir(some)
		for _, e := range entries {
			if err := m.addEntry(ctx, dir, name, depth, e); err != nil {
				return err
			}
		}
		if err != nil || len(entries) == 0 {
			return nil
		}
	}
}

func (m *measure) addEntry(ctx context.Context, dir, name string, depth int, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return nil //nolint:nilerr // It is gone.
	}
	bytes, id, many := onDisk(info)
	if many && m.seen != nil {
		if m.seen[id] {
			bytes = 0
		}
		m.seen[id] = true
	}
	m.bytes += bytes
	below := name
	if e.IsDir() && depth < folderDepth {
		below, depth = filepath.Join(name, e.Name()), depth+1
	}
	if _, known := m.folders[below]; known || len(m.folders) < manyFolders {
		m.folders[below] += bytes
	}
	if e.IsDir() {
		return m.addFolder(ctx, filepath.Join(dir, e.Name()), below, depth)
	}
	return nil
}
