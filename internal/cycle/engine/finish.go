package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// finish concludes the run: the outcome becomes durable together with
// everything that is staged. Without effects that is the end of the run, and
// one transaction. With effects the run settles first, so that the account of
// it says what the effects really did.
func (c *cycle) finish(ctx context.Context, end ending) error {
	ctx = context.WithoutCancel(ctx)
	c.enterPhase(loop.PhaseConclude)
	c.judgeOpen(end)
	c.releaseSteps(end)
	c.run.Readiness = readinessAfter(end, c.assessed, c.run.Readiness)
	c.run.Outcome, c.run.Reason, c.run.Detail, c.run.Cause = end.outcome, end.reason, end.detail, c.run.Cause.Merge(end.cause)
	c.halt = end.halt
	if err := c.endSession(ctx); err != nil {
		return err
	}
	if err := c.tree.keepWork(ctx, end); err != nil {
		return err
	}
	c.rememberLessons()
	if c.outbox.requested == 0 && !c.commitsState() {
		return c.endRun(ctx, loop.PhaseConclude, nil)
	}
	c.spent()
	run := c.run
	err := c.commitBy(ctx, loop.PhaseConclude, func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		return tx.Settle(ctx, run, loop.PhaseConclude, true)
	}, c.money.settle()) // What is left to do needs no model.
	if err != nil {
		return err
	}
	c.run.State = loop.RunSettling
	return c.settleRun(ctx)
}

// endSession lets a session ask for effects now that the outcome is known.
func (c *cycle) endSession(ctx context.Context) error {
	s, ok := c.memory.session.(BranchMemory)
	if !ok {
		return nil
	}
	if err := c.resolveBase(ctx); err != nil {
		c.said.Note("the run is not written into the loop's memory: %s", err)
		return nil
	}
	changes, effects := s.End(Summary{Run: c.run, Iterations: c.its, Now: c.Now()})
	if err := loop.CheckChanges(changes); err != nil {
		return fmt.Errorf("end run %s: %w", c.run.ID, err)
	}
	c.stage(c.recordChanges(changes))
	c.outbox.request(effects...)
	for _, e := range effects {
		if tree := e.Args[effect.ArgTree]; e.Kind == effect.KindMemoryCommit && tree != "" {
			c.tree.kept = tree
		}
	}
	return nil
}

// keepTime bounds the snapshot of a run that ends. It does not end with the run's
// context: what a stopped run did is kept.
const keepTime = 2 * time.Minute

var errKeepTime = fmt.Errorf("its snapshot took longer than %s", keepTime)

// keepWork keeps work that is on no branch before the tree goes. Work that
// cannot be kept leaves the run to Recover, with its tree; there it is salvaged.
func (wt *workTree) keepWork(ctx context.Context, end ending) error {
	onBranch := wt.kept != "" && len(wt.its) > 0 && wt.kept == wt.current().Tree
	if wt.secured || wt.copy == nil || onBranch {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, keepTime, errKeepTime)
	defer cancel()
	err := wt.keepSnapshot(limited)
	switch {
	case !errors.Is(err, workspace.ErrIncomplete):
	case end.reason == loop.ReasonDisk: // The run has ended because of all the room that the tree takes.
		wt.said.Note("%s; the rest of the tree goes, because it takes up too much of the disk", err)
		err = nil
	default:
		err = wt.setAside(err)
	}
	if err != nil && wt.taken {
		err = wt.salvage(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("the work of run %s stays in %s: %w", wt.run.ID, wt.copyPath(), err)
	}
	wt.secured = true
	return nil
}

// settleRun carries a concluded run to its end: files, effects, the account.
func (c *cycle) settleRun(ctx context.Context) error {
	c.enterPhase(loop.PhasePersist)
	if err := c.applyPending(ctx); err != nil {
		return err
	}
	c.enterPhase(loop.PhaseEffect)
	effects, err := c.outbox.drain(ctx)
	if err == nil {
		effects, err = c.commitState(ctx, effects)
	}
	if err != nil {
		return err
	}
	return c.endRun(ctx, loop.PhaseSleep, effects)
}

// endRun is the last transaction of a run: its final outcome, the protocol's
// account of it, and a link in the audit chain.
func (c *cycle) endRun(ctx context.Context, phase loop.Phase, effects []loop.Effect) error {
	c.spent()
	c.askLanding(effects)
	if err := c.askPush(ctx, effects); err != nil {
		return err
	}
	c.money.sayDrift(ctx)
	c.login.settle(ctx)
	var changes []loop.Change
	if !slices.ContainsFunc(effects, isStateCommit) { // Else they were recorded with it.
		changes = c.memory.closingChanges(ctx, effects, c.Now())
	}
	c.memory.sayRemarks()
	if c.halt {
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.Pause(ctx, c.run.LoopID, true) })
		c.said.Note("the loop is paused until a person resumes it: its policy says so")
	}
	c.said.Emit(loop.EventOutcome, outcomeText(c.run))
	// Nothing is left to apply. A process that dies after this transaction must leave
	// neither refs nor the lock of a run that has ended.
	c.tree.dropCandidates(ctx)
	if err := c.outbox.release(); err != nil {
		return err
	}
	c.wakeLater()
	run := c.run
	ended := func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		if run.State == loop.RunSettling {
			return tx.End(ctx, run, phase)
		}
		return tx.Settle(ctx, run, phase, false)
	}
	err := c.commitBy(ctx, phase, ended,
		c.recordChanges(changes),
		func(ctx context.Context, rt *store.RunTx) error {
			return rt.Link(ctx, run.LoopID, "run", run.ID, auditOf(run))
		}, c.money.settle())
	if err != nil {
		return err
	}
	c.run.State, c.run.Ended = loop.RunEnded, c.Now()
	c.login.forget()
	if err := c.applyPending(ctx); err != nil {
		return fmt.Errorf("run %s has ended, its files are written by the next command: %w", c.run.ID, err)
	}
	c.enterQuietly(loop.PhaseSleep)
	return nil
}

// judgeOpen gives an iteration that the end of the run cut off a verdict: it
// did not pass.
func (c *cycle) judgeOpen(end ending) {
	for i, it := range c.its {
		if it.Verdict != loop.VerdictIntended {
			continue
		}
		it.Verdict, it.Reason, it.Feedback, it.Ended = loop.VerdictFail, end.reason, end.detail, c.endOf(&it)
		it.Usage = c.unsettledUsage()
		c.its[i] = it
		if s := c.stepOf(&it); s.State == loop.StepClaimed {
			s.Tokens += it.Usage.ChargedTokens()
			if c.def.Life != nil && !c.taken && c.firing.Rebase == "" { // Of a run that was taken over it is counted already, and no agent rebases.
				s.Attempts++
			}
			c.steps[s.Key] = s
		}
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, it) })
	}
}

// unsettledUsage is what the run used and no iteration before the last one did.
func (h *heldRun) unsettledUsage() loop.Usage {
	var before loop.Usage
	for _, it := range h.its[:len(h.its)-1] {
		before = before.Add(it.Usage)
	}
	return h.run.Usage.Since(before)
}

// closingChanges lets the protocol write its account of the run, whatever the outcome.
// A paused run gets none, unless its session has an End. A run that failed before its memory was open tries once
// more to open it. If that fails, the protocol may still write what needs no memory.
func (m *memory) closingChanges(ctx context.Context, effects []loop.Effect, now time.Time) []loop.Change {
	_, always := m.session.(BranchMemory)
	if m.run.Outcome == loop.OutcomePaused && !always {
		return nil
	}
	sum := Summary{Run: m.run, Iterations: m.its, Effects: effects, Now: now}
	if m.session == nil {
		v, err := m.readLoop(ctx)
		if err != nil {
			m.said.Note("the run is not written into the loop's memory: %s", err)
			return nil
		}
		if end := m.open(ctx, v); end != nil {
			m.said.Note("the run is not written into the loop's memory: %s", end.detail)
			if p, ok := m.target.Protocol.(UnopenedAccount); ok {
				return m.checkedChanges(p.CloseUnopened(v, sum))
			}
			return nil
		}
	}
	return m.checkedChanges(m.session.Close(sum))
}

// checkedChanges are the changes of an account if all of them are valid, or none.
func (m *memory) checkedChanges(changes []loop.Change) []loop.Change {
	if err := loop.CheckChanges(changes); err != nil {
		m.said.Note("the run is not written into the loop's memory: %s", err)
		return nil
	}
	return changes
}

// releaseSteps gives steps back that the run claimed and did not settle. What one of
// them did that took up too much of the disk, the next attempt is told.
func (c *cycle) releaseSteps(end ending) {
	for key, s := range c.steps {
		if s.State != loop.StepClaimed || s.RunID != c.run.ID {
			continue
		}
		s.State, s.RunID = loop.StepOpen, ""
		if end.reason == loop.ReasonDisk {
			s.Feedback = end.detail
		}
		c.steps[key] = s
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.ReleaseStep(ctx, s) })
	}
}

// spent closes the run's account of time.
func (c *cycle) spent() { c.run.Spent.Total = max(0, c.Now().Sub(c.started)) }

// enterQuietly changes the phase for whoever watches live; nothing is stored
// any more.
func (j *journal) enterQuietly(phase loop.Phase) {
	j.enterPhase(phase)
	j.said.Forget()
}

// auditOf is what the chain says of a run: enough to write its log line again.
func auditOf(r loop.Run) map[string]any {
	body := map[string]any{
		"n": r.N, "outcome": r.Outcome, "reason": r.Reason, "definition": r.Definition, "base": r.BaseCommit, "branch": r.Branch,
		"commit": r.Commit, "snapshot": r.Snapshot, "tokens": r.Usage.ChargedTokens(), "subject": r.Subject(),
	}
	if r.Node != "" {
		body["node"] = r.Node
	}
	if r.By != (loop.Actor{}) {
		body["actor"] = r.By
	}
	return body
}
