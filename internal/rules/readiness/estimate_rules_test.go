package readiness

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/price"
)

func TestWhichTokensCount(t *testing.T) {
	table := price.BuiltIn()
	table.Patterns = map[string]price.Tokens{
		"ci-watch": {Input: new(int64(70_000))},
		"digest":   {Output: new(int64(1)), Subagents: new(int64(4))},
		"mine":     {Input: new(int64(10)), Output: new(int64(20))},
		"half":     {Input: new(int64(10))},
	}
	for name, c := range map[string]struct {
		pattern                  string
		input, output, subagents *int64
		want                     pattern.Tokens
	}{
		"of the catalogue":                     {"metric-chase", nil, nil, nil, pattern.Tokens{Input: 50_000, Output: 20_000, Subagents: 3}},
		"one number of the table":              {"ci-watch", nil, nil, nil, pattern.Tokens{Input: 70_000, Output: 12_000, Subagents: 2}},
		"two numbers of the table":             {"digest", nil, nil, nil, pattern.Tokens{Input: 30_000, Output: 1, Subagents: 4}},
		"a pattern that only the table has":    {"mine", nil, nil, nil, pattern.Tokens{Input: 10, Output: 20, Subagents: 1}},
		"a given input":                        {"ci-watch", new(int64(5)), nil, nil, pattern.Tokens{Input: 5, Output: 12_000, Subagents: 2}},
		"a given output":                       {"ci-watch", nil, new(int64(5)), nil, pattern.Tokens{Input: 70_000, Output: 5, Subagents: 2}},
		"given subagents":                      {"ci-watch", nil, nil, new(int64(5)), pattern.Tokens{Input: 70_000, Output: 12_000, Subagents: 5}},
		"both given, one agent unless told":    {"ci-watch", new(int64(5)), new(int64(6)), nil, pattern.Tokens{Input: 5, Output: 6, Subagents: 1}},
		"all three given":                      {"ci-watch", new(int64(5)), new(int64(6)), new(int64(7)), pattern.Tokens{Input: 5, Output: 6, Subagents: 7}},
		"both given for an unknown pattern":    {"no such", new(int64(5)), new(int64(6)), nil, pattern.Tokens{Input: 5, Output: 6, Subagents: 1}},
		"zero is a number":                     {"ci-watch", new(int64(0)), new(int64(0)), new(int64(0)), pattern.Tokens{}},
		"the missing half of a pattern, given": {"half", nil, new(int64(6)), nil, pattern.Tokens{Input: 10, Output: 6, Subagents: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(c.pattern, DefaultModel, "1h", 24)
			w.Input, w.Output, w.Subagents = c.input, c.output, c.subagents
			got := mustEstimate(t, table, w)
			if diff := cmp.Diff(c.want, pattern.Tokens{Input: got.Input, Output: got.Output, Subagents: got.Subagents}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.TokensPerRun != c.want.PerRun() {
				t.Errorf("tokens per run = %d, want %d", got.TokensPerRun, c.want.PerRun())
			}
		})
	}
}

func TestWhenACacheIsWarm(t *testing.T) {
	justBelow := func(x float64) float64 { return math.Nextafter(x, 0) }
	for name, c := range map[string]struct {
		runsPerDay float64
		ttl        string
		want, why  string
	}{
		"every minute":                    {1440, TTLAuto, TTL5m, ""},
		"every minute, kept an hour":      {1440, TTL1h, TTL1h, ""},
		"exactly five minutes":            {288, TTLAuto, TTL5m, ""},
		"exactly five minutes, kept so":   {288, TTL5m, TTL5m, ""},
		"a little more than five":         {justBelow(288), TTLAuto, TTL1h, ""},
		"six minutes, kept five":          {240, TTL5m, "", "6 min exceeds the 5m TTL"},
		"exactly an hour":                 {24, TTLAuto, TTL1h, ""},
		"exactly an hour, kept so":        {24, TTL1h, TTL1h, ""},
		"exactly an hour, kept five":      {24, TTL5m, "", "60 min exceeds the 5m TTL"},
		"a little more than an hour":      {23.9, TTLAuto, "", "60.25 min exceeds every TTL"},
		"two hours, kept one":             {12, TTL1h, "", "120 min exceeds the 1h TTL"},
		"once a day":                      {1, TTLAuto, "", "1440 min exceeds every TTL"},
		"three times a week":              {3.0 / 7, TTLAuto, "", "3360 min exceeds every TTL"},
		"a number that does not come out": {7, TTLAuto, "", "205.71 min exceeds every TTL"},
		"an hour less the last bit of it": {justBelow(24), TTL1h, "", "60 min exceeds the 1h TTL"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload("ci-watch", DefaultModel, "as said", c.runsPerDay)
			w.TTL = c.ttl
			k := mustEstimate(t, price.BuiltIn(), w).Caching
			if k.TTL != c.want || k.Reason != c.why || k.Beneficial != (c.why == "") {
				t.Errorf("caching = %+v, want TTL %q, reason %q", k, c.want, c.why)
			}
		})
	}
}

func TestThePrefixIsRoundedHalfToEvenAndJudgedFirst(t *testing.T) {
	for name, c := range map[string]struct {
		input    int64
		fraction float64
		model    string
		runs     float64
		prefix   int64
		why      string
	}{
		"a half goes down to even": {5, 0.5, "claude-fable-5", 288, 2, "prefix 2 < 512"},
		"a half goes up to even":   {7, 0.5, "claude-fable-5", 288, 4, "prefix 4 < 512"},
		"a quarter goes down":      {5, 0.25, "claude-fable-5", 288, 1, "prefix 1 < 512"},
		"nothing":                  {50_000, 0, "claude-haiku-4-5", 288, 0, "prefix 0 < 4096"},
		"all":                      {50_000, 1, "claude-haiku-4-5", 288, 50_000, ""},
		"one less than needed":     {4_095, 1, "claude-haiku-4-5", 288, 4_095, "prefix 4095 < 4096"},
		"as many as needed":        {4_096, 1, "claude-haiku-4-5", 288, 4_096, ""},
		"of another model":         {1_023, 1, "claude-sonnet-4-6", 288, 1_023, "prefix 1023 < 1024"},
		"half up to the least":     {8_191, 0.5, "claude-haiku-4-5", 288, 4_096, ""},
		"too short and too seldom": {4_095, 1, "claude-haiku-4-5", 1, 4_095, "prefix 4095 < 4096"},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload("custom", c.model, "x", c.runs)
			w.Input, w.Output, w.PrefixFraction = &c.input, new(int64(1)), c.fraction
			k := mustEstimate(t, price.BuiltIn(), w).Caching
			if k.Prefix != c.prefix || k.Reason != c.why {
				t.Errorf("prefix = %d, reason %q, want %d, %q", k.Prefix, k.Reason, c.prefix, c.why)
			}
		})
	}
}

func TestAFreeModelSavesNothing(t *testing.T) {
	table := price.Table{Models: []price.Model{{ID: "local"}}}
	c := mustEstimate(t, table, workload("custom", "local", "1m", 1440))
	got, err := json.Marshal(c.Data().Caching)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"beneficial":true,"ttl":"5m","prefix_tokens":18000,"cost_per_day":0,"cost_per_horizon":0,"savings_pct":0}`
	if string(got) != want {
		t.Errorf("caching = %s, want %s", got, want)
	}
}

func TestWhatCannotBeEstimated(t *testing.T) {
	const fix = "add one with `pawl prices update --file F`; `pawl prices` lists those that are known"
	const patterns = "daily-scan, pr-watch, ci-watch, dep-bump, changelog-gen, merge-hygiene, issue-sort, metric-chase, " +
		"regression-watch, digest, backfill, monitor, freshness, custom, own"
	table := price.BuiltIn()
	table.Patterns = map[string]price.Tokens{"own": {Output: new(int64(1))}, "digest": {}}
	for name, c := range map[string]struct {
		change func(*Workload)
		want   string
	}{
		"an unknown model": {func(w *Workload) { w.Model = "gpt" }, "--model: 'gpt' has no price; " + fix},
		"a slip in a model": {
			func(w *Workload) { w.Model = "claude-fabel-5-1" },
			"--model: 'claude-fabel-5-1' has no price; did you mean claude-fable-5-1? Or " + fix,
		},
		"a part of a model": {func(w *Workload) { w.Model = "Opus" }, "--model: 'Opus' has no price; " + fix},
		"no model":          {func(w *Workload) { w.Model = "" }, "--model: '' has no price; " + fix},
		"a slip in a pattern": {
			func(w *Workload) { w.Pattern = "ci-wacht" },
			"--pattern: 'ci-wacht' is unknown; did you mean ci-watch? Or give one of " + patterns +
				", or both --input-tokens and --output-tokens",
		},
		"a short word is near nothing": {
			func(w *Workload) { w.Pattern = "zzn" },
			"--pattern: 'zzn' is unknown; give one of " + patterns + ", or both --input-tokens and --output-tokens",
		},
		"an unknown pattern with one number": {
			func(w *Workload) { w.Pattern, w.Input = "\x1b[2J", new(int64(1)) },
			"--pattern: '\ufffd[2J' is unknown; give one of " + patterns + ", or both --input-tokens and --output-tokens",
		},
		"a pattern of which the table has half": {
			func(w *Workload) { w.Pattern = "own" },
			"--pattern: the price table has no input for 'own'; add it there, or give --input-tokens",
		},
		"negative input":     {func(w *Workload) { w.Input = new(int64(-1)) }, "--input-tokens: -1 is negative; give a number from 0 up"},
		"negative output":    {func(w *Workload) { w.Output = new(int64(-2)) }, "--output-tokens: -2 is negative; give a number from 0 up"},
		"negative subagents": {func(w *Workload) { w.Subagents = new(int64(-3)) }, "--subagents: -3 is negative; give a number from 0 up"},
		"more tokens than there are": {
			func(w *Workload) { w.Input = new(int64(math.MaxInt64)) },
			"--input-tokens, --output-tokens, --subagents: more tokens in a run than can be counted; give smaller numbers",
		},
		"more agents than there are": {
			func(w *Workload) { w.Subagents = new(int64(math.MaxInt64)) },
			"--input-tokens, --output-tokens, --subagents: more tokens in a run than can be counted; give smaller numbers",
		},
		"no days":       {func(w *Workload) { w.Days = 0 }, "--days: 0 is not above 0; give a number of days like 30"},
		"negative days": {func(w *Workload) { w.Days = -1 }, "--days: -1 is not above 0; give a number of days like 30"},
		"no runs": {
			func(w *Workload) { w.RunsPerDay = 0 },
			"--runs-per-day: 0 is not above 0; give a number of runs, or a --cadence that fires",
		},
		"negative runs": {
			func(w *Workload) { w.RunsPerDay = -0.5 },
			"--runs-per-day: -0.5 is not above 0; give a number of runs, or a --cadence that fires",
		},
		"runs that are no number": {
			func(w *Workload) { w.RunsPerDay = math.NaN() },
			"--runs-per-day: NaN is not above 0; give a number of runs, or a --cadence that fires",
		},
		"endless runs": {
			func(w *Workload) { w.RunsPerDay = math.Inf(1) },
			"--runs-per-day: +Inf is not a number of runs; give one, or a --cadence that fires",
		},
		"runs beyond all money": {
			func(w *Workload) { w.RunsPerDay = math.MaxFloat64 },
			"--runs-per-day: costs more than can be computed; give a smaller number",
		},
		"a negative fraction": {
			func(w *Workload) { w.PrefixFraction = -0.1 },
			"--cache-prefix-frac: -0.1 is not from 0 to 1; give the part of the input that stays the same, like 0.6",
		},
		"a fraction in percent, without a cache": {
			func(w *Workload) { w.PrefixFraction, w.NoCache = 60, true },
			"--cache-prefix-frac: 60 is not from 0 to 1; give the part of the input that stays the same, like 0.6",
		},
		"a fraction that is not a number": {
			func(w *Workload) { w.PrefixFraction = math.NaN() },
			"--cache-prefix-frac: NaN is not from 0 to 1; give the part of the input that stays the same, like 0.6",
		},
		"another TTL": {func(w *Workload) { w.TTL = "2h" }, "--cache-ttl: '2h' is invalid; give auto, 5m or 1h"},
		"no TTL":      {func(w *Workload) { w.TTL = "" }, "--cache-ttl: '' is invalid; give auto, 5m or 1h"},
	} {
		t.Run(name, func(t *testing.T) {
			w := usualWorkload()
			c.change(&w)
			got, err := Estimate(table, w)
			if err == nil {
				t.Fatalf("Estimate = %+v, want an error", got)
			}
			told := err.Error()
			if f, ok := errors.AsType[*loop.Fault](err); ok {
				told += "; " + f.Advice().String()
			}
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(Cost{}, got); diff != "" {
				t.Errorf("a cost comes with the error: %s", diff)
			}
		})
	}
}

func TestRoundingIsThatOfTheExactDouble(t *testing.T) {
	for name, c := range map[string]struct {
		x        float64
		decimals int
		want     float64
	}{
		"2.675 is a little less":   {2.675, 2, 2.67},
		"1.005 is a little less":   {1.005, 2, 1},
		"0.125 is exact: to even":  {0.125, 2, 0.12},
		"0.375 is exact: to even":  {0.375, 2, 0.38},
		"a negative hair is no -0": {-1e-9, 1, 0},
		"large":                    {1e300, 4, 1e300},
	} {
		t.Run(name, func(t *testing.T) {
			if got := roundTo(c.x, c.decimals); got != c.want || math.Signbit(got) {
				t.Errorf("rounded = %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatPastRunsSay(t *testing.T) {
	for name, c := range map[string]struct {
		totals    []int64
		estimated int64
		want      Actuals
	}{
		"no runs":                     {nil, 100, Actuals{}},
		"one run":                     {[]int64{50}, 100, Actuals{Runs: 1, P50: 50, P95: 50, Ratio: 0.5}},
		"two runs":                    {[]int64{90, 50}, 100, Actuals{Runs: 2, P50: 50, P95: 90, Ratio: 0.5}},
		"no estimate":                 {[]int64{50}, 0, Actuals{Runs: 1, P50: 50, P95: 50}},
		"three runs drift, unflagged": {[]int64{10, 20, 40}, 20, Actuals{Runs: 3, P50: 20, P95: 40, Ratio: 1, Drift: 4}},
		"five runs drift, unflagged":  {[]int64{10, 10, 20, 40, 40}, 20, Actuals{Runs: 5, P50: 20, P95: 40, Ratio: 1, Drift: 4}},
		"from two thousand to forty": {
			[]int64{2_000, 2_100, 9_000, 9_000, 40_000, 40_000},
			18_000,
			Actuals{Runs: 6, P50: 9_000, P95: 40_000, Ratio: 0.5, Drift: 20, Drifted: true},
		},
		"twice is enough":         {[]int64{10, 10, 1, 1, 20, 20}, 10, Actuals{Runs: 6, P50: 10, P95: 20, Ratio: 1, Drift: 2, Drifted: true}},
		"almost twice is not":     {[]int64{10, 10, 1, 1, 19, 19}, 10, Actuals{Runs: 6, P50: 10, P95: 19, Ratio: 1, Drift: 1.9}},
		"less than it was":        {[]int64{20, 20, 1, 1, 10, 10}, 10, Actuals{Runs: 6, P50: 10, P95: 20, Ratio: 1, Drift: 0.5}},
		"one run does not drift":  {[]int64{10, 10, 10, 10, 10, 10, 10, 10, 900}, 10, Actuals{Runs: 9, P50: 10, P95: 900, Ratio: 1, Drift: 1}},
		"from nothing":            {[]int64{0, 0, 0, 5, 5, 5}, 5, Actuals{Runs: 6, P50: 0, P95: 5, Ratio: 0, Drift: 0, Drifted: true}},
		"always nothing":          {[]int64{0, 0, 0, 0, 0, 0}, 5, Actuals{Runs: 6}},
		"more than twice a third": {[]int64{math.MaxInt64, math.MaxInt64, 1, 1, math.MaxInt64, math.MaxInt64}, math.MaxInt64, Actuals{Runs: 6, P50: math.MaxInt64, P95: math.MaxInt64, Ratio: 1, Drift: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.totals)
			if diff := cmp.Diff(c.want, CompareActuals(c.totals, c.estimated)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !slices.Equal(given, c.totals) {
				t.Errorf("the runs were %v and are %v", given, c.totals)
			}
		})
	}
}

func TestPercentilesAreTheSmallestThatCoverTheirShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		totals := rapid.SliceOfN(rapid.Int64Range(0, 30), 1, 60).Draw(t, "totals")
		a := CompareActuals(totals, 10)
		for percent, p := range map[int]int64{50: a.P50, 95: a.P95} {
			covered, below := 0, 0
			for _, n := range totals {
				if n <= p {
					covered++
				}
				if n < p {
					below++
				}
			}
			if !slices.Contains(totals, p) || covered*100 < percent*len(totals) || below*100 >= percent*len(totals) {
				t.Fatalf("p%d of %v = %d", percent, totals, p)
			}
		}
	})
}

func TestAnEmptyTableHasNoModelToOffer(t *testing.T) {
	_, err := Estimate(price.Table{}, usualWorkload())
	want := "--model: 'claude-haiku-4-5' has no price, the table is empty; give --pricing with a table that has it"
	if err == nil || err.Error() != want {
		t.Errorf("Estimate = %v, want %s", err, want)
	}
}
