package loop

import (
	"errors"
	"fmt"
)

var (
	// ErrLeaseLost means another worker now owns the run. The holder must stop
	// acting at once and must not write; the new owner starts from the last
	// persisted iteration.
	ErrLeaseLost = errors.New("lease lost")

	// ErrNotFound means that no row or file has the name. Callers exit with 3.
	ErrNotFound = errors.New("not found")

	// ErrDuplicateKey means that a run with this key exists already: the
	// trigger fired twice, and the first firing stands.
	ErrDuplicateKey = errors.New("already fired")

	// ErrAnswered means that an approval is no longer open.
	ErrAnswered = errors.New("approval is not open")
)

// HeldError means that another live process has what the caller wanted.
type HeldError struct {
	What   string // "run ci-watch#12"
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by process %d on %s", e.What, e.Holder.PID, e.Holder.Node)
}

// Fault is an error that a person can act on: what, why and the fix, with the
// exit status that a script sees.
type Fault struct {
	Exit int
	What string
	Why  string
	Fix  string
	Err  error // the cause, or nil
}

func (f *Fault) Error() string {
	if f.Why == "" {
		return f.What
	}
	return f.What + ": " + f.Why
}

func (f *Fault) Unwrap() error { return f.Err }
