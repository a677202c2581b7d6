package model

import (
	"context"

	"github.com/pawl-run/pawl/internal/loop"
)

// Told is the use of a model that comes by no endpoint: somebody else says what it
// is. It may be used by several goroutines, and is to be ended once.
type Told struct{ charge *charge }

// Tell begins such a use. The name of the model may be empty; then it has no price.
func (a *Account) Tell(model string) *Told {
	defer a.lock()()
	return &Told{a.add(asking{model: model}, loop.Amount{}, 0)}
}

// Used says what was used so far, in all. It reports false once a cap is passed,
// and then the account is exhausted. It may block while more is asked for, which is
// an eighth more than what is needed: otherwise each word would ask again.
func (t *Told) Used(ctx context.Context, u loop.Usage) bool {
	c, a := t.charge, t.charge.account
	if a.Cause() != nil {
		return false
	}
	if _, what := c.note(c.asked, u); what == "" {
		return true
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	need, what := c.note(c.asked, u)
	if what == "" {
		return true
	}
	why := a.widen(ctx, need.Add(loop.Amount{Tokens: need.Tokens / 8, Output: need.Output / 8, MicroUSD: need.MicroUSD / 8}))
	defer a.lock()()
	if what = short(a.grant, a.committed()); what == "" {
		return true
	}
	_ = a.exhaust(what, loop.Amount{}, why)
	return false
}

// End books what was used in the end, in place of what was said before.
func (t *Told) End(models []loop.ModelUsage) {
	a := t.charge.account
	defer a.lock()()
	if !t.charge.end() {
		return
	}
	a.calls++
	for _, m := range models {
		addTo(a.settled, a.priced(m.Model, t.charge.asked, m.Usage))
	}
}
