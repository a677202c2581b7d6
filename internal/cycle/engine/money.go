package engine

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// spending is what the run may use, and what it has used.
type spending struct {
	*heldRun
	login   *login
	prices  price.Table    // of a run that starts; one that died has been counted
	opened  *budget.Ledger // nil: nobody asked for it
	turns   int
	blind   bool // nobody counted the tokens of one of its turns
	unseen  bool // a process died before the end of a turn was recorded
	counted int  // the last iteration of a dead run that has a saved turn
}

// ledger is what the run may spend. It is made when it is first asked for, which is
// after it is known who acts.
func (s *spending) ledger() *budget.Ledger {
	if s.opened == nil {
		s.opened = budget.New(budget.Owner{
			Store: s.Store, Now: s.Now, Prices: func() (price.Table, error) { return s.prices, nil }, Run: s.id, Definition: s.def, Loop: s.target.Loop.Name, Workspace: s.target.Workspace.ID,
			MostTokens: s.tokensLeft(), Borrowed: s.firing.borrowed, Agent: cmp.Or(s.run.Agent, s.maker.Handle), Model: s.maker.UsedModel(s.login.signed.Provider), ModelsUnknown: s.login.unsigned == nil && s.login.signed.Auth == "", Phase: s.said.Phase,
		})
	}
	return s.opened
}

// tokensLeft is how many tokens the run may use of what its step may use in its whole
// life; 0: no cap.
func (s *spending) tokensLeft() int64 {
	if s.def.Life == nil {
		return 0
	}
	left := s.def.Life.Tokens
	for _, step := range s.steps {
		left -= step.Tokens
	}
	return max(1, left) // A step that has used up its tokens is not chosen.
}

// callWhenClosed calls do once c is closed, until the function is called that it returns.
func callWhenClosed(c <-chan struct{}, do func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-c:
			do()
		case <-done:
			select { // Both may be ready: a program that is refused a call may be gone at once.
			case <-c:
				do()
			default:
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// rules are those of the definition, within what was reserved.
func (s *spending) rules() plan.Rules {
	r := plan.DefinitionRules(s.def)
	if n := s.ledger().Reserved().Iterations; n > 0 {
		r.MaxIterations = min(r.MaxIterations, int(n))
	}
	if n := s.ledger().Reserved().Items; n > 0 {
		r.MaxItems = min(r.MaxItems, int(n))
	}
	return r
}

// book adds a turn to what the run has used. Nothing else sums the tokens and the
// cost of a run.
func (s *spending) book(t loop.Turn) {
	s.turns++
	s.run.Usage, s.run.Cost = s.run.Usage.Add(t.Usage), s.run.Cost.Add(t.Cost)
}

// turnTime is the wall-clock cap of a turn that may take no longer than a limit.
func (s *spending) turnTime(limit time.Duration) time.Duration {
	if left, bound := s.wallLeft(); bound {
		limit = min(limit, max(time.Second, left))
	} else {
		limit = s.timeWithin(limit)
	}
	if wall := s.ledger().Reserved().Wall; wall > 0 {
		limit = min(limit, max(time.Second, wall-s.run.Spent.Agent))
	}
	return limit
}

// wallLeft is the time that is left of the life of the step being worked on. It reports false
// if the step has no such bound.
func (s *spending) wallLeft() (left time.Duration, bound bool) {
	if s.def.Life == nil || len(s.its) == 0 {
		return 0, false
	}
	begun := s.stepOf(s.current()).Begun
	return begun.Add(s.def.Life.Wall).Sub(s.Now()), !begun.IsZero()
}

// used is what the run has used of everything.
func (s *spending) used() loop.Amount {
	return loop.Amount{
		Tokens: s.run.Usage.ChargedTokens(), Output: s.run.Usage.Output, MicroUSD: s.run.Cost.MicroUSD, Wall: s.run.Spent.Agent,
		Iterations: int64(s.worked), Items: int64(s.items),
	}
}

// settle is the part of a run's end that gives back what it did not use.
func (s *spending) settle() write {
	spent := budget.Spent{Used: s.used(), Taken: s.taken, Died: s.taken && s.unseen, Uncounted: s.blind, Priced: len(s.run.Cost.Unpriced) == 0}
	return func(ctx context.Context, rt *store.RunTx) error { return s.ledger().Settle(ctx, rt, spent) }
}

// sayDrift says so when the run used far more than those of its loop before it.
func (s *spending) sayDrift(ctx context.Context) {
	if s.turns == 0 {
		return
	}
	var past []loop.Amount
	err := s.Store.View(ctx, func(r *store.Reader) (err error) {
		past, err = r.History(ctx, s.run.LoopID, plan.MaxHistory)
		return err
	})
	if err != nil {
		s.Log.WarnContext(ctx, "past of the loop is not known", slog.String("run", s.run.ID), slog.String("error", err.Error()))
		return
	}
	if alarm, words := plan.DetectDrift(past, s.used()); alarm {
		s.said.Note("drift: %s", words)
	}
}
