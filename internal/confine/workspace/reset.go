package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git/index"
)

// resetter removes everything from a parked copy that is not in the wanted tree, or not as
// pawl left it: untrusted programs may have made it.
type resetter struct {
	ctx  context.Context //nolint:containedctx // It exists for one call of resetCopy.
	dir  string
	want *checkout
	was  map[string]index.Entry
	kept map[int]bool
}

// resetCopy removes what must not stay, and returns the places of the files that stay.
func (u unit) resetCopy(ctx context.Context) (map[int]bool, error) {
	marks := filepath.Join(u.dir, unitMarks)
	was, err := u.tree.trees.readMarks(marks)
	if err != nil {
		return nil, err
	}
	// From here on the marks are no longer valid.
	if err := os.Remove(marks); err != nil {
		return nil, err
	}
	r := &resetter{ctx: ctx, want: u.files, dir: u.copyDir(), was: was, kept: map[int]bool{}}
	info, err := os.Lstat(r.dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() || !r.isClean("", info) {
		return nil, errParked
	}
	return r.kept, r.resetFolder("")
}

func (r *resetter) hostPath(path string) string {
	return filepath.Join(r.dir, filepath.FromSlash(path))
}

// isClean sets the mode of a directory, and reports whether it has no other trace of its
// earlier use.
func (r *resetter) isClean(path string, info fs.FileInfo) bool {
	host := r.hostPath(path)
	if info.Mode() != fs.ModeDir|0o755 && os.Chmod(host, 0o755) != nil {
		return false
	}
	bare, err := hasNoAttributes(host)
	return err == nil && bare
}

func (r *resetter) resetFolder(rel string) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	entries, err := os.ReadDir(r.hostPath(rel))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := e.Name()
		if rel != "" {
			path = rel + "/" + e.Name()
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := r.resetEntry(path, info); err != nil {
			return fmt.Errorf("reset %q: %w", path, err)
		}
	}
	return nil
}

// resetEntry keeps a wanted folder, and a wanted file that is untouched. It removes every
// link: there must be none while files are written.
func (r *resetter) resetEntry(path string, info fs.FileInfo) error {
	place, wanted := r.want.index[path]
	switch {
	case info.IsDir() && r.want.folders[path] && r.isClean(path, info):
		return r.resetFolder(path)
	case info.Mode().IsRegular() && wanted && r.isUntouched(path, place, info):
		r.want.marks[place].setFrom(info)
		r.kept[place] = true
		return nil
	case info.IsDir():
		return sandbox.RemoveTree(r.hostPath(path))
	}
	return os.Remove(r.hostPath(path))
}

// isUntouched reports whether a file was written with the wanted content and has not
// changed since.
func (r *resetter) isUntouched(path string, place int, info fs.FileInfo) bool {
	was, known := r.was[path]
	want := &r.want.marks[place]
	stamp, ok := stampOf(info)
	return known && ok && was.ID == want.id && was.Mode == want.mode &&
		uint32(was.Size) == uint32(info.Size()) && was.Modified.Equal(info.ModTime()) &&
		was.Changed.UnixNano() == stamp.changed && uint32(was.Inode) == uint32(stamp.inode)
}
