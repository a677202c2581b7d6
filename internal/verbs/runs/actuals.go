package runs

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// Actuals is what the runs of a loop have used, schema pawl.actuals/v1.
type Actuals struct {
	Schema   string   `json:"schema"`
	Loop     string   `json:"loop"`
	Protocol string   `json:"protocol"`
	Runs     []Actual `json:"runs"` // oldest first
}

// Actual is what one run has used.
type Actual struct {
	N       int64            `json:"n"`
	Started *time.Time       `json:"started"` // null: nobody ever took it up
	Tokens  int64            `json:"tokens"`  // charged: input, cache writes and output
	Output  int64            `json:"output"`  // what budget_tokens caps
	Source  loop.UsageSource `json:"source"`  // empty: no agent took a turn
	Outcome loop.Outcome     `json:"outcome"`
}

// TokensUsed lists the tokens of the newest runs of a spine loop that used any, oldest
// first.
func (s *Service) TokensUsed(ctx context.Context, name string) (totals []int64, err error) {
	const most = 200 // runs
	past, err := s.Actuals(ctx, loop.ProtocolSpine+":"+name, most)
	if err != nil {
		return nil, err
	}
	for _, run := range past.Runs {
		if run.Tokens > 0 {
			totals = append(totals, run.Tokens)
		}
	}
	return totals, nil
}

// Actuals lists what the newest runs of a loop have used, at most limit of
// those that have ended, quiet ones included. A loop that has none is a fault
// that is loop.ErrNotFound.
func (s *Service) Actuals(ctx context.Context, name string, limit int) (Actuals, error) {
	e, err := s.ws.Loops.Resolve(ctx, name)
	if err != nil {
		return Actuals{}, err
	}
	a := Actuals{Schema: "pawl.actuals/v1", Loop: e.Name, Protocol: e.Protocol, Runs: []Actual{}}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		runs, err := r.Ended(ctx, e.LoopID(), max(0, limit))
		for _, run := range slices.Backward(runs) {
			a.Runs = append(a.Runs, Actual{
				N: run.N, Started: shape.Time(run.Started), Tokens: run.Usage.ChargedTokens(), Output: run.Usage.Output,
				Source: run.Usage.Source, Outcome: run.Outcome,
			})
		}
		return err
	})
	switch {
	case err != nil && !lookup.Absent(err):
		return a, err
	case len(a.Runs) == 0:
		return a, &loop.Fault{
			Exit: loop.ExitNotFound, What: "no run of loop " + name + " has ended yet", Err: loop.ErrNotFound,
			Fix: "start one: {1}", Actions: []loop.Command{loop.PawlCommand("run", name)},
		}
	}
	return a, nil
}
