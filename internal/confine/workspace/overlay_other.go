//go:build !linux

package workspace

import (
	"errors"
	"io/fs"
	"time"
)

// There is no overlay here, so no layer is ever made or read.

func makeWhiteout(string) error       { return errors.ErrUnsupported }
func isWhiteout(fs.FileInfo) bool     { return false }
func setOpaque(string) error          { return errors.ErrUnsupported }
func isOpaque(string) (bool, error)   { return false, errors.ErrUnsupported }
func setTime(string, time.Time) error { return errors.ErrUnsupported }
