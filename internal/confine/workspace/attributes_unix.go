//go:build linux || darwin

package workspace

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasNoAttributes reports whether a directory has no extended attribute.
func hasNoAttributes(dir string) (bool, error) {
	n, err := unix.Llistxattr(dir, nil)
	if errors.Is(err, unix.ENOTSUP) {
		return true, nil
	}
	return n == 0, err
}

// linkCount returns the number of names of a file.
func linkCount(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(s.Nlink) //nolint:unconvert // Its width depends on the system and the processor.
}
