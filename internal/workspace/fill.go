package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/git/object"
)

const (
	writers  = 2
	inMemory = 1 << 20 // larger files are written while they are read
)

// job is one file that a writer makes.
type job struct {
	place int
	body  []byte
}

// filler writes the entries of one tree into a directory.
type filler struct {
	tree  *Tree
	dir   string
	links []job
	jobs  chan job
	as    style
	kept  map[int]bool // what is there already; nil: nothing, not even folders
}

// style is how files are left behind. The zero style leaves them as they were
// made.
type style struct {
	owner owner
	when  time.Time // of the last change of content; zero: when they were written
}

// owner is the user who works in a tree. The zero owner is pawl itself.
type owner struct{ uid, gid int }

// take gives the user a file that pawl made.
func (o owner) take(path string) error {
	if o.isPawl() {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

func (o owner) isPawl() bool { return o.uid == 0 || o.uid == os.Geteuid() }

// finish leaves a file as the style says.
func (s style) finish(path string) error {
	if err := s.owner.take(path); err != nil || s.when.IsZero() {
		return err
	}
	return setTime(path, s.when)
}

// fill writes directories first, then files, links last. As long as files are
// written there is no link in the directory, so none can lead out of it, even
// where two names differ only for git.
func (t *Tree) fill(ctx context.Context, dir string, as style, entries []object.Entry, blobs *object.Blobs) error {
	f := &filler{tree: t, dir: dir, as: as}
	return f.run(ctx, entries, blobs)
}

func (f *filler) run(ctx context.Context, entries []object.Entry, blobs *object.Blobs) error {
	f.jobs = make(chan job, 64)
	if err := f.folders(); err != nil {
		return err
	}
	places, ids := f.order(entries)
	group, ctx := errgroup.WithContext(ctx)
	for range writers {
		group.Go(f.work)
	}
	group.Go(func() error {
		defer close(f.jobs)
		return blobs.Each(ids, func(i int, size int64, r io.Reader) error {
			return f.take(ctx, places[i], size, r)
		})
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, link := range f.links {
		if err := f.link(link); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) folders() error {
	dirs := make([]string, 0, len(f.tree.folder))
	for dir := range f.tree.folder {
		dirs = append(dirs, dir)
	}
	for i, m := range f.tree.marks {
		if m.mode == object.ModeGitlink {
			dirs = append(dirs, f.tree.paths[i])
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if err := f.folder(f.host(dir)); err != nil {
			return err
		}
	}
	return nil
}

// folder makes a directory. One that is there was seen to be one.
func (f *filler) folder(host string) error {
	if err := os.Mkdir(host, 0o755); err != nil {
		if f.kept == nil || !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	return f.as.owner.take(host)
}

// order says which blobs are asked for. Submodules have none.
func (f *filler) order(entries []object.Entry) (places []int, ids []string) {
	for i, e := range entries {
		if f.tree.marks[i].mode != object.ModeGitlink && !f.kept[i] {
			places, ids = append(places, i), append(ids, e.ID)
		}
	}
	return places, ids
}

func (f *filler) host(path string) string { return filepath.Join(f.dir, filepath.FromSlash(path)) }

// take passes one blob to a writer, or writes it at once if it is large.
func (f *filler) take(ctx context.Context, place int, size int64, r io.Reader) error {
	if size > inMemory {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return f.write(place, r)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if f.tree.marks[place].mode == object.ModeSymlink {
		f.links = append(f.links, job{place, body})
		return nil
	}
	select {
	case f.jobs <- job{place, body}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *filler) work() error {
	for j := range f.jobs {
		if err := f.write(j.place, bytes.NewReader(j.body)); err != nil {
			return err
		}
	}
	return nil
}

// write makes a file that must not exist, and marks how it was left.
func (f *filler) write(place int, r io.Reader) error {
	perm := os.FileMode(0o644)
	if f.tree.marks[place].mode == object.ModeExec {
		perm = 0o755
	}
	path := f.host(f.tree.paths[place])
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, r); err == nil {
		err = f.as.finish(path)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = file.Stat(); err == nil {
			f.tree.marks[place].note(info)
		}
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

func (f *filler) link(j job) error {
	path := f.host(f.tree.paths[j.place])
	if err := os.Symlink(filepath.FromSlash(string(j.body)), path); err != nil {
		return fmt.Errorf("link %q: %w", f.tree.paths[j.place], err)
	}
	if err := f.as.finish(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil {
		f.tree.marks[j.place].note(info)
	}
	return err
}
