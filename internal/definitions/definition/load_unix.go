//go:build unix

package definition

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openPlain opens a file without following a symbolic link and without waiting
// for the other end of a FIFO.
func openPlain(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	return file, err
}

func manyNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
