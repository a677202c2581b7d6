package engine

import (
	"context"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// wish is the seat that the run needs. A login in a file is for one run at a time,
// wherever its file is: its vendor gives a new token for an old one only once.
func (l *login) wish() loop.SeatWish {
	w := loop.SeatWish{Agent: l.actor.Handle, Account: l.signed.Account, AgentRuns: l.actor.MaxRuns, AccountRuns: l.actor.AccountMaxRuns}
	if l.signed.Auth == loop.AuthLend && l.signed.File != "" {
		w.Login, w.AccountRuns = l.signed.From, 1
	}
	return w
}

// readSeats holds a run back that would get no seat, before it looks for something
// to do.
func (a *agentSide) readSeats(ctx context.Context, r *store.Reader) error {
	w := a.login.wish()
	if !w.Limited() || a.hold != nil {
		return nil
	}
	others, err := r.OtherSeats(ctx, a.run.LoopID, w)
	if err != nil {
		return err
	}
	if refused := w.Refusal(others); refused != nil {
		if !a.reviews {
			a.run.Agent = w.Agent // Nobody else says who would have acted.
		}
		a.hold = &loop.Hold{Reason: refused.Reason, Detail: refused.Error()}
	}
	return nil
}

// takeSeat is the part of the transaction of a first decision in which the run gets
// its seat.
func (l *login) takeSeat() write {
	w := l.wish()
	return func(ctx context.Context, rt *store.RunTx) error { return rt.TakeSeat(ctx, w) }
}

// checkSeat is the result of a turn that must not begin because the run has its seat
// no longer: it did not extend its lease in time, and another run has it. It is nil if
// the turn may begin.
func (l *login) checkSeat(ctx context.Context) (res *turnResult, err error) {
	w := l.wish()
	if !w.Limited() {
		return nil, nil
	}
	var has bool
	var others []loop.Seat
	err = l.Store.View(ctx, func(r *store.Reader) (err error) {
		if has, err = r.HasSeat(ctx, l.id); err != nil || has {
			return err
		}
		others, err = r.OtherSeats(ctx, l.id.LoopID, w)
		return err
	})
	if err != nil || has {
		return nil, err
	}
	lost := w.Refusal(others)
	if lost == nil {
		lost = w.Lost()
	}
	return &turnResult{Result: turn.RefusedResult(lost.Reason, &loop.Fault{What: lost.Error()})}, nil
}
