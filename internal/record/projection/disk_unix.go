//go:build unix

package projection

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep a read from following a link at the end of the path, and from
// waiting for ever on a pipe in place of a file.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// lockFile holds an exclusive lock on an open file until the file is closed.
func lockFile(f *os.File) error {
	return os.NewSyscallError("flock", unix.Flock(int(f.Fd()), unix.LOCK_EX))
}

// DiskFull reports whether an error means that there is no room left on a disk.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
