package budgets_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/verbtest"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
)

// charged makes a run of the loop that has used and still holds something.
func charged(r *verbtest.Rig, name string, used, held loop.Amount) {
	r.T.Helper()
	in := func(run loop.Run) []loop.BudgetScope {
		return []loop.BudgetScope{
			{Kind: loop.BudgetLoop, ID: run.LoopID}, {Kind: loop.BudgetWorkspace, ID: r.Workspace.ID}, {Kind: loop.BudgetAgent, ID: "command"}, {Kind: loop.BudgetAll},
		}
	}
	run := r.InsertRun(name, r.Self)
	err := r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		run.Outcome = loop.OutcomeQuiet
		rt, err := tx.Settle(r.T.Context(), run, loop.PhaseConclude, false)
		if err != nil {
			return err
		}
		return rt.SettleBudget(r.T.Context(), in(run), func(_, _ loop.Amount, _ bool) loop.Amount { return used })
	})
	if err != nil {
		r.T.Fatal(err)
	}
	run = r.InsertRun(name, r.Self)
	err = r.Store.Update(r.T.Context(), func(tx *store.Tx) error {
		rt, err := tx.Enter(r.T.Context(), run, loop.PhaseDecide)
		if err != nil {
			return err
		}
		short, err := rt.Reserve(r.T.Context(), in(run), nil, held)
		if short != nil {
			r.T.Errorf("short of %+v", short)
		}
		return err
	})
	if err != nil {
		r.T.Fatal(err)
	}
}

func TestABudgetBurnsDown(t *testing.T) {
	verbtest.OnBoth(t, func(t *testing.T, r *verbtest.Rig) {
		r.DefineLoop("ci", "true")
		charged(r, "ci", loop.Amount{Tokens: 30, MicroUSD: 4}, loop.Amount{Tokens: 20})
		set := func(target budgets.Target, window string, caps map[string]string) []budgets.Row {
			t.Helper()
			rows, err := r.Budgets.Set(t.Context(), budgets.Change{Target: target, Window: window, Caps: caps, By: loop.Actor{Who: "ada"}})
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		opens := loop.WindowDay.End(r.Workspace.Now())
		month := loop.WindowMonth.End(r.Workspace.Now())
		mine := budgets.Row{
			Scope: "loop", Name: "ci", Window: loop.WindowDay, What: "tokens", Cap: 100, Used: 30, Reserved: 20, Left: 50, Opens: &opens, By: "ada",
		}
		all := budgets.Row{Scope: "all", Window: loop.WindowMonth, What: "micro_usd", Cap: 1, Used: 4, Opens: &month, By: "ada"}
		if d := cmp.Diff([]budgets.Row{mine}, set(budgets.Target{Loop: "ci"}, "day", map[string]string{"tokens": "100"})); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]budgets.Row{all}, set(budgets.Target{All: true}, "month", map[string]string{"usd": "0.000001"})); d != "" {
			t.Error(d)
		}
		set(budgets.Target{Agent: "@other"}, "day", map[string]string{"items": "3"})
		own := budgets.Row{Scope: "loop", Name: "ci", Window: loop.WindowRun, What: "output", By: "definition"}
		row, err := r.Loops.Show(t.Context(), "ci")
		if err != nil {
			t.Fatal(err)
		}
		if most := r.Definition("ci").BudgetTokens; most > 0 {
			own.Cap, own.Left = most, most
			if d := cmp.Diff([]budgets.Row{own, mine, all}, row.Budgets); d != "" {
				t.Error(d)
			}
		} else if d := cmp.Diff([]budgets.Row{mine, all}, row.Budgets); d != "" {
			t.Error(d)
		}
	})
}

func TestAChangeOfABudgetIsALinkOfTheChain(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("ci", "true")
	set := func(target budgets.Target, caps map[string]string) {
		t.Helper()
		if _, err := r.Budgets.Set(t.Context(), budgets.Change{Target: target, Window: "day", Caps: caps, By: loop.Actor{Who: "ada"}}); err != nil {
			t.Fatal(err)
		}
	}
	links := func(chain string) (bodies []string) {
		t.Helper()
		err := r.Store.View(t.Context(), func(rd *store.Reader) error {
			chain, err := rd.Chain(t.Context(), chain)
			for _, l := range chain {
				if l.Kind == loop.LinkBudget {
					bodies = append(bodies, l.Body)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return bodies
	}
	// A loop that never ran has no chain yet.
	set(budgets.Target{Loop: "ci"}, map[string]string{"usd": "5"})
	set(budgets.Target{Workspace: true}, map[string]string{"wall": "1h"})
	charged(r, "ci", loop.Amount{}, loop.Amount{})
	set(budgets.Target{Loop: "ci"}, map[string]string{"usd": "5"}) // It stands so already.
	set(budgets.Target{Loop: "ci"}, map[string]string{"usd": "none", "tokens": "2k"})
	if got := len(links(r.Workspace.ID)); got != 2 {
		t.Errorf("%d links in the chain of the workspace, want 2", got)
	}
	got := links(catalog.LoopID(r.Workspace.ID, loop.ProtocolSpine, "ci"))
	if len(got) != 1 {
		t.Fatalf("links of the loop = %v, want one", got)
	}
	var body struct {
		By            string
		Before, After loop.Amount
	}
	if err := json.Unmarshal([]byte(got[0]), &body); err != nil {
		t.Fatal(err)
	}
	if body.By != "ada" || body.Before != (loop.Amount{MicroUSD: 5_000_000}) || body.After != (loop.Amount{Tokens: 2000}) {
		t.Errorf("link = %+v", body)
	}
}

func TestABudgetIsShownBeforeThereIsAStore(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("ci", "true", "budget_tokens", "100000")
	rows, err := r.WithoutStore().Budgets.Show(t.Context(), budgets.Target{Loop: "ci"})
	want := []budgets.Row{{
		Scope: "loop", Name: "ci", Window: loop.WindowRun, What: "output", Cap: 100_000, Left: 100_000, By: "definition",
	}}
	if d := cmp.Diff(want, rows); d != "" || err != nil {
		t.Error(d, err)
	}
	if rows, err := r.WithoutStore().Budgets.Show(t.Context(), budgets.Target{}); len(rows) != 1 || err != nil {
		t.Errorf("all of them = %v, %v", rows, err)
	}
	if _, err := r.WithoutStore().Budgets.Show(t.Context(), budgets.Target{Loop: "nobody"}); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("of nobody = %v, want ErrNotFound", err)
	}
}

func TestWhatIsNoChangeOfABudgetIsRefused(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("ci", "true")
	for name, c := range map[string]struct {
		change         budgets.Change
		what, why, fix string
	}{
		"no such window": {budgets.Change{Window: "year", Caps: map[string]string{"usd": "1"}}, `--window "year"`, "no such window", "run, day or month"},
		"no cap":         {budgets.Change{Window: "day"}, "nothing is to be set", "", "--usd"},
		"no such cap":    {budgets.Change{Window: "day", Caps: map[string]string{"euro": "1"}}, `there is no cap "euro"`, "", "usd"},
		"no number": {
			budgets.Change{Window: "day", Caps: map[string]string{"usd": "lots"}}, `--usd "lots"`, "it is not a number", "none to remove",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.Target = budgets.Target{Loop: "ci"}
			_, err := r.Budgets.Set(t.Context(), c.change)
			verbtest.WantFault(t, err, loop.ExitUsage, c.what, c.why, c.fix)
		})
	}
}

// A cap of an agent's binds every loop that it acts in, however the loop came by
// it: `pawl budget show LOOP` says so.
func TestTheBudgetsOfALoopAreAlsoThoseOfWhoeverActsInIt(t *testing.T) {
	r := verbtest.New(t)
	r.DefineLoop("line", "true", "agent", "")
	r.DefineLoop("run", "", "agent", "", "agent_command", "")
	run := r.InsertRun("run", r.Self)
	run.Agent, run.Outcome = "maker", loop.OutcomeQuiet
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Settle(t.Context(), run, loop.PhaseConclude, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, agent := range map[string]string{"line": "command", "run": "maker"} {
		if _, err := r.Budgets.Set(t.Context(), budgets.Change{Target: budgets.Target{Agent: agent}, Window: "day", Caps: map[string]string{"items": "3"}}); err != nil {
			t.Fatal(err)
		}
		rows, err := r.Budgets.Show(t.Context(), budgets.Target{Loop: name})
		if i := slices.IndexFunc(rows, func(b budgets.Row) bool { return b.Name == "@"+agent }); err != nil || i < 0 {
			t.Errorf("loop %s, in which %s acts: %+v, %v", name, agent, rows, err)
		}
	}
}
