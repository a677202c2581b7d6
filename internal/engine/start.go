package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	beforeClaim = fault.New("engine.claim.commit.before")
	afterClaim  = fault.New("engine.claim.commit.after")
)

// start is trigger and claim in one transaction: the run exists only as a run
// that somebody holds.
func (e *Engine) start(ctx context.Context, t Target, f Firing) (*cycle, error) {
	if err := beforeClaim.Hit(ctx); err != nil {
		return nil, err
	}
	c := &cycle{
		Engine: e, t: t, f: f, def: f.Overrides.Apply(t.Definition).WithDefaults(), started: e.Now(),
		steps: map[string]loop.Step{}, settled: map[string]bool{}, answered: map[string]bool{},
	}
	err := e.Store.Update(ctx, func(tx *store.Tx) error { return c.fire(ctx, tx) })
	if err != nil {
		return nil, err
	}
	c.phase = loop.PhaseTrigger
	c.emit(loop.EventPhase, string(loop.PhaseTrigger))
	c.enter(loop.PhaseClaim)
	return c, afterClaim.Hit(ctx)
}

func (c *cycle) fire(ctx context.Context, tx *store.Tx) error {
	l, err := tx.EnsureLoop(ctx, c.t.Workspace, c.t.Loop)
	if err != nil {
		return err
	}
	c.t.Loop = l
	if l.Paused {
		return pausedFault(l.Name, "`pawl pause "+l.Name+"`")
	}
	if err := c.free(ctx, tx); err != nil {
		return err
	}
	digest := c.def.Digest()
	if digest != l.Definition {
		if err := tx.SaveDefinition(ctx, l.ID, c.def); err != nil {
			return err
		}
		if err := tx.Link(ctx, l.ID, "definition", "", map[string]string{"digest": digest, "before": l.Definition}); err != nil {
			return err
		}
	}
	r := loop.Run{
		ID: c.NewID("run"), LoopID: l.ID, Trigger: c.f.Trigger, Request: c.f.Request, Overrides: c.f.Overrides, Definition: digest,
		Sandbox: c.def.Sandbox, Approval: c.f.Approval,
	}
	if r.Key = c.f.Key; r.Key == "" {
		r.Key = r.ID
	}
	c.run, err = tx.FireClaimed(ctx, r, c.Self)
	return err
}

// free refuses to start beside a live run of the same loop.
func (c *cycle) free(ctx context.Context, tx *store.Tx) error {
	live, err := tx.Live(ctx, c.t.Loop.ID)
	if errors.Is(err, loop.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return &loop.HeldError{What: fmt.Sprintf("run %s#%d", c.t.Loop.Name, live.N), Holder: live.Holder}
}
