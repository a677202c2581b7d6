package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Which runs a node finishes after another one has ended them: those that are its own,
// have ended, and are owed. Everything else is left alone.
func TestANodeOwesTheFilesOfItsOwnEndedRunsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		attic := loop.Holder{PID: 1, Host: "a", Node: "node_a"}
		barn := loop.Holder{PID: 2, Host: "b", Node: "node_b"}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.SaveNode(ctx, loop.Node{ID: "node_a", Name: "attic"}), tx.SaveNode(ctx, loop.Node{ID: "node_b", Name: "barn"}))
		})
		end := func(run loop.Run, owed bool) loop.Run {
			t.Helper()
			run.Outcome = loop.OutcomeFailed
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				rt, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
				if err != nil || !owed {
					return err
				}
				return rt.OweFiles(ctx)
			})
			return run
		}
		run := func(workspace, name string, by loop.Holder) loop.Run {
			t.Helper()
			return fireAt(t, s, addLoop(t, s, workspace, loop.ProtocolSpine, name), by)
		}
		older := end(run("ws", "older", attic), true)
		end(run("ws", "paid", attic), false)
		end(run("ws", "barns", barn), true)
		end(run("far", "elsewhere", attic), true)
		live := run("ws", "live", attic)
		newer := end(run("ws", "newer", attic), true)

		listed := func(want ...string) {
			t.Helper()
			owed := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.OwedRuns(ctx, "node_a", "ws") })
			if d := cmp.Diff(want, idsOf(owed)); d != "" {
				t.Errorf("owed (-want +got):\n%s", d)
			}
		}
		open := func(want ...string) {
			t.Helper()
			got := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.OpenRuns(ctx, "node_a") })
			if d := cmp.Diff(want, idsOf(got)); d != "" {
				t.Errorf("open (-want +got):\n%s", d)
			}
		}
		finish := func(run loop.Run, paid bool) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.EnterOwed(t.Context(), run, paid)
				return err
			})
		}
		listed(older.ID, newer.ID)
		open(older.ID, "run_far_elsewhere_1", live.ID, newer.ID)

		newer.Snapshot = "refs/pawl/kept"
		if err := finish(newer, false); err != nil {
			t.Fatal(err)
		}
		listed(older.ID, newer.ID) // Some of it is done.
		if err := finish(newer, true); err != nil {
			t.Fatal(err)
		}
		listed(older.ID)
		kept := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, newer.ID) })
		if kept.Snapshot != newer.Snapshot || kept.Owed {
			t.Errorf("a run whose files are written = %+v", kept)
		}
		stale := older
		stale.Fence--
		for name, run := range map[string]loop.Run{"it owes nothing any more": newer, "it is live": live, "its fence is stale": stale} {
			if err := finish(run, true); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("files of a run are written (%s): %v", name, err)
			}
		}
		listed(older.ID)

		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.GiveUpOwed(ctx, "node_b") })
		listed(older.ID)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.GiveUpOwed(ctx, "node_a") })
		listed()
		open(live.ID)
	})
}

func TestALostRunIsTakenOnlyFromWhoItWasSeenWith(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		attic, barn := loop.Holder{PID: 1, Host: "a", Node: "node_a"}, loop.Holder{PID: 2, Host: "b", Node: "node_b"}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.SaveNode(ctx, loop.Node{ID: "node_a", Name: "attic"}), tx.SaveNode(ctx, loop.Node{ID: "node_b", Name: "barn"}))
		})
		run := fireAt(t, s, addLoop(t, s, "ws", loop.ProtocolSpine, "ci"), attic)
		take := func(seen int64, dead loop.Holder) (taken loop.Run, err error) {
			err = s.Update(t.Context(), func(tx *store.Tx) (err error) {
				taken, err = tx.TakeLost(t.Context(), run.ID, seen, barn, dead)
				return err
			})
			return taken, err
		}
		if _, err := take(run.Fence, loop.Holder{}); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a run whose lease goes on is taken: %v", err)
		}
		if _, err := take(run.Fence, barn); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a run is taken from one who does not hold it: %v", err)
		}
		if _, err := take(run.Fence-1, attic); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a run is taken by a fence that is not the newest: %v", err)
		}
		taken, err := take(run.Fence, attic)
		if err != nil {
			t.Fatal(err)
		}
		if taken.Fence != run.Fence+1 || taken.Holder != barn || taken.Node != "node_a" {
			t.Errorf("taken = %+v, want the next fence, and its node as before", taken)
		}
		settle(t, s, taken, loop.OutcomeFailed)
		if _, err := take(taken.Fence, barn); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a run that has ended is taken: %v", err)
		}
	})
}
