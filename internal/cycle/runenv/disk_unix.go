//go:build unix

package runenv

import (
	"io/fs"
	"syscall"
)

// onDisk is how much a file takes up, which is little for one with holes, what
// identifies it, and whether it has several names.
func onDisk(info fs.FileInfo) (bytes int64, id [2]uint64, many bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), id, false
	}
	const block = 512                                                                      // whatever the blocks of the file system are
	return s.Blocks * block, [2]uint64{uint64(s.Dev), s.Ino}, s.Nlink > 1 && !info.IsDir() //nolint:unconvert // Its width depends on the system.
}
