package loops

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// Firing is one time at which a loop will fire.
type Firing struct {
	Planned time.Time `json:"planned"`        // what the cadence says, in the loop's zone
	Due     time.Time `json:"due"`            // when it starts: later by the jitter
	Note    string    `json:"note,omitempty"` // what is odd about the clock then
}

// Plan is when a loop fires, and what became of its times until now, schema pawl.plan/v1.
type Plan struct {
	Schema   string       `json:"schema"`
	Loop     string       `json:"loop"`
	Protocol string       `json:"protocol"`
	Cadence  string       `json:"cadence,omitempty"` // empty: it never fires by time
	On       []string     `json:"on,omitempty"`      // events that fire it
	Timezone string       `json:"timezone"`
	CatchUp  loop.CatchUp `json:"catch_up"`
	Paused   string       `json:"paused,omitempty"`  // the kill switch that stops it
	Problem  string       `json:"problem,omitempty"` // why it does not fire
	Next     []Firing     `json:"next"`
	Ticks    []loop.Tick  `json:"ticks"` // newest first; only of one loop

	Events []loop.FiringEvent `json:"events,omitempty"` // newest first, with what became of them; only of one loop
}

// Plans says when each loop of the workspace fires next, those first that do so soonest,
// and those last that have a problem. Loops that do not fire by time are left out.
func (s *Service) Plans(ctx context.Context) ([]Plan, error) {
	list, err := s.ws.AllLoops(ctx)
	if err != nil {
		return nil, err
	}
	var plans []Plan
	for _, l := range list {
		p, err := s.planOf(l, 1)
		if err != nil {
			return nil, err
		}
		if len(p.Next) > 0 || p.Problem != "" {
			plans = append(plans, p)
		}
	}
	slices.SortStableFunc(plans, func(a, b Plan) int {
		if len(a.Next) == 0 || len(b.Next) == 0 {
			return cmp.Compare(len(b.Next), len(a.Next))
		}
		return a.Next[0].Due.Compare(b.Next[0].Due)
	})
	return plans, nil
}

// Next says when a loop fires next, so many times, and what became of as many times
// before.
func (s *Service) Next(ctx context.Context, name string, n int) (Plan, error) {
	l, err := s.ws.Loop(ctx, name)
	if err != nil {
		return Plan{}, err
	}
	p, err := s.planOf(l, n)
	if err != nil {
		return p, err
	}
	err = s.ws.View(ctx, func(r *store.Reader) error {
		ticks, err := r.Ticks(ctx, l.LoopID(), time.Time{}, n)
		p.Ticks = append(p.Ticks, ticks...)
		if err == nil {
			p.Events, err = r.LoopEvents(ctx, l.LoopID(), n)
		}
		return err
	})
	if lookup.Absent(err) {
		err = nil
	}
	return p, err
}

func (s *Service) planOf(l lookup.Loop, n int) (Plan, error) {
	d := l.Usable()
	p := Plan{
		Schema: "pawl.plan/v1", Loop: l.Name, Protocol: l.Protocol, Cadence: d.Cadence, On: d.On, Timezone: "UTC", CatchUp: loop.CatchUpOne,
		Paused: s.ws.PausedBy(l).String(), Next: []Firing{}, Ticks: []loop.Tick{},
	}
	if l.Problem != nil {
		p.Problem, _, _ = strings.Cut(l.Problem.Error(), "\n")
	}
	if p.Problem != "" || d.Cadence == "" {
		return p, nil
	}
	if d.Timezone != "" {
		p.Timezone = d.Timezone
	}
	if d.CatchUp != "" {
		p.CatchUp = d.CatchUp
	}
	zone, err := schedule.Zone(d.Timezone)
	if err != nil {
		return p, err
	}
	anchor, now := l.Row.Created, s.ws.Now()
	if anchor.IsZero() { // It is registered by the next command that writes.
		anchor = now
	}
	reg := l.Row.Registered
	f, before := schedule.Firing{Planned: reg.Planned, Due: reg.Due}, now
	if reg.Due.IsZero() || reg.Broken != "" {
		if f, err = schedule.Next(d, anchor, now); err != nil {
			return p, err
		}
	}
	for ; len(p.Next) < n && !f.Planned.IsZero(); f, err = schedule.Next(d, anchor, f.Planned) {
		if err != nil {
			return p, err
		}
		note, err := f.Note(d, before)
		if err != nil {
			return p, err
		}
		p.Next = append(p.Next, Firing{Planned: f.Planned.In(zone), Due: f.Due.In(zone), Note: note})
		before = f.Planned
	}
	return p, err
}
