package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// takeover says from whom a run was taken, by whom, and why that was allowed.
type takeover struct {
	from, by loop.Holder
	state    loop.HolderState // of from, before anything was done about it
}

// words say what became of the process that held the run.
func (t takeover) words() string {
	switch {
	case t.from == t.by:
		return "this process could not conclude it"
	case t.state == loop.HolderStopped:
		return fmt.Sprintf("%s had been stopped for longer than its lease; %s ended it and took the run over", t.from, t.by)
	case t.state == loop.HolderElsewhere:
		return fmt.Sprintf("%s did not extend its lease; %s took the run over; whether that process still runs is not known here", t.from, t.by)
	}
	return "its process is gone"
}

// mayLive reports whether the process was not known to be dead.
func (t takeover) mayLive() bool {
	return t.from == t.by || t.state == loop.HolderStopped || t.state == loop.HolderElsewhere
}

// sentence says after the name of the run how it was lost.
func (t takeover) sentence(phase loop.Phase) string {
	if t.mayLive() {
		return fmt.Sprintf("was taken over in %s (%s)", phase, t.words())
	}
	return fmt.Sprintf("died in %s (%s)", phase, t.words())
}

// detail is what the run's row says.
func (t takeover) detail(phase loop.Phase) string {
	if t.mayLive() {
		return fmt.Sprintf("taken over in %s: %s", phase, t.words())
	}
	return fmt.Sprintf("process %d died in %s", t.from.PID, phase)
}

// reason tells a process that is known to be dead from one that may live.
func (t takeover) reason() loop.Reason {
	if t.state == loop.HolderElsewhere && t.from != t.by {
		return loop.ReasonTakenOver
	}
	return loop.ReasonHolderDied
}

// lookTime bounds the look at who has a run that this process has lost.
const lookTime = 2 * time.Second

// lostRunFault says of a run that this process may not write any more who has it now
// and why. Other errors pass unchanged.
func (h *heldRun) lostRunFault(ctx context.Context, err error) error {
	if !errors.Is(err, loop.ErrLeaseLost) {
		return err
	}
	name := fmt.Sprintf("%s#%d", h.target.Loop.Name, h.run.N)
	f := &loop.Fault{
		Exit: loop.ExitHeld, What: fmt.Sprintf("run %s: this process lost its lease and does nothing more", name), Err: err,
		Fix: "see how it goes on: {1}", Actions: []loop.Command{loop.PawlCommand("show", name)},
	}
	if away, ok := errors.AsType[*awayError](err); ok {
		end := away.ending()
		f.What, f.Why = "run "+name+" could not be concluded", end.detail
		return f.WithAdvice(loop.Advise("once the store answers again, {1} concludes the run and keeps its work", loop.PawlCommand("recover")))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	var now loop.Run
	lookErr := h.Store.View(ctx, func(r *store.Reader) (err error) {
		now, err = r.Run(ctx, h.run.ID)
		return err
	})
	switch {
	case lookErr != nil:
		f.Why = "another process took the run over; which one could not be read: " + lookErr.Error()
	case now.State == loop.RunEnded:
		f.Why = fmt.Sprintf("another process concluded it as %s: %s", now.Outcome, now.Reason.Explain(now.Detail))
	case now.Fence == h.run.Fence:
		f.Why = "its lease lapsed, or its effects are applied by another process at this moment"
	default:
		f.Why = now.Holder.String() + " took it over"
	}
	return f
}
