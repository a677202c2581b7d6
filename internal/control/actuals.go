package control

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
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

// Actuals lists what the newest runs of a loop have used, at most limit of
// those that have ended, quiet ones included. A loop that has none is a fault
// that is loop.ErrNotFound.
func (s *Service) Actuals(ctx context.Context, name string, limit int) (Actuals, error) {
	e, err := s.loops.Resolve(ctx, name)
	if err != nil {
		return Actuals{}, err
	}
	a := Actuals{Schema: "pawl.actuals/v1", Loop: e.Name, Protocol: e.Protocol, Runs: []Actual{}}
	err = s.view(ctx, func(r *store.Reader) error {
		runs, err := r.Ended(ctx, e.LoopID(), max(0, limit))
		for _, run := range slices.Backward(runs) {
			a.Runs = append(a.Runs, Actual{
				N: run.N, Started: timeOrNil(run.Started), Tokens: run.Usage.Charged(), Output: run.Usage.Output,
				Source: run.Usage.Source, Outcome: run.Outcome,
			})
		}
		return err
	})
	switch {
	case err != nil && !absent(err):
		return a, err
	case len(a.Runs) == 0:
		return a, &loop.Fault{
			Exit: loop.ExitNotFound, What: "no run of loop " + name + " has ended yet", Err: loop.ErrNotFound,
			Fix: "start one: {1}", Actions: []loop.Command{loop.Pawl("run", name)},
		}
	}
	return a, nil
}

// States of the store.
const (
	StoreNone        = "none_yet" // the first command that writes makes it
	StoreReady       = "ready"
	StoreUnreachable = "unreachable"
)

// StoreInfo is which database holds the rows, schema pawl.store/v1.
type StoreInfo struct {
	Schema   string `json:"schema"`
	State    string `json:"state"` // none_yet, ready, unreachable
	Driver   string `json:"driver,omitempty"`
	Location string `json:"location,omitempty"` // path, or URL without its password
	Version  int64  `json:"version"`            // of the tables; 0: not known, or there are none
	Problem  string `json:"problem,omitempty"`  // why it is unreachable
}

// storeWait is how long StoreInfo waits for the database.
const storeWait = 5 * time.Second

// StoreInfo asks the database what it is. One that does not answer within five
// seconds, like one that does not exist yet, is a state and no error.
func (s *Service) StoreInfo(ctx context.Context) (StoreInfo, error) {
	v := StoreInfo{Schema: "pawl.store/v1", State: StoreNone}
	if s.Store == nil {
		return v, nil
	}
	bounded, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	i, err := s.Store.Info(bounded)
	if err != nil && ctx.Err() != nil {
		return v, context.Cause(ctx)
	}
	v.State, v.Driver, v.Location, v.Version = StoreReady, i.Driver, i.Location, i.Version
	if err != nil {
		v.State, v.Problem = StoreUnreachable, err.Error()
	}
	return v, nil
}
