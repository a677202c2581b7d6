package store_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// A statement whose context has ended makes database/sql give the connection of the
// transaction back, which closes it beside whoever still used it: pgx then panicked
// with "slow write timer already active".
func TestAConnectionThatWasGivenBackIsUsedNoMore(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	l := seed(t, s, "a")
	errEnough := errors.New("enough")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range sample.Size(20, 150) {
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					ended, cancel := context.WithCancel(t.Context())
					cancel()
					if _, err := tx.Runs(ended, l.ID, 10); err == nil {
						t.Error("a statement whose context has ended has rows")
					}
					return errEnough
				})
				if !errors.Is(err, errEnough) {
					t.Errorf("Update = %v", err)
				}
			}
		})
	}
	all.Wait()
}

// What ignores the error of such a statement has changed nothing, and is told so.
func TestNothingIsCommittedOnAConnectionThatWasGivenBack(t *testing.T) {
	s := open(t, storetest.PostgreSQL(t))
	l := seed(t, s, "a")
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := tx.Runs(ended, l.ID, 10); err == nil {
			t.Error("a statement whose context has ended has rows")
		}
		return nil
	})
	if !errors.Is(err, sql.ErrConnDone) {
		t.Errorf("Update = %v, want that the connection is done", err)
	}
}
