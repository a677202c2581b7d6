package store_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// wake is a wake-up hint: the run to look at, and the fence it was seen with.
type wake struct {
	Run   string `json:"run"`
	Fence int64  `json:"fence"`
}

func (wake) Kind() string { return "run_due" }

// queueOn prepares River's tables and returns how a hint joins a transaction
// of the store, and how many hints there are.
func queueOn(t *testing.T, s *store.Store) (insert func(*store.Tx, wake) error, count func() int) {
	t.Helper()
	ctx := t.Context()
	if db := s.PostgresPool(); db != nil {
		d := riverpgxv5.New(db)
		migrate(t, d)
		c, err := river.NewClient(d, &river.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return func(tx *store.Tx, w wake) error { _, err := c.InsertTx(ctx, tx.Postgres(), w, nil); return err },
			func() (n int) {
				if err := db.QueryRow(ctx, `SELECT count(*) FROM river_job`).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
	}
	db := s.SQLiteWriter()
	d := riversqlite.New(db)
	migrate(t, d)
	c, err := river.NewClient(d, &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return func(tx *store.Tx, w wake) error { _, err := c.InsertTx(ctx, tx.SQLite(), w, nil); return err },
		func() (n int) {
			if err := db.QueryRowContext(ctx, `SELECT count(*) FROM river_job`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
}

func migrate[T any](t *testing.T, d riverdriver.Driver[T]) {
	t.Helper()
	m, err := rivermigrate.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
}

var (
	_ riverdriver.Driver[*sql.Tx] = (*riversqlite.Driver)(nil)
	_ riverdriver.Driver[pgx.Tx]  = (*riverpgxv5.Driver)(nil)
)

func TestARunAndItsWakeUpHintAreOneTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		insert, count := queueOn(t, s)
		l, boom := seed(t, s, "ci"), errors.New("boom")
		both := func(key string, end error) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				l, err := tx.Number(t.Context(), "ws", l.Protocol, l.Name)
				if err != nil {
					return err
				}
				run, err := tx.Fire(t.Context(), loop.Run{ID: key, LoopID: l.ID, N: l.LastN, Key: key, Trigger: "cadence", Definition: "d"})
				if err != nil {
					return err
				}
				if err := insert(tx, wake{Run: run.ID, Fence: run.Fence}); err != nil {
					return err
				}
				return end
			})
		}
		if err := both("lost", boom); !errors.Is(err, boom) {
			t.Fatalf("Update = %v", err)
		}
		if err := both("kept", nil); err != nil {
			t.Fatal(err)
		}
		runs := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.Runs(ctx, l.ID, 9) })
		if len(runs) != 1 || runs[0].ID != "kept" || count() != 1 {
			t.Errorf("%d runs and %d hints, want one of each", len(runs), count())
		}
	})
}
