package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// watchedRun is a run that was claimed just now and is watched, at a time that only
// the test moves.
type watchedRun struct {
	*watched
	ctx   context.Context
	now   time.Time
	store *store.Store
	run   loop.Run
}

func newWatched(t *testing.T) *watchedRun {
	t.Helper()
	w := &watchedRun{now: time.Now()}
	w.store = w.open(t)
	ctx := t.Context()
	err := w.store.Update(ctx, func(tx *store.Tx) error {
		err := tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, loop.Loop{ID: "lp", WorkspaceID: "ws", Name: "w", Protocol: loop.ProtocolSpine})
		if err != nil {
			return err
		}
		l, err := tx.Number(ctx, "ws", loop.ProtocolSpine, "w")
		if err != nil {
			return err
		}
		w.run, err = tx.FireClaimed(ctx, loop.Run{ID: "run", LoopID: l.ID, N: l.LastN, Key: "k", Trigger: "manual", Definition: "d"}, loop.Holder{PID: 1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Deps: Deps{Store: w.store, Now: func() time.Time { return w.now }}}
	c := e.newCycle(Target{}, Firing{}, loop.Definition{})
	c.id, c.said, c.Store = w.run, e.newTranscript(w.run.ID), w.store.Holding(w.run, w.now, nil)
	w.watched = &watched{c: c.heldRun, guard: c.guardPrograms(func(error) {}), flushed: w.now}
	e.watching.runs = map[*watched]bool{w.watched: true}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	t.Cleanup(func() { w.cancel(nil) })
	return w
}

func (w *watchedRun) open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{
		Database: storetest.SQLite(t), Now: time.Now, Virtual: func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// storeGoesAway makes every call of the store fail from now on.
func (w *watchedRun) storeGoesAway(t *testing.T) {
	t.Helper()
	s := w.open(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	w.c.Engine.Store, w.c.Store = s, s.Holding(w.run, w.now, nil)
}

// look is one look of all that watch the run.
func (w *watchedRun) look() {
	w.c.extendLeases(w.ctx)
	w.c.lookAtRuns(w.ctx)
	w.lookHere(w.ctx)
}

func (w *watchedRun) lease(t *testing.T) (left time.Duration) {
	t.Helper()
	err := w.store.View(t.Context(), func(r *store.Reader) error {
		asked, err := r.Asked(t.Context(), w.run.ID)
		left = asked.Lease
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A holder has to stop before its lease has lapsed: what it started takes a
// moment to end.
func TestAStoreThatIsAwayEndsTheRunALittleBeforeItsLeaseIsOver(t *testing.T) {
	for name, breaks := range map[string]func(*testing.T, *watchedRun){
		"it is away": func(t *testing.T, w *watchedRun) { t.Helper(); w.storeGoesAway(t) },
		"it can be read and not written": func(t *testing.T, w *watchedRun) {
			t.Helper()
			err := w.store.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.SQLite().ExecContext(t.Context(), `CREATE TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'full'); END`)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			breaks(t, w)
			start, last := w.now, store.Lease-store.Lease/leaveBefore
			for _, after := range []time.Duration{0, time.Second, 9 * time.Second, 10 * time.Second, 19 * time.Second, last - time.Millisecond} {
				w.now = start.Add(after)
				if w.look(); w.ctx.Err() != nil {
					t.Fatalf("after %s: %v, want that the run goes on", after, context.Cause(w.ctx))
				}
			}
			w.now = start.Add(last)
			w.look()
			if err := context.Cause(w.ctx); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("after %s: %v, want a lost lease", last, err)
			}
		})
	}
}

func TestAStoreThatComesBackInTimeGivesAWholeLease(t *testing.T) {
	w := newWatched(t)
	err := w.store.Update(t.Context(), func(tx *store.Tx) error { // As it is after so long.
		_, err := tx.SQLite().ExecContext(t.Context(), `UPDATE runs SET lease_until_ms = lease_until_ms - 19000`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(19 * time.Second)
	w.look()
	if left := w.lease(t); left < store.Lease-5*time.Second || w.ctx.Err() != nil {
		t.Errorf("%s of the lease are left, %v, want a whole one", left, context.Cause(w.ctx))
	}
	if age := w.c.Store.Age(); age != 0 {
		t.Errorf("the lease counts as %s old, want that it begins anew", age)
	}
}

func TestALeaseIsExtendedWhenAThirdOfItIsOver(t *testing.T) {
	w := newWatched(t)
	shorten := func() {
		t.Helper()
		err := w.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.SQLite().ExecContext(t.Context(), `UPDATE runs SET lease_until_ms = lease_until_ms - 20000`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	shorten()
	w.now = w.now.Add(store.Lease/3 - time.Millisecond)
	if w.look(); w.lease(t) > store.Lease/2 {
		t.Error("it was extended before a third was over")
	}
	w.now = w.now.Add(time.Millisecond)
	if w.look(); w.lease(t) < store.Lease/2 || w.ctx.Err() != nil {
		t.Errorf("%s are left, %v, want that it was extended", w.lease(t), context.Cause(w.ctx))
	}
}

func TestAFenceThatMovesUnderTheWatcherIsSeenAtItsNextLook(t *testing.T) {
	for name, later := range map[string]time.Duration{
		"while it only reads": 0, "while it saves events": flushGap + time.Millisecond, "while it extends": store.Lease / 3,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			if w.look(); w.ctx.Err() != nil {
				t.Fatal(context.Cause(w.ctx))
			}
			thief := loop.Holder{PID: 2}
			err := w.store.Update(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.Claim(t.Context(), w.run.ID, w.run.Fence, thief, w.run.Holder)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			w.c.said.Note("what the old holder still says")
			w.now = w.now.Add(later)
			w.look()
			if err := context.Cause(w.ctx); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("the cause is %v, want a lost lease", err)
			}
			err = w.store.View(t.Context(), func(r *store.Reader) error {
				run, err := r.Run(t.Context(), w.run.ID)
				if run.Holder != thief || run.Fence != w.run.Fence+1 {
					t.Errorf("the run is held by %+v with fence %d", run.Holder, run.Fence)
				}
				events, eventsErr := r.Events(t.Context(), w.run.ID, 0, 9)
				if len(events) > 0 {
					t.Errorf("the old holder wrote %+v", events)
				}
				return errors.Join(err, eventsErr)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOneWatcherServesAllRunsAndEndsWithTheLast(t *testing.T) {
	w := newWatched(t)
	e := w.c.Engine
	e.WatchGap, e.watching.runs = time.Millisecond, nil
	works := func() bool {
		e.watching.mu.Lock()
		defer e.watching.mu.Unlock()
		return e.watching.end != nil
	}
	for range 2 { // It begins anew with the next run.
		first, watchedFirst := w.c.watch(w.ctx)
		second, watchedSecond := w.c.watch(w.ctx)
		effect, watchedEffect := w.c.watchAs(w.ctx, watchEffect)
		recovery, watchedRecovery := w.c.watchLease(w.ctx)
		err := w.store.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Cancel(t.Context(), w.run.ID, "enough"); return err })
		if err != nil {
			t.Fatal(err)
		}
		<-first.Done()
		watchedFirst.stop()
		<-second.Done()
		if !works() {
			t.Error("the watcher ended before its last run")
		}
		watchedSecond.stop()
		if effect.Err() != nil || recovery.Err() != nil {
			t.Errorf("a request to stop ended an effect or a recovery: %v, %v", context.Cause(effect), context.Cause(recovery))
		}
		if err := w.store.Update(t.Context(), func(tx *store.Tx) error { return tx.Pause(t.Context(), w.run.LoopID, true) }); err != nil {
			t.Fatal(err)
		}
		<-effect.Done()
		if recovery.Err() != nil {
			t.Error("a switch ended a recovery")
		}
		watchedEffect.stop()
		watchedRecovery.stop()
		if works() || len(e.watching.runs) > 0 {
			t.Error("the watcher works without a run")
		}
		if err := w.store.Update(t.Context(), func(tx *store.Tx) error { return tx.Pause(t.Context(), w.run.LoopID, false) }); err != nil {
			t.Fatal(err)
		}
	}
}

// A node is seen once in a third of a lease, whatever its runs do.
func TestTheHeartOfTheNodeBeatsWithItsLeases(t *testing.T) {
	w := newWatched(t)
	w.c.Self = loop.Holder{PID: 1, Node: "n"}
	if err := w.store.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveNode(t.Context(), loop.Node{ID: "n", Name: "n"}) }); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.SQLite().ExecContext(t.Context(), `UPDATE nodes SET seen_ms = 1`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	seen := func() bool {
		var n loop.Node
		err := w.store.View(t.Context(), func(r *store.Reader) (err error) { n, err = r.Node(t.Context(), "n"); return err })
		if err != nil {
			t.Fatal(err)
		}
		return n.Seen.UnixMilli() != 1
	}
	before := w.store.Commits()
	if w.look(); seen() || w.store.Commits() != before {
		t.Error("the first look of a process writes")
	}
	w.now = w.now.Add(store.Lease / 3)
	if err := w.c.Store.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Extend(t.Context(), w.run.ID, w.run.Fence); return err }); err != nil {
		t.Fatal(err)
	}
	before = w.store.Commits()
	w.look()
	w.look()
	if !seen() || w.store.Commits() != before+1 {
		t.Errorf("seen: %v, in %d transactions, want one, though the run itself has just extended its lease", seen(), w.store.Commits()-before)
	}
}
