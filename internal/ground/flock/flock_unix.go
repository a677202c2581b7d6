//go:build unix

package flock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openFlags keep the open from following a symbolic link at the path, and from
// waiting for ever if there is a FIFO.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

func lockFile(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return ErrHeld
	default:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
}
