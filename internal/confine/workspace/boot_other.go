//go:build !linux && !darwin

package workspace

import "errors"

// Nothing is known of a directory here, so no copy is used twice.

func bootID() (string, error)              { return "", errors.ErrUnsupported }
func hasNoAttributes(string) (bool, error) { return false, errors.ErrUnsupported }
