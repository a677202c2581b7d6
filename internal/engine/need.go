package engine

import (
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/pattern"
	"github.com/pawl-run/pawl/internal/plan"
)

// want is what the run reserves: what it will probably need of everything that
// some budget bounds. Of time, iterations and items that is all that it may use,
// or what is left of it.
func (c *cycle) want(standings []loop.Standing, history []loop.Amount) (loop.Amount, string) {
	var budgets []loop.Budget
	for _, s := range standings {
		budgets = append(budgets, s.Budget)
	}
	usual, why := plan.Reserve(history, c.usualNeed(), plan.RunCaps(budgets))
	var want loop.Amount
	for _, s := range standings {
		limit := s.Budget.Cap
		if limit.Tokens > 0 {
			want.Tokens = max(1, usual.Tokens)
		}
		if limit.Output > 0 {
			want.Output = max(1, usual.Output)
		}
		if limit.MicroUSD > 0 {
			want.MicroUSD = max(1, usual.MicroUSD)
		}
		bound(&want.Wall, c.def.MaxWallClock, limit.Wall, s.Used.Wall+s.Reserved.Wall)
		bound(&want.Iterations, int64(c.def.MaxIterations), limit.Iterations, s.Used.Iterations+s.Reserved.Iterations)
		bound(&want.Items, int64(c.def.MaxItems), limit.Items, s.Used.Items+s.Reserved.Items)
	}
	return want, why
}

// bound keeps a need of one kind within what is left below a cap, but for one
// unit: what cannot be had is for the store to refuse.
func bound[T ~int64](need *T, most, limit, gone T) {
	if limit <= 0 {
		return
	}
	if *need == 0 {
		*need = most
	}
	*need = max(1, min(*need, limit-gone))
}

// usualNeed is what the pattern's table says that one run needs, for loops that
// have no past.
func (c *cycle) usualNeed() loop.Amount {
	p, ok := pattern.Find(c.def.Pattern)
	if !ok {
		p, _ = pattern.Find(pattern.Custom)
	}
	agents := max(1, p.Tokens.Subagents)
	u := loop.Usage{Input: p.Tokens.Input * agents, Output: p.Tokens.Output * agents}
	cost, _ := c.spending.price(c.actor.Model, u)
	return loop.Amount{Tokens: u.Charged(), Output: u.Output, MicroUSD: cost}
}

// unpayableError means that money has a cap, and nobody knows what the run's
// model costs.
type unpayableError struct{ model, whose string }

func (e *unpayableError) Error() string {
	return fmt.Sprintf("the budget of %s has a cap in money and the model %q has no price; add it to prices.json, or cap tokens instead", e.whose, e.model)
}

// unpaid reports whether err says that no budget pays for the run.
func unpaid(err error) bool {
	_, short := errors.AsType[*shortError](err)
	_, unpayable := errors.AsType[*unpayableError](err)
	return short || unpayable
}

// payable refuses a model without a price where money has a cap. One that nobody
// named is known when it is first asked.
func (c *cycle) payable(standings []loop.Standing) error {
	if _, known := c.spending.price(c.actor.Model, loop.Usage{Input: 1}); c.actor.Model == "" || known {
		return nil
	}
	for _, s := range standings {
		if s.Budget.Cap.MicroUSD > 0 {
			return &unpayableError{c.actor.Model, whose(s.Budget.Scope, c.t.Loop.Name)}
		}
	}
	return nil
}
