package engine

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/store"
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
		if e.Source == loop.OnRest {
			continue
		}
		s.news = true
		s.Observations = append(s.Observations, Observation{Source: "event " + e.Source, Text: s.said.Hide(e.Payload)})
	}
	return nil
}

// wakeAfterRest makes the loop come again when the time is over for which it may not act.
// Events that the run could not act on wait until then.
func (c *cycle) wakeAfterRest() {
	h := c.agent.hold
	if h == nil || h.Until.IsZero() || h.Reason.IsSeat() || !plan.HoldActive(*h, c.Now()) || c.target.Loop.Registered.Good == "" {
		return
	}
	until, why := h.Until, string(h.Reason)
	event := loop.FiringEvent{LoopID: c.run.LoopID, ID: fmt.Sprintf("rest@%d", until.UnixMilli()), Source: loop.OnRest, NotBefore: until}
	unused := c.run.Event != "" && len(c.its) == 0
	c.stage(func(ctx context.Context, rt *store.RunTx) error {
		if unused {
			if err := rt.ReturnEvents(ctx, until, why); err != nil {
				return err
			}
		}
		_, err := rt.AddEvent(ctx, event, nil)
		return err
	})
}
