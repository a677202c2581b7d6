package verb

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Problem is an error as JSON: a problem of RFC 9457 with the fix, and the exit status
// that a command has for it.
type Problem struct {
	Type    string         `json:"type"` // always about:blank
	Title   string         `json:"title"`
	Status  int            `json:"status"` // of HTTP
	Detail  string         `json:"detail,omitempty"`
	Fix     string         `json:"fix,omitempty"` // refers to the actions by {1}, {2} and so on
	Actions []loop.Command `json:"actions,omitempty"`
	Exit    int            `json:"exit"`
	Kind    string         `json:"kind,omitempty"`   // one of the kinds
	Result  any            `json:"result,omitempty"` // of the verb, if there is one beside the error
}

// kinds are the errors that a caller may tell apart.
var kinds = map[string]error{
	"not_found": loop.ErrNotFound, "answered": loop.ErrAnswered, "lease_lost": loop.ErrLeaseLost, "fired": loop.ErrDuplicateKey, "paused": loop.ErrPaused,
	"role": loop.ErrRole, "grant": loop.ErrGrant, "owner": loop.ErrOwner, "unregistered": loop.ErrUnregistered,
	"unaccepted": loop.ErrUnaccepted, "unconfined": loop.ErrUnconfined, "depth": loop.ErrDepth, "children": loop.ErrChildren, "interrupted": context.Canceled,
}

// ProblemOf describes an error.
func ProblemOf(err error) *Problem {
	f := Explain(err)
	p := &Problem{Type: "about:blank", Title: f.What, Detail: f.Why, Fix: f.Fix, Actions: f.Actions, Exit: f.Exit, Status: httpStatus(f.Exit)}
	for kind, is := range kinds {
		if errors.Is(err, is) {
			p.Kind = kind
		}
	}
	return p
}

// Err is the error that the problem describes.
func (p *Problem) Err() error {
	return &loop.Fault{Exit: p.Exit, What: p.Title, Why: p.Detail, Fix: p.Fix, Actions: p.Actions, Err: kinds[p.Kind]}
}

// httpStatus is the status of HTTP for an exit status.
func httpStatus(exit int) int {
	switch exit {
	case loop.ExitUsage, loop.ExitUnreadable:
		return http.StatusBadRequest
	case loop.ExitNotFound:
		return http.StatusNotFound
	case loop.ExitMissing:
		return http.StatusFailedDependency
	case loop.ExitNotReady:
		return http.StatusUnprocessableEntity
	case loop.ExitBudget:
		return http.StatusTooManyRequests
	case loop.ExitRefused:
		return http.StatusForbidden
	case loop.ExitPaused:
		return http.StatusLocked
	case loop.ExitNoSuccess, loop.ExitWaiting, loop.ExitHeld:
		return http.StatusConflict
	case loop.ExitInterrupted:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Explain says of any error what failed, why, the fix and the exit status, as far as
// they are known.
func Explain(err error) loop.Fault {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		explained := *f
		if explained.Exit == 0 {
			explained.Exit = exitStatus(err)
		}
		return explained
	}
	f := loop.Fault{Exit: exitStatus(err), What: err.Error(), Err: err}
	if h, ok := errors.AsType[*loop.HeldError](err); ok {
		f.What, f.Why, f.Fix = h.Name()+" is held by another process", h.Holder.String()+" has it", "wait until it has ended"
		if h.Run != "" {
			return *f.WithAdvice(loop.Advise("wait until it has ended, or stop it: {1}", loop.PawlCommand("stop", h.Run)))
		}
		return f
	}
	if l, ok := errors.AsType[*loop.LockedError](err); ok {
		return explainLocked(l)
	}
	if errors.Is(err, loop.ErrLeaseLost) {
		f.Why = "another process took the run over"
		return *f.WithAdvice(loop.Advise("see how it goes on: {1}", loop.PawlCommand("runs")))
	}
	return f
}

// exitStatus is the exit status of an error that does not say it itself.
func exitStatus(err error) int {
	_, held := errors.AsType[*loop.HeldError](err)
	_, locked := errors.AsType[*loop.LockedError](err)
	switch {
	case held, locked:
		return loop.ExitHeld
	case errors.Is(err, context.Canceled):
		return loop.ExitInterrupted
	case errors.Is(err, loop.ErrNotFound):
		return loop.ExitNotFound
	case errors.Is(err, loop.ErrAnswered), errors.Is(err, loop.ErrLeaseLost), errors.Is(err, loop.ErrDuplicateKey):
		return loop.ExitHeld
	}
	return loop.ExitError
}

// explainLocked says which run is in the way of another one, why, and until when.
func explainLocked(l *loop.LockedError) loop.Fault {
	first := l.By.Name()
	f := loop.Fault{Exit: loop.ExitHeld, What: fmt.Sprintf("%s does not begin, because %s goes first", l.Loop, first), Why: l.Why.Words(), Err: l}
	wait, stop := loop.PawlCommand("run", l.Loop).WithFlag("wait"), loop.PawlCommand("stop", first)
	if !l.By.Live {
		return *f.WithAdvice(loop.Advise("{1} waits for it", wait))
	}
	f.Why += "; " + l.By.Holder.String() + " has it"
	return *f.WithAdvice(loop.Advise("{1} waits for it; {2} ends it", wait, stop))
}
