package turn

import (
	"context"
	"sync"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/policy"
)

// Asked judges what an agent asks leave for in one turn, and keeps what only a
// human may allow. It may be used by several goroutines.
type Asked struct {
	Guard policy.Guard
	mu    sync.Mutex
	asks  []agent.Ask
}

// Judge answers for the guard.
func (a *Asked) Judge(_ context.Context, call policy.Call) policy.Answer {
	answer := a.Guard.Judge(call)
	if answer.Ask {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.asks) == 0 { // A turn asks once: the answer fires a run of its own.
			a.asks = append(a.asks, agent.Ask{Argv: a.Guard.Argv(call), Why: answer.Words})
		}
	}
	return answer
}

// List is what a human is to be asked: nothing, or one thing.
func (a *Asked) List() []agent.Ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asks
}
