package engine

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

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
	id := e.NewID("run")
	var claimed time.Time
	fire := func() error {
		known := c.t.Loop // A transaction that was taken back has counted one further.
		claimed = e.Now()
		return e.Store.Update(ctx, func(tx *store.Tx) error {
			c.t.Loop = known
			return c.fire(ctx, tx, id)
		})
	}
	err := fire()
	if errors.Is(err, errNewLoop) {
		if err = c.numberOn(ctx); err == nil {
			err = fire()
		}
	}
	if err != nil {
		return nil, err
	}
	c.holds(claimed)
	c.said = e.listen(c.run.ID)
	c.said.Enter(loop.PhaseTrigger)
	c.enter(loop.PhaseClaim)
	return c, afterClaim.Hit(ctx)
}

// holds notes the run that was claimed at the given time, whose row is written by
// this process from now on.
func (c *cycle) holds(claimed time.Time) {
	c.id = loop.Run{ID: c.run.ID, LoopID: c.run.LoopID, Fence: c.run.Fence}
	c.Store = c.Engine.Store.Holding(c.id, claimed, func(err error) {
		c.Log.Warn("the store does not answer and is tried again", slog.String("run", c.id.ID), slog.Duration("left", c.Store.Left()), slog.String("error", err.Error()))
	})
}

// errNewLoop means that the store does not know the loop yet.
var errNewLoop = errors.New("new loop")

// numberOn finds the highest number that branches, snapshots and the memory of an
// earlier store or program left for this loop, so that a number never means two
// runs.
func (c *cycle) numberOn(ctx context.Context) error {
	c.numbered = true
	if p, ok := c.t.Protocol.(interface {
		LastRun(files Files, name string) (int64, error)
	}); ok {
		n, err := p.LastRun(c.memory(c.t), c.t.Loop.Name)
		if err != nil {
			return err
		}
		c.t.Loop.LastN = max(c.t.Loop.LastN, n)
	}
	for _, prefix := range []string{"refs/heads/" + branchOf(c.t.Loop.Name, ""), snapshotPrefix + c.t.Loop.Name + "/"} {
		refs, err := c.t.Repo.Refs(ctx, prefix)
		if err != nil {
			return err
		}
		for _, r := range refs {
			digits, _, _ := strings.Cut(strings.TrimPrefix(r.Name, prefix), "-")
			if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
				c.t.Loop.LastN = max(c.t.Loop.LastN, n)
			}
		}
	}
	return nil
}

func (c *cycle) fire(ctx context.Context, tx *store.Tx, id string) error {
	if c.numbered {
		if err := tx.AddLoop(ctx, c.t.Workspace, c.t.Loop); err != nil {
			return err
		}
	}
	l, err := tx.Number(ctx, c.t.Workspace.ID, c.t.Loop.Protocol, c.t.Loop.Name)
	if errors.Is(err, loop.ErrNotFound) {
		return errNewLoop
	}
	if err != nil {
		return err
	}
	c.t.Loop = l
	if l.Paused {
		return PausedFault(l.Name, "`pawl pause "+l.Name+"`")
	}
	if c.f.Answer != nil {
		if _, err := answer(ctx, tx, c.f.Approval, *c.f.Answer); err != nil {
			return err
		}
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
		ID: id, LoopID: l.ID, N: l.LastN, Trigger: c.f.Trigger, Request: c.f.Request, Overrides: c.f.Overrides, Definition: digest,
		Sandbox: c.def.Sandbox, Approval: c.f.Approval, Planned: c.f.Planned, Event: c.f.Event,
	}
	if r.Key = c.f.Key; r.Key == "" {
		r.Key = r.ID
	}
	c.run, err = tx.FireClaimed(ctx, r, c.Self)
	if _, held := errors.AsType[*loop.HeldError](err); held {
		live, liveErr := tx.Live(ctx, l.ID)
		if liveErr != nil {
			return errors.Join(err, liveErr)
		}
		return c.Held(l.Name, live)
	}
	return err
}
