package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/git/object"
)

// finish brings the files and the index to the new commit, each path only as
// far as it still is what it was at the old one, and clears the journal.
func (t *checkoutUpdate) finish(ctx context.Context, j *journal) error {
	err := t.updateFiles(ctx)
	if err == nil {
		err = t.updateIndex(ctx)
	}
	if err == nil {
		err = j.clear()
	}
	if err != nil {
		return fmt.Errorf("bring the checkout %s to %s: %w", t.repo.Root, t.a.Commit, err)
	}
	return nil
}

// updateFiles deletes first: a directory may be where a file is to be.
func (t *checkoutUpdate) updateFiles(ctx context.Context) error {
	var write []changedPath
	for _, one := range t.changed {
		if err := t.removeLeftover(temporaryName(one)); err != nil {
			return err
		}
		switch {
		case one.now.Mode == object.ModeGitlink || one.old.Mode == object.ModeGitlink:
		case one.now.ID != "":
			write = append(write, one)
		case t.isReplaceable(one):
			if err := t.withFaultPoints(ctx, one, t.removeFile); err != nil {
				return err
			}
		}
	}
	return t.writeFiles(ctx, write)
}

// removeLeftover removes what an earlier process left, without following links.
func (t *checkoutUpdate) removeLeftover(name string) error {
	_, blocker, err := t.lstat(name)
	if errors.Is(err, fs.ErrNotExist) || blocker != "" {
		return nil
	}
	return errors.Join(err, t.root.Remove(name))
}

// withFaultPoints makes one change to the checkout between two fault points.
func (t *checkoutUpdate) withFaultPoints(ctx context.Context, one changedPath, do func(changedPath) error) error {
	if err := beforeFile.Hit(ctx); err != nil {
		return err
	}
	if err := do(one); err != nil {
		return err
	}
	return afterFile.Hit(ctx)
}

// removeFile deletes a file and the directories that it leaves empty.
func (t *checkoutUpdate) removeFile(one changedPath) error {
	if err := t.root.Remove(one.path); err != nil {
		return err
	}
	for dir := path.Dir(one.path); dir != "." && t.root.Remove(dir) == nil; {
		dir = path.Dir(dir)
	}
	return nil
}

// writeFiles reads all contents with one process, because git is slow to start.
func (t *checkoutUpdate) writeFiles(ctx context.Context, changed []changedPath) error {
	changed = slices.DeleteFunc(changed, func(one changedPath) bool { return !t.isReplaceable(one) })
	if len(changed) == 0 {
		return nil
	}
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(changed))
	for i, one := range changed {
		ids[i] = one.now.ID
	}
	err = blobs.Each(ids, func(i int, _ int64, content io.Reader) error {
		return t.withFaultPoints(ctx, changed[i], func(one changedPath) error { return t.writeFile(one, content) })
	})
	return errors.Join(err, blobs.Close())
}

// temporaryName is the name of a file until it is complete. It is the same every
// time, so that the next process finds what this one left.
func temporaryName(one changedPath) string {
	id := one.now.ID + one.old.ID
	return path.Join(path.Dir(one.path), ".pawl-"+id[:16])
}

// writeFile writes a file and renames it into place.
func (t *checkoutUpdate) writeFile(one changedPath, content io.Reader) error {
	if !t.isReplaceable(one) {
		return nil // It changed since it was looked at.
	}
	if err := t.root.MkdirAll(path.Dir(one.path), 0o777); err != nil {
		return err
	}
	temp := temporaryName(one)
	if err := t.removeLeftover(temp); err != nil {
		return err
	}
	err := t.createFile(temp, one.now.Mode, content)
	if err == nil {
		err = t.root.Rename(temp, one.path)
	}
	if err != nil {
		_ = t.root.Remove(temp)
	}
	return err
}

func (t *checkoutUpdate) createFile(name string, mode uint32, content io.Reader) error {
	if mode == object.ModeSymlink {
		target, err := io.ReadAll(io.LimitReader(content, object.MaxPath+1))
		if err != nil || len(target) > object.MaxPath {
			return errors.Join(err, fmt.Errorf("link %s: its target is longer than %d bytes", name, object.MaxPath))
		}
		return t.root.Symlink(string(target), name)
	}
	perm := fs.FileMode(0o666)
	if mode == object.ModeExec {
		perm = 0o777
	}
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close())
}

// updateIndex stages the changed paths. An entry that differs from the old commit is
// somebody's own and stays. Git takes the lock and starts nothing.
func (t *checkoutUpdate) updateIndex(ctx context.Context) error {
	var lines strings.Builder
	none := strings.Repeat("0", t.repo.Format.HexLen())
	for _, one := range t.changed {
		if one.now.ID == "" && t.isIndexed(one.path, one.old) {
			fmt.Fprintf(&lines, "0 %s\t%s\x00", none, one.path)
		}
	}
	for _, one := range t.changed {
		if one.now.ID != "" && t.isStaged(one) {
			fmt.Fprintf(&lines, "%o %s\t%s\x00", one.now.Mode, one.now.ID, one.path)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	if err := errors.Join(t.checkUnlocked(), beforeIndex.Hit(ctx)); err != nil {
		return err
	}
	git := t.repo.git.Without("GIT_INDEX_FILE").With("GIT_INDEX_FILE=" + filepath.Join(t.repo.GitDir, "index"))
	if _, err := git.Output(ctx, strings.NewReader(lines.String()), "update-index", "-z", "--index-info"); err != nil {
		return errors.Join(err, t.checkUnlocked())
	}
	return afterIndex.Hit(ctx)
}
