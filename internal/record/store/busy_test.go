package store

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// lockedOut is the error of SQLite for who wants to write while another does.
func lockedOut(t *testing.T) error {
	t.Helper()
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "p.db")+"?_txlock=immediate")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	db := open()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err = db.BeginTx(t.Context(), nil); !isBusy(err) {
		t.Fatalf("the second writer = %v, want that it is locked out", err)
	}
	return err
}

// On a machine that is slow, thirty writers may need minutes for one turn each.
func TestAWriterWaitsAsLongAsOthersCommit(t *testing.T) {
	locked := lockedOut(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		commits := func() int64 { return 1 + int64(time.Since(start)/(20*time.Second)) } // One in 20 s.
		err := retryWhileBusy(t.Context(), commits, func() error {
			if time.Since(start) < 5*Lease {
				return locked
			}
			return nil
		})
		if err != nil {
			t.Errorf("after %v: %v, want its turn", time.Since(start), err)
		}
	})
}

func TestAWriterGivesUpWhenAnotherWritesForALeaseWithoutACommit(t *testing.T) {
	locked := lockedOut(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := retryWhileBusy(t.Context(), func() int64 { return 1 }, func() error { return locked })
		if took := time.Since(start); !errors.Is(err, locked) || took < Lease || took > Lease+time.Second {
			t.Errorf("after %v: %v, want that it gives up after %v", took, err, Lease)
		}
	})
}

// What a run has done is worth more than the time of a process that gets no CPU.
func TestAWriterWithADeadlineWaitsUntilThen(t *testing.T) {
	locked := lockedOut(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*Lease)
		defer cancel()
		err := retryWhileBusy(ctx, func() int64 { return 1 }, func() error {
			if time.Since(start) < 4*Lease {
				return locked
			}
			return nil
		})
		if err != nil {
			t.Errorf("after %v: %v, want its turn", time.Since(start), err)
		}
	})
}

func TestAWriterThatIsAskedToEndDoesNotWait(t *testing.T) {
	locked := lockedOut(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := retryWhileBusy(ctx, func() int64 { return int64(time.Since(start)) }, func() error { return locked })
		if took := time.Since(start); !errors.Is(err, locked) || took > 2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// What a process counts as a commit of others is one, and not its own.
func TestCommitsOfOthersAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), Options{Database: path, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		stores[i] = s
	}
	committed := stores[0].commitCounter(t.Context())
	write := func(s *Store, id string) {
		t.Helper()
		err := s.Update(t.Context(), func(tx *Tx) error {
			_, err := tx.exec(t.Context(), `INSERT INTO workspaces (id, old_root, created_ms) VALUES ($1, $1, 0)`, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before := committed()
	write(stores[0], "own")
	if now := committed(); now != before || now == 0 {
		t.Errorf("after a commit of its own %d, was %d", now, before)
	}
	write(stores[1], "other")
	if now := committed(); now == before {
		t.Errorf("after a commit of another it is %d as before", now)
	}
}

// A server that starts is asked ever more rarely, and once more when the lease ends.
func TestAHolderTriesEverMoreRarelyUntilItsLeaseIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var told []error
		s := &Store{sql: dialect{name: "store"}, clock: newDatabaseClock(Options{Now: time.Now}, true), lease: 3 * time.Second}
		h := s.Holding(loop.Run{}, start, func(err error) { told = append(told, err) })
		var tried []time.Duration
		err := h.retry(t.Context(), newAttempts(), func() error {
			tried = append(tried, time.Since(start))
			return io.EOF
		})
		const ms = time.Millisecond
		want := []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 2550 * ms, 3000 * ms}
		if diff := cmp.Diff(want, tried); diff != "" {
			t.Errorf("tries (-want +got):\n%s", diff)
		}
		if f, ok := errors.AsType[*loop.Fault](err); !ok || !errors.Is(err, io.EOF) || !strings.Contains(f.Why, "(3s)") {
			t.Errorf("again = %v, want that it did not answer for 3s", err)
		}
		if len(told) != 1 || !errors.Is(told[0], io.EOF) {
			t.Errorf("told %v, want the first error, once", told)
		}
	})
}
