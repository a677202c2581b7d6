package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A run belongs to the node that claimed it: its copy, its checkout and its refs are
// there. If that node does not answer, another one only ends the run in the store,
// so that its loop is free; it touches no file. The node keeps the work and writes
// the files when it is back: until then it owes them.

var afterTakeLost = fault.New("engine.lost.take.after")

// FreeLost ends a run of another node whose lease is over, so that its loop is free. It
// returns nil if the node has extended the lease.
func (e *Engine) FreeLost(ctx context.Context, run loop.Run) (*Recovered, error) {
	return e.freeLost(ctx, Target{}, run, loop.Holder{})
}

// freeLost ends a run of another node whose lease is over.
func (e *Engine) freeLost(ctx context.Context, t Target, seen loop.Run, dead loop.Holder) (*Recovered, error) {
	c := e.newCycle(t, Firing{}, loop.Definition{})
	name, claimed := seen.Node, e.Now()
	err := e.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if c.run, err = tx.TakeLost(ctx, seen.ID, seen.Fence, e.Self, dead); err != nil {
			return err
		}
		n, err := tx.Node(ctx, seen.Node)
		if name = cmp.Or(n.Name, seen.Node); errors.Is(err, loop.ErrNotFound) {
			err = nil
		}
		return err
	})
	if errors.Is(err, loop.ErrLeaseLost) {
		return nil, nil // Its node has it again, or another process frees it.
	}
	if err != nil {
		return nil, err
	}
	c.takeHold(claimed)
	if err := afterTakeLost.Hit(ctx); err != nil {
		return nil, err
	}
	if err := c.readProgress(ctx); err != nil {
		return nil, err
	}
	err = c.Store.View(ctx, func(r *store.Reader) error {
		steps, err := r.Steps(ctx, c.run.LoopID)
		for _, s := range steps {
			c.steps[s.Key] = s
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	words := "node " + name + " did not extend its lease"
	end := ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonNodeLost, detail: fmt.Sprintf("lost in %s: %s; its work stays there until that node is back", seen.Phase, words)}
	if err := c.endLost(ctx, end); err != nil {
		return nil, err
	}
	return &Recovered{
		Loop: c.target.Loop.Name, Run: c.run, Died: seen.Phase, How: fmt.Sprintf("was lost in %s (%s)", seen.Phase, words),
		Lost: "its work and its line in the run log stay on node " + name + ", which finishes them when it is back",
		Next: loop.Advise("if that node is gone for good, {1} gives them up", loop.PawlCommand("nodes forget", name)),
	}, nil
}

// endLost ends the run in one transaction, in the store alone.
func (c *cycle) endLost(ctx context.Context, end ending) error {
	c.enterPhase(loop.PhaseConclude)
	if n := len(c.its); c.run.State == loop.RunRunning && c.money.counted < n { // Its turn may have read the prompt, which is not here.
		c.chargeUnseen(0)
	}
	told, err := c.commandsOfDead(ctx)
	if err != nil {
		return err
	}
	c.chargeAttempt(end, told)
	c.judgeOpen(end)
	c.releaseSteps(end)
	if c.run.State == loop.RunSettling {
		c.reopenPassed()
	}
	c.run.Outcome, c.run.Reason, c.run.Detail, c.run.Cause, c.run.Owed = end.outcome, end.reason, end.detail, c.run.Cause.Merge(end.cause), true
	c.spent()
	c.said.Emit(loop.EventOutcome, outcomeText(c.run))
	run := c.run
	err = c.commitBy(ctx, loop.PhaseConclude, func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		if run.State == loop.RunSettling {
			return tx.End(ctx, run, loop.PhaseConclude)
		}
		return tx.Settle(ctx, run, loop.PhaseConclude, false)
	}, func(ctx context.Context, rt *store.RunTx) error {
		return errors.Join(rt.OweFiles(ctx), rt.Link(ctx, run.LoopID, loop.LinkRun, run.ID, auditOf(run)))
	}, c.money.settle())
	if err == nil {
		c.run.State, c.run.Ended = loop.RunEnded, c.Now()
	}
	return err
}

// FinishOwed keeps the work and writes the files of runs of the target that another
// node has ended because this one did not answer. Nothing that was to happen then
// happens now: an effect that was not applied stays unapplied.
func (e *Engine) FinishOwed(ctx context.Context, t Target) ([]Recovered, error) {
	if e.Self.Node == "" {
		return nil, nil
	}
	var owed []loop.Run
	err := e.Store.View(ctx, func(r *store.Reader) (err error) {
		owed, err = r.OwedRuns(ctx, e.Self.Node, t.Workspace.ID)
		return err
	})
	var done []Recovered
	for _, run := range owed {
		if run.LoopID != t.Loop.ID {
			continue
		}
		rec, finishErr := e.finishOwed(ctx, t, run)
		if errors.Is(finishErr, loop.ErrLeaseLost) {
			continue // Another process does it, or it was given up.
		}
		if finishErr != nil {
			return done, fmt.Errorf("finish run %s#%d, which another node has ended: %w", t.Loop.Name, run.N, finishErr)
		}
		done = append(done, *rec)
	}
	return done, err
}

func (e *Engine) finishOwed(ctx context.Context, t Target, run loop.Run) (*Recovered, error) {
	if err := checkNames(run.ID, run.LoopID); err != nil {
		return nil, err
	}
	c := e.newCycle(t, Firing{}, loop.Definition{})
	c.run, c.taken = run, true
	if err := c.outbox.acquire(); err != nil {
		return nil, err
	}
	defer func() { _ = c.outbox.release() }() // An error only leaves the empty file.
	c.takeHold(e.Now())
	if err := c.readProgress(ctx); err != nil {
		return nil, err
	}
	defer func() { c.cleanUp(context.WithoutCancel(ctx)) }()
	died := c.markedPhase(run)
	rec := &Recovered{Loop: c.target.Loop.Name, Died: died, How: "was ended by another node while this one did not answer"}
	var err error
	if rec.Killed, err = c.Survive(ctx, runenv.Tag(run.ID)); err != nil {
		return nil, err
	}
	c.login.fetchFromDead(ctx)
	c.target.Definition, c.tree.copied, c.tree.held = c.def, true, true
	if _, err := c.memory.readLoop(ctx); err != nil {
		return nil, err
	}
	if err := c.applyPending(ctx); err != nil {
		return nil, err
	}
	effects, err := c.outbox.lookOnly(ctx)
	if err != nil {
		return nil, err
	}
	if c.tree.madeFrom = run.BaseCommit; run.BaseCommit != "" && c.run.Branch == "" && c.run.Snapshot == "" {
		if err := c.tree.takeUp(ctx, died); err != nil {
			return nil, err
		}
	}
	if err := c.tree.keepWork(ctx, ending{outcome: run.Outcome, reason: run.Reason}); err != nil {
		return nil, err
	}
	c.run.Detail, c.run.Owed = joinWords(run.Detail, c.tree.unkept), false
	changes := c.memory.closingChanges(ctx, effects, run.Ended)
	if err := loop.CheckChanges(changes); err != nil {
		c.said.Note("the run is not written into the loop's memory: %s", err)
		changes = nil
	}
	finished := c.run
	err = c.commitBy(ctx, loop.PhaseConclude, func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		return tx.EnterOwed(ctx, finished, true)
	}, c.recordChanges(changes), func(ctx context.Context, rt *store.RunTx) error {
		return rt.Link(ctx, run.LoopID, loop.LinkOwed, run.ID, map[string]any{"n": run.N, "node": run.Node})
	})
	if err != nil {
		return nil, err
	}
	c.tree.dropCandidates(ctx)
	c.login.forget()
	rec.Run, rec.Lost = c.run, c.tree.unkept
	return rec, c.applyPending(ctx)
}

// lookOnly finds out what became of the effects of a run that another node has ended.
// What has begun to move is finished; nothing else is applied any more.
func (o *outbox) lookOnly(ctx context.Context) (effects []loop.Effect, err error) {
	kinds := o.Effects(o.target.Repo.MovedBy(fmt.Sprintf("%s fence %d", o.run.ID, o.run.Fence)))
	err = o.Store.View(ctx, func(r *store.Reader) (err error) {
		effects, err = r.Effects(ctx, o.run.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	tooLate := errors.New("another node had ended the run before it was applied")
	for i := range effects {
		e := &effects[i]
		kind := kinds[e.Kind]
		var found effect.Found
		if e.State == loop.EffectApplying && kind != nil {
			if found, err = kind.Look(ctx, *e); err == nil && found.Begun && !found.Applied {
				found.Result, err = kind.Apply(ctx, *e, func(context.Context) error { return nil })
				found.Applied = err == nil
			}
			if err != nil {
				return nil, err
			}
		}
		switch {
		case found.Applied:
			o.recordOutcome(e, loop.EffectApplying, loop.EffectDone, found.Result, nil)
			o.noteDone(*e)
		case e.State == loop.EffectApplying:
			o.recordOutcome(e, e.State, loop.EffectFailed, nil, tooLate)
		case e.State == loop.EffectRequested:
			o.recordOutcome(e, e.State, loop.EffectRefused, nil, tooLate)
		}
		if e.Kind == effect.KindPropose && e.State != loop.EffectDone && len(o.its) > 0 {
			if err := o.tree.keepCandidate(ctx, e.Args[effect.ArgTree]); err != nil {
				return nil, err
			}
		}
	}
	return effects, nil
}
