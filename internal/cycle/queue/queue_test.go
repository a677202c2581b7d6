package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/queue"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

// rig is a store with loops of two workspaces, one of which lies on node "here".
type rig struct {
	t     *testing.T
	store *store.Store
	fired int
	river bool
	hint  func(context.Context, *store.Tx, []loop.Run) error // nil: nobody is told of runs

	ahead time.Duration // of the database's clock
}

// waiting is what a queue offers to those who execute runs.
type waiting interface {
	Wake()
	Take(ctx context.Context) (loop.Run, error)
	Finish(run loop.Run, workspace string, again time.Duration)
	Stop()
}

func newRig(t *testing.T, database string, river bool) *rig {
	t.Helper()
	r := &rig{t: t, river: river}
	var err error
	r.store, err = store.Open(t.Context(), store.Options{
		Database: database, Now: time.Now, Virtual: func() time.Time { return time.Now().Add(r.ahead) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
	r.update(func(ctx context.Context, tx *store.Tx) error {
		for _, at := range []string{"here", "there"} {
			err := errors.Join(tx.AddWorkspace(ctx, loop.Workspace{ID: "ws_" + at, Root: "/" + at}), tx.SaveNode(ctx, loop.Node{ID: at, Name: at}),
				tx.Place(ctx, loop.Placement{WorkspaceID: "ws_" + at, NodeID: at, Path: "/" + at}))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return r
}

// queue starts a queue of node "here".
func (r *rig) queue(now func() time.Time) waiting {
	r.t.Helper()
	if r.river {
		return r.riverOf(loop.Node{ID: "here"}, now)
	}
	return queue.NewLocal(r.store, "here", now)
}

// riverOf starts a queue of a node on PostgreSQL, which tells of runs from now on.
func (r *rig) riverOf(n loop.Node, now func() time.Time) *queue.River {
	r.t.Helper()
	q, err := queue.NewRiver(r.t.Context(), queue.Options{Store: r.store, Node: n, Now: now, Workers: 8, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(q.Stop)
	r.hint = q.Hint
	return q
}

// onEach tests each queue, in process on both databases.
func onEach(t *testing.T, test func(t *testing.T, r *rig)) {
	for name, open := range map[string]func(*testing.T) *rig{
		"local on sqlite":   func(t *testing.T) *rig { t.Helper(); return newRig(t, storetest.SQLite(t), false) },
		"local on postgres": func(t *testing.T) *rig { t.Helper(); return newRig(t, storetest.PostgreSQL(t), false) },
		"river":             func(t *testing.T) *rig { t.Helper(); return newRig(t, storetest.PostgreSQL(t), true) },
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func (r *rig) update(fn func(context.Context, *store.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return fn(r.t.Context(), tx) }); err != nil {
		r.t.Fatal(err)
	}
}

// fires queues a run of a loop of its own on a node, for nodes with labels, and returns its id.
func (r *rig) fires(node string, labels ...string) string {
	r.t.Helper()
	r.fired++
	name := fmt.Sprintf("%s%04d", node, r.fired)
	r.update(func(ctx context.Context, tx *store.Tx) error {
		l := loop.Loop{ID: "lp_" + name, WorkspaceID: "ws_" + node, Name: name, Protocol: loop.ProtocolSpine}
		if err := tx.AddLoop(ctx, loop.Workspace{ID: l.WorkspaceID, Root: "/" + node}, l); err != nil {
			return err
		}
		l, err := tx.Number(ctx, l.WorkspaceID, l.Protocol, name)
		if err != nil {
			return err
		}
		run, err := tx.Fire(ctx, loop.Run{ID: "run_" + name, LoopID: l.ID, N: l.LastN, Key: name, Trigger: "schedule", Definition: "d", NodeLabels: labels})
		if err != nil || r.hint == nil {
			return err
		}
		return r.hint(ctx, tx, []loop.Run{run})
	})
	return "run_" + name
}

// claims takes a queued run out of the queue, as executing it does.
func (r *rig) claims(id string) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		_, _, err := tx.Claim(ctx, id, 0, loop.Holder{Host: "h", PID: 1}, loop.Holder{})
		return err
	})
}

func (r *rig) takes(q waiting) loop.Run {
	r.t.Helper()
	run, err := q.Take(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// nothing fails if there is a run to take now.
func (r *rig) nothing(q waiting) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 50*time.Millisecond)
	defer cancel()
	if run, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
		r.t.Fatalf("took %s, %v, want nothing", run.ID, err)
	}
}

// While a run was tried, what was in its way has ended: nobody is left who would say so.
func TestARunIsTriedAgainAtOnceIfAnotherOneEndedWhileItWasTried(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		q := r.queue(time.Now)
		r.fires("here")
		r.fires("here")
		take := func() loop.Run {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			run, err := q.Take(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		first, second := take(), take()
		r.claims(first.ID)
		q.Finish(first, "ws_here", 0)
		q.Finish(second, "ws_here", time.Hour)
		if again := take(); again.ID != second.ID {
			t.Errorf("taken was %s, want %s", again.ID, second.ID)
		}
	})
}

func TestEachQueuedRunOfTheNodeIsHandedOutOnceTheOldestFirst(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		q := r.queue(time.Now)
		var want, got []string
		for i := range 150 {
			if i%5 == 0 {
				r.fires("there")
			}
			want = append(want, r.fires("here"))
		}
		for range want {
			got = append(got, r.takes(q).ID)
		}
		if r.river { // Hints reach it side by side.
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("took %v", got)
		}
		r.nothing(q)
	})
}

func TestManyTakersGetEachRunOnceAndAreWoken(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		q := r.queue(time.Now)
		var mu sync.Mutex
		taken := map[string]int{}
		var takers sync.WaitGroup
		for range 8 {
			takers.Go(func() {
				for {
					run, err := q.Take(t.Context())
					if errors.Is(err, queue.ErrStopped) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					taken[run.ID]++
					n := len(taken)
					mu.Unlock()
					if err := r.store.Update(t.Context(), func(tx *store.Tx) error {
						_, _, err := tx.Claim(t.Context(), run.ID, 0, loop.Holder{Host: "h", PID: 1}, loop.Holder{})
						return err
					}); err != nil {
						t.Error(err)
					}
					q.Finish(run, "ws_here", 0)
					if n == 40 {
						q.Stop()
					}
				}
			})
		}
		for range 40 {
			r.fires("here")
			q.Wake()
		}
		takers.Wait()
		for id, n := range taken {
			if n != 1 {
				t.Errorf("%s was taken %d times", id, n)
			}
		}
		if _, err := q.Take(t.Context()); !errors.Is(err, queue.ErrStopped) {
			t.Errorf("after the stop: %v", err)
		}
	})
}

func TestARunThatCouldNotBeExecutedComesAgain(t *testing.T) {
	onEach(t, func(t *testing.T, r *rig) {
		now := time.Now()
		q := r.queue(func() time.Time { return now })
		first, second := r.fires("here"), r.fires("here")
		blocked, other := r.takes(q), r.takes(q)
		if r.river && blocked.ID == second { // Hints reach it side by side.
			blocked, other = other, blocked
		}
		if blocked.ID != first || other.ID != second {
			t.Fatalf("took %s and %s", blocked.ID, other.ID)
		}
		q.Finish(blocked, "ws_here", time.Minute)
		r.nothing(q)
		r.claims(other.ID)
		q.Finish(other, "ws_elsewhere", 0) // What was in its way is not of this workspace.
		r.nothing(q)
		now = now.Add(time.Minute)
		if again := r.takes(q); again.ID != first {
			t.Fatalf("took %s, want %s again", again.ID, first)
		}
		q.Finish(blocked, "ws_here", time.Minute)
		third := r.fires("here")
		q.Wake()
		run := r.takes(q)
		if run.ID != third {
			t.Fatalf("took %s, want %s", run.ID, third)
		}
		r.claims(third)
		q.Finish(run, "ws_here", 0) // It was in the way.
		if again := r.takes(q); again.ID != first {
			t.Fatalf("took %s, want %s again", again.ID, first)
		}
	})
}
