package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// SyncTree returns once everything in and below a folder is on the disk, whoever
// wrote it. It is for many files at once.
func SyncTree(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = unix.Syncfs(int(d.Fd())); err != nil {
		err = fmt.Errorf("sync %s and everything below it: %w", dir, err)
	}
	return errors.Join(err, d.Close())
}
