package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// A run takes its lock with its claim, in the claim's transaction, and has it as long
// as its row says that it is live. Recovery takes no lock: the dead run has its own
// still, or has lost it. What a run locks:
//
//   - one that works: the files of its scope, and the branch that it may move by itself;
//     if it may change nothing, nothing
//   - one that lands: the branch that it moves. What is landed has passed its gates on
//     what the branch holds, so no agent at work is in its way, nor it in an agent's
//   - one that opens a pull request or accepts a result, or makes a proposal again on a base that moved:
//     nothing. They move no branch that others work on, and no agent acts in them

// triggerManual is that of runs which a person asked for.
const triggerManual = "manual"

// runLock is the lock of a run that is fired so.
func runLock(ctx context.Context, tx *store.Tx, d loop.Definition, f Firing) (loop.Lock, error) {
	if f.Rebase != "" {
		return loop.Lock{}, nil
	}
	l := plan.LockOf(d)
	// Whoever comes by the clock comes again. A request, an answer or an event does not.
	l.Insists = f.Event != "" || f.Request != "" || f.Approval != "" || f.Trigger == triggerManual
	if f.Approval == "" {
		return l, nil
	}
	a, err := tx.Approval(ctx, f.Approval)
	switch {
	case err != nil:
		return l, err
	case a.Changes:
		return l, nil // The step is worked on.
	case a.Action.Kind == loop.ActionLand:
		return plan.LandingLock(a.Action.Base, d), nil
	case a.Action.Kind != loop.ActionCommand:
		return loop.Lock{}, nil
	}
	return l, nil
}

// repositoryOf is the domain in which the locks of a workspace hold.
func repositoryOf(w loop.Workspace) string { return cmp.Or(w.Repository, w.ID) }

// claiming is one attempt to claim a run beside others.
type claiming struct {
	lives map[string]bool // ids of runs whose holder was looked at, and is alive
}

// unknownHolderError means that a live run is in the way, and that nobody has looked yet
// whether its holder is alive. That is not done in a transaction.
type unknownHolderError struct{ run string }

func (e *unknownHolderError) Error() string {
	return "run " + e.run + " is in the way, and its holder may be dead"
}

// rule decides, in the transaction of its claim, whether a run may begin. The loop is
// as it was read by that transaction.
func (c claiming) rule(ctx context.Context, tx *store.Tx, t Target, l loop.Loop, asks loop.Contender, foreground bool) (r plan.Ruling, err error) {
	var others []loop.Contender
	if !asks.Lock.IsZero() {
		if others, err = tx.LockContenders(ctx, repositoryOf(t.Workspace), plan.Ahead(asks, foreground)); err != nil {
			return r, err
		}
	}
	if l.Parent != "" {
		above, err := tx.Ancestors(ctx, l.ID)
		if err != nil {
			return r, err
		}
		others = slices.DeleteFunc(others, func(c loop.Contender) bool {
			return slices.ContainsFunc(above, func(a loop.Loop) bool { return a.ID == c.LoopID }) // Its agent waits for what it began here.
		})
	}
	asks.LoopID, asks.Loop, asks.Deferrals = l.ID, l.Name, l.Deferrals
	r = plan.Arbitrate(asks, others, foreground)
	if r.Move != plan.LockTake && r.By.Live && !c.lives[r.By.Run] {
		return r, &unknownHolderError{r.By.Run}
	}
	if r.Move == plan.LockTake && l.Deferrals > 0 {
		return r, tx.ClearDeferrals(ctx, l.ID)
	}
	return r, nil
}

// claimBeside calls claim until it has begun a run or another run is in its way whose
// holder is alive. Of some it is known that they are alive.
func (e *Engine) claimBeside(ctx context.Context, alive map[string]bool, claim func(claiming) error) error {
	c := claiming{lives: maps.Clone(alive)}
	if c.lives == nil {
		c.lives = map[string]bool{}
	}
	for {
		err := claim(c)
		unknown, ok := errors.AsType[*unknownHolderError](err)
		if !ok {
			return err
		}
		if err := e.takeLockIfDead(ctx, unknown.run); err != nil {
			return err
		}
		c.lives[unknown.run] = true
	}
}

// takeLockIfDead takes its lock from a run whose holder is dead, or whose lease is over
// and whose process is not known to run. Whoever recovers it later finds all that it left.
func (e *Engine) takeLockIfDead(ctx context.Context, id string) error {
	var run loop.Run
	err := e.Store.View(ctx, func(r *store.Reader) (err error) {
		run, err = r.Run(ctx, id)
		return err
	})
	if err != nil || run.State != loop.RunRunning && run.State != loop.RunSettling {
		return err
	}
	dead, ok, err := e.findDeadHolder(ctx, run)
	if err != nil || !ok {
		return err
	}
	if dead == e.Self {
		dead = loop.Holder{} // Another engine of this process may drive it: its lease tells.
	}
	return e.Store.Update(ctx, func(tx *store.Tx) error {
		taken, err := tx.TakeLock(ctx, run, dead)
		if taken {
			e.Log.WarnContext(ctx, "the lock of a dead run is free", slog.String("run", run.ID), slog.String("holder", run.Holder.String()))
		}
		return err
	})
}

// lockGap is between two looks at the run that another one waits for.
const lockGap = 250 * time.Millisecond

// looksForDeath is at how many of these looks it is asked whether the holder is alive.
const looksForDeath = 20

// await waits until the run is not in the way any more that blocked is about. It waits
// for live runs, and for queued ones only as long as others give way to them: so it ends.
func (e *Engine) await(ctx context.Context, t Target, blocked error) error {
	what, holder := blocked.Error(), loop.Holder{}
	gone := func(r *store.Reader) (bool, error) {
		_, err := r.Live(ctx, t.Loop.ID)
		if errors.Is(err, loop.ErrNotFound) {
			return true, nil
		}
		return false, err
	}
	revive := func() error { // It may be one that died.
		_, err := e.Recover(ctx, t)
		return err
	}
	if held, ok := errors.AsType[*loop.HeldError](blocked); ok {
		what, holder = held.Name(), held.Holder
	}
	if locked, ok := errors.AsType[*loop.LockedError](blocked); ok {
		what, holder = fmt.Sprintf("run %s, because %s; both may touch %s", locked.By.Name(), locked.Why.Rule.Sentence(), locked.Why.Scope), locked.By.Holder
		gone = func(r *store.Reader) (bool, error) {
			list, err := r.Contenders(ctx, repositoryOf(t.Workspace))
			for _, c := range list {
				if c.Run == locked.By.Run {
					return false, err
				}
			}
			return true, err
		}
		revive = func() error {
			if !locked.By.Live {
				return nil
			}
			return e.takeLockIfDead(ctx, locked.By.Run)
		}
	}
	defer waiting.For(ctx, what, func() string {
		if holder == (loop.Holder{}) {
			return ""
		}
		return holder.String()
	})()
	for look := 1; ; look++ {
		if err := e.Sleep(ctx, lockGap); err != nil {
			return err
		}
		if sw := Switch(t.Workspace.Root, t.Loop.Name, t.Definition.SwitchPaths()...); !sw.IsZero() {
			return PausedFault(t.Loop.Name, sw)
		}
		free := false
		err := e.Store.View(ctx, func(r *store.Reader) (err error) {
			free, err = gone(r)
			return err
		})
		if err == nil && !free && look%looksForDeath == 0 {
			err = revive()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || free {
			return err
		}
	}
}

// worthAwaiting reports whether a run that could not begin waits for the one in its way:
// if it was asked to, and where both only land something, which takes a moment.
func worthAwaiting(f Firing, err error) bool {
	locked, isLocked := errors.AsType[*loop.LockedError](err)
	_, isHeld := errors.AsType[*loop.HeldError](err)
	if isLocked && locked.By.Live && len(locked.By.Lock.Scope) == 0 {
		return true
	}
	return f.Wait && (isLocked || isHeld)
}

// lockedError is the error of a run that has to wait.
func lockedError(l loop.Loop, r plan.Ruling) error {
	return &loop.LockedError{Loop: l.Name, By: r.By, Why: r.Why}
}

// deferredEnding is how a run ends that gives way to another one.
func deferredEnding(r plan.Ruling) *ending {
	return &ending{outcome: loop.OutcomeQuiet, reason: r.Reason, detail: r.Why.Words() + "; it comes again at its next tick"}
}

// announced says what other runs of the repository touch at this moment.
func (h *heldRun) announced(ctx context.Context) (string, error) {
	var b strings.Builder
	err := h.Store.View(ctx, func(r *store.Reader) error {
		b.Reset()
		list, err := r.Contenders(ctx, repositoryOf(h.target.Workspace))
		if err != nil {
			return err
		}
		for _, c := range list {
			if !c.Live || c.Run == h.run.ID {
				continue
			}
			its, err := r.Iterations(ctx, c.Run)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s, since %s:", c.Name(), c.Started.UTC().Format(time.RFC3339))
			if len(c.Lock.Scope) > 0 {
				fmt.Fprintf(&b, " may change %s", strings.Join(c.Lock.Scope, ", "))
			}
			if c.Lock.Branch != "" {
				fmt.Fprintf(&b, " may move branch %s", c.Lock.Branch)
			}
			if n := len(its); n > 0 {
				fmt.Fprintf(&b, "; works on %q", its[n-1].Step)
			}
			b.WriteString("\n")
		}
		return nil
	})
	return b.String(), err
}
