package budget_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

var (
	now      = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)
	everyone = loop.BudgetScope{Kind: loop.BudgetAll}
)

// What a loop without a past reserves: the table's numbers of the pattern custom.
const (
	usualTokens = 38_000
	usualOutput = 8_000
)

// rig is a store with a loop and a run that is held.
type rig struct {
	t     *testing.T
	store *store.Store
	run   loop.Run
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{Database: storetest.SQLite(t), Now: time.Now, Virtual: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	r := &rig{t: t, store: s}
	r.update(func(ctx context.Context, tx *store.Tx) error {
		l := loop.Loop{ID: "lp_1", WorkspaceID: "ws", Name: "ci", Protocol: loop.ProtocolSpine}
		if err := tx.AddLoop(ctx, loop.Workspace{ID: "ws", Root: "/repo"}, l); err != nil {
			return err
		}
		l, err := tx.Number(ctx, "ws", l.Protocol, l.Name)
		if err != nil {
			return err
		}
		r.run, err = tx.FireClaimed(ctx, loop.Run{ID: "run_1", LoopID: l.ID, N: l.LastN, Key: "k", Trigger: "manual", Definition: "d"}, loop.Holder{PID: 1, Host: "a", Start: 7})
		return err
	})
	return r
}

func (r *rig) update(fn func(context.Context, *store.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(r.t.Context(), func(tx *store.Tx) error { return fn(r.t.Context(), tx) }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) budget(s loop.BudgetScope, most loop.Amount) {
	r.t.Helper()
	r.update(func(ctx context.Context, tx *store.Tx) error {
		return tx.SetBudget(ctx, loop.Budget{Scope: s, Window: loop.WindowDay, Cap: most, By: "ada"})
	})
}

// held is one part of a transaction of the run's holder.
func (r *rig) held(part func(context.Context, *store.RunTx) error) error {
	r.t.Helper()
	return r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		rt, err := tx.Enter(r.t.Context(), r.run, loop.PhaseDecide)
		if err != nil {
			return err
		}
		return part(r.t.Context(), rt)
	})
}

func (r *rig) ledger(d loop.Definition, model string) *budget.Ledger {
	return budget.New(budget.Owner{
		Store: r.store, Now: func() time.Time { return now }, Prices: func() (price.Table, error) { return price.BuiltIn(), nil },
		Run: r.run, Definition: d.WithDefaults(), Loop: "ci", Workspace: "ws", Agent: "claude", Model: model,
	})
}

// opened is a ledger that has reserved what it needs.
func (r *rig) opened(d loop.Definition) *budget.Ledger {
	r.t.Helper()
	p := r.ledger(d, "")
	if err := p.Open(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	if err := r.held(p.Reserve); err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) standing() loop.Standing {
	r.t.Helper()
	var all []loop.Standing
	err := r.store.View(r.t.Context(), func(rd *store.Reader) (err error) {
		all, err = rd.Standings(r.t.Context(), []loop.BudgetScope{everyone}, nil, now)
		return err
	})
	if err != nil || len(all) != 1 {
		r.t.Fatalf("standings = %v, %v", all, err)
	}
	return all[0]
}

func TestARunReservesWhatIsBoundedAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		caps []loop.Amount
		d    loop.Definition
		want loop.Amount
	}{
		"no budget":  {nil, loop.Definition{}, loop.Amount{}},
		"tokens":     {[]loop.Amount{{Tokens: 100_000}}, loop.Definition{}, loop.Amount{Tokens: usualTokens}},
		"output":     {[]loop.Amount{{Output: 100_000}}, loop.Definition{}, loop.Amount{Output: usualOutput}},
		"all time":   {[]loop.Amount{{Wall: 10 * time.Hour}}, loop.Definition{MaxWallClock: time.Hour}, loop.Amount{Wall: time.Hour}},
		"time left":  {[]loop.Amount{{Wall: time.Minute}}, loop.Definition{MaxWallClock: time.Hour}, loop.Amount{Wall: time.Minute}},
		"iterations": {[]loop.Amount{{Iterations: 2}}, loop.Definition{MaxIterations: 7}, loop.Amount{Iterations: 2}},
		"the lower":  {[]loop.Amount{{Items: 5}, {Items: 3}}, loop.Definition{MaxItems: 7}, loop.Amount{Items: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for i, most := range c.caps {
				r.budget([]loop.BudgetScope{everyone, {Kind: loop.BudgetWorkspace, ID: "ws"}}[i], most)
			}
			p := r.opened(c.d)
			if diff := cmp.Diff(c.want, p.Reserved()); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if len(c.caps) > 0 && r.standing().Reserved != c.want {
				t.Errorf("the store has %+v, want %+v", r.standing().Reserved, c.want)
			}
		})
	}
}

func TestOpeningAgainIsOpeningOnce(t *testing.T) {
	r := newRig(t)
	p := r.opened(loop.Definition{})
	account := p.Account()
	r.budget(everyone, loop.Amount{Tokens: 5})
	if err := p.Open(t.Context()); err != nil || p.Account() != account || !p.Reserved().Zero() {
		t.Errorf("opened again: %v, held %+v", err, p.Reserved())
	}
}

func TestWhatABudgetDoesNotHaveIsSaidAndNothingIsTaken(t *testing.T) {
	r := newRig(t)
	r.budget(loop.BudgetScope{Kind: loop.BudgetLoop, ID: "lp_1"}, loop.Amount{Tokens: 1})
	r.budget(everyone, loop.Amount{Tokens: 100_000})
	p := r.ledger(loop.Definition{}, "")
	if err := p.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := r.held(p.Reserve)
	if !budget.IsShort(err) || !budget.IsUnpaid(err) || !strings.Contains(err.Error(), "loop ci") {
		t.Errorf("Reserve = %v, want the budget of loop ci", err)
	}
	if got := r.standing().Reserved; !got.Zero() {
		t.Errorf("%+v is reserved", got)
	}
}

func TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap(t *testing.T) {
	for name, c := range map[string]struct {
		most   loop.Amount
		model  string
		unpaid bool
	}{
		"money has a cap":       {loop.Amount{MicroUSD: 5_000_000}, "nobody-sells-it", true},
		"nobody named a model":  {loop.Amount{MicroUSD: 5_000_000}, "", false},
		"only tokens have one":  {loop.Amount{Tokens: 5_000_000}, "nobody-sells-it", false},
		"it has a price":        {loop.Amount{MicroUSD: 5_000_000}, "claude-sonnet-4-6", false},
		"nothing has a cap yet": {loop.Amount{}, "nobody-sells-it", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if !c.most.Zero() {
				r.budget(everyone, c.most)
			}
			err := r.ledger(loop.Definition{}, c.model).Open(t.Context())
			if budget.IsUnpaid(err) != c.unpaid || (err != nil) != c.unpaid || budget.IsShort(err) {
				t.Errorf("Open = %v, want it unpaid: %v", err, c.unpaid)
			}
			if err != nil && !strings.Contains(err.Error(), "the budget of everything has a cap in money") {
				t.Errorf("Open = %v, want whose budget it is", err)
			}
		})
	}
}

// An agent that is nobody's to count reserved and was charged a millionth of a
// dollar by every run, whatever its cap.
func TestAnAgentWhoseModelNobodyTellsIsRefusedWhereMoneyHasACap(t *testing.T) {
	for name, c := range map[string]struct {
		most   loop.Amount
		model  string
		untold bool
		unpaid bool
	}{
		"money has a cap":      {loop.Amount{MicroUSD: 3_000_000}, "", true, true},
		"its model is named":   {loop.Amount{MicroUSD: 3_000_000}, "claude-sonnet-4-6", true, false},
		"it will be told":      {loop.Amount{MicroUSD: 3_000_000}, "", false, false},
		"only tokens have one": {loop.Amount{Tokens: 3_000_000}, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.budget(everyone, c.most)
			p := budget.New(budget.Owner{
				Store: r.store, Now: func() time.Time { return now }, Run: r.run, Definition: loop.Definition{}.WithDefaults(), Loop: "ci", Workspace: "ws",
				Model: c.model, ModelsUnknown: c.untold,
			})
			err := p.Open(t.Context())
			if budget.IsUnpaid(err) != c.unpaid || (err != nil) != c.unpaid || budget.IsShort(err) {
				t.Errorf("Open = %v, want it unpaid: %v", err, c.unpaid)
			}
			for _, want := range []string{"the budget of everything has a cap in money", "name one", "cap tokens instead"} {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("Open = %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestAnAgentThatNeedsMoreGetsItUpToWhatThereIs(t *testing.T) {
	r := newRig(t)
	r.budget(everyone, loop.Amount{Tokens: 50_000})
	p := r.opened(loop.Definition{})
	more := func(need, want int64, refused bool) {
		t.Helper()
		got, err := p.Account().More(t.Context(), loop.Amount{Tokens: need})
		if got.Tokens != want || (err != nil) != refused || r.standing().Reserved.Tokens != want {
			t.Errorf("of %d: granted %d, %v; the store has %d; want %d", need, got.Tokens, err, r.standing().Reserved.Tokens, want)
		}
	}
	more(10, usualTokens, false)
	more(40_000, 40_000, false)
	more(60_000, 50_000, false)
	if got := p.WhyExhausted(); !strings.Contains(got, "everything") {
		t.Errorf("Exhausted = %q, want the budget that was short", got)
	}
	more(60_000, 50_000, true)
}

func TestWhatHasNoCapIsNotBoundedByAWiderNeed(t *testing.T) {
	r := newRig(t)
	p := r.opened(loop.Definition{BudgetTokens: 700})
	got, err := p.Account().More(t.Context(), loop.Amount{Tokens: 1e9, Output: 1e9, MicroUSD: 1e9})
	if diff := cmp.Diff(loop.Amount{Output: 700}, got); diff != "" || err != nil {
		t.Errorf("granted (-want +got), %v:\n%s", err, diff)
	}
	if got := p.WhyExhausted(); got != "the budget of the run is used up" {
		t.Errorf("Exhausted = %q", got)
	}
}

func TestWhatNobodyCountedIsChargedAsItWasReserved(t *testing.T) {
	used := loop.Amount{Tokens: 500, Output: 100}
	for name, c := range map[string]struct {
		spent budget.Spent
		want  int64
	}{
		"all is known":        {budget.Spent{Used: used, Priced: true}, 500},
		"a turn was blind":    {budget.Spent{Used: used, Priced: true, Uncounted: true}, usualTokens},
		"its process died":    {budget.Spent{Used: used, Priced: true, Died: true}, usualTokens},
		"no price, but count": {budget.Spent{Used: used}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.budget(everyone, loop.Amount{Tokens: 100_000})
			p := r.opened(loop.Definition{})
			for range 2 { // Twice is once.
				if err := r.held(func(ctx context.Context, rt *store.RunTx) error { return p.Settle(ctx, rt, c.spent) }); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.standing(); got.Used.Tokens != c.want || !got.Reserved.Zero() {
				t.Errorf("used %d, reserved %+v; want %d used", got.Used.Tokens, got.Reserved, c.want)
			}
		})
	}
}

func TestARunThatReservedNothingIsChargedWhatItUsed(t *testing.T) {
	r := newRig(t)
	r.budget(everyone, loop.Amount{Tokens: 100_000})
	p := r.ledger(loop.Definition{}, "")
	for _, used := range []int64{0, 7} {
		err := r.held(func(ctx context.Context, rt *store.RunTx) error {
			return p.Settle(ctx, rt, budget.Spent{Used: loop.Amount{Tokens: used}, Priced: true})
		})
		if got := r.standing().Used.Tokens; err != nil || got != used {
			t.Errorf("charged %d, %v; want %d", got, err, used)
		}
	}
}
