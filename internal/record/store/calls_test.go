package store_test

import (
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// begin claims the call k for a process. Gone is one that is known to be dead.
func begin(t *testing.T, s *store.Store, by, gone loop.Holder) (known store.KeyedCall) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
		known, err = tx.BeginCall(t.Context(), store.KeyedCall{Key: "k", Verb: "v", Request: "r", By: by}, gone)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func TestOneProcessAtATimeCarriesACallOut(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		first := begin(t, s, alice, loop.Holder{})
		if !first.Claimed || first.Begun {
			t.Fatalf("the first = %+v, want it claimed", first)
		}
		for what, gone := range map[string]loop.Holder{"nobody is dead": {}, "another one is dead": bob} {
			if second := begin(t, s, bob, gone); second.Claimed || second.By != alice || second.Lapsed {
				t.Errorf("while %s the second = %+v, want that alice carries it out", what, second)
			}
		}
		over := begin(t, s, bob, alice)
		if !over.Claimed || !over.Begun || over.Fence == first.Fence {
			t.Fatalf("after alice has died the second = %+v, want it claimed and begun before", over)
		}
		for what, change := range map[string]func(tx *store.Tx) error{
			"answers": func(tx *store.Tx) error { return tx.AnswerCall(t.Context(), first.Claim(), "late") },
			"extends": func(tx *store.Tx) error { return tx.ExtendCall(t.Context(), first.Claim()) },
			"frees":   func(tx *store.Tx) error { return tx.FreeCall(t.Context(), first.Claim()) },
			"forgets": func(tx *store.Tx) error { return tx.DropCall(t.Context(), first.Claim()) },
		} {
			if err := s.Update(t.Context(), change); !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("one whose claim was taken over %s: %v, want a lost lease", what, err)
			}
		}
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.AnswerCall(t.Context(), over.Claim(), "done") }); err != nil {
			t.Fatal(err)
		}
		if third := begin(t, s, alice, bob); third.Claimed || third.Answer != `"done"` {
			t.Errorf("the third = %+v, want the answer", third)
		}
	})
}

func TestACallThatWasFreedOrForgottenIsClaimedAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		first := begin(t, s, alice, loop.Holder{})
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.FreeCall(t.Context(), first.Claim()) }); err != nil {
			t.Fatal(err)
		}
		second := begin(t, s, bob, loop.Holder{})
		if !second.Claimed || !second.Begun {
			t.Fatalf("one that was freed = %+v, want it claimed and begun before", second)
		}
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.DropCall(t.Context(), second.Claim()) }); err != nil {
			t.Fatal(err)
		}
		if third := begin(t, s, alice, loop.Holder{}); !third.Claimed || third.Begun {
			t.Errorf("one that was forgotten = %+v, want it claimed and not begun", third)
		}
	})
}
