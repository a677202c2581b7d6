package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// eventsOf writes the events of a loop as text, oldest first.
func eventsOf(t *testing.T, s *store.Store, loopID string) string {
	t.Helper()
	list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.FiringEvent, error) {
		return r.LoopEvents(ctx, loopID, 100)
	})
	var all []string
	for _, e := range list {
		all = append([]string{strings.TrimSpace(fmt.Sprintf("%s %s×%d %q %s %s", e.ID, e.Source, e.Times, e.Payload, e.Verdict, strings.TrimSpace(e.Reason+" "+e.RunID)))}, all...)
	}
	return strings.Join(all, ", ")
}

func TestEventsOfASourceThatWaitAreOneAndWebhooksAreEachTheirOwn(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "l")
		join := func(before, now string) string { return before + "+" + now }
		add := func(id, source, payload string, join func(a, b string) string) (added bool) {
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				added, err = tx.AddEvent(ctx, loop.FiringEvent{LoopID: l.ID, ID: id, Source: source, Payload: payload}, join)
				return err
			})
			return added
		}
		for i, c := range []struct {
			id, source string
			join       func(a, b string) string
			want       bool
		}{
			{"e1", "file:a", join, true},
			{"e2", "file:a", join, true},
			{"e3", "file:b", join, true},
			{"w1", "webhook:x", nil, true},
			{"w2", "webhook:x", nil, true},
			{"w1", "webhook:x", nil, false},
		} {
			if got := add(c.id, c.source, fmt.Sprint(i), c.join); got != c.want {
				t.Errorf("event %d was added: %v, want %v", i, got, c.want)
			}
		}
		n := look(t, s, func(ctx context.Context, r *store.Reader) (int, error) { return r.CountWaiting(ctx, l.ID, "webhook:x") })
		if n != 2 {
			t.Errorf("%d deliveries wait, want 2", n)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.DecideEvents(ctx, []loop.FiringEvent{{LoopID: l.ID, ID: "e1", Verdict: loop.FiringRan, RunID: "r1"}})
		})
		add("e4", "file:a", "9", join) // The one before is not waiting any more.
		if add("w1", "webhook:x", "again", nil) {
			t.Error("a delivery was recorded twice")
		}
		got := strings.Split(eventsOf(t, s, l.ID), ", ")
		for _, want := range []string{`e1 file:a×2 "0+1" ran r1`, `e3 file:b×1 "2" waits`, `w1 webhook:x×1 "3" waits`, `w2 webhook:x×1 "4" waits`, `e4 file:a×1 "9" waits`} {
			found := false
			for _, g := range got {
				found = found || g == want
			}
			if !found {
				t.Errorf("there is no %s in %q", want, got)
			}
		}
		if len(got) != 5 {
			t.Errorf("there are %q", got)
		}
	})
}

func TestEventsOfARunThatWasStoppedFireAgainButNotForEver(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "l")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddEvent(ctx, loop.FiringEvent{LoopID: l.ID, ID: "e", Source: "file:a"}, nil)
			return err
		})
		keys := map[string]bool{}
		for i, outcome := range []loop.Outcome{loop.OutcomeInterrupted, loop.OutcomePaused, loop.OutcomeInterrupted, loop.OutcomeInterrupted} {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				list, err := tx.WaitingEvents(ctx, l.ID, tx.Now())
				if err != nil || len(list) != 1 || keys[list[0].FiringKey()] {
					t.Fatalf("before run %d %+v waits, %v", i+1, list, err)
				}
				keys[list[0].FiringKey()] = true
				run, err := tx.FireClaimed(ctx, loop.Run{ID: fmt.Sprint("r", i), LoopID: l.ID, N: int64(i + 1), Key: list[0].FiringKey(), Trigger: "event", Event: "file:a"}, alice)
				if err != nil {
					return err
				}
				list[0].Verdict, list[0].RunID = loop.FiringRan, run.ID
				if err := tx.DecideEvents(ctx, list); err != nil {
					return err
				}
				run.Outcome = outcome
				_, err = tx.Settle(ctx, run, loop.PhaseConclude, false)
				return err
			})
		}
		if got := eventsOf(t, s, l.ID); got != `e file:a×1 "" ran interrupted r3` && got != `e file:a×1 "" ran r3` {
			t.Errorf("after four runs: %s", got)
		}
	})
}

func TestASourceIsMovedByOneOfTwoThatLookAtIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "l")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.StartSource(ctx, l.ID, "n1", "ref:x", "a"); err != nil {
				return err
			}
			if err := tx.StartSource(ctx, l.ID, "n1", "ref:x", "z"); err != nil {
				return err
			}
			first, err := tx.MoveSource(ctx, l.ID, "n1", "ref:x", "a", "b")
			if err != nil {
				return err
			}
			second, err := tx.MoveSource(ctx, l.ID, "n1", "ref:x", "a", "b")
			if !first || second {
				t.Errorf("moved: %v, and again: %v", first, second)
			}
			return err
		})
		state := look(t, s, func(ctx context.Context, r *store.Reader) (string, error) {
			state, known, err := r.SourceState(ctx, l.ID, "n1", "ref:x")
			if !known {
				t.Error("it is not known")
			}
			return state, err
		})
		if state != "b" {
			t.Errorf("it looks like %q", state)
		}
	})
}

func TestAnFiringWaitsUntilItsTime(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "l")
		now := s.Now().Truncate(time.Millisecond)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.SaveNode(ctx, loop.Node{ID: "n1", Name: "n1"}); err != nil {
				return err
			}
			if err := tx.Place(ctx, loop.Placement{WorkspaceID: l.WorkspaceID, NodeID: "n1", Path: "/repo"}); err != nil {
				return err
			}
			if err := tx.SaveRegistration(ctx, l.ID, loop.Registration{Source: "s", Good: "d", Listens: "file:a"}); err != nil {
				return err
			}
			_, err := tx.AddEvent(ctx, loop.FiringEvent{LoopID: l.ID, ID: "rest", Source: loop.OnRest, NotBefore: now.Add(time.Hour)}, nil)
			return err
		})
		for at, want := range map[time.Duration]int{59 * time.Minute: 0, time.Hour: 1} {
			list := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) {
				return r.LoopsWithEvents(ctx, "n1", now.Add(at), "", 9)
			})
			if len(list) != want {
				t.Errorf("after %s the loops with events are %+v", at, list)
			}
		}
		next := look(t, s, func(ctx context.Context, r *store.Reader) (time.Time, error) { return r.NextEvent(ctx, "n1", now) })
		if !next.Equal(now.Add(time.Hour)) {
			t.Errorf("the next one is due at %s", next)
		}
		listening := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Loop, error) { return r.ListeningLoops(ctx, "n1") })
		if len(listening) != 1 || listening[0].Registered.Listens != "file:a" {
			t.Errorf("listening are %+v", listening)
		}
	})
}
