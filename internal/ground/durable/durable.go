// Package durable makes files and their names survive a power cut. A file is safe
// once its content is synced and then, if it is new or was renamed, the folder
// that holds its name.
//
// It decides nothing about content, and leaves the order of several files to its
// callers.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
)

// SyncFile returns once the content of an open file is on the disk.
func SyncFile(f *os.File) error { return callSync(f) }

// SyncFolder returns once the names in a folder are on the disk. It does nothing
// where the system or the file system cannot do that.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return syncAndClose(d)
}

// SyncFolderIn is SyncFolder for a folder in root. The path has slashes.
func SyncFolderIn(root *os.Root, dir string) error {
	d, err := root.Open(filepath.FromSlash(dir))
	if err != nil {
		return err
	}
	return syncAndClose(d)
}

// syncAndClose ignores that a folder cannot be synced: Windows opens folders for
// reading only, and some network disks do not offer the call.
func syncAndClose(d *os.File) error {
	err := callSync(d)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// MkdirAll makes a folder in root with its parents, and syncs the names of those
// that were missing. The path has slashes.
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
		if err := SyncFolderIn(root, filepath.ToSlash(name)); err != nil {
			return err
		}
	}
	return nil
}

var syncWatchers struct {
	sync.RWMutex
	last int
	see  map[int]func(*os.File) error
}

// CreateIn makes a file below a root, with the folders that it needs, and returns when all of
// it is on the disk. A file that is there already is fs.ErrExist, and stays.
func CreateIn(root *os.Root, name string, content []byte) error {
	dir := path.Dir(name)
	if err := MkdirAll(root, dir, 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = SyncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return SyncFolderIn(root, dir)
}

// ReplaceFile gives a file new content. Whoever reads it, also after a power cut,
// finds all of the old content or all of the new. It keeps the permissions; a file
// that is not there yet gets perm. A link is replaced, and not what it leads to.
func ReplaceFile(name string, content []byte, perm fs.FileMode) error {
	if info, err := os.Stat(name); err == nil {
		perm = info.Mode().Perm()
	}
	dir := filepath.Dir(name)
	f, err := os.CreateTemp(dir, ".pawl-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(perm)); err == nil {
		err = SyncFile(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncFolder(dir)
}

// WatchSyncs is for tests: until stop is called, see is called before each sync of
// a file or a folder. If it returns an error, the sync fails with it.
func WatchSyncs(see func(*os.File) error) (stop func()) {
	syncWatchers.Lock()
	defer syncWatchers.Unlock()
	if syncWatchers.see == nil {
		syncWatchers.see = map[int]func(*os.File) error{}
	}
	syncWatchers.last++
	id := syncWatchers.last
	syncWatchers.see[id] = see
	return func() {
		syncWatchers.Lock()
		defer syncWatchers.Unlock()
		delete(syncWatchers.see, id)
	}
}

func callSync(f *os.File) error {
	syncWatchers.RLock()
	defer syncWatchers.RUnlock()
	for _, see := range syncWatchers.see {
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
