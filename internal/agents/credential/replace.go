package credential

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pawl-run/pawl/internal/ground/durable"
)

// replaceFile replaces the content of a file atomically. It keeps mode and owner; a
// new file is for its owner only. Ready, if not nil, is called just before the file
// is replaced, and can prevent that by an error.
//
// The temporary file always has the same name, so that one that a killed process
// left is removed by the next call.
func replaceFile(path string, content []byte, ready func() error) error {
	dir, name := filepath.Split(path)
	temp := filepath.Join(dir, "."+name+".pawl")
	old, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Clean(dir), 0o700); err != nil {
		return err
	}
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = writeLike(temp, content, old)
	if err == nil && ready != nil {
		err = ready()
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	return durable.SyncFolder(filepath.Clean(dir))
}

// writeLike creates a file with the mode and the owner of like, if not nil.
func writeLike(path string, content []byte, like fs.FileInfo) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && like != nil {
		err = f.Chmod(like.Mode().Perm())
	}
	if err == nil && like != nil {
		err = setOwner(f, like)
	}
	if err == nil {
		err = durable.SyncFile(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
