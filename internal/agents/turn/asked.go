package turn

import (
	"context"
	"sync"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// PermissionAsks answers what an agent asks permission for in one turn, and keeps
// the calls that only a person may allow. It is safe for concurrent use.
type PermissionAsks struct {
	Guard policy.Guard
	mu    sync.Mutex
	asks  []agent.Ask
}

// Judge returns the guard's answer.
func (a *PermissionAsks) Judge(_ context.Context, call policy.Call) policy.Answer {
	answer := a.Guard.Judge(call)
	if answer.Ask {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.asks) == 0 { // A turn asks once: the answer starts a new run.
			a.asks = append(a.asks, agent.Ask{Argv: a.Guard.Argv(call), Why: answer.Words})
		}
	}
	return answer
}

// List returns what to ask a person: at most one call.
func (a *PermissionAsks) List() []agent.Ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asks
}
