package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/gitdir"
	"github.com/pawl-run/pawl/internal/git/index"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const maxIndex = 512 << 20

// Dirty reports whether the checkout holds work that HEAD does not: a tracked
// file that is changed, staged, in conflict or gone. Untracked files and
// executable bits are not looked at, and a file that was only touched counts
// as changed if an end-of-line conversion or filter stands between it and its
// blob. It only tells people what a run will not see; nothing is decided by it.
//
// Files of except, and those below such a folder, slash separated and relative to the
// top, do not count. The index is read here and not by git, so
// nothing is refreshed or started.
func (r *Repo) Dirty(ctx context.Context, except ...string) (bool, error) {
	entries, err := readIndex(r.Dirs, r.Format)
	if err != nil {
		return false, fmt.Errorf("compare checkout %s: %w", r.Root, err)
	}
	for i, e := range entries {
		if i%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if slices.ContainsFunc(except, func(at string) bool { return e.Path == at || strings.HasPrefix(e.Path, at+"/") }) {
			continue
		}
		if changed, err := isChanged(r.Root, r.Format, e); changed || err != nil {
			return changed, err
		}
	}
	return r.stagedWork(ctx, entries)
}

// Tracked reports whether the index has the path, or a file below it.
func (r *Repo) Tracked(path string) (bool, error) {
	entries, err := readIndex(r.Dirs, r.Format)
	return slices.ContainsFunc(entries, func(e index.Record) bool {
		return e.Path == path || strings.HasPrefix(e.Path, path+"/")
	}), err
}

func readIndex(dirs gitdir.Dirs, format object.Format) ([]index.Record, error) {
	path := filepath.Join(dirs.GitDir, "index")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, index.ErrForm
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return index.Parse(data, format.HexLen()/2)
}

// isChanged compares a file with its index entry: by time and size, and by
// content when those differ.
func isChanged(root string, format object.Format, e index.Record) (bool, error) {
	if e.Stage != 0 || e.Intent {
		return true, nil
	}
	if e.Skip || e.Mode == object.ModeGitlink {
		return false, nil
	}
	path := filepath.Join(root, filepath.FromSlash(e.Path))
	info, err := os.Lstat(path)
	if err != nil {
		return true, nil //nolint:nilerr // A tracked file that cannot be seen is a change.
	}
	isLink := info.Mode().Type() == fs.ModeSymlink
	if isLink != (e.Mode == object.ModeSymlink) || !isLink && !info.Mode().IsRegular() {
		return true, nil
	}
	if info.ModTime().Equal(e.Modified) && uint32(info.Size()) == uint32(e.Size) {
		return false, nil
	}
	id, _, err := format.HashFile(path, e.Mode, info.Size())
	return err != nil || id != e.ID, nil //nolint:nilerr // A tracked file that cannot be read is a change.
}

// stagedWork compares the index with HEAD. Both are sorted alike.
func (r *Repo) stagedWork(ctx context.Context, entries []index.Record) (staged bool, err error) {
	base, err := r.Base(ctx, "")
	if errors.Is(err, loop.ErrNotFound) {
		return len(entries) > 0, nil // Without a commit, whatever is staged is new.
	}
	if err != nil {
		return false, err
	}
	blobs, err := r.Blobs(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, blobs.Close()) }()
	_, head, err := blobs.Tree(base.Tree)
	if err != nil || len(head) != len(entries) {
		return true, err
	}
	for i, e := range entries {
		if e.Path != head[i].Path || e.ID != head[i].ID || e.Mode != head[i].Mode {
			return true, nil
		}
	}
	return false, nil
}
