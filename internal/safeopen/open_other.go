//go:build !unix

package safeopen

import (
	"fmt"
	"io/fs"
	"os"
)

// Open opens a regular file. Between the look and the opening the file
// can be swapped here, so no agent runs on these platforms.
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
