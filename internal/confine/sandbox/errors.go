package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// SetupError means that a box could not be set up on this host, and that its
// program did not run.
type SetupError struct {
	Step string // what was being done
	Err  error  // mostly a syscall.Errno
}

func (e *SetupError) Error() string { return fmt.Sprintf("set up the sandbox: %s: %v", e.Step, e.Err) }

func (e *SetupError) Unwrap() error { return e.Err }

// MissesProgram reports whether the sandbox is fine and the program is not there.
func (e *SetupError) MissesProgram() bool {
	return errors.Is(e.Err, fs.ErrNotExist) && strings.HasPrefix(e.Step, "find ") && strings.HasSuffix(e.Step, " in PATH")
}

// unsupportedTierError returns the error for a tier that this system does not have.
func (b Box) unsupportedTierError() error {
	return &SetupError{Step: "confine by " + string(b.Tier), Err: errors.ErrUnsupported}
}
