package engine

import (
	"context"
	"errors"
	"io"

	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/site"
	"github.com/pawl-run/pawl/internal/store"
)

// ratchet holds a gate that passed against the same gate on the base: fewer
// tests than there were are no pass. What the base counts is asked once per
// base tree. A gate that counts nothing, and does not look as if it should,
// costs no second run; if it has ever been counted on the base, silence is no
// pass.
func (c *cycle) ratchet(ctx context.Context, g gate.Check, res loop.GateResult) (loop.GateResult, error) {
	if !res.Pass || c.run.BaseTree == "" {
		return res, nil
	}
	base, recorded, err := c.recordedCounts(ctx, g)
	if err == nil && !recorded && (res.Tests != nil || res.Note != "") {
		base, err = c.baseCounts(ctx, g)
	}
	if err != nil {
		return res, err
	}
	res = gate.Judge(res, base)
	res.Base = base
	return res, nil
}

// recordedCounts is what a gate was found to count on the base before, nil for
// nothing, and whether that is known at all.
func (c *cycle) recordedCounts(ctx context.Context, g gate.Check) (counted *loop.TestCounts, recorded bool, err error) {
	var counts loop.TestCounts
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		counts, err = r.TestCounts(ctx, c.run.BaseTree, g.ID())
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return nil, false, nil
	}
	return known(counts), err == nil, err
}

// baseCounts is what a gate counts on the base, and nil if it counts nothing
// there.
func (c *cycle) baseCounts(ctx context.Context, g gate.Check) (*loop.TestCounts, error) {
	res, err := c.onBase(ctx, g)
	if err != nil {
		return nil, err
	}
	var counts loop.TestCounts
	if res.Tests != nil {
		counts = *res.Tests
	}
	c.saveCounts(c.run.BaseTree, g, counts)
	return known(counts), nil
}

// known is nil for a gate that is known to count nothing.
func known(counts loop.TestCounts) *loop.TestCounts {
	if counts.Format == "" {
		return nil
	}
	return &counts
}

// onBase runs one gate on a copy of the base.
func (c *cycle) onBase(ctx context.Context, g gate.Check) (res loop.GateResult, err error) {
	c.said.Note("%s is counted on the base, which happens once per base", g.Name)
	copied, err := c.copyOf(ctx, site.ForBase, c.run.BaseCommit)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, copied.Remove(context.WithoutCancel(ctx))) }()
	at, err := c.site().GatePlace(ctx, copied, true)
	if err != nil {
		return res, err
	}
	defer at.Done()
	res, err = c.site().RunGate(ctx, g, at, nil, io.Discard)
	c.run.Spent.Gates += res.Took
	return res, err
}

// saveCounts records what a gate counted on a tree with the next commit. A tree
// that lands is the next base, and is counted already.
func (c *cycle) saveCounts(tree string, g gate.Check, counts loop.TestCounts) {
	c.stage(func(ctx context.Context, rt *store.RunTx) error {
		return rt.SaveTestCounts(ctx, tree, g.ID(), counts)
	})
}

// freshCopy is a place for one more try of a gate, in which no earlier try left
// anything.
func (c *cycle) freshCopy(ctx context.Context) (site.Place, error) {
	if err := c.dropFresh(ctx); err != nil {
		return site.Place{}, err
	}
	fresh, err := c.copyOf(ctx, site.ForRetry, c.current().Candidate)
	if err != nil {
		return site.Place{}, err
	}
	c.fresh = fresh
	return c.site().GatePlace(ctx, fresh, false)
}

func (c *cycle) dropFresh(ctx context.Context) error {
	if c.fresh == nil {
		return nil
	}
	err := c.fresh.Remove(context.WithoutCancel(ctx))
	c.fresh = nil
	return err
}
