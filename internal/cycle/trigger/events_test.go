package trigger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// happens records an event, as whoever notices it does.
func (r *rig) happens(loopID string, e loop.FiringEvent, join func(before, now string) string) {
	r.t.Helper()
	e.LoopID = loopID
	if e.ID == "" {
		e.ID = fmt.Sprint("ev_", r.ids.Add(1))
	}
	r.update(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.AddEvent(ctx, e, join)
		return err
	})
}

// begins claims the oldest queued run of a loop, which is live from then on.
func (r *rig) begins(id string) (run loop.Run) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		runs, err := tx.PlannedRuns(ctx, id)
		if err != nil || len(runs) == 0 {
			return err
		}
		run, _, err = tx.Claim(ctx, runs[0].ID, runs[0].Fence, loop.Holder{Host: "h", PID: 1}, loop.Holder{})
		return err
	})
	return run
}

func (r *rig) settles(run loop.Run, outcome loop.Outcome) {
	r.t.Helper()
	run.Outcome = outcome
	r.update(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
		return err
	})
}

func (r *rig) events(id string) (list []loop.FiringEvent) {
	r.t.Helper()
	r.view(func(ctx context.Context, rd *store.Reader) (err error) {
		list, err = rd.LoopEvents(ctx, id, 10000)
		return err
	})
	return list
}

// became returns what became of the events of a loop, in the order of their ids, as text.
func (r *rig) became(id string) string {
	r.t.Helper()
	list := r.events(id)
	lines := make([]string, len(list))
	for i, e := range list {
		line := fmt.Sprintf("%s %s", e.ID, e.Verdict)
		if e.Reason != "" {
			line += " " + e.Reason
		}
		if e.RunID != "" {
			r.view(func(ctx context.Context, rd *store.Reader) error {
				run, err := rd.Run(ctx, e.RunID)
				line += fmt.Sprintf(" #%d", run.N)
				return err
			})
		}
		lines[i] = line
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func TestAnEventFiresALoopOnceAndWaitsWhileItIsPausedOrAtWork(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l"}) // It has no cadence.
		want := func(when, want string) {
			t.Helper()
			if got := r.became(id); got != want {
				t.Errorf("%s the events are %q, want %q", when, got, want)
			}
		}
		r.happens(id, loop.FiringEvent{ID: "a", Source: "file:src/**", Payload: "src/a.go"}, nil)
		fired, _ := r.tick(0)
		if len(fired) != 1 {
			t.Fatalf("%v fired", fired)
		}
		run := fired[0]
		if run.Trigger != "event" || run.Event != "file:src/**" || run.Key != id+"!a" || run.By.Role != loop.RoleTrigger || !run.Planned.IsZero() {
			t.Errorf("the run is %+v", run)
		}
		if fired, next := r.tick(1); len(fired) > 0 || !next.IsZero() {
			t.Errorf("the other node fired %v once more, and looks again at %s", fired, next)
		}
		want("once it has fired", "a ran #1")
		r.happens(id, loop.FiringEvent{ID: "b", Source: "webhook:x"}, nil)
		r.tick(0)
		want("before the run has begun", "a ran #1, b coalesced #1")
		live := r.begins(id)
		r.happens(id, loop.FiringEvent{ID: "c", Source: "webhook:x"}, nil)
		r.happens(id, loop.FiringEvent{ID: "d", Source: "webhook:x"}, nil)
		if fired, next := r.tick(0); len(fired) > 0 || !next.Equal(r.now().Add(5*time.Second)) {
			t.Errorf("while a run is live %v fires, and it is looked again at %s", fired, next)
		}
		want("while a run is live", "a ran #1, b coalesced #1, c waits running, d waits running")
		r.settles(live, loop.OutcomeQuiet)
		sw := "PAUSED"
		r.sw.Store(&sw)
		r.tick(1)
		want("while it is paused", "a ran #1, b coalesced #1, c waits paused, d waits paused")
		r.sw.Store(nil)
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.SetSwitch(ctx, loop.Actor{Who: "ann"}, "ws", "drill")
			return err
		})
		if fired, _ := r.tick(0); len(fired) > 0 {
			t.Errorf("under a switch in the store %v fired", fired)
		}
		r.update(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.ClearSwitch(ctx, "ws")
			return err
		})
		if fired, _ := r.tick(1); len(fired) != 1 || fired[0].Event != "webhook:x" {
			t.Errorf("then %+v fired", fired)
		}
		want("then", "a ran #1, b coalesced #1, c ran #2, d coalesced #2")
		// A run that is stopped before it could act gives its events back.
		r.settles(r.begins(id), loop.OutcomeInterrupted)
		want("after the interruption", "a ran #1, b coalesced #1, c waits interrupted, d waits interrupted")
		if fired, _ := r.tick(0); len(fired) != 1 || fired[0].Key != id+"!c!1" {
			t.Errorf("after it %+v fired", fired)
		}
		want("at last", "a ran #1, b coalesced #1, c ran #3, d coalesced #3")
	})
}

// A delivery that comes while a proposal is open fires a run that may not do anything.
func TestAnEventThatItsRunMayNotActOnWaitsForTheAnswerOrForAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l"})
		ends := func(change func(context.Context, *store.RunTx, loop.Run) error) {
			t.Helper()
			run := r.begins(id)
			run.Outcome = loop.OutcomeQuiet
			r.update(func(ctx context.Context, tx *store.Tx) error {
				rt, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
				if err != nil {
					return err
				}
				return change(ctx, rt, run)
			})
		}
		waits := func(ctx context.Context, rt *store.RunTx, _ loop.Run) error { return rt.ReturnUntilAnswer(ctx) }
		fires := func(when string, runs int, want string) {
			t.Helper()
			if fired, _ := r.tick(0); len(fired) != runs {
				t.Errorf("%s %d runs fired, want %d", when, len(fired), runs)
			}
			if got := r.became(id); got != want {
				t.Errorf("%s the events are %q, want %q", when, got, want)
			}
		}
		r.happens(id, loop.FiringEvent{ID: "a", Source: "webhook:x"}, nil)
		r.tick(0)
		ends(func(ctx context.Context, rt *store.RunTx, run loop.Run) error {
			if err := waits(ctx, rt, run); err != nil { // Nothing has been asked.
				return err
			}
			return rt.AskApproval(ctx, loop.Approval{
				ID: "ap_1", LoopID: id, RunID: run.ID, State: loop.ApprovalOpen, Action: loop.Action{Kind: loop.ActionLand}, Created: r.now(), Expires: r.now().Add(time.Hour),
			})
		})
		r.happens(id, loop.FiringEvent{ID: "b", Source: "webhook:x"}, nil)
		fires("while it is open", 1, "a ran #1, b ran #2")
		ends(waits)
		fires("after a run that might not act", 0, "a ran #1, b waits answer")
		r.happens(id, loop.FiringEvent{ID: "c", Source: "webhook:x"}, nil)
		fires("with another event", 1, "a ran #1, b ran #3, c coalesced #3")
		ends(waits)
		fires("after that run", 0, "a ran #1, b waits answer, c waits answer")
		r.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.AnswerApproval(ctx, "ap_1", loop.Answer{By: "ann"})
		})
		fires("once it is answered", 1, "a ran #1, b ran #4, c coalesced #4")
	})
}

// What joins an event that waits for an answer is another event.
func TestAnEventThatJoinsOneThatWaitsForAnAnswerFires(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l"})
		joined := func(before, now string) string { return before + now }
		r.happens(id, loop.FiringEvent{ID: "a", Source: "file:a", Payload: "1"}, joined)
		r.tick(0)
		run := r.begins(id)
		run.Outcome = loop.OutcomeQuiet
		r.update(func(ctx context.Context, tx *store.Tx) error {
			rt, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
			if err != nil {
				return err
			}
			a := loop.Approval{ID: "ap_1", LoopID: id, RunID: run.ID, State: loop.ApprovalOpen, Action: loop.Action{Kind: loop.ActionLand}, Created: r.now(), Expires: r.now().Add(time.Hour)}
			return errors.Join(rt.AskApproval(ctx, a), rt.ReturnUntilAnswer(ctx))
		})
		if fired, _ := r.tick(0); len(fired) > 0 {
			t.Errorf("%v fired before the answer", fired)
		}
		r.happens(id, loop.FiringEvent{ID: "b", Source: "file:a", Payload: "2"}, joined)
		if fired, _ := r.tick(0); len(fired) != 1 {
			t.Errorf("%v fired for the event that joined it", fired)
		}
		if list := r.events(id); len(list) != 1 || list[0].Payload != "12" || list[0].Times != 2 {
			t.Errorf("the events are %+v", list)
		}
	})
}

func TestAnEventWaitsWhileItsDefinitionSaysThatNothingFiresTheLoop(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l", Tasks: &loop.TaskLoop{}})
		r.happens(id, loop.FiringEvent{ID: "a", Source: "file:a"}, nil)
		if fired, _ := r.tick(0); len(fired) > 0 || r.became(id) != "a waits paused" {
			t.Errorf("%v fired, and the events are %s", fired, r.became(id))
		}
	})
}

// Its run may be what ends pawl up each time.
func TestAnEventThatStopsItsRunEachTimeIsGivenUp(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l"})
		r.happens(id, loop.FiringEvent{ID: "a", Source: "file:a"}, nil)
		for range 1 + loop.MaxStopped {
			if fired, _ := r.tick(0); len(fired) != 1 {
				t.Fatalf("%v fired", fired)
			}
			r.settles(r.begins(id), loop.OutcomeInterrupted)
		}
		if fired, _ := r.tick(0); len(fired) > 0 || r.became(id) != "a ran #4" {
			t.Errorf("%v fired, and the events are %s", fired, r.became(id))
		}
	})
}

func TestAPlannedTimeIsMadeUpForByARunThatAnEventHasFired(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l", Cadence: "1h"})
		r.moves(time.Hour)
		r.happens(id, loop.FiringEvent{ID: "a", Source: "file:a"}, nil)
		if fired, next := r.tick(0); len(fired) != 1 || fired[0].Event == "" || next.After(r.now().Add(time.Hour)) {
			t.Errorf("%+v fired, and it is looked again at %s", fired, next)
		}
		if got := r.became(id) + "; " + r.ledger(id); got != "a ran #1; 13:00 coalesced #1" {
			t.Errorf("the ledgers are %s", got)
		}
	})
}

func TestAnEventOfALoopThatWasForgottenOrIsBrokenFiresNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		r := newRig(t, database(t))
		id := r.registers(loop.Definition{Name: "l"})
		r.happens(id, loop.FiringEvent{ID: "a", Source: "file:a"}, nil)
		good := r.row(id).Registered
		broken := good
		broken.Broken = "its file is wrong"
		for what, reg := range map[string]loop.Registration{"broken": broken, "without a file": {}} {
			r.update(func(ctx context.Context, tx *store.Tx) error { return tx.SaveRegistration(ctx, id, reg) })
			if fired, next := r.tick(0); len(fired) > 0 || !next.IsZero() {
				t.Errorf("%s it fired %v, and it is looked again at %s", what, fired, next)
			}
		}
		r.update(func(ctx context.Context, tx *store.Tx) error { return tx.SaveRegistration(ctx, id, good) })
		if fired, _ := r.tick(0); len(fired) != 1 {
			t.Errorf("mended it fired %v", fired)
		}
	})
}

// Two nodes, events of sources that join and that do not, switches, runs that are live,
// quiet or interrupted: each event is in the ledger once, with all its times, and once
// nothing is in the way it has a run, which no other event has fired.
func TestNoEventIsLostOrFiresTwice(t *testing.T) {
	onBoth(t, func(t *testing.T, database func(testing.TB) string) {
		sample.Checks(t, 12)
		rapid.Check(t, func(rt *rapid.T) {
			r := newRig(t, database(t))
			defer r.closes()
			for i := range rapid.IntRange(1, 3).Draw(rt, "loops") {
				r.registers(loop.Definition{Name: fmt.Sprint("l", i), Cadence: rapid.SampledFrom([]string{"", "1h"}).Draw(rt, "cadence")})
			}
			ticks := func() {
				var both sync.WaitGroup
				for i := range r.nodes {
					both.Go(func() {
						if _, _, err := r.nodes[i].Tick(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
				both.Wait()
			}
			happened, live := map[string]int{}, map[string]loop.Run{}
			for range rapid.IntRange(3, 15).Draw(rt, "steps") {
				r.moves(time.Duration(rapid.IntRange(0, 90).Draw(rt, "minutes")) * time.Minute)
				r.sw.Store(nil)
				if rapid.IntRange(0, 3).Draw(rt, "paused") == 0 {
					sw := "PAUSED"
					r.sw.Store(&sw)
				}
				for id := range r.loops {
					for range rapid.IntRange(0, 3).Draw(rt, "events") {
						happened[id]++
						source := rapid.SampledFrom([]string{"file:a", "file:b", "webhook:x"}).Draw(rt, "source")
						join := func(before, now string) string { return before }
						if source == "webhook:x" {
							join = nil
						}
						r.happens(id, loop.FiringEvent{Source: source}, join)
					}
				}
				ticks()
				for id := range r.loops {
					if run, ok := live[id]; ok && rapid.Bool().Draw(rt, "ends") {
						r.settles(run, rapid.SampledFrom([]loop.Outcome{loop.OutcomeQuiet, loop.OutcomeInterrupted, loop.OutcomePaused}).Draw(rt, "outcome"))
						delete(live, id)
					} else if !ok && rapid.Bool().Draw(rt, "begins") {
						if run := r.begins(id); run.ID != "" {
							live[id] = run
						}
					}
				}
			}
			r.sw.Store(nil)
			for range 3 {
				for id, run := range live {
					r.settles(run, loop.OutcomeQuiet)
					delete(live, id)
				}
				ticks()
				for id := range r.loops {
					r.ends(id, 100)
				}
			}
			for id, l := range r.loops {
				times, ran := 0, map[string]string{}
				for _, e := range r.events(id) {
					times += e.Times
					if e.Verdict == loop.FiringWaits || e.RunID == "" {
						rt.Fatalf("%s: an event still waits: %+v", l.Name, e)
					}
					if other := ran[e.RunID]; e.Verdict == loop.FiringRan && other != "" {
						rt.Fatalf("%s: the events %s and %s have both fired run %s", l.Name, e.ID, other, e.RunID)
					}
					if e.Verdict == loop.FiringRan {
						ran[e.RunID] = e.ID
					}
				}
				if times != happened[id] {
					rt.Fatalf("%s: %d events happened, the ledger has %d", l.Name, happened[id], times)
				}
			}
		})
	})
}
