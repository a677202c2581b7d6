package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/event"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/queue"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// rig is a daemon in the bubble of a test, where hours pass at once. The clock of its store
// is set by the test. One workspace is placed on its node and cannot be opened.
type rig struct {
	*Daemon

	t     *testing.T
	wrong atomic.Int64 // by how much the clock of the store is ahead of that of the bubble
	scans atomic.Int64 // times that somebody wanted to open the workspace, as each look at definitions does
}

// inBubble runs a test with a daemon that was not started.
func inBubble(t *testing.T, test func(r *rig)) {
	t.Parallel()
	database := storetest.SQLite(t) // What it shares with other tests is made outside of the bubble.
	synctest.Test(t, func(t *testing.T) { test(newRig(t, database)) })
}

func newRig(t *testing.T, database string) *rig {
	t.Helper()
	r := &rig{t: t}
	s, err := store.Open(t.Context(), store.Options{
		Database: database, Now: time.Now, Virtual: func() time.Time { return time.Now().Add(time.Duration(r.wrong.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var ids atomic.Int64
	newID := func(prefix string) string { return fmt.Sprintf("%s_%06d", prefix, ids.Add(1)) }
	r.Daemon = New(Deps{
		Store: s, Pulse: event.NewPulse(s, time.Second), Queue: queue.NewLocal(s, "node", s.Now), Engine: engine.New(engine.Deps{Store: s, Now: s.Now, NewID: newID}),
		Node: "node", Now: s.Now, NewID: newID, Log: slog.New(slog.DiscardHandler), Tell: func(Happened) {},
		Open: func(context.Context, string) (*Place, error) {
			r.scans.Add(1)
			return nil, errors.New("its folder is gone")
		},
	})
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.AddWorkspace(ctx, loop.Workspace{ID: "ws", Root: "/repo"}), tx.SaveNode(ctx, loop.Node{ID: "node", Name: "node"}),
			tx.Place(ctx, loop.Placement{WorkspaceID: "ws", NodeID: "node", Path: "/repo"}))
	})
	return r
}

func (r *rig) update(change func(context.Context, *store.Tx) error) {
	r.t.Helper()
	if err := r.Store.Update(r.t.Context(), func(tx *store.Tx) error { return change(r.t.Context(), tx) }); err != nil {
		r.t.Fatal(err)
	}
}

// plans registers an hourly loop that fires next at a time of the store.
func (r *rig) plans(name string, due time.Time) {
	r.t.Helper()
	d := loop.Definition{Name: name, Cadence: "1h", Tier: loop.TierReport}.WithDefaults()
	l := loop.Loop{ID: "lp_" + name, WorkspaceID: "ws", Name: name, Protocol: loop.ProtocolSpine}
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, l), tx.AddDefinition(ctx, l.ID, d),
			tx.SaveRegistration(ctx, l.ID, loop.Registration{Source: "s", Good: d.Digest(), Planned: due, Due: due}))
	})
}

// fires runs what fires loops until the test calls stop.
func (r *rig) fires() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.fireDue(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestDefinitionsAreLookedAtHoweverTheClockOfTheStoreIsSet(t *testing.T) {
	for name, by := range map[string]time.Duration{"a week back": -168 * time.Hour, "a week ahead": 168 * time.Hour, "not at all": 0} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				r.plans("l", r.Now().Add(20*time.Second)) // Before the next look.
				defer r.fires()()
				time.Sleep(10 * time.Second)
				r.wrong.Store(int64(by))
				time.Sleep(5*scanGap - 5*time.Second)
				if n := r.scans.Load(); n < 4 || n > 8 {
					t.Errorf("in %s the definitions were looked at %d times", 5*scanGap, n)
				}
			})
		})
	}
}

func TestADaemonHangsOnceItDoesNotLookForAWhile(t *testing.T) {
	inBubble(t, func(r *rig) {
		if r.Hangs() {
			t.Error("before it begins it hangs")
		}
		stop := r.fires()
		time.Sleep(time.Hour)
		r.wrong.Store(int64(-168 * time.Hour))
		time.Sleep(time.Hour + time.Second) // A look was one or two seconds ago.
		if r.Hangs() {
			t.Error("at work it hangs")
		}
		stop()
		time.Sleep(3*scanGap - 5*time.Second)
		if r.Hangs() {
			t.Error("it hangs after two looks that it left out")
		}
		time.Sleep(5 * time.Second)
		if !r.Hangs() {
			t.Error("it does not hang after three")
		}
	})
}

// Without its monotonic reading, the time while the host sleeps and a clock that is set would
// count. The clock of a bubble has none.
func TestALookIsKeptWithItsMonotonicReading(t *testing.T) {
	t.Parallel()
	r := newRig(t, storetest.SQLite(t))
	defer r.fires()()
	for r.looked.Load() == nil && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if looked := r.looked.Load().String(); !strings.Contains(looked, " m=") {
		t.Errorf("it looked last at %s", looked)
	}
}
