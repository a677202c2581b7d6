package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/budget"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/store"
)

// ledger is what the run may spend. It is made when it is first asked for, which is
// after it is known who acts.
func (c *cycle) ledger() *budget.Ledger {
	if c.money == nil {
		c.money = budget.New(budget.Owner{
			Store: c.Store, Now: c.Now, Prices: func() (price.Table, error) { return c.prices, nil }, Run: c.id, Definition: c.def, Loop: c.t.Loop.Name, Workspace: c.t.Workspace.ID,
			Agent: or(c.run.Agent, c.actor.Handle), Model: c.actor.Asked(c.signed.Provider), Untold: c.unsigned == nil && c.signed.Auth == "",
		})
	}
	return c.money
}

// when calls do once c is closed, until the function is called that it returns.
func when(c <-chan struct{}, do func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-c:
			do()
		case <-done:
			select { // Both may be ready: a program that is refused a call may be gone at once.
			case <-c:
				do()
			default:
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// turnTime is the wall-clock cap of a turn.
func (c *cycle) turnTime() time.Duration {
	limit := c.within(c.def.MaxStepTimeout)
	if wall := c.ledger().Held().Wall; wall > 0 {
		limit = min(limit, max(time.Second, wall-c.run.Spent.Agent))
	}
	return limit
}

// spentNow is what the run has used of everything.
func (c *cycle) spentNow() loop.Amount {
	return loop.Amount{
		Tokens: c.run.Usage.Charged(), Output: c.run.Usage.Output, MicroUSD: c.run.Cost.MicroUSD, Wall: c.run.Spent.Agent,
		Iterations: int64(c.worked), Items: int64(c.items),
	}
}

// settleBudget is the part of a run's end that gives back what it did not use.
func (c *cycle) settleBudget() write {
	spent := budget.Spent{Used: c.spentNow(), Died: c.taken && c.unseen, Blind: c.blind, Priced: len(c.run.Cost.Unpriced) == 0}
	return func(ctx context.Context, rt *store.RunTx) error { return c.ledger().Settle(ctx, rt, spent) }
}

// alarm says so when the run used far more than those of its loop before it.
func (c *cycle) alarm(ctx context.Context) {
	if c.turns == 0 {
		return
	}
	var past []loop.Amount
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		past, err = r.History(ctx, c.run.LoopID, plan.Past)
		return err
	})
	if err != nil {
		c.Log.WarnContext(ctx, "past of the loop is not known", slog.String("run", c.run.ID), slog.String("error", err.Error()))
		return
	}
	if alarm, words := plan.Drift(past, c.spentNow()); alarm {
		c.said.Note("drift: %s", words)
	}
}
