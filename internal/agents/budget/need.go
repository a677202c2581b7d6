package budget

import (
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// estimateNeed returns what the run reserves and how that was estimated: what it
// will probably need of everything that a budget caps. For time, iterations and
// items that is the limit of the run, or what is left of the cap.
func (l *Ledger) estimateNeed(standings []loop.Standing, history []loop.Amount) (loop.Amount, string) {
	var budgets []loop.Budget
	for _, s := range standings {
		budgets = append(budgets, s.Budget)
	}
	usual, why := plan.Reserve(history, l.usualNeed(), plan.RunCaps(budgets))
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
		boundNeed(&want.Wall, l.owner.Definition.MaxWallClock, limit.Wall, s.Used.Wall+s.Reserved.Wall)
		boundNeed(&want.Iterations, int64(l.owner.Definition.MaxIterations), limit.Iterations, s.Used.Iterations+s.Reserved.Iterations)
		boundNeed(&want.Items, int64(l.owner.Definition.MaxItems), limit.Items, s.Used.Items+s.Reserved.Items)
	}
	return want, why
}

// boundNeed keeps the need of one dimension within what is left below its cap. It
// never goes below one unit, so that the store refuses a run if nothing is left.
func boundNeed[T ~int64](need *T, most, limit, gone T) {
	if limit <= 0 {
		return
	}
	if *need == 0 {
		*need = most
	}
	*need = max(1, min(*need, limit-gone))
}

// usualNeed returns what one run of the loop's pattern usually needs, for loops
// without past runs.
func (l *Ledger) usualNeed() loop.Amount {
	usual, ok := pattern.Find(l.owner.Definition.Pattern)
	if !ok {
		usual, _ = pattern.Find(pattern.Custom)
	}
	agents := max(1, usual.Tokens.Subagents)
	u := loop.Usage{Input: usual.Tokens.Input * agents, Output: usual.Tokens.Output * agents}
	cost, _ := l.priceCall(l.owner.Model, u)
	return loop.Amount{Tokens: u.ChargedTokens(), Output: u.Output, MicroUSD: cost}
}

// checkModelPriced refuses a model without a price if money has a cap. A model that
// is not known yet is checked when it is first called, unless nothing will ever
// report which model it is.
func (l *Ledger) checkModelPriced(standings []loop.Standing) error {
	if _, known := l.priceCall(l.owner.Model, loop.Usage{Input: 1}); known || l.owner.Model == "" && !l.owner.ModelsUnknown {
		return nil
	}
	for _, s := range standings {
		if s.Budget.Cap.MicroUSD > 0 {
			return &unpricedError{l.owner.Model, scopeInWords(s.Budget.Scope, l.owner.Loop)}
		}
	}
	return nil
}

// widerReservation returns the reservation, raised to need in each field that has
// a cap.
func (l *Ledger) widerReservation(need loop.Amount) loop.Amount {
	want := l.reserved
	if want.Tokens > 0 {
		want.Tokens = max(want.Tokens, need.Tokens)
	}
	if want.MicroUSD > 0 {
		want.MicroUSD = max(want.MicroUSD, need.MicroUSD)
	}
	if want.Output > 0 {
		want.Output = max(want.Output, lowerCap(need.Output, l.owner.Definition.BudgetTokens))
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
