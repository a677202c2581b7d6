//go:build !linux

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// SyncTree returns once everything in and below a folder is on the disk, whoever
// wrote it. It is for many files at once.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return SyncFolder(path)
		case !e.Type().IsRegular():
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(SyncFile(f), f.Close())
	})
}
