package runs

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// GoesFirst is a run that another one gave way to or waits for, and how it stands.
type GoesFirst struct {
	loop.Deferral

	State  loop.RunState `json:"state"`
	Holder *loop.Holder  `json:"holder,omitempty"` // of a live one
	Ended  *time.Time    `json:"ended,omitempty"`
}

// goesFirst returns the run that a run gave way to, or for which it waits in the queue;
// nil if nothing is or was in its way.
func (s *Service) goesFirst(ctx context.Context, run loop.Run) (first *GoesFirst, err error) {
	to := run.DeferredTo
	err = s.ws.View(ctx, func(r *store.Reader) error {
		if run.State == loop.RunQueued {
			ruling, err := s.ruling(ctx, r, run)
			if err != nil {
				return err
			}
			to = ruling.Why
		}
		if to == (loop.Deferral{}) {
			return nil
		}
		now, err := r.Run(ctx, to.Run)
		if lookup.Absent(err) {
			return nil
		}
		first = &GoesFirst{Deferral: to, State: now.State, Ended: shape.Time(now.Ended)}
		if now.Holder != (loop.Holder{}) {
			first.Holder = &now.Holder
		}
		return err
	})
	return first, err
}

// ruling is what would become of a queued run if it were claimed now.
func (s *Service) ruling(ctx context.Context, r *store.Reader, run loop.Run) (ruling plan.Ruling, err error) {
	asks, err := r.Asking(ctx, run.ID)
	if err != nil {
		return ruling, err
	}
	l, err := r.Loop(ctx, run.LoopID)
	if err != nil {
		return ruling, err
	}
	repository, err := r.Repository(ctx, l.WorkspaceID)
	if err != nil {
		return ruling, err
	}
	others, err := r.Contenders(ctx, repository)
	asks.Loop, asks.Deferrals = l.Name, l.Deferrals
	return plan.Arbitrate(asks.Contender, others, false), err
}
