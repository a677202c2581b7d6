package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
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
