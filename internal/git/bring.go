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
	err := t.files(ctx)
	if err == nil {
		err = t.restage(ctx)
	}
	if err == nil {
		err = j.clear()
	}
	if err != nil {
		return fmt.Errorf("bring the checkout %s to %s: %w", t.repo.Root, t.a.Commit, err)
	}
	return nil
}

// files deletes first: a directory may stand where a file is to be.
func (t *checkoutUpdate) files(ctx context.Context) error {
	var write []touch
	for _, one := range t.touches {
		if err := t.sweep(leftover(one)); err != nil {
			return err
		}
		switch {
		case one.now.Mode == object.ModeGitlink || one.old.Mode == object.ModeGitlink:
		case one.now.ID != "":
			write = append(write, one)
		case t.onDisk(one.path, one.old):
			if err := t.around(ctx, one, t.remove); err != nil {
				return err
			}
		}
	}
	return t.writeAll(ctx, write)
}

// sweep removes what an earlier process left, through no link.
func (t *checkoutUpdate) sweep(name string) error {
	_, blocker, err := t.look(name)
	if errors.Is(err, fs.ErrNotExist) || blocker != "" {
		return nil
	}
	return errors.Join(err, t.root.Remove(name))
}

// around passes the points on both sides of one change to the checkout.
func (t *checkoutUpdate) around(ctx context.Context, one touch, do func(touch) error) error {
	if err := beforeFile.Hit(ctx); err != nil {
		return err
	}
	if err := do(one); err != nil {
		return err
	}
	return afterFile.Hit(ctx)
}

// remove deletes a file and the directories that it leaves empty.
func (t *checkoutUpdate) remove(one touch) error {
	if err := t.root.Remove(one.path); err != nil {
		return err
	}
	for dir := path.Dir(one.path); dir != "." && t.root.Remove(dir) == nil; {
		dir = path.Dir(dir)
	}
	return nil
}

// writeAll asks for all contents at once, because git is slow to start.
func (t *checkoutUpdate) writeAll(ctx context.Context, touches []touch) error {
	touches = slices.DeleteFunc(touches, func(one touch) bool { return !t.onDisk(one.path, one.old) })
	if len(touches) == 0 {
		return nil
	}
	blobs, err := t.repo.Blobs(ctx)
	if err != nil {
		return err
	}
	ids := make([]string, len(touches))
	for i, one := range touches {
		ids[i] = one.now.ID
	}
	err = blobs.Each(ids, func(i int, _ int64, content io.Reader) error {
		return t.around(ctx, touches[i], func(one touch) error { return t.write(one, content) })
	})
	return errors.Join(err, blobs.Close())
}

// leftover is the name of a file until it is whole. It is the same every time,
// so that the next process finds what this one left.
func leftover(one touch) string {
	id := one.now.ID + one.old.ID
	return path.Join(path.Dir(one.path), ".pawl-"+id[:16])
}

// write puts a file in place with one rename.
func (t *checkoutUpdate) write(one touch, content io.Reader) error {
	if !t.onDisk(one.path, one.old) {
		return nil // It changed since it was looked at.
	}
	if err := t.root.MkdirAll(path.Dir(one.path), 0o777); err != nil {
		return err
	}
	temp := leftover(one)
	if err := t.sweep(temp); err != nil {
		return err
	}
	err := t.create(temp, one.now.Mode, content)
	if err == nil {
		err = t.root.Rename(temp, one.path)
	}
	if err != nil {
		_ = t.root.Remove(temp)
	}
	return err
}

func (t *checkoutUpdate) create(name string, mode uint32, content io.Reader) error {
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

// restage tells the index. An entry that is no longer what it was at the old
// commit is a person's own and stays. Git takes the lock and starts nothing.
func (t *checkoutUpdate) restage(ctx context.Context) error {
	var lines strings.Builder
	none := strings.Repeat("0", t.repo.Format.HexLen())
	for _, one := range t.touches {
		if one.now.ID == "" && t.indexed(one.path, one.old) {
			fmt.Fprintf(&lines, "0 %s\t%s\x00", none, one.path)
		}
	}
	for _, one := range t.touches {
		if one.now.ID != "" && t.staged(one) {
			fmt.Fprintf(&lines, "%o %s\t%s\x00", one.now.Mode, one.now.ID, one.path)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	if err := errors.Join(t.unlocked(), beforeIndex.Hit(ctx)); err != nil {
		return err
	}
	if _, err := t.repo.onIndex().git.Output(ctx, strings.NewReader(lines.String()), "update-index", "-z", "--index-info"); err != nil {
		return errors.Join(err, t.unlocked())
	}
	return afterIndex.Hit(ctx)
}

// onIndex is the repository with the index of its checkout.
func (r *Repo) onIndex() *Repo {
	with := *r
	with.git = r.git.Without("GIT_INDEX_FILE").With("GIT_INDEX_FILE=" + filepath.Join(r.GitDir, "index"))
	return &with
}
