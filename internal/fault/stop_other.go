//go:build !unix

package fault

import (
	"context"
	"errors"
)

// stop needs a signal that this system does not have.
func stop(context.Context) error { return errors.ErrUnsupported }
