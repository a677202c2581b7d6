package loop

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrLeaseLost means another worker now owns the run. The holder must stop
	// acting at once and must not write; the new owner starts from the last
	// persisted iteration.
	ErrLeaseLost = errors.New("lease lost")

	// ErrNotFound means that no row or file has the name. Commands exit with 3.
	ErrNotFound = errors.New("not found")

	// ErrNameTaken means that another node of the store has this name.
	ErrNameTaken = errors.New("another node has this name")
	// ErrDuplicateKey means that a run with this key exists already: the
	// trigger fired twice, and the first firing counts.
	ErrDuplicateKey = errors.New("already fired")
	// ErrRole means that the role of who asked does not allow it: a person has to do it.
	ErrRole = errors.New("not allowed in this role")
	// ErrGrant means that who asked was not granted what the request is about.
	ErrGrant = errors.New("outside of the grant")
	// ErrOwner means that a repository belongs to another user, and nobody has accepted that.
	ErrOwner = errors.New("it belongs to another user")
	// ErrUnregistered means that nobody has registered the workspace that somebody who is not a
	// person asked about.
	ErrUnregistered = errors.New("the workspace is not registered")
	// ErrUnaccepted means that an agent would fire a definition that no person has accepted.
	ErrUnaccepted = errors.New("the definition is not accepted")
	// ErrUnconfined means that an agent would fire a definition that confines nothing.
	ErrUnconfined = errors.New("the definition confines nothing")
	// ErrDepth means that an agent would make a loop too far below one of people's.
	ErrDepth = errors.New("too deep")
	// ErrChildren means that the runs of a loop have made as many loops today as they may.
	ErrChildren = errors.New("too many children today")

	// ErrAnswered means that an approval is no longer open.
	ErrAnswered = errors.New("approval is not open")

	// ErrRowChanged means that a row of a protocol has another version than the one from
	// which a change was made: somebody else was first.
	ErrRowChanged = errors.New("the row was changed meanwhile")

	// ErrNotAcceptedHere means that a row asks this machine for something that no person has
	// accepted on it.
	ErrNotAcceptedHere = errors.New("not accepted on this machine")

	// ErrPaused means that the loop's switch in the store is set. Nothing may
	// leave the workspace for this loop until somebody clears it.
	ErrPaused = errors.New("the loop is paused")

	// ErrStoreGone means that the database that a process has opened was deleted or
	// replaced, or lacks the current run. The holder of a run must stop acting:
	// nothing that it writes is kept.
	ErrStoreGone = errors.New("the store is gone")
)

// NeedsPerson reports whether an error says that somebody else than a person may not do what was
// asked, so that its fix is a person's.
func NeedsPerson(err error) bool {
	for _, is := range []error{ErrRole, ErrGrant, ErrOwner, ErrUnregistered, ErrUnaccepted, ErrUnconfined, ErrNotAcceptedHere} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// AnsweredError means that an approval cannot be answered any more. Approval
// says how it was answered, by whom, from where and when. It is ErrAnswered.
type AnsweredError struct{ Approval Approval }

func (e *AnsweredError) Error() string {
	a := e.Approval
	at := a.Answered.UTC().Format(time.RFC3339)
	switch a.State {
	case ApprovalLanding:
		return fmt.Sprintf("%s said yes from %s at %s, and nothing has landed yet", orDefault(a.By, "somebody"), orDefault(a.From, "an unknown surface"), at)
	case ApprovalApproved, ApprovalRejected:
		said := map[ApprovalState]string{ApprovalApproved: "yes", ApprovalRejected: "no"}[a.State]
		return fmt.Sprintf("%s said %s from %s at %s", orDefault(a.By, "somebody"), said, orDefault(a.From, "an unknown surface"), at)
	case ApprovalVoid:
		return fmt.Sprintf("it became void at %s: %s", at, orDefault(a.Note, "no reason was given"))
	case ApprovalOpen, ApprovalExpired:
	}
	return "its time ran out at " + a.Expires.UTC().Format(time.RFC3339)
}

// Is makes every AnsweredError an ErrAnswered.
func (e *AnsweredError) Is(target error) bool { return target == ErrAnswered }

// HeldError means that another live process has what the caller wanted.
type HeldError struct {
	Run    string // LOOP#N, by which it can be stopped; empty: What is held
	What   string // "node n1"
	Holder Holder
}

// Name says what is held.
func (e *HeldError) Name() string {
	if e.Run != "" {
		return "run " + e.Run
	}
	return e.What
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by %s", e.Name(), e.Holder)
}

// Fault is an error that a person can act on: what, why and the fix, with the
// exit status that a script sees. Fix refers to the commands of Actions by {1}, {2}
// and so on, as an Advice does: each surface shows them in its own way.
type Fault struct {
	Exit    int
	What    string
	Why     string
	Fix     string
	Actions []Command
	Err     error // the cause, or nil
}

// Advice is the fix with its actions.
func (f *Fault) Advice() Advice { return Advice{f.Fix, f.Actions} }

// WithAdvice sets the fix and its actions, and returns the fault.
func (f *Fault) WithAdvice(fix Advice) *Fault {
	f.Fix, f.Actions = fix.Text, fix.Actions
	return f
}

func (f *Fault) Error() string {
	if f.Why == "" {
		return f.What
	}
	return f.What + ": " + f.Why
}

func (f *Fault) Unwrap() error { return f.Err }
