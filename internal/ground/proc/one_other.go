//go:build !linux

package proc

import (
	"context"
	"errors"
	"fmt"
)

// Stopped returns false: only on Linux is it known whether a process is stopped.
func Stopped(Identity) bool { return false }

// Kill fails: without the start time of a process, a later one could have its pid.
func Kill(_ context.Context, id Identity) error {
	return fmt.Errorf("kill process %d: %w", id.PID, errors.ErrUnsupported)
}
