package budget

import (
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// shortError means that a budget does not have what a run needs.
type shortError struct {
	loop.Shortage
	loop  string // name
	above bool   // the budget is that of a loop above it
}

func (e *shortError) Error() string {
	whose := scopeInWords(e.Budget.Scope, e.loop)
	if e.above {
		whose = "a loop above " + e.loop
	}
	return plan.ExplainShortage(e.Shortage, whose)
}

// unpricedError means that money has a cap and the run's model has no known price.
// The model is empty if it is not known either.
type unpricedError struct{ model, whose string }

func (e *unpricedError) Error() string {
	if e.model == "" {
		return fmt.Sprintf("the budget of %s has a cap in money and nobody knows which model the agent asks; name one that has a price (`model:`), or cap tokens instead", e.whose)
	}
	return fmt.Sprintf("the budget of %s has a cap in money and the model %q has no price; add one, name another model (`model:`), or cap tokens instead", e.whose, e.model)
}

// IsShort reports whether err means that a budget does not have what the run wants
// to reserve.
func IsShort(err error) bool {
	_, short := errors.AsType[*shortError](err)
	return short
}

// IsUnpaid reports whether err means that no budget can pay for the run: one is
// short, or the price of its model is unknown.
func IsUnpaid(err error) bool {
	return IsUnpriced(err) || IsShort(err)
}

// IsUnpriced reports whether err means that a budget has a cap in money and the price of the
// run's model is unknown.
func IsUnpriced(err error) bool {
	_, unpriced := errors.AsType[*unpricedError](err)
	return unpriced
}

// scopeInWords names a scope for people; name is the loop's name.
func scopeInWords(s loop.BudgetScope, name string) string {
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
