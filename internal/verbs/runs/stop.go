package runs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// stopWait is how long Kill and Stop wait for holders to end their runs, unless
// Deps say another time.
const stopWait = 10 * time.Second

// Stop asks the holder of a run to end it, and waits until it has. A run that
// has ended already is returned as it is. Without a why it is recorded who asked.
func (s *Service) Stop(ctx context.Context, by loop.Actor, ref, why string) (View, error) {
	why = cmp.Or(why, "stopped by "+by.Who) // The holder sees that it was asked by a text that is not empty.
	run, err := s.ws.Run(ctx, ref)
	if err != nil {
		return View{}, err
	}
	if run.State != loop.RunEnded {
		err := s.ws.Store.Update(ctx, func(tx *store.Tx) error {
			asked, err := tx.Cancel(ctx, run.ID, why)
			if err != nil || !asked {
				return err
			}
			return tx.LinkBy(ctx, by, run.LoopID, loop.LinkKill, run.ID, map[string]any{"verb": "stop", "why": why})
		})
		if err != nil {
			return View{}, err
		}
		if err := s.WaitEnded(ctx, run); err != nil {
			return View{}, err
		}
	}
	return s.Show(ctx, run.ID)
}

// WaitEnded polls until a run has ended. A holder of this host that died leaves
// the run to Recover; one that is stopped is ended first, because what it was
// about to do would happen when it is continued.
func (s *Service) WaitEnded(ctx context.Context, seen loop.Run) error {
	by := ""
	if seen.Holder != (loop.Holder{}) {
		by = seen.Holder.String()
	}
	defer waiting.For(ctx, "run "+s.ws.RunName(ctx, seen)+" to end", func() string { return by })()
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.StopWait, stopWait))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		run, err := s.readOrConclude(ctx, seen.ID)
		if err == nil && run.State == loop.RunEnded {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if run.ID != "" { // The last look is often the one that the end of the wait has cut short.
			seen = run
		}
		select {
		case <-ctx.Done():
			if err := context.Cause(caller); err != nil {
				return fmt.Errorf("wait for run %s: %w", s.ws.RunName(caller, seen), err)
			}
			return s.stillRunsFault(context.WithoutCancel(caller), seen)
		case <-tick.C:
		}
	}
}

// stillRunsFault says of a run that did not end what is known of it, and what a person
// can do.
func (s *Service) stillRunsFault(ctx context.Context, run loop.Run) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // Only for the name.
	defer cancel()
	name, who := s.ws.RunName(ctx, run), run.Holder
	held := &loop.HeldError{Run: name, Holder: who}
	recovers, shows := loop.PawlCommand("recover"), loop.PawlCommand("show", name)
	f := &loop.Fault{Exit: loop.ExitHeld, What: fmt.Sprintf("run %s did not stop within %s", name, cmp.Or(s.StopWait, stopWait)), Err: held}
	if who == (loop.Holder{}) {
		f.Why = fmt.Sprintf("it is %s in phase %s, and no process holds it", run.State, run.Phase)
		return f.WithAdvice(loop.Advise("run {1}, which concludes what nobody holds, and look at {2}", recovers, shows))
	}
	f.Why = fmt.Sprintf("%s holds it in phase %s and was asked to end it", who, run.Phase)
	end := fmt.Sprintf("kill -KILL %d on %s", who.PID, who.Host)
	if s.ws.HolderState(who) == loop.HolderElsewhere {
		f.Why += "; that is another host, or this host before it was started again, so that nothing more is known here"
		return f.WithAdvice(loop.Advise(fmt.Sprintf("wait for it, or end it there (%s), and then run {1}; a run whose holder is gone is free at %s at the latest",
			end, run.LeaseUntil.UTC().Format(time.RFC3339)), recovers))
	}
	f.Why += "; the process still runs"
	return f.WithAdvice(loop.Advise("wait for it ({1}), or end the process ("+end+") and then run {2}, which concludes the run and keeps its work", shows, recovers))
}

// readOrConclude reads a run, and concludes it if its holder will never do so.
func (s *Service) readOrConclude(ctx context.Context, id string) (run loop.Run, err error) {
	read := func() error {
		return s.ws.View(ctx, func(r *store.Reader) (err error) {
			run, err = r.Run(ctx, id)
			return err
		})
	}
	if err := read(); err != nil || run.State == loop.RunEnded || run.State == loop.RunQueued {
		return run, err
	}
	switch s.ws.HolderState(run.Holder) {
	case loop.HolderRunning:
		return run, nil
	case loop.HolderElsewhere:
		if s.ws.Liveness(run) != lookup.Lost {
			return run, nil
		}
	case loop.HolderStopped:
		if err := s.EndHolder(ctx, run.Holder); err != nil {
			return run, err
		}
	case loop.HolderDead:
	}
	if _, err := s.Recover(ctx); err != nil {
		return run, err
	}
	return run, read()
}
