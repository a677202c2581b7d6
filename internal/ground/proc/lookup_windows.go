package proc

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
)

func hasSeparator(name string) bool { return strings.ContainsAny(name, `/\:`) }

// checkExecutable returns nil if path is a file. Unlike the shell it adds no extension.
func checkExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return &fs.PathError{Op: "exec", Path: path, Err: syscall.ERROR_ACCESS_DENIED}
	}
	return nil
}
