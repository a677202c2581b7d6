package engine

import (
	"context"
	"errors"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A longer conversation is not resumed: every turn pays for all of it.
const (
	longestTurns  = 20
	longestTokens = 300_000 // input and output that its program counted
)

// readSession finds the conversation that the run resumes.
func (a *agentSide) readSession(ctx context.Context) error {
	if !a.def.Resume {
		return nil
	}
	if len(a.login.actor.Profile.Sessions) == 0 {
		a.said.Note("resume: %s cannot go on with a conversation; each turn begins anew", a.login.actor.Agent.Driver)
		return nil
	}
	if a.talk != nil {
		a.resumeSession(*a.talk)
		return nil
	}
	var s loop.Session
	err := a.Store.View(ctx, func(r *store.Reader) (err error) {
		s, err = r.Session(ctx, a.run.LoopID, a.login.actor.Handle)
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	a.resumeSession(s)
	return nil
}

// resumeSession makes a conversation that of the next turn, unless it is long.
func (a *agentSide) resumeSession(s loop.Session) {
	a.talk = nil
	var tokens int64
	for _, m := range s.Totals {
		tokens += m.ChargedTokens()
	}
	if s.Turns >= longestTurns || tokens >= longestTokens {
		a.said.Note("resume: the conversation is long (%d turns, %d tokens); a fresh one begins", s.Turns, tokens)
		return
	}
	a.talk = &s
}

// keepSession stages the conversation that a turn left, for the next one to go on
// with. One that failed because it was too long, or could not be taken up, is
// left behind.
func (a *agentSide) keepSession(t assignment, res agent.Result) {
	if !t.def.Resume || res.Ended == proc.NotStarted {
		return
	}
	handle := a.login.actor.Handle
	if f := res.Failure; res.Session == nil || f != nil && (f.Class == loop.FailureOverflow || f.Class == loop.FailureMalformed) {
		if a.talk != nil {
			a.talk = nil
			a.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.DropSession(ctx, handle) })
		}
		return
	}
	s := *res.Session
	if s.Turns = 1; a.talk != nil && a.talk.ID == s.ID {
		s.Turns = a.talk.Turns + 1
	}
	a.talk = &s
	a.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveSession(ctx, handle, s) })
}
