package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-run/pawl/internal/git"
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
}

// fill writes directories first, then files, links last. As long as files are
// written there is no link in the directory, so none can lead out of it, even
// where two names differ only for git.
func (t *Tree) fill(ctx context.Context, dir string, entries []git.Entry, blobs *git.Blobs) error {
	f := &filler{tree: t, dir: dir, jobs: make(chan job, 64)}
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
	t.seal(dir)
	return nil
}

func (f *filler) folders() error {
	dirs := make([]string, 0, len(f.tree.folder))
	for dir := range f.tree.folder {
		dirs = append(dirs, dir)
	}
	for i, m := range f.tree.marks {
		if m.mode == git.ModeGitlink {
			dirs = append(dirs, f.tree.paths[i])
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if err := os.Mkdir(f.host(dir), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// order says which blobs are asked for. Submodules have none.
func (f *filler) order(entries []git.Entry) (places []int, ids []string) {
	for i, e := range entries {
		if f.tree.marks[i].mode != git.ModeGitlink {
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
	if f.tree.marks[place].mode == git.ModeSymlink {
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
	if f.tree.marks[place].mode == git.ModeExec {
		perm = 0o755
	}
	file, err := os.OpenFile(f.host(f.tree.paths[place]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, r); err == nil {
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
	info, err := os.Lstat(path)
	if err == nil {
		f.tree.marks[j.place].note(info)
	}
	return err
}
