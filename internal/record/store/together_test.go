package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// together calls fn so many times at once and returns what each call came to.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = fn(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// PostgreSQL looks at every unique column: who loses hears who won, and not of
// a constraint.
func TestOfManyWhoWantAHandleAtOnceOneHasIt(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		for round := range 20 {
			errs := together(8, func(i int) error {
				return s.Update(t.Context(), func(tx *store.Tx) error {
					return tx.SaveAgent(t.Context(), loop.Agent{ID: fmt.Sprintf("ag_%d_%d", round, i), Handle: fmt.Sprint("ada", round), Driver: "claude"})
				})
			})
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Fix == "" {
					t.Errorf("a handle that is taken: %v, want a fault with a fix", err)
				}
			}
			if won != 1 {
				t.Fatalf("%d entries have one handle", won)
			}
		}
	})
}

// A run that ends extends its loop's chain and then makes older approvals void; a
// person who answers one of those takes the rows the other way round. PostgreSQL
// takes one of the two back, which is not a failure of either.
func TestTwoThatWaitForEachOtherBothGoThrough(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	run := fire(t, s, seed(t, s, "ci"), "-1", alice)
	ask(t, s, run, "ap", loop.ActionLand, time.Hour)
	steps := [2][2]func(*store.Tx) error{
		{
			func(tx *store.Tx) error { return tx.Link(t.Context(), run.LoopID, "effect", run.ID, "x") },
			func(tx *store.Tx) error {
				_, err := tx.VoidProposals(t.Context(), run.LoopID, []string{"st"}, "", "superseded")
				return err
			},
		},
		{
			func(tx *store.Tx) error {
				err := tx.AnswerApproval(t.Context(), "ap", loop.Answer{Yes: true, By: "ada"})
				if _, answered := errors.AsType[*loop.AnsweredError](err); answered {
					return nil // The other one was faster the second time.
				}
				return err
			},
			func(tx *store.Tx) error { return tx.Link(t.Context(), run.LoopID, loop.LinkApproval, run.ID, "y") },
		},
	}
	var first [2]sync.Once
	holds := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	for i, err := range together(2, func(i int) error {
		return s.Update(t.Context(), func(tx *store.Tx) error {
			err := steps[i][0](tx)
			first[i].Do(func() {
				close(holds[i])
				<-holds[1-i]
			})
			if err != nil {
				return err
			}
			return steps[i][1](tx)
		})
	}) {
		if err != nil {
			t.Errorf("transaction %d: %v", i, err)
		}
	}
	links := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Link, error) { return r.Chain(ctx, run.LoopID) })
	if err := store.VerifyChain(links); err != nil || len(links) < 3 {
		t.Errorf("the chain has %d links: %v", len(links), err)
	}
}

// A line that is to be appended to a file must not be there twice because its
// transaction was taken back once.
func TestATransactionThatIsBegunAnewReturnsNoChangeTwice(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	run := fire(t, s, seed(t, s, "ci"), "-1", alice)
	var pending []loop.PendingChange
	for try := range 3 { // The last one goes through at once.
		tries := 0
		err := held(t.Context(), s, run, func(rt *store.RunTx) error {
			got, err := rt.RecordChanges(t.Context(), []loop.Change{{Kind: loop.ChangeAppend, Path: "run-log.md", Content: fmt.Sprint(try)}})
			pending = append(pending, got...)
			if tries++; err == nil && tries <= 2-try {
				err = &pgconn.PgError{Code: "40P01", Message: "deadlock detected"}
			}
			return err
		})
		if err != nil || tries != 3-try {
			t.Fatalf("after %d tries: %v", tries, err)
		}
	}
	stored := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.PendingChange, error) {
		return r.Pending(ctx, run.LoopID, "")
	})
	if d := cmp.Diff(stored, pending); d != "" || len(stored) != 3 {
		t.Error(d, len(stored))
	}
}

// A writer that another process keeps waiting for longer than SQLite itself
// waits gets its turn all the same.
func TestAWriterWaitsForAnotherProcessLongerThanSQLiteDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pawl.db")
	open := func() *store.Store {
		s, err := store.Open(t.Context(), store.Options{Database: path, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	long, short := open(), open()
	begun, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- long.Update(t.Context(), func(*store.Tx) error {
			close(begun)
			time.Sleep(400 * time.Millisecond) // Four times as long as SQLite waits.
			return nil
		})
	}()
	<-begun
	if err := short.Update(t.Context(), func(*store.Tx) error { return nil }); err != nil {
		t.Errorf("the waiting writer: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("the first writer: %v", err)
	}
}
