package budget

import (
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// capsOfRun returns what caps this run alone, whatever is left of a day, a month or a life.
func (l *Ledger) capsOfRun(standings []loop.Standing) loop.Amount {
	budgets := []loop.Budget{}
	for _, s := range standings {
		budgets = append(budgets, s.Budget)
	}
	most, own := plan.RunCaps(budgets), l.owner
	return loop.Amount{
		Tokens:   lowerCap(most.Tokens, own.Borrowed.Tokens),
		Output:   lowerCap(lowerCap(most.Output, own.Definition.BudgetTokens), own.Borrowed.Output),
		MicroUSD: lowerCap(most.MicroUSD, own.Borrowed.MicroUSD),
	}
}

// Lend sets half of what this run alone may still spend aside for a run inside of it. A
// field of the result without a cap is zero. Settle, called once, says what that run has
// used: the rest is this run's again. Days, months and lives of both are counted apart.
//
// It must not be called before Open. The error is a *loop.Fault if nothing is left.
func (l *Ledger) Lend() (most loop.Amount, settle func(used loop.Amount), err error) {
	err = l.account.Regrant(func(committed loop.Amount) (loop.Amount, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		caps, left := l.single.Parts(), l.single.Sub(l.lent).Sub(committed).Parts()
		for i, n := range left {
			if caps[i] > 0 && n < 2 {
				return loop.Amount{}, nothingLeft("run", fmt.Sprintf("%d of %d %s", n, caps[i], loop.Dimensions[i]))
			}
			left[i] = n / 2
		}
		most = left.Amount()
		l.lent = l.lent.Add(most)
		return l.grantedBeside(), nil
	})
	settle = func(used loop.Amount) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lent = l.lent.Sub(most).Add(used)
	}
	return most, settle, err
}

// LifeLeft is how many tokens of Owner.MostTokens may be given to a child: what is neither
// used nor given away, beside what this run has reserved for itself or will probably need.
// It is false if there is no such cap.
func (l *Ledger) LifeLeft() (tokens int64, capped bool) {
	committed := l.account.Committed()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lifeLeft(committed), l.owner.MostTokens > 0
}

func (l *Ledger) lifeLeft(committed loop.Amount) int64 {
	return l.owner.MostTokens - l.given - max(committed.Tokens, l.reserved.Tokens, l.usualNeed().Tokens)
}

// Give takes tokens from Owner.MostTokens, for good: they were given to a child. Undo takes
// them back if the child was not made. The error is a *loop.Fault if they are not left.
func (l *Ledger) Give(tokens int64) (undo func(), err error) {
	err = l.account.Regrant(func(committed loop.Amount) (loop.Amount, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if left := l.lifeLeft(committed); l.owner.MostTokens > 0 && left < tokens {
			return loop.Amount{}, nothingLeft("loop", fmt.Sprintf("%d of %d tokens", max(0, left), l.owner.MostTokens))
		}
		l.given += tokens
		return l.grantedBeside(), nil
	})
	undo = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.given -= tokens
	}
	return undo, err
}

func nothingLeft(whose, left string) error {
	return &loop.Fault{
		Exit: loop.ExitBudget, What: "the budget of this " + whose + " has nothing left for another loop", Why: left + " are left, beside what this run needs",
		Fix: "end your turn: the work of this run goes on with what is left",
	}
}
