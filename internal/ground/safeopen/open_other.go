//go:build !unix

package safeopen

import (
	"fmt"
	"io/fs"
	"os"
)

// Open opens a regular file. On these platforms the file can be replaced between
// the check and the opening, so no agent runs here.
func Open(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return f, info, nil
}
