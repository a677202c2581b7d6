package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/meter/model"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/store"
)

// spending is what a run may spend and what it has spent.
type spending struct {
	account *model.Account
	prices  price.Table
	own     []loop.Budget              // of the definition
	held    loop.Amount                // reserved in the store; zero in what has no cap
	why     string                     // how the reservation came to be
	short   atomic.Pointer[shortError] // why less was granted than was asked for, if it was
	blind   bool                       // there was a turn of which nobody counted the tokens
}

// shortError means that a budget does not fund what a run needs.
type shortError struct {
	loop.Shortage
	loop string // name
}

func (e *shortError) Error() string { return plan.Explain(e.Shortage, whose(e.Budget.Scope, e.loop)) }

// whose is a scope in words; those of loops are of the loop with that name.
func whose(s loop.BudgetScope, name string) string {
	switch s.Kind {
	case loop.BudgetLoop:
		return "loop " + name
	case loop.BudgetAgent:
		return "agent " + s.ID
	case loop.BudgetWorkspace:
		return "this workspace"
	}
	return "everything"
}

// prepareSpending finds out what the run needs and what bounds it, before it
// first acts.
func (c *cycle) prepareSpending(ctx context.Context) error {
	sp := &c.spending
	if sp.account != nil {
		return nil
	}
	var err error
	if sp.prices, err = c.prices(); err != nil {
		return err
	}
	// The cap of a single run is kept by the account: nobody else spends from it.
	sp.own = slices.DeleteFunc(plan.BudgetsOf(c.def, c.run.LoopID), func(b loop.Budget) bool { return b.Window == loop.WindowRun })
	var standings []loop.Standing
	var history []loop.Amount
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		if standings, err = r.Standings(ctx, c.budgetScopes(), sp.own, c.Now()); err != nil || len(standings) == 0 {
			return err
		}
		history, err = r.History(ctx, c.run.LoopID, plan.Past)
		return err
	})
	if err != nil {
		return err
	}
	sp.held, sp.why = c.want(standings, history)
	if err := c.payable(standings); err != nil {
		return err
	}
	sp.account = &model.Account{Grant: c.grant(), More: c.more, Price: sp.price}
	return nil
}

// grant is what models may be used for with what is reserved.
func (c *cycle) grant() loop.Amount {
	held := c.spending.held
	return loop.Amount{Tokens: held.Tokens, MicroUSD: held.MicroUSD, Output: lower(held.Output, c.def.BudgetTokens)}
}

// lower is the lower of two caps, of which zero is none.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// price is what a usage of a model costs, in millionths of a US dollar, and
// whether the model has a price.
func (s *spending) price(id string, u loop.Usage) (microUSD int64, known bool) {
	_, cost := plan.Cost([]loop.ModelUsage{{Model: id, Usage: u}}, s.prices)
	return cost.MicroUSD, len(cost.Unpriced) == 0
}

func (e *Engine) prices() (price.Table, error) {
	if e.Prices == nil {
		return price.BuiltIn(), nil
	}
	return e.Prices()
}

// reserve is the part of the first decision that takes what the run needs from
// every budget that applies, or ends the run.
func (c *cycle) reserve(want loop.Amount) write {
	return func(ctx context.Context, rt *store.RunTx) error {
		if want.Zero() {
			return nil
		}
		short, err := rt.Reserve(ctx, c.budgetScopes(), c.spending.own, want)
		if err == nil && short != nil {
			err = &shortError{*short, c.t.Loop.Name}
		}
		return err
	}
}

// more is asked for a larger reservation while an agent acts. What a budget has
// left is given where it has less than all that is needed.
func (c *cycle) more(ctx context.Context, need loop.Amount) (loop.Amount, error) {
	want := c.wider(need)
	if want == c.spending.held {
		return c.grant(), nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), storeTime, errStoreTime)
	defer cancel()
	for all := true; ; all = false {
		err := c.Store.Update(ctx, func(tx *store.Tx) error {
			rt, err := tx.Enter(ctx, c.id, loop.PhaseAct)
			if err != nil {
				return err
			}
			return c.reserve(want)(ctx, rt)
		})
		if err == nil {
			c.spending.held = want
			if all {
				c.spending.short.Store(nil)
			}
			return c.grant(), nil
		}
		short, ok := errors.AsType[*shortError](err)
		if !ok {
			return c.grant(), err
		}
		c.spending.short.Store(short)
		less := without(want, short.Shortage).Max(c.spending.held)
		if less == want || less == c.spending.held {
			return c.grant(), err
		}
		want = less
	}
}

// wider is what is reserved, with what a call needs of all that is bounded.
func (c *cycle) wider(need loop.Amount) loop.Amount {
	want := c.spending.held
	if want.Tokens > 0 {
		want.Tokens = max(want.Tokens, need.Tokens)
	}
	if want.MicroUSD > 0 {
		want.MicroUSD = max(want.MicroUSD, need.MicroUSD)
	}
	if want.Output > 0 {
		want.Output = max(want.Output, lower(need.Output, c.def.BudgetTokens))
	}
	return want
}

// without takes from want what a budget does not have.
func without(want loop.Amount, short loop.Shortage) loop.Amount {
	p := want.Parts()
	for i, what := range loop.Dimensions {
		if what == short.What {
			p[i] -= short.Need - short.Left
		}
	}
	return p.Amount()
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

// exhausted ends a turn for which nothing is left.
func (c *cycle) exhausted(cancel context.CancelFunc) func() {
	return func() {
		cause := c.spending.account.Cause()
		end := ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudget, detail: "the budget of the run is used up"}
		if short := c.spending.short.Load(); short != nil {
			end.detail = short.Error()
		} else if cause != nil {
			end.detail = cause.Error()
		}
		c.cut = &end
		cancel()
	}
}

// turnTime is the wall-clock cap of a turn.
func (c *cycle) turnTime() time.Duration {
	limit := c.within(c.def.MaxStepTimeout)
	if wall := c.spending.held.Wall; wall > 0 {
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

// settleBudget is the part of a run's end that gives back what it did not use. Of
// a run that died everything that it reserved counts as used, and so do tokens
// that nobody counted: nobody knows. It comes last in its transaction.
func (c *cycle) settleBudget() write {
	used := c.spentNow()
	return func(ctx context.Context, rt *store.RunTx) error {
		held, seen, there, err := rt.Reserved(ctx)
		switch {
		case err != nil:
			return err
		case there && c.taken:
			used = used.Max(held).Max(seen)
		case there:
			used = plan.Charge(used, held, !c.spending.blind, len(c.run.Cost.Unpriced) == 0)
		case used.Zero():
			return nil
		}
		return rt.SettleBudget(ctx, c.budgetScopes(), used)
	}
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
		c.note("drift: %s", words)
	}
}

// budgetScopes are all that the run's spending counts for.
func (c *cycle) budgetScopes() []loop.BudgetScope {
	return []loop.BudgetScope{
		{Kind: loop.BudgetLoop, ID: c.run.LoopID},
		{Kind: loop.BudgetAgent, ID: or(c.run.Agent, c.actor.Handle)},
		{Kind: loop.BudgetWorkspace, ID: c.t.Workspace.ID},
		{Kind: loop.BudgetAll},
	}
}
