package projection

import (
	"errors"
	"io/fs"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// DiskFault turns a full or read-only disk into a *loop.Fault with the fix that a
// person can apply. Any other error is returned as it is.
func DiskFault(err error) error {
	f := &loop.Fault{Exit: loop.ExitError, What: "write", Why: err.Error(), Err: err}
	switch {
	case DiskFull(err):
		f.Fix = "free disk space and run it again"
	case errors.Is(err, fs.ErrPermission) || readOnly(err):
		f.Fix = "make the folder writable and run it again"
	default:
		return err
	}
	return f
}
