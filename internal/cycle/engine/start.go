package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

var (
	beforeClaim = fault.New("engine.claim.commit.before")
	afterClaim  = fault.New("engine.claim.commit.after")
)

// startRun is trigger and claim in one transaction: the run exists only as a run
// that somebody holds.
func (e *Engine) startRun(ctx context.Context, t Target, f Firing) (*cycle, error) {
	if err := beforeClaim.Hit(ctx); err != nil {
		return nil, err
	}
	if err := e.Admit(t, f.Overrides); err != nil {
		return nil, err
	}
	c := e.newCycle(t, f, f.Overrides.Apply(t.Definition).WithDefaults())
	id := e.NewID("run")
	var claimed time.Time
	fireClaimed := func(locks claiming) error {
		claimed = e.Now()
		return e.Store.Update(ctx, func(tx *store.Tx) error {
			l, r, err := prepareRun(ctx, tx, t, c.def, id, f)
			if err != nil {
				return explainPaused(ctx, tx, t, err)
			}
			c.target.Loop = l
			ruling, err := locks.rule(ctx, tx, t, l, loop.Contender{Run: id, N: r.N, Lock: r.Lock}, true)
			if err != nil {
				return err
			}
			if ruling.Move != plan.LockTake {
				return lockedError(l, ruling)
			}
			c.run, err = tx.FireClaimed(ctx, r, e.Self)
			if held, ok := errors.AsType[*loop.HeldError](err); ok {
				return e.heldError(ctx, tx, l, held)
			}
			return explainPaused(ctx, tx, t, err)
		})
	}
	for {
		err := e.claimBeside(ctx, nil, fireClaimed)
		switch {
		case errors.Is(err, ErrNewLoop):
			t, err = e.Introduce(ctx, t)
		case worthAwaiting(f, err):
			t.Loop.ID = c.target.Loop.ID
			err = e.await(ctx, t, err)
		case err == nil:
			return c, c.enterClaimed(ctx, claimed)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Fire queues a run of the target: whatever Execute needs is then in its row. The
// answer of the firing, if it has one, is given by the same transaction. A key that
// fired before is loop.ErrDuplicateKey; a loop that the store does not know is
// ErrNewLoop. After an error the transaction must not be committed.
func (e *Engine) Fire(ctx context.Context, tx *store.Tx, t Target, f Firing) (loop.Run, error) {
	_, r, err := prepareRun(ctx, tx, t, f.Overrides.Apply(t.Definition).WithDefaults(), e.NewID("run"), f)
	if err == nil {
		r, err = tx.Fire(ctx, r)
	}
	if err != nil {
		return loop.Run{}, explainPaused(ctx, tx, t, err)
	}
	return r, nil
}

// claimRun takes a queued run.
func (e *Engine) claimRun(ctx context.Context, t Target, id string) (*cycle, error) {
	c := e.newCycle(t, Firing{}, loop.Definition{})
	claimed, err := e.Claim(ctx, t, id, nil)
	if err != nil {
		return nil, err
	}
	c.run, c.target.Loop, c.def, c.deferred, c.firing = claimed.Run, claimed.Loop, claimed.Definition, claimed.deferred, firingOf(claimed.Run)
	return c, c.enterClaimed(ctx, claimed.at)
}

// Claimed is a run that was taken from the queue.
type Claimed struct {
	Run        loop.Run
	Loop       loop.Loop
	Definition loop.Definition // that the run was fired with

	deferred *ending // it has to give way to another run; nil: it may begin
	at       time.Time
}

// Deferred is how the run ends if it has to give way to another one, which its DeferredTo
// names. It reports false if the run may begin.
func (c Claimed) Deferred() (outcome loop.Outcome, reason loop.Reason, ok bool) {
	if c.deferred == nil {
		return "", "", false
	}
	return c.deferred.outcome, c.deferred.reason, true
}

// Claim takes a run of the target from the queue, with the errors of Execute, and does
// nothing else: whoever calls it ends the run. It is the part of Execute that a simulation
// of time does too. The target's Workspace is enough. Alive are the ids of runs whose
// holders need not be looked at; it may be nil.
func (e *Engine) Claim(ctx context.Context, t Target, id string, alive map[string]bool) (c Claimed, err error) {
	if err := beforeClaim.Hit(ctx); err != nil {
		return c, err
	}
	admitted, err := e.admitQueued(ctx, t, id)
	if err != nil {
		return c, err
	}
	var contends time.Duration
	claim := func(locks claiming, tx *store.Tx) (err error) {
		if c.Loop, err = tx.LockLoopOf(ctx, id); err != nil {
			return err
		}
		if c.Loop.Paused {
			return explainPaused(ctx, tx, t, &loop.PausedError{By: loop.KillSwitch{Scope: loop.SwitchLoop}})
		}
		asks, err := tx.Asking(ctx, id)
		if err != nil {
			return err
		}
		if asks.LoopIsLive {
			live, err := tx.Live(ctx, c.Loop.ID)
			if err == nil {
				return e.Held(c.Loop.Name, live)
			}
			if !errors.Is(err, loop.ErrNotFound) { // It has ended since.
				return err
			}
		}
		if contends = asks.Contends; asks.State != loop.RunQueued {
			asks.Lock = loop.Lock{} // Claim says what is wrong.
		}
		ruling, err := locks.rule(ctx, tx, t, c.Loop, asks.Contender, false)
		if err != nil {
			return err
		}
		if ruling.Move == plan.LockWait {
			return lockedError(c.Loop, ruling)
		}
		const unclaimed = 0
		var rt *store.RunTx
		if c.Run, rt, err = tx.Claim(ctx, id, unclaimed, e.Self, loop.Holder{}); err != nil {
			return explainPaused(ctx, tx, t, err)
		}
		if c.deferred = nil; ruling.Move == plan.LockDefer {
			c.Run.DeferredTo, c.deferred = ruling.Why, deferredEnding(ruling)
			if err := rt.DeferTo(ctx, ruling.Why); err != nil {
				return err
			}
		}
		c.Definition = asks.Definition
		return e.checkAdmitted(id, admitted, c.Definition)
	}
	err = e.claimBeside(ctx, alive, func(locks claiming) error {
		c.at = e.Now()
		return e.Store.Update(ctx, func(tx *store.Tx) error { return claim(locks, tx) })
	})
	if _, locked := errors.AsType[*loop.LockedError](err); locked && contends < store.ContendAgain {
		if contendErr := e.Store.Update(ctx, func(tx *store.Tx) error { return tx.Contend(ctx, id) }); contendErr != nil {
			return c, contendErr
		}
	}
	return c, err
}

// enterClaimed begins with a run that was claimed at the given time.
func (h *heldRun) enterClaimed(ctx context.Context, claimed time.Time) error {
	h.takeHold(claimed)
	if err := h.subtractLent(ctx); err != nil {
		return err
	}
	h.said = h.newTranscript(h.run.ID)
	if h.firing.Live != nil {
		h.said.Live = h.firing.Live
	}
	h.said.Enter(loop.PhaseTrigger)
	h.enterPhase(loop.PhaseClaim)
	return afterClaim.Hit(ctx)
}

// takeHold notes the run that was claimed at the given time, whose row is written by
// this process from now on.
func (h *heldRun) takeHold(claimed time.Time) {
	h.id = loop.Run{ID: h.run.ID, LoopID: h.run.LoopID, Fence: h.run.Fence, LeaseUntil: h.run.LeaseUntil}
	h.Store = h.Engine.Store.Holding(h.id, claimed, func(err error) {
		h.Log.Warn("the store does not answer and is tried again", slog.String("run", h.id.ID), slog.Duration("left", h.Store.Left()), slog.String("error", err.Error()))
	})
}

// ErrNewLoop is the error of Fire for a loop that the store does not know yet, in
// a Target that Introduce has not made.
var ErrNewLoop = errors.New("new loop")

// Introduce finds the highest number that branches, snapshots and the memory of an
// earlier store or program left for a loop that the store does not know, so that a
// number never means two runs. A run of the target that it returns can be fired.
func (e *Engine) Introduce(ctx context.Context, t Target) (Target, error) {
	list := []Target{t}
	err := e.IntroduceAll(ctx, list)
	return list[0], err
}

// IntroduceAll is Introduce for many targets in place. It lists the refs of each
// repository once.
func (e *Engine) IntroduceAll(ctx context.Context, list []Target) error {
	listed := map[*git.Repo]map[string]int64{}
	for i := range list {
		t := &list[i]
		last, ok := listed[t.Repo]
		if !ok {
			below := "/"
			if len(list) == 1 {
				below += t.Loop.Name + "/"
			}
			var err error
			if last, err = lastNumbers(ctx, t.Repo, below); err != nil {
				return err
			}
			listed[t.Repo] = last
		}
		t.introduced, t.Loop.LastN = true, max(t.Loop.LastN, last[t.Loop.Name])
		p, ok := t.Protocol.(RunNumbers)
		if !ok {
			continue
		}
		n, err := p.LastRun(e.loopFiles(*t), t.Loop.Name)
		if err != nil {
			return err
		}
		t.Loop.LastN = max(t.Loop.LastN, n)
	}
	return nil
}

// lastNumbers returns the highest number of a run for which branches and snapshots are
// there, by the name of the loop. Below limits them: to those of all loops, "/", or of one.
func lastNumbers(ctx context.Context, repo *git.Repo, below string) (map[string]int64, error) {
	last := map[string]int64{}
	for _, root := range []string{"refs/heads/pawl", strings.TrimSuffix(snapshotPrefix, "/")} {
		refs, err := repo.Refs(ctx, root+below)
		if err != nil {
			return nil, err
		}
		for _, r := range refs {
			name, number, _ := strings.Cut(strings.TrimPrefix(r.Name, root+"/"), "/")
			digits, _, _ := strings.Cut(number, "-")
			if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
				last[name] = max(last[name], n)
			}
		}
	}
	return last, nil
}

// prepareRun does all that precedes the insertion of a run with definition d. It returns
// the row of the loop, and the run.
func prepareRun(ctx context.Context, tx *store.Tx, t Target, d loop.Definition, id string, f Firing) (l loop.Loop, r loop.Run, err error) {
	if in := f.By.Grant.Within(); in != nil {
		if err := tx.CheckInside(ctx, *in); err != nil {
			return l, r, err
		}
	}
	if t.introduced {
		if err := tx.AddLoop(ctx, t.Workspace, t.Loop); err != nil {
			return l, r, err
		}
	}
	l, err = tx.Number(ctx, t.Workspace.ID, t.Loop.Protocol, t.Loop.Name)
	if errors.Is(err, loop.ErrNotFound) {
		return l, r, ErrNewLoop
	}
	if err != nil {
		return l, r, err
	}
	if l.Paused {
		return l, r, &loop.PausedError{By: loop.KillSwitch{Scope: loop.SwitchLoop}}
	}
	if f.Answer != nil {
		if _, err := recordAnswer(ctx, tx, f.Approval, *f.Answer); err != nil {
			return l, r, err
		}
	}
	if t.Register != nil {
		if err := t.Register(ctx, tx, l); err != nil {
			return l, r, err
		}
	}
	lock, err := runLock(ctx, tx, d, f)
	if err != nil {
		return l, r, err
	}
	digest := d.Digest()
	if digest != l.Definition {
		if err := tx.SaveDefinition(ctx, l.ID, d); err != nil {
			return l, r, err
		}
		if err := tx.Link(ctx, l.ID, "definition", "", map[string]string{"digest": digest, "before": l.Definition}); err != nil {
			return l, r, err
		}
	}
	if f.By.IsPerson() {
		if err := tx.Accept(ctx, loop.Acceptance{LoopID: l.ID, Digest: digest, How: loop.AcceptedRun, By: f.By}); err != nil {
			return l, r, err
		}
	}
	r = loop.Run{
		ID: id, LoopID: l.ID, N: l.LastN, Trigger: f.Trigger, Request: f.Request, Overrides: f.Overrides, Definition: digest,
		Sandbox: d.Sandbox, Approval: f.Approval, Key: cmp.Or(f.Key, id), Planned: f.Planned, Event: f.Event, By: f.By, Lock: lock, NodeLabels: d.NodeLabels,
	}
	return l, r, nil
}

// heldError says more about a live run that is in the way of the loop's next one, unless
// it has ended by now.
func (e *Engine) heldError(ctx context.Context, tx *store.Tx, l loop.Loop, held error) error {
	live, err := tx.Live(ctx, l.ID)
	if errors.Is(err, loop.ErrNotFound) {
		return held
	}
	if err != nil {
		return err
	}
	return e.Held(l.Name, live)
}
