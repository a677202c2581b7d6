package agent

import (
	"context"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// Attempt takes one turn; judge answers the program's questions. It reports
// whether the conversation to continue no longer exists.
type Attempt func(ctx context.Context, r Request, judge func(policy.Call) policy.Answer) (res Result, lost bool, err error)

// TurnOrRestart takes a turn. If the conversation to continue is lost, it takes
// the turn again without one, in the remaining time.
func TurnOrRestart(ctx context.Context, r Request, attempt Attempt) (Result, error) {
	res, lost, err := r.runAttempt(ctx, attempt)
	if err != nil || !lost {
		return res, err
	}
	r.Session = nil
	if r.Timeout > 0 {
		r.Timeout = max(r.Timeout-res.Took, 1)
	}
	again, _, err := r.runAttempt(ctx, attempt)
	again.Took += res.Took
	return again, err
}

// runAttempt makes one attempt. The context of its questions ends with its time.
func (r Request) runAttempt(ctx context.Context, attempt Attempt) (Result, bool, error) {
	asked, cancel := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 {
		asked, cancel = context.WithTimeout(ctx, r.Timeout)
	}
	defer cancel()
	return attempt(ctx, r, func(c policy.Call) policy.Answer { return r.Judge(asked, c) })
}
