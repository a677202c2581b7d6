//go:build unix

package git

import (
	"os"
	"syscall"
)

// lockFile locks an open file until it is closed, and does not wait.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
