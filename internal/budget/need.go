package budget

import (
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/pattern"
	"github.com/pawl-run/pawl/internal/plan"
)

// want is what the run reserves: what it will probably need of everything that
// some budget bounds. Of time, iterations and items that is all that it may use,
// or what is left of it.
func (p *Ledger) want(standings []loop.Standing, history []loop.Amount) (loop.Amount, string) {
	var budgets []loop.Budget
	for _, s := range standings {
		budgets = append(budgets, s.Budget)
	}
	usual, why := plan.Reserve(history, p.usualNeed(), plan.RunCaps(budgets))
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
		bound(&want.Wall, p.owner.Definition.MaxWallClock, limit.Wall, s.Used.Wall+s.Reserved.Wall)
		bound(&want.Iterations, int64(p.owner.Definition.MaxIterations), limit.Iterations, s.Used.Iterations+s.Reserved.Iterations)
		bound(&want.Items, int64(p.owner.Definition.MaxItems), limit.Items, s.Used.Items+s.Reserved.Items)
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
func (p *Ledger) usualNeed() loop.Amount {
	usual, ok := pattern.Find(p.owner.Definition.Pattern)
	if !ok {
		usual, _ = pattern.Find(pattern.Custom)
	}
	agents := max(1, usual.Tokens.Subagents)
	u := loop.Usage{Input: usual.Tokens.Input * agents, Output: usual.Tokens.Output * agents}
	cost, _ := p.price(p.owner.Model, u)
	return loop.Amount{Tokens: u.Charged(), Output: u.Output, MicroUSD: cost}
}

// payable refuses a model without a price where money has a cap. One that nobody
// knows yet is told when it is first asked, unless nobody will say which that is.
func (p *Ledger) payable(standings []loop.Standing) error {
	if _, known := p.price(p.owner.Model, loop.Usage{Input: 1}); known || p.owner.Model == "" && !p.owner.Untold {
		return nil
	}
	for _, s := range standings {
		if s.Budget.Cap.MicroUSD > 0 {
			return &unpayableError{p.owner.Model, whose(s.Budget.Scope, p.owner.Loop)}
		}
	}
	return nil
}

// wider is what is reserved, with what a call needs of all that is bounded.
func (p *Ledger) wider(need loop.Amount) loop.Amount {
	want := p.held
	if want.Tokens > 0 {
		want.Tokens = max(want.Tokens, need.Tokens)
	}
	if want.MicroUSD > 0 {
		want.MicroUSD = max(want.MicroUSD, need.MicroUSD)
	}
	if want.Output > 0 {
		want.Output = max(want.Output, lower(need.Output, p.owner.Definition.BudgetTokens))
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
