//go:build !unix

package daemon

import (
	"errors"
	"os"
)

// isOwn reports whether a file is of this user.
func isOwn(os.FileInfo) bool { return false }

// ReloadSignals are the signals that ask this process to read the definitions again.
func ReloadSignals() []os.Signal { return nil }

// End asks a daemon to end. It returns before it has.
func End(Running) error { return errors.ErrUnsupported }

// Reload asks a daemon to read the definitions again, soon.
func Reload(Running) error { return errors.ErrUnsupported }
