package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestATransactionThatIsTakenBackEveryTimeIsGivenUp(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		for _, code := range []string{"40001", "40P01"} {
			taken := &pgconn.PgError{Code: code, Message: "taken back"}
			calls := 0
			if err := s.Update(t.Context(), func(*store.Tx) error { calls++; return taken }); !errors.Is(err, taken) || calls != 10 {
				t.Errorf("%s: %d tries, %v, want ten and the error", code, calls, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			calls = 0
			if err := s.Update(ctx, func(*store.Tx) error { calls++; cancel(); return taken }); err == nil || calls != 1 {
				t.Errorf("%s: %d tries of a caller that has ended, %v", code, calls, err)
			}
		}
		calls := 0
		_ = s.Update(t.Context(), func(*store.Tx) error { calls++; return &pgconn.PgError{Code: "23505"} })
		if calls != 1 {
			t.Errorf("a constraint was tried %d times", calls)
		}
	})
}

func TestOnlyTransactionsThatWereCommittedAreCounted(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		before := s.Commits()
		for _, err := range []error{nil, errors.New("boom"), nil} {
			_ = s.Update(t.Context(), func(*store.Tx) error { return err })
		}
		_ = s.View(t.Context(), func(*store.Reader) error { return nil })
		if got := s.Commits() - before; got != 2 {
			t.Errorf("%d commits, want 2", got)
		}
	})
}

// A queue joins through the handle of the database that it is on.
func TestAQueueFindsTheHandleOfItsDatabaseOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		file := s.Local()
		update(t, s, func(_ context.Context, tx *store.Tx) error {
			if (tx.SQLite() != nil) != file || (tx.Postgres() != nil) == file {
				t.Errorf("a transaction has the handles %v and %v", tx.SQLite(), tx.Postgres())
			}
			return nil
		})
		if (s.SQLiteWriter() != nil) != file || (s.PostgresPool() != nil) == file {
			t.Errorf("the store has the handles %v and %v", s.SQLiteWriter(), s.PostgresPool())
		}
		if file && s.SQLiteWriter().Stats().MaxOpenConnections != 1 {
			t.Error("there is more than one connection that writes")
		}
	})
}

func TestAStoreThatIsClosedAnswersNobody(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		writer, pool := s.SQLiteWriter(), s.PostgresPool()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.View(t.Context(), func(*store.Reader) error { return nil }); err == nil {
			t.Error("a view was given")
		}
		if err := s.Update(t.Context(), func(*store.Tx) error { return nil }); err == nil {
			t.Error("a transaction was committed")
		}
		if writer != nil && writer.PingContext(t.Context()) == nil || pool != nil && pool.Ping(t.Context()) == nil {
			t.Error("a connection is still open")
		}
	})
}

// On SQLite all who write take turns, and who waits for its turn has lost nothing.
// PostgreSQL has no turns: what lasts longer than a lease there is trouble.
func TestNoTransactionBeginsInAFileThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	s := open(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	err := s.Update(t.Context(), func(*store.Tx) error { t.Error("it was called"); return nil })
	if !errors.Is(err, loop.ErrStoreGone) {
		t.Errorf("Update = %v, want that the store is gone", err)
	}
}

func TestAWaitForATurnIsNoTroubleOfAStoreInWhichAllTakeTurns(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		late := fmt.Errorf("commit: %w", context.DeadlineExceeded)
		if s.Waiting(late) != s.Local() || s.Waiting(errors.New("boom")) || s.Waiting(nil) {
			t.Errorf("late: %v, another error: %v, none: %v", s.Waiting(late), s.Waiting(errors.New("boom")), s.Waiting(nil))
		}
		if long := s.Patience() > 5*store.Lease; s.Patience() < store.Lease || long != s.Local() {
			t.Errorf("patience = %v", s.Patience())
		}
	})
}

func TestTheLeaseOfAHolderCountsFromItsLastExtension(t *testing.T) {
	onBothAt(t, func(t *testing.T, s *store.Store, clock *hand) {
		run := fire(t, s, seed(t, s, "ci"), "-1", alice)
		h := s.Holding(run, noon, nil)
		enter := func(tx *store.Tx) error { _, err := tx.Enter(t.Context(), run, loop.PhaseAct); return err }
		extend := func(tx *store.Tx) error { _, err := tx.Extend(t.Context(), run.ID, run.Fence); return err }
		boom := errors.New("boom")
		try := func(fn func(*store.Tx) error) error {
			tried, err := h.TryUpdate(t.Context(), fn)
			if !tried {
				t.Error("nothing was tried though nobody else writes")
			}
			return err
		}
		for _, step := range []struct {
			name     string
			update   func(func(*store.Tx) error) error
			fn       func(*store.Tx) error
			err      error
			extended bool
		}{
			{"a transaction that does not touch the run", try, func(*store.Tx) error { return nil }, nil, false},
			{"one that extends the lease", try, extend, nil, true},
			{"one that enters a phase", try, enter, nil, true},
			{"one that fails", try, func(tx *store.Tx) error { return errors.Join(enter(tx), boom) }, boom, false},
			{"one that waits for its turn", func(fn func(*store.Tx) error) error { return h.Update(t.Context(), fn) }, extend, nil, true},
		} {
			before := h.Age()
			clock.add(10 * time.Second)
			if err := step.update(step.fn); !errors.Is(err, step.err) {
				t.Fatalf("%s: %v, want %v", step.name, err, step.err)
			}
			want := before + 10*time.Second
			if step.extended {
				want = 0
			}
			if h.Age() != want || h.Left() != store.Lease-want || h.Lease() != store.Lease {
				t.Errorf("%s: the lease of %v is %v old, %v are left, want it %v old", step.name, h.Lease(), h.Age(), h.Left(), want)
			}
		}
	})
}

func TestAShortUpdateOfAHolderDoesNotWaitForALongOne(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		h, run := holder(t, s, time.Now())
		err := h.Update(t.Context(), func(tx *store.Tx) error {
			tried, err := h.TryUpdate(t.Context(), func(*store.Tx) error { t.Error("it was called"); return nil })
			if tried || err != nil {
				t.Errorf("beside a transaction: %v, %v, want that nothing is tried", tried, err)
			}
			_, err = tx.Enter(t.Context(), run, loop.PhaseAct)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if tried, err := h.TryUpdate(t.Context(), func(*store.Tx) error { return nil }); !tried || err != nil {
			t.Errorf("after it: %v, %v", tried, err)
		}
		var n int64
		err = h.View(t.Context(), func(r *store.Reader) error {
			got, err := r.Run(t.Context(), run.ID)
			n = got.N
			return err
		})
		if err != nil || n != run.N {
			t.Errorf("view = #%d, %v", n, err)
		}
	})
}
