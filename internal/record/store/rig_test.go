package store_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, "fsync=off")) }

// onBoth runs one suite on both databases, with the tables that migrations have made once.
func onBoth(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	for name, database := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.PostgreSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, database(t)))
		})
	}
}

func open(t *testing.T, database string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

var (
	alice = loop.Holder{PID: 1, Host: "a", Start: 7}
	bob   = loop.Holder{PID: 2, Host: "b", Start: 8}
)

// update fails the test if the transaction does.
func update(t *testing.T, s *store.Store, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return fn(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

// seed makes a loop.
func seed(t *testing.T, s *store.Store, name string) loop.Loop {
	t.Helper()
	var l loop.Loop
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		err = tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, loop.Loop{ID: "lp_" + name, WorkspaceID: "ws", Name: name, Protocol: loop.ProtocolSpine})
		if err == nil {
			l, err = tx.LoopNamed(ctx, "ws", loop.ProtocolSpine, name)
		}
		return err
	})
	return l
}

// fire fires a run of the loop and, if by is set, claims it.
func fire(t *testing.T, s *store.Store, l loop.Loop, key string, by loop.Holder) (run loop.Run) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		if l, err = tx.Number(ctx, "ws", l.Protocol, l.Name); err != nil {
			return err
		}
		run, err = tx.Fire(ctx, loop.Run{ID: "run_" + l.Name + key, LoopID: l.ID, N: l.LastN, Key: l.Name + key, Trigger: "manual", Definition: "d"})
		if err != nil || by == (loop.Holder{}) {
			return err
		}
		run, _, err = tx.Claim(ctx, run.ID, run.Fence, by, loop.Holder{})
		return err
	})
	return run
}

// held runs fn with the handle of the run's holder.
func held(ctx context.Context, s *store.Store, r loop.Run, fn func(*store.RunTx) error) error {
	return s.Update(ctx, func(tx *store.Tx) error {
		rt, err := tx.Enter(ctx, r, loop.PhaseAct)
		if err != nil {
			return err
		}
		return fn(rt)
	})
}

func look[T any](t *testing.T, s *store.Store, fn func(context.Context, *store.Reader) (T, error)) (v T) {
	t.Helper()
	err := s.View(t.Context(), func(r *store.Reader) (err error) {
		v, err = fn(t.Context(), r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func settle(t *testing.T, s *store.Store, r loop.Run, o loop.Outcome) {
	t.Helper()
	r.Outcome = o
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Settle(ctx, r, loop.PhaseConclude, false)
		return err
	})
}
