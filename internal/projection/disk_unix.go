//go:build unix

package projection

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags keep a read from following a last link and from waiting for ever
// on a pipe that lies where a file should be.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// lock holds an exclusive lock on an open file until the returned function is
// called or the process ends.
func lock(f *os.File) (func() error, error) {
	fd := int(f.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return nil, os.NewSyscallError("flock", err)
	}
	return func() error { return os.NewSyscallError("flock", unix.Flock(fd, unix.LOCK_UN)) }, nil
}

// syncHandle makes a rename in an open folder durable.
func syncHandle(d *os.File) error { return d.Sync() }

func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
