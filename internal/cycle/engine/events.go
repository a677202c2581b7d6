package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// senseEvents adds what is known of the events that the run was fired for, or has taken in
// since. They are not a part of what a step's result depends on: the next run that comes
// by the clock must not find that its inputs have changed because there was one.
func (s *sensing) senseEvents(ctx context.Context) error {
	if s.firing.Event == "" {
		return nil
	}
	var list []loop.FiringEvent
	err := s.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.RunEvents(ctx, s.run.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the events of the run: %w", err)
	}
	for _, e := range list {
		if e.Source == loop.OnRest || e.Source == loop.OnBudget {
			continue
		}
		s.news = true
		s.Observations = append(s.Observations, Observation{Source: "event " + e.Source, Text: s.said.Hide(e.Payload)})
	}
	return nil
}

// For how long the events of a run wait that could not act on them, if nobody knows when a
// run can.
const (
	busyWait = 5 * time.Minute // other runs have the agent, or what it acts with, or a vendor does not answer
	restWait = 24 * time.Hour  // until a person does something, who can also end the wait
)

// wakeLater makes the loop come again when the time is over for which it may not act or
// nothing pays for it. Events that the run could not act on wait until then, or until a
// person has answered what keeps the loop from acting.
func (c *cycle) wakeLater() {
	if c.target.Loop.Registered.Good == "" {
		return
	}
	until, source, why := c.findWakeTime()
	if !until.IsZero() {
		event := WakingEvent(c.run.LoopID, source, until)
		c.stage(func(ctx context.Context, rt *store.RunTx) error {
			_, err := rt.AddEvent(ctx, event, nil)
			return err
		})
	}
	// A turn that ended for want of an account, a vendor or a budget leaves its step open.
	worked := func(it loop.Iteration) bool { return !it.Reason.IsExternal() }
	if c.run.Event == "" || slices.ContainsFunc(c.its, worked) {
		return
	}
	switch h := c.agent.hold; {
	case c.run.Outcome == loop.OutcomeWaiting, c.run.Outcome == loop.OutcomeQuiet && c.awaits:
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.ReturnUntilAnswer(ctx) })
		return
	case !until.IsZero():
	case c.run.Outcome == loop.OutcomeBudget, c.run.Reason == loop.ReasonPriceUnknown:
		until, why = c.Now().Add(restWait), loop.OnBudget
	case c.run.Outcome == loop.OutcomeQuiet || h == nil && len(c.its) == 0:
		return
	case h == nil || h.Reason.IsSeat():
		until, why = c.Now().Add(busyWait), string(c.run.Reason)
	default:
		until, why = c.Now().Add(restWait), string(h.Reason)
	}
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.ReturnEvents(ctx, until, why) })
}

// WakingEvent is the event that fires a loop at a time. Several runs of the loop that wait
// for the same time record it once.
func WakingEvent(loopID, source string, at time.Time) loop.FiringEvent {
	return loop.FiringEvent{LoopID: loopID, ID: fmt.Sprintf("%s@%d", source, at.UnixMilli()), Source: source, NotBefore: at}
}

// findWakeTime returns when the loop may act again; zero if nothing keeps it from acting,
// or nobody knows how long.
func (c *cycle) findWakeTime() (at time.Time, source, why string) {
	if c.run.Outcome == loop.OutcomeBudget && c.run.Reason == loop.ReasonBudget && c.money.opened != nil {
		return c.money.opened.OpensAgain(), loop.OnBudget, string(loop.ReasonBudget)
	}
	h := c.agent.hold
	if h == nil || h.Until.IsZero() || h.Reason.IsSeat() || !plan.HoldActive(*h, c.Now()) {
		return time.Time{}, "", ""
	}
	return h.Until, loop.OnRest, string(h.Reason)
}
