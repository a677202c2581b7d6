package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// guardedRun tells the guard of this process until when the programs of a run may live.
type guardedRun struct {
	guard *proc.Guard
	tag   string
	store *store.Holding

	mu   sync.Mutex
	told time.Duration // the age of the lease at the last look
	over bool          // it was released
}

// guardPrograms begins to guard the programs of the run. If they are killed, because this
// process stood still for too long, the run's context ends by cancel.
func (h *heldRun) guardPrograms(cancel context.CancelCauseFunc) *guardedRun {
	g := &guardedRun{guard: h.Guard, tag: runenv.Tag(h.id.ID), store: h.Store}
	g.guard.Hold(g.tag, func() {
		detail := fmt.Sprintf("pawl or this machine stood still for longer than its lease lasts (%s), after which another node may take the run; its programs were ended", g.store.Lease())
		cancel(&stopError{ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonStoodStill, detail: detail}})
	})
	g.extend(g.store.Age())
	return g
}

// look tells the guard whether the lease was extended since the last look. Nobody takes
// the run from a process that runs and only waits for the store.
func (g *guardedRun) look(waiting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	age := g.store.Age()
	switch {
	case waiting:
		g.extend(0)
	case age < g.told:
		g.extend(age)
	default:
		g.told = age
	}
}

func (g *guardedRun) extend(age time.Duration) {
	g.told = age
	lease := g.store.Lease()
	g.guard.Extend(g.tag, lease-age, lease/leaveBefore)
}

// overdue reports whether the lease has to be extended now, however young it seems: a
// machine that was suspended does not count that time.
func (g *guardedRun) overdue() bool { return g.guard.Overdue(g.tag) }

// release ends the guarding. The run's programs have ended.
func (g *guardedRun) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	g.guard.Release(g.tag)
}
