package spend

import (
	"context"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Reported is usage that no endpoint counts and a driver reports. It is safe for
// concurrent use. Finish must be called once.
type Reported struct{ charge *Charge }

// OpenReported begins such usage. Without a name the model has no price.
func (a *Account) OpenReported(model string) *Reported {
	defer a.lock()()
	return &Reported{a.addCharge(model)}
}

// Progress reports the usage so far, in total. It returns false once a cap is
// exceeded: then the account is exhausted. It may block while more is asked for.
func (r *Reported) Progress(ctx context.Context, u loop.Usage) bool {
	c := r.charge
	if c.account.Cause() != nil {
		return false
	}
	// Ask for an eighth more than is needed, so that not every piece asks again.
	return c.updateUsage(ctx, c.asked, u, func(need loop.Amount) loop.Amount {
		return need.Add(loop.Amount{Tokens: need.Tokens / 8, Output: need.Output / 8, MicroUSD: need.MicroUSD / 8})
	})
}

// Finish books the final usage, in place of what Progress reported.
func (r *Reported) Finish(models []loop.ModelUsage) { r.charge.settleModels(models...) }
