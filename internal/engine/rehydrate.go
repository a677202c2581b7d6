package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// recentRuns is how many earlier runs a protocol sees.
const recentRuns = 5

var beforeOpen = fault.New("engine.rehydrate.open.before")

// rehydrate finishes what an earlier process left of the memory, opens it, and
// makes repairs durable before anything is sensed.
func (c *cycle) rehydrate(ctx context.Context) (*ending, error) {
	c.enter(loop.PhaseRehydrate)
	v, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.applyPending(ctx); err != nil {
		return nil, err
	}
	if err := beforeOpen.Hit(ctx); err != nil {
		return nil, err
	}
	if end := c.open(ctx, v); end != nil {
		return end, nil
	}
	return c.repair(ctx)
}

// open opens the protocol's memory, or says how a run ends that cannot.
func (c *cycle) open(ctx context.Context, v View) *ending {
	session, err := c.t.Protocol.Open(ctx, v)
	if err != nil {
		return &ending{outcome: loop.OutcomeFailed, reason: loop.ReasonMemory, detail: err.Error()}
	}
	c.session = session
	return nil
}

// base resolves what the run works on, the tip of its base branch, when it is
// first needed: a run that finds nothing to do does not ask git anything.
func (c *cycle) base(ctx context.Context) error {
	if c.run.BaseCommit != "" {
		return nil
	}
	b, err := c.t.Repo.Base(ctx, c.def.Base)
	if err != nil {
		return err
	}
	c.run.BaseCommit, c.run.BaseTree, c.baseBranch = b.Commit, b.Tree, b.Branch
	return nil
}

// history reads files of commits; an empty revision is the run's base.
type history struct{ c *cycle }

// Show implements History.
func (h history) Show(ctx context.Context, rev, path string) ([]byte, error) {
	if rev == "" {
		if err := h.c.base(ctx); err != nil {
			return nil, err
		}
		rev = h.c.run.BaseCommit
	}
	return h.c.t.Repo.Show(ctx, rev, path)
}

// look reads all that is known of the loop in one view: rows for the protocol,
// answers of humans, and file changes that no process is known to have applied.
func (c *cycle) look(ctx context.Context) (View, error) {
	v := View{
		Loop: c.t.Loop, Definition: c.def, Run: c.run, Files: c.loopFiles(c.t), History: history{c}, Now: c.Now(),
	}
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		if c.pending, err = r.Pending(ctx, c.t.Loop.ID); err != nil {
			return err
		}
		if v.Steps, err = r.Steps(ctx, c.t.Loop.ID); err != nil {
			return err
		}
		if v.Recent, err = r.Runs(ctx, c.t.Loop.ID, recentRuns+1); err != nil {
			return err
		}
		if err := c.readHolds(ctx, r); err != nil {
			return err
		}
		return c.readAnswers(ctx, r, v.Steps)
	})
	for len(v.Recent) > 0 && v.Recent[0].N >= c.run.N {
		v.Recent = v.Recent[1:]
	}
	for _, s := range v.Steps {
		c.steps[s.Key] = s
	}
	if len(v.Recent) > 0 && c.run.State == loop.RunRunning {
		c.run.Readiness = v.Recent[0].Readiness
	}
	return v, err
}

// readAnswers finds out which waiting steps a human has answered.
func (c *cycle) readAnswers(ctx context.Context, r *store.Reader, steps []loop.Step) error {
	for _, s := range steps {
		if s.State != loop.StepWaiting {
			continue
		}
		a, err := r.Approval(ctx, s.WaitsFor)
		if err != nil {
			return fmt.Errorf("step %q waits for an approval: %w", s.Title, err)
		}
		c.answered[s.Key] = a.State != loop.ApprovalOpen
	}
	return nil
}

// repair makes recovery changes durable and applies them. A memory that a person
// has to look at ends the run.
func (c *cycle) repair(ctx context.Context) (end *ending, err error) {
	var changes []loop.Change
	for _, r := range c.session.Recovered() {
		changes = append(changes, r.Changes...)
		c.said.Note("recovered: %s", r.Note)
		if r.Escalate != "" {
			end = &ending{outcome: loop.OutcomeEscalated, reason: loop.ReasonMemory, detail: r.Escalate}
		}
	}
	if len(changes) == 0 {
		return end, nil
	}
	if err := loop.CheckChanges(changes); err != nil {
		return nil, fmt.Errorf("repair the loop's memory: %w", err)
	}
	if err := c.commit(ctx, loop.PhaseRehydrate, c.recordChanges(changes)); err != nil {
		return nil, err
	}
	return end, c.applyPending(ctx)
}

// recordChanges is the part of a transaction that makes changes of the memory
// durable: rows at once, files as pending changes.
func (c *cycle) recordChanges(changes []loop.Change) write {
	return func(ctx context.Context, rt *store.RunTx) error {
		var ofFiles []loop.Change
		for _, ch := range changes {
			if ch.Kind != loop.ChangeStep {
				ofFiles = append(ofFiles, ch)
				continue
			}
			if err := rt.SaveStep(ctx, *ch.Step); err != nil {
				return err
			}
			c.steps[ch.Step.Key] = *ch.Step
		}
		pending, err := rt.RecordChanges(ctx, ofFiles)
		c.pending = append(c.pending, pending...)
		return err
	}
}
