package workspace

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) (stamp, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, false
	}
	return stamp{changed: s.Ctimespec.Nano(), inode: s.Ino}, true
}

// links is the number of names that a file has.
func links(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(s.Nlink)
}
