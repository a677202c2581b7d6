package control

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/catalog"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// charged makes a run of the loop that has used and still holds something.
func (r *rig) charged(name string, used, held loop.Amount) {
	r.t.Helper()
	in := func(run loop.Run) []loop.BudgetScope {
		return []loop.BudgetScope{
			{Kind: loop.BudgetLoop, ID: run.LoopID}, {Kind: loop.BudgetWorkspace, ID: r.ws.ID}, {Kind: loop.BudgetAgent, ID: "command"}, {Kind: loop.BudgetAll},
		}
	}
	run := r.fire(name, r.self)
	err := r.Store.Update(r.t.Context(), func(tx *store.Tx) error {
		run.Outcome = loop.OutcomeQuiet
		rt, err := tx.Settle(r.t.Context(), run, loop.PhaseConclude, false)
		if err != nil {
			return err
		}
		return rt.SettleBudget(r.t.Context(), in(run), used)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	run = r.fire(name, r.self)
	err = r.Store.Update(r.t.Context(), func(tx *store.Tx) error {
		rt, err := tx.Enter(r.t.Context(), run, loop.PhaseDecide)
		if err != nil {
			return err
		}
		short, err := rt.Reserve(r.t.Context(), in(run), nil, held)
		if short != nil {
			r.t.Errorf("short of %+v", short)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestABudgetBurnsDown(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.define("ci", "true")
		r.charged("ci", loop.Amount{Tokens: 30, MicroUSD: 4}, loop.Amount{Tokens: 20})
		set := func(target BudgetTarget, window string, caps map[string]string) []BudgetRow {
			t.Helper()
			rows, err := r.SetBudget(t.Context(), BudgetChange{Target: target, Window: window, Caps: caps, By: loop.Actor{Who: "ada"}})
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		opens := loop.WindowDay.End(r.Now())
		month := loop.WindowMonth.End(r.Now())
		mine := BudgetRow{
			Scope: "loop", Name: "ci", Window: loop.WindowDay, What: "tokens", Cap: 100, Used: 30, Reserved: 20, Left: 50, Opens: &opens, By: "ada",
		}
		all := BudgetRow{Scope: "all", Window: loop.WindowMonth, What: "micro_usd", Cap: 1, Used: 4, Opens: &month, By: "ada"}
		if d := cmp.Diff([]BudgetRow{mine}, set(BudgetTarget{Loop: "ci"}, "day", map[string]string{"tokens": "100"})); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]BudgetRow{all}, set(BudgetTarget{All: true}, "month", map[string]string{"usd": "0.000001"})); d != "" {
			t.Error(d)
		}
		set(BudgetTarget{Agent: "@other"}, "day", map[string]string{"items": "3"})
		own := BudgetRow{Scope: "loop", Name: "ci", Window: loop.WindowRun, What: "output", By: "definition"}
		row, err := r.Show(t.Context(), "ci")
		if err != nil {
			t.Fatal(err)
		}
		if most := r.definition("ci").BudgetTokens; most > 0 {
			own.Cap, own.Left = most, most
			if d := cmp.Diff([]BudgetRow{own, mine, all}, row.Budgets); d != "" {
				t.Error(d)
			}
		} else if d := cmp.Diff([]BudgetRow{mine, all}, row.Budgets); d != "" {
			t.Error(d)
		}
	})
}

func TestAChangeOfABudgetIsALinkOfTheChain(t *testing.T) {
	r := newRig(t)
	r.define("ci", "true")
	set := func(target BudgetTarget, caps map[string]string) {
		t.Helper()
		if _, err := r.SetBudget(t.Context(), BudgetChange{Target: target, Window: "day", Caps: caps, By: loop.Actor{Who: "ada"}}); err != nil {
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
	set(BudgetTarget{Loop: "ci"}, map[string]string{"usd": "5"})
	set(BudgetTarget{Workspace: true}, map[string]string{"wall": "1h"})
	r.charged("ci", loop.Amount{}, loop.Amount{})
	set(BudgetTarget{Loop: "ci"}, map[string]string{"usd": "5"}) // It stands so already.
	set(BudgetTarget{Loop: "ci"}, map[string]string{"usd": "none", "tokens": "2k"})
	if got := len(links(r.ws.ID)); got != 2 {
		t.Errorf("%d links in the chain of the workspace, want 2", got)
	}
	got := links(catalog.LoopID(r.ws.ID, loop.ProtocolSpine, "ci"))
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
	r := newRig(t)
	r.define("ci", "true", "budget_tokens", "100000")
	rows, err := r.without().Budgets(t.Context(), BudgetTarget{Loop: "ci"})
	want := []BudgetRow{{
		Scope: "loop", Name: "ci", Window: loop.WindowRun, What: "output", Cap: 100_000, Left: 100_000, By: "definition",
	}}
	if d := cmp.Diff(want, rows); d != "" || err != nil {
		t.Error(d, err)
	}
	if rows, err := r.without().Budgets(t.Context(), BudgetTarget{}); len(rows) != 1 || err != nil {
		t.Errorf("all of them = %v, %v", rows, err)
	}
	if _, err := r.without().Budgets(t.Context(), BudgetTarget{Loop: "nobody"}); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("of nobody = %v, want ErrNotFound", err)
	}
}

func TestACapIsReadExactly(t *testing.T) {
	for name, c := range map[string]struct {
		flag, text string
		want       int64
		why        string
	}{
		"whole dollars":                 {"usd", "5", 5_000_000, ""},
		"cents":                         {"usd", "2.50", 2_500_000, ""},
		"a millionth":                   {"usd", "0.000001", 1, ""},
		"zeros at the end":              {"usd", "1.0000000000000000000000", 1_000_000, ""},
		"zeros at the start":            {"usd", "00000000000000000000007", 7_000_000, ""},
		"less than a millionth":         {"usd", "0.0000001", 0, "it is finer than can be counted"},
		"the most":                      {"usd", "9223372036854.775807", math.MaxInt64, ""},
		"more than the most":            {"usd", "9223372036854.775808", 0, "it is more than can be counted: 9223372036854775808, and the most is 9223372036854775807"},
		"far more":                      {"usd", strings.Repeat("9", 4000), 0, "it is more than can be counted"},
		"no number":                     {"usd", "NaN", 0, "it is not a number"},
		"no end":                        {"usd", "+Inf", 0, "it is not a number"},
		"an exponent":                   {"usd", "1e9999999999", 0, "it is not a number"},
		"a fraction":                    {"usd", "1/3", 0, "it is not a number"},
		"a comma":                       {"usd", "2,50", 0, "it is not a number"},
		"digits of another script":      {"usd", "٥", 0, "it is not a number"},
		"nothing":                       {"usd", "", 0, "it is not a number"},
		"negative":                      {"usd", "-0.01", 0, "it is negative"},
		"zero":                          {"usd", "0.00", 0, "a cap of 0 would be none"},
		"none":                          {"usd", "none", 0, ""},
		"thousands of tokens":           {"tokens", "500k", 500_000, ""},
		"millions of tokens":            {"tokens", "2M", 2_000_000, ""},
		"a part of a million of tokens": {"output", "1.5M", 1_500_000, ""},
		"half a token":                  {"tokens", "0.5", 0, "it is finer than can be counted"},
		"too many tokens":               {"tokens", "9300000000G", 0, "it is more than can be counted: 9300000000000000000, and the most is 9223372036854775807"},
		"a unit alone":                  {"tokens", "k", 0, "it is not a number"},
		"a unit of iterations":          {"iterations", "5k", 0, "it is not a number"},
		"items":                         {"items", " 10 ", 10, ""},
		"a time":                        {"wall", "1h30m", int64(90 * time.Minute), ""},
		"no time":                       {"wall", "90", 0, "it is not a time"},
		"too long":                      {"wall", "9999999h", 0, "it is not a time"},
		"a negative time":               {"wall", "-1s", 0, "it is negative"},
		"a time of nothing":             {"wall", "0s", 0, "a cap of 0 would be none"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, why := parseCap(c.flag, c.text); why != c.why || why == "" && got != c.want {
				t.Errorf("parseCap(%s, %q) = %d, %q, want %d, %q", c.flag, c.text, got, why, c.want, c.why)
			}
		})
	}
}

func TestWhatIsNoChangeOfABudgetIsRefused(t *testing.T) {
	r := newRig(t)
	r.define("ci", "true")
	for name, c := range map[string]struct {
		change         BudgetChange
		what, why, fix string
	}{
		"no such window": {BudgetChange{Window: "year", Caps: map[string]string{"usd": "1"}}, `--window "year"`, "no such window", "run, day or month"},
		"no cap":         {BudgetChange{Window: "day"}, "nothing is to be set", "", "--usd"},
		"no such cap":    {BudgetChange{Window: "day", Caps: map[string]string{"euro": "1"}}, `there is no cap "euro"`, "", "usd"},
		"no number": {
			BudgetChange{Window: "day", Caps: map[string]string{"usd": "lots"}}, `--usd "lots"`, "it is not a number", "none to remove",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.Target = BudgetTarget{Loop: "ci"}
			_, err := r.SetBudget(t.Context(), c.change)
			wantFault(t, err, loop.ExitUsage, c.what, c.why, c.fix)
		})
	}
}

func TestEveryAmountOfMoneyIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		text := rapid.SampledFrom([]string{"", "0", "000"}).Draw(t, "zeros")
		digits := []byte("0000000" + decimalOf(n))
		text += strings.TrimLeft(string(digits[:len(digits)-6]), "0") + "." + string(digits[len(digits)-6:])
		if strings.HasPrefix(text, ".") {
			text = "0" + text
		}
		if got, why := parseCap("usd", text); got != n || why != "" {
			t.Fatalf("parseCap(%q) = %d, %q, want %d", text, got, why, n)
		}
	})
}

func decimalOf(n int64) string {
	body, _ := json.Marshal(n)
	return string(body)
}

func FuzzParseCap(f *testing.F) {
	for _, seed := range []string{"5", "2.50", "2M", "1h30m", "none", "NaN", "-1", "1e9", "9223372036854775808", "0", "", ".", "1.", "k"} {
		for _, name := range capFlags {
			f.Add(name, seed)
		}
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		n, why := parseCap(name, text)
		if n < 0 || why == "" && n == 0 && strings.TrimSpace(text) != noCap {
			t.Errorf("parseCap(%q, %q) = %d, %q", name, text, n, why)
		}
	})
}

// A cap of an agent's binds every loop that it acts in, however the loop came by
// it: `pawl budget show LOOP` says so.
func TestTheBudgetsOfALoopAreAlsoThoseOfWhoeverActsInIt(t *testing.T) {
	r := newRig(t)
	r.define("line", "true", "agent", "")
	r.define("run", "", "agent", "", "agent_command", "")
	run := r.fire("run", r.self)
	run.Agent, run.Outcome = "maker", loop.OutcomeQuiet
	err := r.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Settle(t.Context(), run, loop.PhaseConclude, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, agent := range map[string]string{"line": "command", "run": "maker"} {
		if _, err := r.SetBudget(t.Context(), BudgetChange{Target: BudgetTarget{Agent: agent}, Window: "day", Caps: map[string]string{"items": "3"}}); err != nil {
			t.Fatal(err)
		}
		rows, err := r.Budgets(t.Context(), BudgetTarget{Loop: name})
		if i := slices.IndexFunc(rows, func(b BudgetRow) bool { return b.Name == "@"+agent }); err != nil || i < 0 {
			t.Errorf("loop %s, in which %s acts: %+v, %v", name, agent, rows, err)
		}
	}
}
