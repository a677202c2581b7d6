package budget

import (
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/pattern"
	"github.com/pawl-run/pawl/internal/plan"
)

// estimateNeed is what the run reserves: what it will probably need of everything that
// some budget bounds. Of time, iterations and items that is all that it may use,
// or what is left of it.
func (p *Ledger) estimateNeed(standings []loop.Standing, history []loop.Amount) (loop.Amount, string) {
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
		boundNeed(&want.Wall, p.owner.Definition.MaxWallClock, limit.Wall, s.Used.Wall+s.Reserved.Wall)
		boundNeed(&want.Iterations, int64(p.owner.Definition.MaxIterations), limit.Iterations, s.Used.Iterations+s.Reserved.Iterations)
		boundNeed(&want.Items, int64(p.owner.Definition.MaxItems), limit.Items, s.Used.Items+s.Reserved.Items)
	}
	return want, why
}

// boundNeed keeps a need of one kind within what is left below a cap, but for one
// unit: what cannot be had is for the store to refuse.
func boundNeed[T ~int64](need *T, most, limit, gone T) {
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
	cost, _ := p.priceCall(p.owner.Model, u)
	return loop.Amount{Tokens: u.Charged(), Output: u.Output, MicroUSD: cost}
}

// checkModelPriced refuses a model without a price where money has a cap. One that nobody
// knows yet is told when it is first asked, unless nobody will say which that is.
func (p *Ledger) checkModelPriced(standings []loop.Standing) error {
	if _, known := p.priceCall(p.owner.Model, loop.Usage{Input: 1}); known || p.owner.Model == "" && !p.owner.ModelsUnknown {
		return nil
	}
	for _, s := range standings {
		if s.Budget.Cap.MicroUSD > 0 {
			return &unpricedError{p.owner.Model, scopeInWords(s.Budget.Scope, p.owner.Loop)}
		}
	}
	return nil
}

// widerReservation is what is reserved, with what a call needs of all that is bounded.
func (p *Ledger) widerReservation(need loop.Amount) loop.Amount {
	want := p.reserved
	if want.Tokens > 0 {
		want.Tokens = max(want.Tokens, need.Tokens)
	}
	if want.MicroUSD > 0 {
		want.MicroUSD = max(want.MicroUSD, need.MicroUSD)
	}
	if want.Output > 0 {
		want.Output = max(want.Output, lowerCap(need.Output, p.owner.Definition.BudgetTokens))
	}
	return want
}

// subtractShortage takes from want what a budget does not have.
func subtractShortage(want loop.Amount, short loop.Shortage) loop.Amount {
	p := want.Parts()
	for i, what := range loop.Dimensions {
		if what == short.What {
			p[i] -= short.Need - short.Left
		}
	}
	return p.Amount()
}
