// Package boardsim lets agents of boards work in memory: each heartbeat is one of the real
// session of protocol/heartbeat on copies of the rows, at the times of a simulation, and what
// is made of its changes is what the engine makes of them. What an attempt at a task comes to
// is drawn.
//
// It starts no process, and writes neither files nor rows.
package boardsim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Start is what there is when a simulation begins.
type Start struct {
	Rows     []loop.Row
	Messages []loop.Delivery // that wait, or are about tasks
	Taken    map[string]bool // keys of those that wait no more
}

// world is the store of a simulation.
type world struct {
	now      time.Time
	rows     map[[2]string]loop.Row // by set and key
	post     sim.Post
	live     map[string]bool // ids of runs
	steps    map[string]map[string]loop.Step
	proposed map[string]time.Time // by id of the step: when a person lets it land
}

func newWorld(now time.Time, from Start) *world {
	w := &world{now: now, rows: map[[2]string]loop.Row{}, live: map[string]bool{}, steps: map[string]map[string]loop.Step{}, proposed: map[string]time.Time{}}
	for _, r := range from.Rows {
		w.rows[[2]string{r.Set, r.Key}] = r
	}
	for _, d := range from.Messages {
		w.post.Messages = append(w.post.Messages, sim.Message{Delivery: d, Taken: from.Taken[d.Key]})
	}
	return w
}

// List implements engine.Rows.
func (w *world) List(_ context.Context, q loop.RowQuery) (list []loop.Row, err error) {
	for _, r := range w.rows {
		if r.Set != q.Set || q.Keys != nil && !slices.Contains(q.Keys, r.Key) || q.Scope != "" && r.Scope != q.Scope ||
			len(q.States) > 0 && !slices.Contains(q.States, r.State) || q.Owner != "" && r.Owner != q.Owner {
			continue
		}
		if !w.live[r.RunID] {
			r.RunID = ""
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b loop.Row) int {
		c := cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.Key, b.Key))
		if q.Newest {
			return -c
		}
		return c
	})
	return list[:min(len(list), cmp.Or(q.Limit, 1000))], nil
}

// write does what the store does with a change of a row. It reports false if somebody else was
// first.
func (w *world) write(r loop.Row, run string) (bool, error) {
	at := [2]string{r.Set, r.Key}
	stored, there := w.rows[at]
	switch {
	case r.Holds && (!there || stored.RunID != run), !r.Holds && stored.Version != r.Version:
		return false, nil
	case r.Holds:
		body, err := loop.MergeFields(stored.Body, r.Body)
		if err != nil {
			return false, err
		}
		r.Body = body
	case len(r.Body) == 0:
		delete(w.rows, at)
		return true, nil
	}
	r.Version, r.Made, r.Moved, r.RunID = stored.Version+1, stored.Made, w.now, ""
	if !there {
		r.Made = w.now
	}
	if r.Hold {
		r.RunID = run
	}
	r.Hold, r.Holds = false, false
	w.rows[at] = r
	return true, nil
}

// apply does what the engine does with the changes of a session. In a claim all of it is
// written, or nothing; then it reports false.
func (w *world) apply(agent string, run loop.Run, changes []loop.Change, claim bool) (bool, error) {
	if err := loop.CheckChanges(changes); err != nil {
		return false, err
	}
	before := maps.Clone(w.rows)
	for _, ch := range changes {
		switch ch.Kind {
		case loop.ChangeRow:
			written, err := w.write(*ch.Row, run.ID)
			if err != nil {
				return false, err
			}
			if !written && claim && ch.Row.Hold {
				w.rows = before
				return false, nil
			}
		case loop.ChangeStep:
			w.step(agent, *ch.Step)
		case loop.ChangeDeliver:
			d := *ch.Delivery
			d.From, d.Sent = agent, w.now
			w.post.Send(d)
		case loop.ChangeReceive:
			w.post.Take(*ch.Delivery)
		case loop.ChangeEdit, loop.ChangeAppend, loop.ChangeAside, loop.ChangeCommit, loop.ChangePush:
			return false, fmt.Errorf("%s changes %s", agent, ch.Kind)
		}
	}
	return true, nil
}

func (w *world) step(agent string, s loop.Step) {
	if w.steps[agent] == nil {
		w.steps[agent] = map[string]loop.Step{}
	}
	if s.State == loop.StepDropped {
		delete(w.steps[agent], s.Key)
		return
	}
	w.steps[agent][s.Key] = s
}

// view is what a session of an agent sees that begins now.
func (w *world) view(d loop.Definition, run loop.Run) engine.View {
	v := engine.View{
		Loop: loop.Loop{ID: run.LoopID, Name: d.Name, Protocol: loop.ProtocolBoard}, Definition: d, Run: run, Mail: w.post.Mailbox(d.Name), Results: results{w}, Rows: w, Now: w.now,
	}
	for _, key := range slices.Sorted(maps.Keys(w.steps[d.Name])) {
		v.Steps = append(v.Steps, w.steps[d.Name][key])
	}
	return v
}

// results implements engine.Results.
type results struct{ w *world }

// Of implements engine.Results: a proposal lands when a person looks at it.
func (m results) Of(_ context.Context, ids ...string) (map[string]engine.StepResult, error) {
	found := map[string]engine.StepResult{}
	for _, id := range ids {
		if lands, is := m.w.proposed[id]; is {
			found[id] = engine.StepResult{State: engine.ResultWaits}
			if !m.w.now.Before(lands) {
				found[id] = engine.StepResult{State: engine.ResultLanded}
			}
		}
	}
	return found, nil
}

// Refused implements engine.Results: nobody says no.
func (results) Refused(context.Context) ([]string, error) { return nil, nil }

// Hours at which a person looks at what waits, in UTC.
const (
	dayBegins = 9
	dayEnds   = 17
)

// nextLook is when a person looks at something that waits from then on.
func nextLook(from time.Time) time.Time {
	from = from.UTC()
	day := time.Date(from.Year(), from.Month(), from.Day(), dayBegins, 0, 0, 0, time.UTC)
	switch {
	case from.Before(day):
		return day
	case from.Hour() < dayEnds:
		return from
	}
	return day.AddDate(0, 0, 1)
}

func (w *world) tasks() (all []board.Task, err error) {
	for _, r := range w.rows {
		if r.Set == board.SetTasks {
			t, err := board.FromRow[board.Task](r)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}
