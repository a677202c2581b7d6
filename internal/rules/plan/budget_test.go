package plan_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func past(tokens ...int64) (list []loop.Amount) {
	for _, n := range tokens {
		list = append(list, loop.Amount{Tokens: n, Output: n / 10, MicroUSD: n * 3, Wall: time.Duration(n) * time.Second, Iterations: 1, Items: 1})
	}
	return list
}

func TestWhatARunReserves(t *testing.T) {
	usual := loop.Amount{Tokens: 18_000, Output: 3_000, MicroUSD: 30_000, Wall: 10 * time.Minute, Iterations: 3, Items: 1}
	first := "what such a loop usually needs; from 5 settled runs on it is what they needed, and there are "
	for name, c := range map[string]struct {
		history []loop.Amount
		caps    loop.Amount
		want    loop.Amount
		why     string
	}{
		"the first run": {nil, loop.Amount{}, usual, "reserves 18000 tokens, 3000 output tokens, 0.03 USD, 10m, 3 iterations, 1 item: " + first + "0"},
		"the fifth run": {past(1, 2, 3, 4), loop.Amount{}, usual, first + "4"},
		"after five runs the largest": {
			past(100, 200, 900, 300, 400),
			loop.Amount{},
			loop.Amount{Tokens: 900, Output: 90, MicroUSD: 2700, Wall: 15 * time.Minute, Iterations: 1, Items: 1},
			"p95 of the last 5 runs",
		},
		"of many runs the outliers are left out": {
			past(append(slices.Repeat([]int64{100}, 48), 5000, 9000)...),
			loop.Amount{},
			loop.Amount{Tokens: 100, Output: 10, MicroUSD: 300, Wall: 100 * time.Second, Iterations: 1, Items: 1},
			"of the last 50 runs",
		},
		"old runs do not count": {
			past(append(slices.Repeat([]int64{100}, 50), slices.Repeat([]int64{9000}, 50)...)...),
			loop.Amount{},
			loop.Amount{Tokens: 100, Output: 10, MicroUSD: 300, Wall: 100 * time.Second, Iterations: 1, Items: 1},
			"of the last 50 runs",
		},
		"never above the caps of the run": {
			nil,
			loop.Amount{Output: 2_000, Wall: time.Minute},
			loop.Amount{Tokens: 18_000, Output: 2_000, MicroUSD: 30_000, Wall: time.Minute, Iterations: 3, Items: 1},
			"; cut to what one run may use",
		},
		"never nothing": {
			make([]loop.Amount, 5),
			loop.Amount{},
			loop.Amount{Tokens: 1, Output: 1, MicroUSD: 1, Wall: time.Second, Iterations: 1, Items: 1},
			"p95 of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := plan.Reserve(c.history, usual, c.caps)
			if got != c.want || !strings.Contains(why, c.why) {
				t.Errorf("Reserve = %+v, %q\nwant %+v, %q", got, why, c.want, c.why)
			}
		})
	}
}

var anyAmount = rapid.Custom(func(t *rapid.T) loop.Amount {
	n := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64))
	var p loop.AmountParts
	for i := range p {
		p[i] = n.Draw(t, loop.Dimensions[i])
	}
	return p.Amount()
})

func TestAReservationIsWithinTheCapsAndNeverNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		caps := anyAmount.Draw(t, "caps")
		got, why := plan.Reserve(rapid.SliceOf(anyAmount).Draw(t, "history"), anyAmount.Draw(t, "usual"), caps)
		for i, n := range got.Parts() {
			if most := caps.Parts()[i]; n < 1 || most > 0 && n > most {
				t.Fatalf("%s: %d of at most %d", loop.Dimensions[i], n, most)
			}
		}
		if why == "" {
			t.Fatal("no reason")
		}
	})
}

func TestWhatIsNotKnownIsChargedAsItWasReserved(t *testing.T) {
	reserved := loop.Amount{Tokens: 100, Output: 50, MicroUSD: 70, Wall: time.Hour, Iterations: 3, Items: 1}
	seen := loop.Amount{Tokens: 120, Output: 5, MicroUSD: 7, Wall: time.Minute, Iterations: 1}
	for name, c := range map[string]struct {
		used          loop.Amount
		tokens, money bool
		want          loop.Amount
	}{
		"everything was counted":        {seen, true, true, seen},
		"a model has no price":          {seen, true, false, loop.Amount{Tokens: 120, Output: 5, MicroUSD: 70, Wall: time.Minute, Iterations: 1}},
		"not every token was counted":   {seen, false, true, loop.Amount{Tokens: 120, Output: 50, MicroUSD: 70, Wall: time.Minute, Iterations: 1}},
		"no usage was reported":         {loop.Amount{Wall: 1}, false, false, loop.Amount{Tokens: 100, Output: 50, MicroUSD: 70, Wall: 1}},
		"an invalid count":              {loop.Amount{Tokens: -1, Items: -2}, true, true, loop.Amount{Tokens: 100, Items: 1}},
		"nothing was used, and counted": {loop.Amount{}, true, true, loop.Amount{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Charge(c.used, reserved, c.tokens, c.money); got != c.want {
				t.Errorf("Charge = %+v, want %+v", got, c.want)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		used, held := anyAmount.Draw(t, "used"), anyAmount.Draw(t, "reserved")
		got := plan.Charge(used, held, rapid.Bool().Draw(t, "tokens"), rapid.Bool().Draw(t, "money"))
		if got.Max(used) != got || used.Max(held).Max(got) != used.Max(held) || got.Validate() != nil {
			t.Fatalf("Charge = %+v", got)
		}
	})
}

func TestTheCapsOfARunAreTheLowest(t *testing.T) {
	got := plan.RunCaps([]loop.Budget{
		{Window: loop.WindowRun, Cap: loop.Amount{Tokens: 9, Items: 4}},
		{Window: loop.WindowDay, Cap: loop.Amount{Tokens: 1}},
		{Window: loop.WindowRun, Cap: loop.Amount{Tokens: 5, Output: 2}},
	})
	if want := (loop.Amount{Tokens: 5, Output: 2, Items: 4}); got != want {
		t.Errorf("RunCaps = %+v, want %+v", got, want)
	}
}

func TestDrift(t *testing.T) {
	five := past(2000, 2100, 1900, 2000, 2200)
	for name, c := range map[string]struct {
		past  []loop.Amount
		last  loop.Amount
		words string // empty: no alarm
	}{
		"from 2k to 40k": {
			five,
			loop.Amount{Tokens: 40_000},
			"the last run used 40000 tokens, where the 5 runs before it have a median of 2000 tokens and a p95 of 2200 tokens",
		},
		"tokens are the same, money is not": {
			five,
			loop.Amount{Tokens: 2000, MicroUSD: 400_000},
			"the last run used 0.40 USD, where the 5 runs before it have a median of 0.006 USD and a p95 of 0.0066 USD",
		},
		"the usual":                               {five, past(2300)[0], ""},
		"four times the usual is noise":           {five, loop.Amount{Tokens: 8000}, ""},
		"too few runs to know":                    {past(2000, 2000, 2000, 2000), loop.Amount{Tokens: 1e9}, ""},
		"a loop that works now and then":          {past(200, 30_000, 200, 200, 200), loop.Amount{Tokens: 40_000}, ""},
		"a loop that used nothing, and uses some": {make([]loop.Amount, 9), loop.Amount{Tokens: 4000, MicroUSD: 40_000}, ""},
		"a loop that used nothing, and uses much": {make([]loop.Amount, 9), loop.Amount{Tokens: 4001}, "the last run used 4001 tokens"},
		"time is not a cost":                      {five, loop.Amount{Wall: 1000 * time.Hour, Iterations: 1e6, Items: 1e6}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			alarm, words := plan.DetectDrift(c.past, c.last)
			if alarm != (c.words != "") || !strings.HasPrefix(words, c.words) || !alarm && words != "" {
				t.Errorf("Drift = %v, %q, want %q", alarm, words, c.words)
			}
		})
	}
}

func TestNoiseIsNoDriftAndAJumpIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usual := rapid.Int64Range(1000, 1e15).Draw(t, "usual")
		around := rapid.Int64Range(usual, 2*usual)
		list := past(rapid.SliceOfN(around, plan.MinHistory, 80).Draw(t, "past")...)
		if alarm, words := plan.DetectDrift(list, loop.Amount{Tokens: rapid.Int64Range(0, 4*usual).Draw(t, "noise")}); alarm {
			t.Fatal(words)
		}
		if alarm, _ := plan.DetectDrift(list, loop.Amount{Tokens: rapid.Int64Range(8*usual+1, math.MaxInt64).Draw(t, "jump")}); !alarm {
			t.Fatal("no alarm")
		}
	})
}

func TestARefusalInWords(t *testing.T) {
	day := loop.Budget{Window: loop.WindowDay}
	for name, c := range map[string]struct {
		short loop.Shortage
		want  string
	}{
		"tokens of a day": {
			loop.Shortage{Budget: day, What: "tokens", Cap: 100_000, Left: 12_000, Need: 18_000, Opens: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)},
			"the day budget of loop ci has 12000 tokens left of 100000 tokens, and 18000 tokens more are needed; the next window opens at 2026-11-21 00:00 UTC",
		},
		"money of a run": {
			loop.Shortage{Budget: loop.Budget{Window: loop.WindowRun}, What: "micro_usd", Cap: 5_000_000, Need: 1},
			"the run budget of loop ci has 0.00 USD left of 5.00 USD, and 0.000001 USD more are needed",
		},
		"time": {
			loop.Shortage{Budget: day, What: "wall", Cap: int64(time.Hour), Left: int64(90 * time.Second), Need: int64(10 * time.Minute)},
			"the day budget of loop ci has 1m30s left of 1h, and 10m more are needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.ExplainShortage(c.short, "loop ci"); got != c.want {
				t.Errorf("Explain = %q\nwant      %q", got, c.want)
			}
		})
	}
}

func TestAmountsInWords(t *testing.T) {
	for want, a := range map[string]loop.Amount{
		"nothing":                        {},
		"1 token, 2 iterations, 1 item":  {Tokens: 1, Iterations: 2, Items: 1},
		"1 output token, 0.0125 USD":     {Output: 1, MicroUSD: 12_500},
		"12.34 USD, 1h":                  {MicroUSD: 12_340_000, Wall: time.Hour},
		"-0.50 USD, 1h30m":               {MicroUSD: -500_000, Wall: 90 * time.Minute},
		"-2.25 USD, 1h0m5s":              {MicroUSD: -2_250_000, Wall: time.Hour + 5*time.Second},
		"9223372036854.775807 USD, 10ms": {MicroUSD: math.MaxInt64, Wall: 10 * time.Millisecond},
		"7h59m59s":                       {Wall: 8*time.Hour - 3*time.Nanosecond},
		"1m42s":                          {Wall: 102*time.Second + 946_549*time.Microsecond},
		"1.946s":                         {Wall: 1946*time.Millisecond + 549*time.Microsecond},
		"549ns":                          {Wall: 549 * time.Nanosecond},
	} {
		if got := plan.AmountWords(a); got != want {
			t.Errorf("Words(%+v) = %q, want %q", a, got, want)
		}
	}
}

func TestADefinitionSetsBudgetsOfItsOwn(t *testing.T) {
	mine := loop.BudgetScope{Kind: loop.BudgetLoop, ID: "lp_1"}
	for name, c := range map[string]struct {
		def  loop.Definition
		want []loop.Budget
	}{
		"none": {loop.Definition{}, nil},
		"of a run and of a day": {
			loop.Definition{BudgetTokens: 5, BudgetTokensDay: 6, BudgetUSDDay: 7},
			[]loop.Budget{
				{Scope: mine, Window: loop.WindowRun, Cap: loop.Amount{Output: 5}, By: "definition"},
				{Scope: mine, Window: loop.WindowDay, Cap: loop.Amount{Tokens: 6, MicroUSD: 7}, By: "definition"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, plan.DefinitionBudgets(c.def, "lp_1")); d != "" {
				t.Error(d)
			}
		})
	}
}
