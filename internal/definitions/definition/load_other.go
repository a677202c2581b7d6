//go:build !unix

package definition

import (
	"errors"
	"io/fs"
	"os"
)

func openPlain(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, errors.New("it is a symbolic link")
	}
	return os.Open(path)
}

// manyNames is always false: FileInfo of this platform has no number of names.
func manyNames(fs.FileInfo) bool { return false }
