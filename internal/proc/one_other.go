//go:build !linux

package proc

import (
	"context"
	"errors"
	"fmt"
)

// Stopped is false: whether a process is stopped is only known on Linux.
func Stopped(Identity) bool { return false }

// Kill refuses: without the time at which a process started, a later one could
// have its pid.
func Kill(_ context.Context, id Identity) error {
	return fmt.Errorf("kill process %d: %w", id.PID, errors.ErrUnsupported)
}
