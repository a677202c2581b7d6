package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/workspace"
)

// Recovered is a run that another process left behind, and how it ended.
type Recovered struct {
	Loop   string
	Run    loop.Run
	Died   loop.Phase // where it stood
	Killed int        // processes that had survived
}

var afterSeize = fault.New("engine.recover.claim.after")

// Recover concludes the target's run if its holder is dead, and writes files
// that a dead process left unwritten. It is the normal start of every command
// that may write; when nothing is left behind it reads twice and returns nil.
func (e *Engine) Recover(ctx context.Context, t Target) (*Recovered, error) {
	var live loop.Run
	var pending []loop.PendingChange
	err := e.Store.View(ctx, func(r *store.Reader) (err error) {
		if pending, err = r.Pending(ctx, t.Loop.ID); err != nil {
			return err
		}
		live, err = r.Live(ctx, t.Loop.ID)
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return nil, e.finishFiles(ctx, t, pending)
	}
	if err != nil {
		return nil, err
	}
	if !e.dead(live) {
		return nil, nil
	}
	c, err := e.seize(ctx, t, live)
	if errors.Is(err, loop.ErrLeaseLost) {
		return nil, nil // Another process recovers it at this moment.
	}
	if err != nil {
		return nil, err
	}
	return c.concludeDead(ctx, live)
}

// dead reports whether the run's holder can be proven not to write any more.
func (e *Engine) dead(r loop.Run) bool {
	if r.Holder == e.Self {
		return false
	}
	if r.Holder.Node == e.Self.Node {
		return !e.Alive(r.Holder)
	}
	return false // The lease decides; Claim compares it by the database's clock.
}

// seize takes the run from its dead holder and rebuilds what is known of it.
func (e *Engine) seize(ctx context.Context, t Target, dead loop.Run) (*cycle, error) {
	c := &cycle{
		Engine: e, t: t, steps: map[string]loop.Step{}, settled: map[string]bool{}, answered: map[string]bool{},
	}
	err := e.Store.Update(ctx, func(tx *store.Tx) (err error) {
		c.run, _, err = tx.Claim(ctx, dead.ID, dead.Fence, e.Self, dead.Holder)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := afterSeize.Hit(ctx); err != nil {
		return nil, err
	}
	return c, e.Store.View(ctx, func(r *store.Reader) (err error) {
		if c.t.Loop, err = r.LoopNamed(ctx, t.Workspace.ID, t.Loop.Protocol, t.Loop.Name); err != nil {
			return err
		}
		if c.def, err = r.Definition(ctx, c.run.Definition); err != nil {
			return err
		}
		if c.its, err = r.Iterations(ctx, c.run.ID); err != nil {
			return err
		}
		return c.resumeEvents(ctx, r)
	})
}

// resumeEvents continues the run's sequence and its clock: time in which
// nobody held the run is not counted.
func (c *cycle) resumeEvents(ctx context.Context, r *store.Reader) (err error) {
	c.phase, c.started = c.run.Phase, c.Now()
	if c.seq, err = r.LastEvent(ctx, c.run.ID); err != nil || c.seq == 0 {
		return err
	}
	last, err := r.Events(ctx, c.run.ID, c.seq-1, 1)
	if err == nil && len(last) == 1 {
		c.started = c.Now().Add(-last[0].At.Sub(c.run.Started))
	}
	return err
}

// concludeDead ends a seized run: one that had its outcome already is carried
// on from there, any other is interrupted. Nothing is repeated.
func (c *cycle) concludeDead(ctx context.Context, dead loop.Run) (*Recovered, error) {
	ctx, stop := c.watchLease(ctx)
	defer stop()
	defer func() { c.cleanUp(context.WithoutCancel(ctx)) }()
	dead.Phase = c.marked(dead)
	rec := &Recovered{Loop: c.t.Loop.Name, Died: dead.Phase}
	var err error
	if rec.Killed, err = c.Survive(ctx, Tag(c.run.ID)); err != nil {
		return nil, err
	}
	c.t.Definition, c.copied = c.def, true
	c.openMarks()
	v, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.applyPending(ctx); err != nil {
		return nil, err
	}
	if end := c.open(ctx, v); end != nil {
		c.note("the loop's memory cannot be opened: %s", end.detail)
	}
	if c.run.State == loop.RunSettling {
		c.note("taken over from a dead process in %s", dead.Phase)
		err = c.settle(ctx)
	} else {
		err = c.interrupted(ctx, dead)
	}
	rec.Run = c.run
	return rec, err
}

// interrupted gives the run of a dead process its end: the tree is kept, the
// iteration that it was in is judged as interrupted, the step is free again.
func (c *cycle) interrupted(ctx context.Context, dead loop.Run) error {
	why := fmt.Sprintf("process %d died in %s", dead.Holder.PID, dead.Phase)
	c.treeBase = c.run.BaseCommit
	if c.run.BaseCommit != "" {
		tree, err := c.trees(ctx, purposeAct).Adopt(ctx, treeName(c.run.ID, purposeAct), c.run.BaseCommit)
		if errors.Is(err, loop.ErrNotFound) {
			tree, err = nil, nil // It died before the copy was made, or after it was removed.
		}
		if err != nil {
			return fmt.Errorf("adopt the tree of run %s: %w", c.run.ID, err)
		}
		c.tree = tree
	}
	if err := c.outstanding(ctx); err != nil {
		return err
	}
	for key, s := range c.steps {
		if s.RunID == c.run.ID {
			s.Attempts++
			s.Feedback = why
			c.steps[key] = s
		}
	}
	return c.finish(ctx, ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonHolderDied, detail: why})
}

// outstanding counts the effects that the dead process had asked for: an earlier
// item of the run had passed, and what passed goes its way.
func (c *cycle) outstanding(ctx context.Context) error {
	return c.Store.View(ctx, func(r *store.Reader) error {
		effects, err := r.Effects(ctx, c.run.ID)
		c.requested = len(effects)
		return err
	})
}

// finishFiles writes what the ended runs of a loop left unwritten.
func (e *Engine) finishFiles(ctx context.Context, t Target, pending []loop.PendingChange) error {
	if len(pending) == 0 {
		return nil
	}
	c := &cycle{Engine: e, t: t, pending: pending}
	if err := c.applyPending(ctx); err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx *store.Tx) error { return tx.Applied(ctx, c.applied) })
}

// Sweep removes folders of runs that have ended, left by processes that died
// while they cleaned up.
func (e *Engine) Sweep(ctx context.Context, repo *git.Repo) error {
	trees := workspace.New(e.treesDir(), repo, workspace.Limits{})
	names, err := trees.Left()
	if err != nil {
		return err
	}
	for _, name := range names {
		id, _, _ := strings.Cut(name, "-")
		if err := e.ifEnded(ctx, id, func() error { return trees.Remove(ctx, name) }); err != nil {
			return err
		}
	}
	dirs, err := os.ReadDir(filepath.Join(e.Home, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range dirs {
		id := strings.TrimSuffix(d.Name(), markSuffix)
		if err := e.ifEnded(ctx, id, func() error { return os.RemoveAll(filepath.Join(e.Home, "runs", d.Name())) }); err != nil {
			return err
		}
	}
	return nil
}

// ifEnded calls fn if the run has ended. A run that the store does not know is
// somebody else's.
func (e *Engine) ifEnded(ctx context.Context, runID string, fn func() error) error {
	var run loop.Run
	err := e.Store.View(ctx, func(r *store.Reader) (err error) {
		run, err = r.Run(ctx, runID)
		return err
	})
	switch {
	case errors.Is(err, loop.ErrNotFound), err == nil && run.State != loop.RunEnded:
		return nil
	case err != nil:
		return err
	}
	return fn()
}
