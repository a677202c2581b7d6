package engine

import (
	"context"
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// counter knows what the turn under way has used. An endpoint counts by itself.
// Without one the numbers come from the driver, and are booked on the run's account,
// so that its caps hold there too.
type counter struct {
	turnEnv  *turn.Env
	model    string
	reported *spend.Reported // nil: an endpoint counts

	mu   sync.Mutex
	last loop.Usage // that the driver has told
}

// newCounter makes the counter of a turn.
func (a *agentSide) newCounter(turnEnv *turn.Env) *counter {
	n := &counter{turnEnv: turnEnv, model: a.login.actor.Model}
	if !turnEnv.Metered() {
		n.reported = a.money.ledger().Account().OpenReported(n.model)
	}
	return n
}

// used is what a driver calls with what was used so far.
func (n *counter) used(ctx context.Context) func(loop.Usage) bool {
	if n.reported == nil {
		return nil
	}
	return func(u loop.Usage) bool {
		n.mu.Lock()
		n.last = u
		n.mu.Unlock()
		return n.reported.Progress(ctx, u)
	}
}

func (n *counter) soFar() (loop.Usage, []loop.ModelUsage) {
	if n.reported == nil {
		return n.turnEnv.MeteredUsage()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.model == "" {
		return n.last, nil
	}
	return n.last, []loop.ModelUsage{{Model: n.model, Usage: n.last}}
}

// end books what a turn came to in the end.
func (n *counter) end(res agent.Result) {
	if n.reported == nil {
		return
	}
	if res.Usage.Zero() {
		res.Usage, res.Models = n.soFar()
	}
	if len(res.Models) == 0 {
		res.Models = []loop.ModelUsage{{Usage: res.Usage}}
	}
	n.reported.Finish(res.Models)
}
