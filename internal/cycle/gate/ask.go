package gate

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Ask puts a question to a model, and blocks until it has answered. The provider
// of an Ask meters it and charges the run: a gate spends nothing itself.
type Ask func(context.Context, Question) (Answer, error)

// Question is what a gate asks a model.
type Question struct {
	Purpose string        // of the turn in which it is answered
	By      loop.Reviewer // who is to answer; the zero value is the configured critic
	Prompt  string
	Timeout time.Duration
}

// Answer is the model's answer, with its usage.
type Answer struct {
	Text   string
	Usage  loop.Usage
	Models []string // that answered, as the meter saw them; empty if it did not see them
}

// ErrNobody means that nobody can answer a question. Its wrapper says why.
var ErrNobody = errors.New("this gate asks a model, and there is none to ask: gates that are commands need no model")

// NobodyError is an ErrNobody that says why in its own words.
type NobodyError struct{ Why string }

func (e *NobodyError) Error() string { return e.Why }

// Is reports whether the target is ErrNobody.
func (e *NobodyError) Is(target error) bool { return target == ErrNobody }

// NoModel is the Ask if no model is available. It always returns ErrNobody.
func NoModel(context.Context, Question) (Answer, error) { return Answer{}, ErrNobody }
