package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/sandbox"
)

// resetter takes everything out of a parked copy that is not as the wanted tree
// needs it and as pawl left it. All else in there was made by untrusted programs.
type resetter struct {
	ctx  context.Context //nolint:containedctx // It lives for one call of reset.
	dir  string
	want *checkout
	was  map[string]index.Entry
	kept map[int]bool
}

// resetCopy returns the places of the files that can stay.
func (u unit) resetCopy(ctx context.Context) (map[int]bool, error) {
	marks := filepath.Join(u.dir, unitMarks)
	was, err := u.tree.trees.readMarks(marks)
	if err != nil {
		return nil, err
	}
	// From here on the marks describe nothing.
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

// isClean reports whether a directory tells nothing of its earlier use, after its
// mode was set.
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

// resetEntry leaves a folder that is wanted, and a file that is wanted and untouched.
// A link goes in any case: while files are written there must be none.
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

// isUntouched reports whether a file has the wanted content: it was written with
// it, and nothing has happened to it since.
func (r *resetter) isUntouched(path string, place int, info fs.FileInfo) bool {
	was, known := r.was[path]
	want := &r.want.marks[place]
	stamp, ok := stampOf(info)
	return known && ok && was.ID == want.id && was.Mode == want.mode &&
		uint32(was.Size) == uint32(info.Size()) && was.Modified.Equal(info.ModTime()) &&
		was.Changed.UnixNano() == stamp.changed && uint32(was.Inode) == uint32(stamp.inode)
}
