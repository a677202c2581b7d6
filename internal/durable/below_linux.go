package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Below returns once everything in a folder and below it is on the disk, whoever
// wrote it. It is for many files at once.
func Below(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err = unix.Syncfs(int(d.Fd())); err != nil {
		err = fmt.Errorf("sync what is below %s: %w", dir, err)
	}
	return errors.Join(err, d.Close())
}
