package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// hint is a job about a run.
type hint struct {
	Run   string `json:"run"`
	Fence int64  `json:"fence"`
}

func (hint) Kind() string { return "run" }

func TestARunAndItsHintAreOneTransaction(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.PostgreSQL(t))
	db := s.PostgresPool()
	c, err := river.NewClient(riverpgxv5.New(db), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
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
			if _, err := c.InsertTx(t.Context(), tx.Postgres(), hint{run.ID, run.Fence}, nil); err != nil {
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
	var hints int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM river_job`).Scan(&hints); err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 || runs[0].ID != "kept" || hints != 1 {
		t.Errorf("%d runs and %d hints, want one of each", len(runs), hints)
	}
}

// A River with newer tables needs a new version of ours, which makes them.
func TestTheVersionOfOurTablesSaysThatRiversAreTheNewest(t *testing.T) {
	t.Parallel()
	s := open(t, storetest.PostgreSQL(t))
	m, err := rivermigrate.New(riverpgxv5.New(s.PostgresPool()), nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := m.ExistingVersions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all := m.AllVersions(); len(made) != len(all) || made[len(made)-1].Version != all[len(all)-1].Version {
		t.Errorf("River has %d migrations, of which %d were made", len(all), len(made))
	}
}
