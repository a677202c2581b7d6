package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/cycle/queue"
	"github.com/pawl-run/pawl/internal/formats/boards/heartbeat"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
)

// rig is a daemon in the bubble of a test, where hours pass at once. The clock of its store
// is set by the test. The workspace ws, and ws_gone which cannot be opened, lie on its node.
type rig struct {
	*Daemon

	t     *testing.T
	wrong atomic.Int64 // by how much the clock of the store is ahead of that of the bubble
	scans atomic.Int64 // times that somebody wanted to open ws_gone, as each look at definitions does
}

// inBubble runs a test with a daemon that was not started.
func inBubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	database := storetest.SQLite(t) // What it shares with other tests is made outside of the bubble.
	synctest.Test(t, func(t *testing.T) { test(newRig(t, database)) })
}

func newRig(t *testing.T, database string) *rig {
	t.Helper()
	r, root := &rig{t: t}, t.TempDir()
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
		Open: func(_ context.Context, path string) (*Place, error) {
			if path != root {
				r.scans.Add(1)
				return nil, errors.New("its folder is gone")
			}
			ws := loop.Workspace{ID: "ws", Root: root}
			of := lookup.Deps{Store: s, Now: s.Now, Formats: format.List{heartbeat.Format()}}
			return &Place{Workspace: &lookup.Workspace{Workspace: ws, Deps: of, Loops: catalog.New(ws, of.Formats, s, s.Now, "1")}}, nil
		},
	})
	r.update(func(ctx context.Context, tx *store.Tx) error {
		err := tx.SaveNode(ctx, loop.Node{ID: "node", Name: "node"})
		for id, at := range map[string]string{"ws": root, "ws_gone": "/gone"} {
			err = errors.Join(err, tx.AddWorkspace(ctx, loop.Workspace{ID: id, Root: at}), tx.Place(ctx, loop.Placement{WorkspaceID: id, NodeID: "node", Path: at}))
		}
		return errors.Join(err, tx.AddWorkspace(ctx, loop.Workspace{ID: "ws_elsewhere", Root: "/elsewhere"}))
	})
	return r
}

func (r *rig) update(change func(context.Context, *store.Tx) error) {
	r.t.Helper()
	if err := r.Store.Update(r.t.Context(), func(tx *store.Tx) error { return change(r.t.Context(), tx) }); err != nil {
		r.t.Fatal(err)
	}
}

// plans registers an hourly loop, which no file defines, that fires next at a time of the store.
func (r *rig) plans(workspace, name string, due time.Time) {
	r.t.Helper()
	d := loop.Definition{Name: name, Protocol: loop.ProtocolBoard, Cadence: "1h", Tier: loop.TierReport}.WithDefaults()
	l := loop.Loop{ID: "lp_" + name, WorkspaceID: workspace, Name: name, Protocol: d.Protocol}
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.AddLoop(ctx, loop.Workspace{ID: workspace}, l), tx.AddDefinition(ctx, l.ID, d),
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
				r.plans("ws", "l", r.Now().Add(20*time.Second)) // Before the next look.
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

// want fails if the loop l has not fired so many times, or people were not told just this.
func (r *rig) want(when string, fired int64, titles ...string) {
	r.t.Helper()
	err := r.Store.View(r.t.Context(), func(rd *store.Reader) error {
		l, err := rd.Loop(r.t.Context(), "lp_l")
		if err != nil {
			return err
		}
		notices, err := rd.Notices(r.t.Context(), 0, 9)
		var got []string
		for _, n := range slices.Backward(notices) {
			got = append(got, n.Title)
		}
		if l.LastN != fired || !slices.Equal(got, titles) {
			r.t.Errorf("%s the loop has fired %d times, and people were told %q; want %d and %q", when, l.LastN, got, fired, titles)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestALoopIsNotLateBecauseItsDaemonOrHostSlept(t *testing.T) {
	inBubble(t, func(r *rig) {
		due := r.Now().Add(time.Hour)
		r.plans("ws", "l", due)
		r.plans("ws_elsewhere", "other", due)
		night := func(nights int64) { r.wrong.Store(nights * int64(10*time.Hour)) }
		night(1)
		defer r.fires()()
		time.Sleep(lateGap / 2)
		r.want("right after the start,", 1)
		time.Sleep(2*lateGap + lateGap/4)
		r.want("minutes after the start,", 1, "other is late")
		night(2) // Its run is still queued.
		time.Sleep(lateGap * 3 / 4)
		r.want("right after it slept,", 1, "other is late")
		time.Sleep(2 * lateGap)
		r.want("minutes after it slept,", 1, "other is late", "l is late") // Nobody takes up the run.
	})
}

func TestALoopThatWaitsBecauseTheClockWasSetBackIsLate(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.plans("ws", "l", r.Now().Add(time.Hour))
		stop := r.fires()
		r.wrong.Store(int64(time.Hour))
		time.Sleep(3 * lateGap)
		r.want("at its time", 1)
		r.wrong.Store(int64(-167 * time.Hour))
		time.Sleep(3 * lateGap)
		r.want("a week before that", 1, "l is late")
		r.wrong.Store(int64(time.Hour))
		time.Sleep(3 * lateGap)
		r.want("at its time again", 1, "l is late", "l is back")
		stop()
		r.wrong.Store(int64(-167 * time.Hour))
		defer r.fires()()
		time.Sleep(3 * lateGap)
		r.want("when the clock was set back meanwhile,", 1, "l is late", "l is back", "l is late")
	})
}

func TestALoopOfWhichNothingWasDecidedIsPlannedAnewWhenTheClockIsSetBack(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.plans("ws", "new", r.Now().Add(time.Hour))
		defer r.fires()()
		time.Sleep(3 * lateGap)
		r.wrong.Store(int64(-168 * time.Hour))
		time.Sleep(3 * lateGap)
		err := r.Store.View(r.t.Context(), func(rd *store.Reader) error {
			l, err := rd.Loop(r.t.Context(), "lp_new")
			if in := l.Registered.Due.Sub(r.Now()); in < 0 || in > time.Hour {
				r.t.Errorf("it is due in %s", in)
			}
			return err
		})
		if err != nil {
			r.t.Fatal(err)
		}
	})
}
