package budget

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
)

// capsOfRun returns what caps this run alone, whatever is left of a day or a month.
func (l *Ledger) capsOfRun(standings []loop.Standing) loop.Amount {
	budgets := []loop.Budget{}
	for _, s := range standings {
		budgets = append(budgets, s.Budget)
	}
	most, own := plan.RunCaps(budgets), l.owner
	return loop.Amount{
		Tokens:   lowerCap(lowerCap(most.Tokens, own.MostTokens), own.Borrowed.Tokens),
		Output:   lowerCap(lowerCap(most.Output, own.Definition.BudgetTokens), own.Borrowed.Output),
		MicroUSD: lowerCap(most.MicroUSD, own.Borrowed.MicroUSD),
	}
}

// Lend sets half of what this run alone may still spend aside for a run inside of it. A
// field of the result without a cap is zero. Settle, called once, says what that run has
// used: the rest is this run's again. The days and months of both runs are reserved apart.
//
// It must not be called before Open. The error is a *loop.Fault if nothing is left.
func (l *Ledger) Lend() (most loop.Amount, settle func(used loop.Amount), err error) {
	err = l.give(func(left loop.Amount) (loop.Amount, error) {
		p := left.Parts()
		for i, caps := 0, l.single.Parts(); i < len(p); i++ {
			if caps[i] > 0 && p[i] < 2 {
				return most, l.nothingLeft(loop.Dimensions[i], p[i])
			}
			p[i] /= 2
		}
		most = p.Amount()
		return most, nil
	})
	settle = func(used loop.Amount) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.given = l.given.Sub(most).Add(used)
	}
	return most, settle, err
}

// Give takes tokens from what this run alone may spend, for good: they were given to a
// child. The error is a *loop.Fault if they are not left.
func (l *Ledger) Give(tokens int64) error {
	return l.give(func(left loop.Amount) (loop.Amount, error) {
		if l.single.Tokens > 0 && left.Tokens <= tokens { // One stays: a cap of nothing is none.
			return loop.Amount{}, l.nothingLeft(loop.Dimensions[0], left.Tokens)
		}
		return loop.Amount{Tokens: tokens}, nil
	})
}

// TakeBack undoes Give.
func (l *Ledger) TakeBack(tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = l.given.Sub(loop.Amount{Tokens: tokens})
}

// give gives away what choose takes of what is left of the caps of this run.
func (l *Ledger) give(choose func(left loop.Amount) (loop.Amount, error)) error {
	return l.account.Regrant(func(committed loop.Amount) (loop.Amount, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		took, err := choose(l.single.Sub(l.given).Sub(committed))
		if err != nil {
			return loop.Amount{}, err
		}
		l.given = l.given.Add(took)
		return l.grantedBeside(l.given), nil
	})
}

func (l *Ledger) nothingLeft(what string, left int64) error {
	return &loop.Fault{
		Exit: loop.ExitBudget, What: "the budget of this run has nothing left for another loop", Why: fmt.Sprintf("%d of its %s are left", left, what),
		Fix: "end your turn: the work of this run goes on with what is left",
	}
}
