package budget_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ownedBy is an open ledger of the run, which has reserved nothing yet.
func (r *rig) ownedBy(o budget.Owner) *budget.Ledger {
	r.t.Helper()
	o.Store, o.Now, o.Run, o.Loop, o.Workspace = r.store, r.store.Now, r.run, "ci", "ws"
	l := budget.New(o)
	if err := l.Open(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return l
}

// mayWrite is how many tokens a call may write that would write many.
func mayWrite(t *testing.T, l *budget.Ledger) int64 {
	t.Helper()
	c, err := l.Account().Open(t.Context(), spend.Call{Model: "m", Input: 1, Output: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	return c.Output
}

func TestARunInsideOfAnotherHasHalfOfThatOnesOwnCaps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ownedBy(budget.Owner{Definition: loop.Definition{BudgetTokens: 10_000}})
	most, settle, err := l.Lend()
	if err != nil || most != (loop.Amount{Output: 5_000}) {
		t.Fatalf("lent %+v, %v, want half of the output tokens", most, err)
	}
	if got := mayWrite(t, l); got != 5_000 {
		t.Errorf("beside it the run may write %d tokens, want 5000", got)
	}
	again, settleAgain, err := l.Lend()
	if err != nil || again.Output != 2_500 {
		t.Errorf("a second one gets %+v, %v, want half of the rest", again, err)
	}
	settleAgain(loop.Amount{})
	settle(loop.Amount{Output: 1_000, Tokens: 9_000})
	if got := mayWrite(t, l); got != 9_000 {
		t.Errorf("after both have ended the run may write %d tokens, want what they have not used: 9000", got)
	}
	inside := r.ownedBy(budget.Owner{Borrowed: most})
	if got := mayWrite(t, inside); got != 5_000 {
		t.Errorf("the run inside may write %d tokens, want 5000", got)
	}
	if free, _, err := r.ownedBy(budget.Owner{}).Lend(); err != nil || free != (loop.Amount{}) {
		t.Errorf("a run without caps of its own lends %+v, %v, want no cap", free, err)
	}
	if _, _, err := r.ownedBy(budget.Owner{Definition: loop.Definition{BudgetTokens: 1}}).Lend(); !isBudget(err) {
		t.Errorf("a run that has one token left: %v", err)
	}
}

func isBudget(err error) bool {
	f, ok := errors.AsType[*loop.Fault](err)
	return ok && f.Exit == loop.ExitBudget
}

func TestWhatAChildWasGivenItsParentMayNotUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := r.ownedBy(budget.Owner{MostTokens: 100_000})
	left, capped := l.LifeLeft()
	if left != 100_000-usualTokens || !capped {
		t.Fatalf("%d tokens may be given, want what the run does not need", left)
	}
	if _, err := l.Give(left + 1); !isBudget(err) {
		t.Errorf("more than that is given: %v", err)
	}
	if _, err := l.Give(left); err != nil {
		t.Fatal(err)
	}
	if got := mayWrite(t, l); got != usualTokens-1 {
		t.Errorf("after it was given away the run may write %d tokens, want what it needs: %d", got, usualTokens-1)
	}
	if again, _ := l.LifeLeft(); again != 0 {
		t.Errorf("%d tokens more may be given", again)
	}
	if undo, err := l.Give(1); !isBudget(err) {
		undo()
		t.Errorf("one token more is given: %v", err)
	}
	if _, capped := r.ownedBy(budget.Owner{}).LifeLeft(); capped {
		t.Error("a run without a life has one")
	}
}

// TestARunCountsOnceInEachBudgetAboveIt holds a run two levels down against the caps of both loops above.
func TestARunCountsOnceInEachBudgetAboveIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var below loop.Run
	r.update(func(ctx context.Context, tx *store.Tx) error {
		parent := "lp_1"
		for i, id := range []string{"lp_2", "lp_3"} {
			l := loop.Loop{ID: id, WorkspaceID: "ws", Name: id, Protocol: loop.ProtocolSpec, Parent: parent, Depth: i + 1}
			if err := tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, l); err != nil {
				return err
			}
			if err := tx.AdoptLoop(ctx, l); err != nil {
				return err
			}
			parent = id
		}
		l, err := tx.Number(ctx, "ws", loop.ProtocolSpec, "lp_3")
		if err != nil {
			return err
		}
		below, err = tx.FireClaimed(ctx, loop.Run{ID: "run_3", LoopID: l.ID, N: l.LastN, Key: "k3", Trigger: "manual", Definition: "d"}, loop.Holder{PID: 1, Host: "a", Start: 7})
		return err
	})
	top := loop.BudgetScope{Kind: loop.BudgetLoop, ID: "lp_1"}
	r.budget(top, loop.Amount{Tokens: usualTokens + 1_000})
	reserve := func(run loop.Run) (*budget.Ledger, error) {
		l := budget.New(budget.Owner{Store: r.store, Now: r.store.Now, Run: run, Loop: "x", Workspace: "ws"})
		if err := l.Open(t.Context()); err != nil {
			return l, err
		}
		return l, r.store.Update(t.Context(), func(tx *store.Tx) error {
			rt, err := tx.Enter(t.Context(), run, loop.PhaseDecide)
			if err != nil {
				return err
			}
			return l.Reserve(t.Context(), rt)
		})
	}
	l, err := reserve(below)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reserve(r.run); !budget.IsShort(err) {
		t.Errorf("the loop above reserves beside it: %v, want its budget short", err)
	}
	r.update(func(ctx context.Context, tx *store.Tx) error {
		rt, err := tx.Enter(ctx, below, loop.PhaseConclude)
		if err != nil {
			return err
		}
		return l.Settle(ctx, rt, budget.Spent{Used: loop.Amount{Tokens: 700}})
	})
	for _, s := range []loop.BudgetScope{top, {Kind: loop.BudgetLoop, ID: "lp_2"}, {Kind: loop.BudgetLoop, ID: "lp_3"}, {Kind: loop.BudgetWorkspace, ID: "ws"}, everyone} {
		err := r.store.View(t.Context(), func(rd *store.Reader) error {
			st, err := rd.Standings(t.Context(), nil, []loop.Budget{{Scope: s, Window: loop.WindowDay, Cap: loop.Amount{Tokens: 1 << 50}}}, r.store.Now())
			for _, one := range st {
				if one.Budget.By == "" && one.Used.Tokens != 700 || one.Reserved.Tokens != 0 {
					t.Errorf("%+v has used %d and holds %d, want 700 once", s, one.Used.Tokens, one.Reserved.Tokens)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
