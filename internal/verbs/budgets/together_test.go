package budgets_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
)

func TestCapsThatAreSetAtTheSameTimeAllStand(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		for round := range 10 {
			target := budgets.Target{Agent: fmt.Sprint("a", round)}
			var sets []func() error
			for name, text := range map[string]string{"usd": "5", "tokens": "6", "output": "7", "wall": "8s", "iterations": "9", "items": "10"} {
				sets = append(sets, func() error {
					_, err := r.Budgets.Set(t.Context(), budgets.Change{Target: target, Window: "day", Caps: map[string]string{name: text}, By: loop.Actor{Who: name}})
					return err
				})
			}
			verbtest.RunTogether(t, sets...)
			if rows, err := r.Budgets.Show(t.Context(), target); err != nil || len(rows) != len(sets) {
				t.Fatalf("%d caps stand of %d that were set: %+v, %v", len(rows), len(sets), rows, err)
			}
		}
		eachChangeFollowsTheOneBefore(r, loop.BudgetScope{Kind: loop.BudgetAgent, ID: "a0"})
	})
}

// eachChangeFollowsTheOneBefore holds the audit chain against itself.
func eachChangeFollowsTheOneBefore(r *verbtest.Rig, of loop.BudgetScope) {
	r.T.Helper()
	var links []loop.Link
	err := r.Store.View(r.T.Context(), func(rd *store.Reader) (err error) {
		links, err = rd.Chain(r.T.Context(), r.Workspace.ID)
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
	var stands loop.Amount
	n := 0
	for _, l := range links {
		var body struct {
			Scope         loop.BudgetScope `json:"scope"`
			Before, After loop.Amount
		}
		if err := json.Unmarshal([]byte(l.Body), &body); err != nil {
			r.T.Fatal(err)
		}
		if body.Scope != of {
			continue
		}
		if body.Before != stands {
			r.T.Errorf("change %d is from %+v, and %+v stood", n, body.Before, stands)
		}
		stands = body.After
		n++
	}
	if n != len(loop.Dimensions) {
		r.T.Errorf("%d changes are in the chain, want %d", n, len(loop.Dimensions))
	}
}
