//go:build unix

package proc

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func hasSeparator(name string) bool { return strings.Contains(name, "/") }

// checkExecutable returns nil if this user can execute path, and why not otherwise.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "exec", Path: path, Err: unix.EACCES}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "exec", Path: path, Err: err}
	}
	return nil
}
