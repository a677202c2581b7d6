package toolset

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
)

// Files reads a tree of layers without mounting it, with the same result: each name is
// that of the topmost layer that has it. No symbolic link leads out of its layer.
type Files struct{ layers []*os.Root }

// Open opens the layers of a tree below its upper one. The caller must close Files.
func Open(o sandbox.Overlay) (*Files, error) {
	f := &Files{}
	for _, dir := range o.Lower {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.layers = append(f.layers, root)
	}
	return f, nil
}

// Close closes the layers.
func (f *Files) Close() error {
	var err error
	for _, l := range f.layers {
		err = errors.Join(err, l.Close())
	}
	return err
}

// Open opens a file or lists a directory.
func (f *Files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	for _, l := range f.layers {
		info, err := l.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, syscall.ENOTDIR), err == nil && info.Mode()&fs.ModeCharDevice != 0: // A whiteout, or below one.
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		case err != nil:
			return nil, err
		case info.IsDir():
			entries, err := f.ReadDir(name)
			return &folder{info: info, left: entries}, err
		}
		return l.FS().Open(name)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// folder is an open directory that several layers may have.
type folder struct {
	info fs.FileInfo
	left []fs.DirEntry
}

// Stat describes the directory of the topmost layer.
func (d *folder) Stat() (fs.FileInfo, error) { return d.info, nil }

// Read fails: it is a directory.
func (d *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: syscall.EISDIR}
}

// Close does nothing.
func (d *folder) Close() error { return nil }

// ReadDir returns the next n entries, or all that are left.
func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	list := d.left[:n]
	d.left = d.left[n:]
	return list, nil
}

// ReadDir lists a directory of all layers.
func (f *Files) ReadDir(name string) ([]fs.DirEntry, error) {
	seen := map[string]bool{}
	var all []fs.DirEntry
	found := false
	for _, l := range f.layers {
		entries, err := listLayer(l, name)
		if err != nil {
			continue
		}
		found = true
		for _, e := range entries {
			if !seen[e.Name()] && e.Type()&fs.ModeCharDevice == 0 {
				all = append(all, e)
			}
			seen[e.Name()] = true
		}
	}
	if !found {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return all, nil
}

// listLayer lists a directory of a layer. Reading a directory that was opened in a root
// makes a system call for each entry, which is slow in a large tree. So the directory is
// opened by its path too, and read there if it is the same one.
func listLayer(l *os.Root, name string) ([]fs.DirEntry, error) {
	inside, err := l.Stat(name)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(filepath.Join(l.Name(), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	info, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	if !os.SameFile(inside, info) {
		return nil, fs.ErrNotExist
	}
	return dir.ReadDir(-1)
}
