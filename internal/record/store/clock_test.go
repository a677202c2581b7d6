package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// openAt opens a store in a process whose clock is wrong.
func openAt(t *testing.T, database string, wrong time.Duration) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: database, Now: func() time.Time { return time.Now().Add(wrong) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// Processes with clocks of different days decide alike, and date alike.
func TestAWrongClockDecidesNothing(t *testing.T) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "pawl.db") },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := url(t)
			right := openAt(t, database, 0)
			l := seed(t, right, "ci")
			run, in := fire(t, right, l, "-1", alice), scopesOf(l)
			today := loop.WindowDay.Start(right.Now())
			limit(t, right, budget(everything, loop.WindowDay, tokens(100)))
			if short := reserve(t, right, run, in, tokens(60)); short != nil {
				t.Fatalf("not reserved: %+v", short)
			}
			expires := right.Now().Add(time.Hour)
			err := held(t.Context(), right, run, func(rt *store.RunTx) error {
				return rt.AskApproval(t.Context(), loop.Approval{ID: "question", LoopID: l.ID, RunID: run.ID, Expires: expires, Action: loop.Action{Kind: loop.ActionLand}})
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range []time.Duration{5 * time.Minute, -5 * time.Minute, 24 * time.Hour, -24 * time.Hour} {
				s := openAt(t, database, wrong)
				if skew := s.Skew(); (skew - wrong).Abs() > time.Minute {
					t.Errorf("a clock that is %s wrong is said to be %s ahead", wrong, skew)
				}
				if d := s.Now().Sub(right.Now()); d.Abs() > time.Minute {
					t.Errorf("with a clock that is %s wrong, the time is %s off", wrong, d)
				}
				if s.Now().Before(run.LeaseUntil.Add(-store.Lease)) || !s.Now().Before(run.LeaseUntil.Add(store.Lease)) {
					t.Errorf("with a clock that is %s wrong, it is %s while the lease ends at %s", wrong, s.Now(), run.LeaseUntil)
				}
				for later, want := range map[time.Duration]bool{0: false, 2 * time.Hour: true} {
					overdue := look(t, s, func(ctx context.Context, r *store.Reader) (bool, error) {
						return r.OverdueApprovals(ctx, s.Now().Add(later))
					})
					if overdue != want {
						t.Errorf("with a clock that is %s wrong, a question is overdue after %s: %v", wrong, later, overdue)
					}
				}
				if got := standing(t, s, s.Now(), everything); len(got) != 1 || got[0].Reserved.Tokens != 60 {
					if today.Equal(loop.WindowDay.Start(right.Now())) { // Not at midnight.
						t.Errorf("with a clock that is %s wrong, the day has %+v reserved, want 60", wrong, got)
					}
				}
			}
		})
	}
}

// The database says its time together with the version of its tables: opening asks for
// nothing more.
func TestRowsAreDatedByTheDatabase(t *testing.T) {
	database := pgtest.URL(t)
	behind, ahead := openAt(t, database, -5*time.Minute), openAt(t, database, 5*time.Minute)
	l := seed(t, behind, "ci")
	first := fire(t, behind, l, "-1", alice)
	settle(t, behind, first, loop.OutcomeQuiet)
	second := fire(t, ahead, l, "-2", bob)
	if d := second.Started.Sub(first.Started); d < -time.Second || d > time.Minute {
		t.Errorf("the second run started %s after the first", d)
	}
}

func TestVirtualTimeIsTheTimeOfTheDatabase(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		if want := noon.Add(store.Lease); !run.LeaseUntil.Equal(want) || s.Skew() != 0 || !s.Now().Equal(noon) {
			t.Errorf("at %s the lease lasts until %s, skew %s; want %s", s.Now(), run.LeaseUntil, s.Skew(), want)
		}
		claim := func() error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.Claim(t.Context(), run.ID, run.Fence, bob, loop.Holder{})
				return err
			})
		}
		clock.set(noon.Add(store.Lease))
		if claim() == nil {
			t.Error("a lease was taken that is not over")
		}
		clock.add(time.Millisecond)
		if err := claim(); err != nil {
			t.Errorf("a lease that is over: %v", err)
		}
	})
}
