package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// holders are those of new runs, by the name of the loop.
func holders(t *testing.T, s *store.Store, claimed time.Time, names ...string) (map[string]*store.Holding, []loop.Run) {
	t.Helper()
	of := map[string]*store.Holding{}
	var runs []loop.Run
	for _, name := range names {
		run := fire(t, s, seed(t, s, name), "-1", alice)
		of[name], runs = s.Holding(run, claimed, nil), append(runs, run)
	}
	return of, runs
}

func TestOneQuerySaysOfEachRunWhatItsHolderIsToKnow(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		_, runs := holders(t, s, time.Now(), "fine", "asked", "paused", "taken", "gone")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, canceled := tx.Cancel(ctx, runs[1].ID, `"enough", says ann`)
			_, _, taken := tx.Claim(ctx, runs[3].ID, runs[3].Fence, bob, alice)
			return errors.Join(canceled, tx.Pause(ctx, runs[2].LoopID, true), taken)
		})
		runs[4].ID = "nobody's"
		seen, err := s.Watch(t.Context(), runs)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			cancel string
			sw     loop.SwitchScope
			err    error
		}{{}, {cancel: `"enough", says ann`}, {sw: loop.SwitchLoop}, {err: loop.ErrLeaseLost}, {err: loop.ErrStoreGone}} {
			a, err := seen.Of(runs[i])
			if a.Cancel != want.cancel || a.Switch != want.sw || !errors.Is(err, want.err) || err == nil && a.Lease < store.Lease/2 {
				t.Errorf("%s: %+v, %v, want %+v", runs[i].ID, a, err, want)
			}
		}
		if _, err := s.Watch(t.Context(), nil); err != nil {
			t.Errorf("of no run: %v", err)
		}
	})
}

func TestLeasesAreExtendedTogetherAndEachCountsForItself(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		of, runs := holders(t, s, noon, "fine", "asked", "taken", "busy", "ended")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			_, canceled := tx.Cancel(ctx, runs[1].ID, "enough")
			_, _, taken := tx.Claim(ctx, runs[2].ID, runs[2].Fence, bob, alice)
			return errors.Join(canceled, taken)
		})
		settle(t, s, runs[4], loop.OutcomeQuiet)
		clock.add(10 * time.Second)
		all := []*store.Holding{of["fine"], of["asked"], of["taken"], of["busy"], of["ended"]}
		var tried map[*store.Holding]store.Extended
		err := of["busy"].Update(t.Context(), func(tx *store.Tx) error { // An update of SQLite would wait for this one.
			if tx.Postgres() == nil {
				return nil
			}
			var err error
			tried, err = s.Extend(t.Context(), all, runs[:1], nil)
			return err
		})
		if err == nil && tried == nil {
			tried, err = s.Extend(t.Context(), append(all[:3:3], all[4]), runs[:1], nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := tried[of["busy"]]; ok || len(tried) != 4 {
			t.Errorf("%d were tried, want all but the one with an update of its own", len(tried))
		}
		for name, want := range map[string]struct {
			cancel string
			err    error
			age    time.Duration
		}{"fine": {}, "asked": {cancel: "enough"}, "taken": {err: loop.ErrLeaseLost, age: 10 * time.Second}, "ended": {err: loop.ErrLeaseLost, age: 10 * time.Second}} {
			got := tried[of[name]]
			if got.Cancel != want.cancel || !errors.Is(got.Err, want.err) || of[name].Age() != want.age {
				t.Errorf("%s: %+v, %s old, want %+v", name, got, of[name].Age(), want)
			}
		}
		held, err := s.HeldRuns(t.Context(), "ws", "")
		if err != nil || len(held) != 4 {
			t.Fatalf("held = %+v, %v", held, err)
		}
		for _, h := range held {
			if h.Stopped != (h.Loop == "fine") {
				t.Errorf("%s: stopped %v", h.Loop, h.Stopped)
			}
		}
	})
}

func TestAnExtensionThatFailsExtendsNoLease(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		of, _ := holders(t, s, noon, "a", "b")
		clock.add(10 * time.Second)
		boom := errors.New("boom")
		tried, err := s.Extend(t.Context(), []*store.Holding{of["a"], of["b"]}, nil, func(*store.Tx) error { return boom })
		if !errors.Is(err, boom) || len(tried) != 2 {
			t.Fatalf("%+v, %v", tried, err)
		}
		for name, h := range of {
			if !errors.Is(tried[h].Err, boom) || h.Age() != 10*time.Second {
				t.Errorf("%s: %v, %s old", name, tried[h].Err, h.Age())
			}
		}
	})
}

// Whether a commit of a holder arrived is told by the lease that it has written: an
// extension in between must not hide that.
func TestACommitThatNobodyAcknowledgedIsFoundBesideExtensions(t *testing.T) {
	for name, cut := range map[string]pgtest.Cut{"the commit never arrived": pgtest.Before, "its acknowledgment was lost": pgtest.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := pgtest.NewLine(t, storetest.PostgreSQL(t))
			s := open(t, line.URL)
			h, run := holder(t, s, time.Now())
			ctx, cancel := context.WithCancel(t.Context())
			var beside sync.WaitGroup
			beside.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(time.Millisecond) { // Many for each commit.
					_, _ = s.Extend(ctx, []*store.Holding{h}, nil, nil)
				}
			})
			beside.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
					line.Mend()
				}
			})
			defer func() { cancel(); beside.Wait() }()
			for n := 1; n <= 5; n++ {
				var cuts atomic.Int64
				line.Watch(func(query string) pgtest.Cut {
					if query != "commit" || cuts.Add(1) > 1 {
						return pgtest.Nowhere
					}
					return cut
				})
				if err := link(t.Context(), h, run); err != nil {
					t.Fatal(err)
				}
				var links []loop.Link
				err := h.View(t.Context(), func(r *store.Reader) (err error) {
					links, err = r.Chain(t.Context(), run.LoopID)
					return err
				})
				if err != nil || len(links) != n {
					t.Fatalf("%d links, %v; want %d", len(links), err, n)
				}
			}
		})
	}
}

func TestAThousandRunsAreWatchedByOneStatement(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		const n = 1000
		var runs []loop.Run
		var all []*store.Holding
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			runs, all = nil, nil
			for i := range n {
				name := fmt.Sprintf("l%d", i)
				err := tx.AddLoop(ctx, loop.Workspace{ID: "ws"}, loop.Loop{ID: name, WorkspaceID: "ws", Name: name, Protocol: loop.ProtocolSpine})
				if err != nil {
					return err
				}
				run, err := tx.FireClaimed(ctx, loop.Run{ID: "r" + name, LoopID: name, N: 1, Key: name, Trigger: "manual", Definition: "d"}, alice)
				if err != nil {
					return err
				}
				runs, all = append(runs, run), append(all, s.Holding(run, time.Now(), nil))
			}
			return nil
		})
		before := s.Commits()
		tried, err := s.Extend(t.Context(), all, nil, nil)
		if err != nil || len(tried) != n || s.Commits() != before+1 {
			t.Fatalf("%d were tried in %d commits, %v", len(tried), s.Commits()-before, err)
		}
		seen, err := s.Watch(t.Context(), runs)
		if err != nil {
			t.Fatal(err)
		}
		for i, run := range runs {
			if a, err := seen.Of(run); err != nil || tried[all[i]].Err != nil || a.Lease < store.Lease/2 {
				t.Fatalf("%s: %+v, %v, %v", run.ID, a, err, tried[all[i]].Err)
			}
		}
	})
}
