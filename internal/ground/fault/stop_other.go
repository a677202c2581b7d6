//go:build !unix

package fault

import (
	"context"
	"errors"
)

// stopSelf fails: this system has no signal that suspends a process.
func stopSelf(context.Context) error { return errors.ErrUnsupported }
