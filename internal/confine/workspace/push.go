package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Push adds the files of one more directory, by its absolute path, to a tree that no
// program has seen yet. They do not count as changes of the tree while they are as in the
// directory, which must stay. In layers the directory is put on top of the lower ones; into
// a directory its files are copied, except where the tree has something at their path.
func (t *Tree) Push(ctx context.Context, layer string) error {
	if !filepath.IsAbs(layer) {
		return fmt.Errorf("put %q below tree %s: it is not an absolute path", layer, t.Name)
	}
	pushed := append([]string{layer}, t.pushed...)
	err := t.trees.writeRecord(t.Name, t.newRecord(pushed))
	if err == nil {
		err = t.form.addFiles(ctx, layer, layer == t.filled)
	}
	if err != nil {
		return fmt.Errorf("put %s below tree %s: %w", layer, t.Name, err)
	}
	t.pushed = pushed
	return nil
}

// addFiles copies the files of a directory into the tree, owned by its user. What the tree
// has stays as it is, with everything below it unless both are folders. Only files, folders
// and links are copied. No link is followed out of either directory.
func (d *directory) addFiles(ctx context.Context, from string, fills bool) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	tree, err := os.OpenRoot(d.dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	c := copier{from: source, to: tree, owner: d.owner}
	if fills {
		c.filling, d.filled = d, map[string]*mark{}
		defer func() {
			now, ok := presentStamp(filepath.Join(d.dir, ".git"))
			if !ok {
				return // The marks prove nothing, and the files are read.
			}
			for _, m := range d.filled {
				m.sealBefore(now)
			}
		}()
	}
	return fs.WalkDir(source.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || name == "." {
			return err
		}
		return c.copyEntry(name, e)
	})
}

type copier struct {
	from, to *os.Root
	owner    owner
	filling  *directory // the tree whose pointers the files replace; nil: they replace nothing
}

func (c copier) copyEntry(name string, e fs.DirEntry) error {
	there, err := c.to.Lstat(name)
	if err == nil && c.filling != nil && e.Type().IsRegular() && there.Mode().IsRegular() {
		err = cmp.Or(c.to.Remove(name), fs.ErrNotExist)
	}
	switch {
	case err == nil && e.IsDir() && !there.IsDir():
		return fs.SkipDir
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		err = c.to.Mkdir(name, 0o755)
	case mode.Type() == fs.ModeSymlink:
		var target string
		if target, err = c.from.Readlink(name); err == nil {
			err = c.to.Symlink(target, name)
		}
	case mode.IsRegular():
		err = c.copyFile(name, info)
	default:
		return nil
	}
	if err == nil && !c.owner.isPawl() {
		err = c.to.Lchown(name, c.owner.uid, c.owner.gid)
	}
	if err == nil && c.filling != nil && !info.IsDir() {
		err = c.markCopied(name, info)
	}
	return err
}

// markCopied sets the mark of a file that the tree was filled with, and gives it the time
// of its source, so that git need not read it.
func (c copier) markCopied(name string, from fs.FileInfo) error {
	if from.Mode().IsRegular() {
		if err := c.to.Chtimes(name, from.ModTime(), from.ModTime()); err != nil {
			return err
		}
	}
	info, err := c.to.Lstat(name)
	if err != nil {
		return err
	}
	m := &mark{}
	files := c.filling.checkout
	if place, known := files.index[filepath.ToSlash(name)]; known {
		m = &files.marks[place]
	}
	m.setFrom(info)
	c.filling.filled[filepath.ToSlash(name)] = m
	return nil
}

func (c copier) copyFile(name string, info fs.FileInfo) error {
	from, err := c.from.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	perm := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		perm = 0o755
	}
	to, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// pushed compares a tree with what was copied into it. The zero pushed is for a tree
// without copied files.
type pushed struct {
	tree   *os.Root
	layers []*os.Root
}

func openPushed(tree string, layers []string) (p pushed, err error) {
	if len(layers) == 0 {
		return pushed{}, nil
	}
	defer func() {
		if err != nil {
			p.closeRoots()
		}
	}()
	if p.tree, err = os.OpenRoot(tree); err != nil {
		return p, err
	}
	for _, dir := range layers {
		layer, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was collected: all files that came from it count as new.
		}
		if err != nil {
			return p, fmt.Errorf("compare with what was prepared: %w", err)
		}
		p.layers = append(p.layers, layer)
	}
	return p, nil
}

func (p pushed) closeRoots() {
	for _, root := range append(slices.Clone(p.layers), p.tree) {
		if root != nil {
			root.Close()
		}
	}
}

// isAsPushed reports whether the file or link at path is as it was copied. Untrusted
// programs write to the tree: it is false for what cannot be read there.
func (p pushed) isAsPushed(path string, info fs.FileInfo) bool {
	name := filepath.FromSlash(path)
	return slices.ContainsFunc(p.layers, func(layer *os.Root) bool {
		was, err := layer.Lstat(name)
		if err != nil || modeOf(was) == 0 || modeOf(was) != modeOf(info) {
			return false
		}
		if was.Mode().Type() == fs.ModeSymlink {
			target, err := layer.Readlink(name)
			now, nowErr := p.tree.Readlink(name)
			return err == nil && nowErr == nil && target == now
		}
		return was.Size() == info.Size() && sameContent(layer, p.tree, name)
	})
}

// sameContent reports whether a file has the same content below both directories.
func sameContent(a, b *os.Root, name string) bool {
	one, err := a.Open(name)
	if err != nil {
		return false
	}
	defer one.Close()
	other, err := b.Open(name)
	if err != nil {
		return false
	}
	defer other.Close()
	for left, right := make([]byte, 64<<10), make([]byte, 64<<10); ; {
		n, err := io.ReadFull(one, left)
		m, otherErr := io.ReadFull(other, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false
		}
		if err != nil || otherErr != nil {
			return isAtEnd(err) && isAtEnd(otherErr)
		}
	}
}

func isAtEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
