//go:build unix

package git

import (
	"os"
	"syscall"
)

// lockFile locks an open file and does not wait. unlockFile ends that.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// unlockFile ends the lock at once. Without it the lock would outlast a close while a
// program is being started, whose process has every open file until it begins.
func unlockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}
