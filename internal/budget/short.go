package budget

import (
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
)

// shortError means that a budget does not fund what a run needs.
type shortError struct {
	loop.Shortage
	loop string // name
}

func (e *shortError) Error() string {
	return plan.Explain(e.Shortage, scopeInWords(e.Budget.Scope, e.loop))
}

// unpricedError means that money has a cap, and nobody knows what the run's
// model costs. The model is empty where not even that is known.
type unpricedError struct{ model, whose string }

func (e *unpricedError) Error() string {
	if e.model == "" {
		return fmt.Sprintf("the budget of %s has a cap in money and nobody knows which model the agent asks; name one that has a price (`model:`), or cap tokens instead", e.whose)
	}
	return fmt.Sprintf("the budget of %s has a cap in money and the model %q has no price; add one, name another model (`model:`), or cap tokens instead", e.whose, e.model)
}

// IsShort reports whether err says that a budget does not have what the run was to
// reserve.
func IsShort(err error) bool {
	_, short := errors.AsType[*shortError](err)
	return short
}

// IsUnpaid reports whether err says that no budget pays for the run.
func IsUnpaid(err error) bool {
	_, unpayable := errors.AsType[*unpricedError](err)
	return unpayable || IsShort(err)
}

// scopeInWords is a scope in words; those of loops are of the loop with that name.
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
