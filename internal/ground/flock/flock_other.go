//go:build !unix

package flock

import (
	"errors"
	"fmt"
	"os"
)

const openFlags = 0

func lockFile(f *os.File, _ bool) error {
	return fmt.Errorf("lock %s: %w", f.Name(), errors.ErrUnsupported)
}
