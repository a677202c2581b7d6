package notify

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// hand is a clock that a test sets.
type hand struct {
	mu sync.Mutex
	at time.Time
}

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *hand) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(d)
}

// rig is a store with the loop ci in the workspace ws, which lies at /home/you/repo.
type rig struct {
	t        *testing.T
	database string
	store    *store.Store
	clock    *hand
	loop     loop.Loop
	n        int // of settled
}

func onBoth(t *testing.T, test func(r *rig)) {
	t.Helper()
	for name, database := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &rig{t: t, database: database(t), clock: &hand{at: noon}}
			r.store = r.open()
			r.loop = loop.Loop{ID: "lp_ci", WorkspaceID: "ws", Name: "ci", Protocol: loop.ProtocolSpine}
			r.update(func(ctx context.Context, tx *store.Tx) error {
				if err := tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/home/you/repo"}, r.loop); err != nil {
					return err
				}
				if err := tx.SaveNode(ctx, loop.Node{ID: "node_1", Name: "one"}); err != nil {
					return err
				}
				return tx.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: "node_1", Path: "/home/you/repo"})
			})
			test(r)
		})
	}
}

// open opens the store once more, as another process does.
func (r *rig) open() *store.Store {
	r.t.Helper()
	s, err := store.Open(r.t.Context(), store.Options{Database: r.database, Now: time.Now, Virtual: r.clock.now})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			r.t.Errorf("close: %v", err)
		}
	})
	return s
}

func (r *rig) update(fn func(context.Context, *store.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return fn(r.t.Context(), tx) }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) fire() (run loop.Run) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		l, err := tx.Number(ctx, "ws", r.loop.Protocol, r.loop.Name)
		if err != nil {
			return err
		}
		id := fmt.Sprint("run_", l.LastN)
		run, err = tx.FireClaimed(ctx, loop.Run{ID: id, LoopID: l.ID, N: l.LastN, Key: id, Trigger: "manual", Definition: "d"}, loop.Holder{PID: 1, Host: "a", Start: 7})
		return err
	})
	return run
}

// end fires a run and ends it.
func (r *rig) end(o loop.Outcome, reason loop.Reason, agent string) loop.Run {
	r.t.Helper()
	run := r.fire()
	run.Outcome, run.Reason, run.Agent = o, reason, agent
	r.settle(run)
	return run
}

func (r *rig) settle(run loop.Run) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
		return err
	})
}

func (r *rig) addChannel(c loop.Channel) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.AddChannel(ctx, c)
		return err
	})
}

// titles are the texts of all notices, the oldest first.
func (r *rig) titles() (titles []string) {
	r.t.Helper()
	err := r.store.View(r.t.Context(), func(rd *store.Reader) error {
		list, err := rd.Notices(r.t.Context(), 0, 1000)
		titles = nil
		for _, n := range slices.Backward(list) {
			titles = append(titles, n.Title)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return titles
}

func (r *rig) watcher(s *store.Store) *Watcher {
	return &Watcher{Store: s, Log: slog.New(slog.DiscardHandler), Sleep: func(ctx context.Context, _ time.Duration) error { return clock.System{}.Sleep(ctx, time.Millisecond) }, Gap: time.Millisecond}
}

// watch runs a watcher until the notices have these titles.
func (r *rig) watch(want int, watchers ...*Watcher) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, w := range watchers {
		all.Go(func() { _ = w.Run(ctx) })
	}
	for deadline := time.Now().Add(time.Minute); len(r.titles()) < want; {
		if time.Now().After(deadline) {
			r.t.Fatalf("%d notices after a minute, want %d: %q", len(r.titles()), want, r.titles())
		}
		_ = clock.System{}.Sleep(ctx, 5*time.Millisecond)
	}
}

// sender has nothing of this machine but its shell.
func (r *rig) sender(environ ...string) *Sender { return testSender(r.t, r.clock.now, environ...) }

func testSender(t *testing.T, now func() time.Time, environ ...string) *Sender {
	t.Helper()
	return &Sender{Environ: append(environ, "PATH="+os.Getenv("PATH")), Dir: t.TempDir(), System: "linux", Exec: proc.Plain{}, Now: now}
}
