package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestALoopThatWasOnlyRegisteredHasNoNumbersUntilSomebodyLooksThemUp(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		known := seed(t, s, "known")
		fire(t, s, known, "-1", alice)
		ci := loop.Loop{ID: "lp_ci", WorkspaceID: "ws", Name: "ci", Protocol: loop.ProtocolSpine, LastN: 4}
		for range 2 {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RegisterLoops(ctx, []loop.Loop{ci, known}) })
		}
		number := func(name string) (n int64) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				l, err := tx.Number(ctx, "ws", loop.ProtocolSpine, name)
				if n = l.LastN; errors.Is(err, loop.ErrNotFound) {
					err = nil
				}
				return err
			})
			return n
		}
		if n := number("known"); n != 2 {
			t.Errorf("a loop that has run before has the number %d, want 2", n)
		}
		if n := number("ci"); n != 0 {
			t.Errorf("a loop that was only registered has the number %d", n)
		}
		for want := range int64(2) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, ci)
			})
			if n := number("ci"); n != 5+want {
				t.Errorf("its run has the number %d, want %d", n, 5+want)
			}
		}
	})
}

func TestWhatAFileSaysIsKeptUntilTheLoopIsForgotten(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		a, b := seed(t, s, "a"), seed(t, s, "b")
		reg := loop.Registration{Source: "s1", Good: "d1", Broken: "it is\nbroken\x00", Due: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveRegistration(ctx, a.ID, reg) })
		reg.Broken = "it is\nbroken\uFFFD"
		var got []loop.Loop
		update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
			got, err = tx.LockLoops(ctx, a.ID, b.ID, "none")
			return err
		})
		if len(got) != 2 {
			t.Fatalf("locked %+v", got)
		}
		if d := cmp.Diff([]loop.Registration{reg, {}}, []loop.Registration{got[0].Registered, got[1].Registered}); d != "" {
			t.Error(d)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Forget(ctx, loop.Actor{Who: "ann"}, a.ID) })
		l := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Loop, error) { return r.Loop(ctx, a.ID) })
		if l.Registered.Source != "" || !l.Registered.Due.IsZero() || l.Registered.Good != reg.Good {
			t.Errorf("forgotten = %+v", l.Registered)
		}
	})
}
