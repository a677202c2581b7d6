package sim

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Play decides what runs come to, from what was drawn for each and from what came before.
// Its methods are called by one goroutine, with the time of the simulation.
type Play interface {
	// Open is called when a run begins, and reports whether there is something to do.
	// A run that has nothing to do ends quiet.
	Open(ctx context.Context, l string, run loop.Run, now time.Time) (works bool, err error)
	// Begin is called at the same time, once the run has something to do and its budgets
	// pay for it.
	Begin(ctx context.Context, l string, now time.Time) ([]Call, error)
	// End is called at the end of each run that Open was called for, and of those that
	// gave way. The run has what was drawn for it: outcome, reason, usage and time.
	End(ctx context.Context, l string, run loop.Run, now time.Time) (Ending, error)
}

// Call is a message that fires a loop at once.
type Call struct {
	To  string // name of the loop
	Key string // of several with the same key only the first one fires it
}

// Ending is what a run came to.
type Ending struct {
	Outcome loop.Outcome
	Reason  loop.Reason
	Detail  string
	Calls   []Call
	Pause   bool // the loop does not fire any more
}

// worked are the runs that had something to do.
func worked(past []loop.Run) []loop.Run {
	return slices.DeleteFunc(slices.Clone(past), func(run loop.Run) bool { return run.Outcome == loop.OutcomeQuiet })
}

// addCalls records the messages of a loop that fire others.
func (s *simulation) addCalls(ctx context.Context, tx *store.Tx, from *simulated, calls []Call) error {
	for _, call := range calls {
		for _, to := range s.order {
			if to.row.Name != call.To || to == from {
				continue
			}
			if _, err := tx.AddEvent(ctx, loop.FiringEvent{LoopID: to.row.ID, ID: loop.OnMessage + "/" + from.row.ID + "/" + call.Key, Source: loop.OnMessage}, nil); err != nil {
				return err
			}
			s.wake = true
		}
	}
	return nil
}
