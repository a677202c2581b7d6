package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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

// job is one file to write.
type job struct {
	place int
	body  []byte
}

// filler writes the files of a checkout into a directory.
type filler struct {
	*checkout
	dir   string
	links []job
	jobs  chan job
	as    style
	kept  map[int]bool // places of files that are there already; nil: the directory is empty
}

// style is the owner and time of written files. The zero style does not change them.
type style struct {
	owner owner
	when  time.Time // modification time; zero: the time of writing
}

// owner is the user of programs in a tree. The zero owner is pawl's own user.
type owner struct{ uid, gid int }

// giveFile gives a file that pawl made to the user.
func (o owner) giveFile(path string) error {
	if o.isPawl() {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

func (o owner) isPawl() bool { return o.uid == 0 || o.uid == os.Geteuid() }

// finishFile sets the owner and time of a file.
func (s style) finishFile(path string) error {
	if err := s.owner.giveFile(path); err != nil || s.when.IsZero() {
		return err
	}
	return setTime(path, s.when)
}

// writeFiles writes directories first, then files, and links last. While files are
// written the directory has no link, so none can lead out of it, even if the file system
// takes two names for one. The files at the places in kept are there already; if kept is
// nil, the directory is empty.
func (c *checkout) writeFiles(ctx context.Context, dir string, as style, kept map[int]bool, blobs *object.Blobs) error {
	f := &filler{checkout: c, dir: dir, as: as, kept: kept, jobs: make(chan job, 64)}
	if err := f.makeFolders(); err != nil {
		return err
	}
	var places []int
	var ids []string
	for i, m := range c.marks {
		if m.mode != object.ModeGitlink && !kept[i] {
			places, ids = append(places, i), append(ids, m.id)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for range writers {
		group.Go(func() error {
			for j := range f.jobs {
				if err := f.writeFile(j.place, bytes.NewReader(j.body)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(f.jobs)
		return blobs.Each(ids, func(i int, size int64, r io.Reader) error {
			return f.takeBlob(ctx, places[i], size, r)
		})
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, link := range f.links {
		if err := f.writeLink(link); err != nil {
			return err
		}
	}
	return nil
}

// makeFolders makes the folders above files and those of submodules.
func (f *filler) makeFolders() error {
	dirs := slices.Collect(maps.Keys(f.folders))
	for i, m := range f.marks {
		if m.mode == object.ModeGitlink {
			dirs = append(dirs, f.paths[i])
		}
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		host := f.hostPath(dir)
		err := os.Mkdir(host, 0o755)
		if f.kept != nil && errors.Is(err, fs.ErrExist) {
			continue // The reset has checked that it is a folder.
		}
		if err == nil {
			err = f.as.owner.giveFile(host)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) hostPath(path string) string { return filepath.Join(f.dir, filepath.FromSlash(path)) }

// takeBlob passes one blob to a writer, or writes it itself if it is large.
func (f *filler) takeBlob(ctx context.Context, place int, size int64, r io.Reader) error {
	if size > inMemory {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return f.writeFile(place, r)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	if f.marks[place].mode == object.ModeSymlink {
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

// writeFile makes a file that must not exist, and sets its mark.
func (f *filler) writeFile(place int, r io.Reader) error {
	perm := os.FileMode(0o644)
	if f.marks[place].mode == object.ModeExec {
		perm = 0o755
	}
	path := f.hostPath(f.paths[place])
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, r); err == nil {
		err = f.as.finishFile(path)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = file.Stat(); err == nil {
			f.marks[place].setFrom(info)
		}
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

func (f *filler) writeLink(j job) error {
	path := f.hostPath(f.paths[j.place])
	if err := os.Symlink(filepath.FromSlash(string(j.body)), path); err != nil {
		return fmt.Errorf("link %q: %w", f.paths[j.place], err)
	}
	if err := f.as.finishFile(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil {
		f.marks[j.place].setFrom(info)
	}
	return err
}
