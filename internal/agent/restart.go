package agent

import (
	"context"

	"github.com/pawl-run/pawl/internal/policy"
)

// Attempt takes one turn; judge answers the program's questions. It reports
// whether the conversation that the turn was to continue no longer exists.
type Attempt func(ctx context.Context, r Request, judge func(policy.Call) policy.Answer) (res Result, lost bool, err error)

// TurnOrRestart takes a turn. If the conversation to continue is lost, it takes
// the turn once more without one, in the time that is left.
func TurnOrRestart(ctx context.Context, r Request, attempt Attempt) (Result, error) {
	res, lost, err := r.try(ctx, attempt)
	if err != nil || !lost {
		return res, err
	}
	r.Session = nil
	if r.Timeout > 0 {
		r.Timeout = max(r.Timeout-res.Took, 1)
	}
	again, _, err := r.try(ctx, attempt)
	again.Took += res.Took
	return again, err
}

// try takes one attempt, whose questions end with its time.
func (r Request) try(ctx context.Context, attempt Attempt) (Result, bool, error) {
	asked, cancel := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 {
		asked, cancel = context.WithTimeout(ctx, r.Timeout)
	}
	defer cancel()
	return attempt(ctx, r, func(c policy.Call) policy.Answer { return r.Judge(asked, c) })
}
