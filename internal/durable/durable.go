// Package durable makes what was written, and the names that it has, survive a
// power cut. A file is safe when both are: its content, and then, after a rename
// or for a new file, the folder that holds its name.
//
// It writes no content and renames nothing: its callers know the order.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// File returns once the content of an open file is on the disk.
func File(f *os.File) error { return flush(f) }

// Folder returns once the names in a folder are on the disk, where the system and
// the file system can do that. Elsewhere it does nothing.
func Folder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return folder(d)
}

// FolderIn is Folder for a folder in root, by its path with slashes.
func FolderIn(root *os.Root, dir string) error {
	d, err := root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	return folder(d)
}

// folder syncs and closes. Windows opens a folder for reading only, and some
// network disks have no such call.
func folder(d *os.File) error {
	err := flush(d)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// MkdirAll makes a folder in root with its parents, by a path with slashes, so
// that the names of those that were missing survive.
func MkdirAll(root *os.Root, dir string, perm fs.FileMode) error {
	name := filepath.FromSlash(dir)
	if info, err := root.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := root.MkdirAll(name, perm); err != nil {
		return err
	}
	for name = filepath.Clean(name); name != "."; {
		name = filepath.Dir(name)
		if err := FolderIn(root, filepath.ToSlash(name)); err != nil {
			return err
		}
	}
	return nil
}

var watchers struct {
	sync.RWMutex
	last int
	see  map[int]func(*os.File) error
}

// Watch is for tests: see is called before a file or a folder is synced, until
// stop is called. Its error is what the sync comes to.
func Watch(see func(*os.File) error) (stop func()) {
	watchers.Lock()
	defer watchers.Unlock()
	if watchers.see == nil {
		watchers.see = map[int]func(*os.File) error{}
	}
	watchers.last++
	id := watchers.last
	watchers.see[id] = see
	return func() {
		watchers.Lock()
		defer watchers.Unlock()
		delete(watchers.see, id)
	}
}

func flush(f *os.File) error {
	watchers.RLock()
	defer watchers.RUnlock()
	for _, see := range watchers.see {
		if err := see(f); err != nil {
			return fmt.Errorf("sync %s: %w", f.Name(), err)
		}
	}
	return f.Sync()
}

// MissingFolders lists dir and the folders above it that do not exist, the
// deepest first, so that whoever creates dir can remove exactly what was added.
func MissingFolders(dir string) []string {
	var list []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return list
		}
		list = append(list, dir)
		dir = filepath.Dir(dir)
	}
}
