package spend

import (
	"context"

	"github.com/pawl-run/pawl/internal/loop"
)

// Reported is the use of models that no endpoint counts: a driver reports it. Any
// number of goroutines may use one. Finish must be called once.
type Reported struct{ charge *Charge }

// OpenReported begins such a use. Without a name the model has no price.
func (a *Account) OpenReported(model string) *Reported {
	defer a.lock()()
	return &Reported{a.addCharge(model, loop.Amount{}, 0)}
}

// Progress says what was used so far, in all. It returns false once a cap is
// passed: then the account is exhausted. It may block while more is asked for.
func (r *Reported) Progress(ctx context.Context, u loop.Usage) bool {
	c := r.charge
	if c.account.Cause() != nil {
		return false
	}
	// An eighth more than is needed is asked for, or each word would ask again.
	return c.updateUsage(ctx, c.asked, u, func(need loop.Amount) loop.Amount {
		return need.Add(loop.Amount{Tokens: need.Tokens / 8, Output: need.Output / 8, MicroUSD: need.MicroUSD / 8})
	})
}

// Finish books what was used in the end, in place of what Progress was told.
func (r *Reported) Finish(models []loop.ModelUsage) { r.charge.settleModels(models...) }
