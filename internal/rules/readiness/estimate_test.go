package readiness

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// usualWorkload is what a caller gives that was told nothing.
func usualWorkload() Workload {
	return Workload{
		Pattern: DefaultPattern, Model: DefaultModel, Cadence: DefaultCadence, RunsPerDay: 24,
		Days: DefaultDays, PrefixFraction: DefaultPrefixFraction, TTL: DefaultTTL,
	}
}

func workload(name, model, cadence string, runsPerDay float64) Workload {
	w := usualWorkload()
	w.Pattern, w.Model, w.Cadence, w.RunsPerDay = name, model, cadence, runsPerDay
	return w
}

func mustEstimate(tb testing.TB, table price.Table, w Workload) Cost {
	tb.Helper()
	c, err := Estimate(table, w)
	if err != nil {
		tb.Fatalf("Estimate(%+v): %v", w, err)
	}
	return c
}

func TestTheExamplesOfTheFormat(t *testing.T) {
	monitor := workload("monitor", "claude-haiku-4-5", "5m", 288)
	monitor.PrefixFraction = 0.3
	for name, c := range map[string]struct {
		workload Workload
		want     string
	}{
		"pr-watch": {
			workload("pr-watch", "claude-haiku-4-5", "10m", 144),
			`{"pattern":"pr-watch","model":"claude-haiku-4-5","cadence":"10m","runs_per_day":144,` +
				`"tokens_per_run":18000,"input_tokens":15000,"output_tokens":3000,"subagents":1,` +
				`"cost_per_run":0.03,"cost_per_day":4.32,"days":30,"cost_per_horizon":129.6,` +
				`"caching":{"beneficial":true,"ttl":"1h","prefix_tokens":9000,"cost_per_day":3.1707,"cost_per_horizon":95.12,"savings_pct":26.6}}`,
		},
		"ci-watch": {
			workload("ci-watch", "claude-sonnet-4-6", "5m", 288),
			`{"pattern":"ci-watch","model":"claude-sonnet-4-6","cadence":"5m","runs_per_day":288,` +
				`"tokens_per_run":144000,"input_tokens":60000,"output_tokens":12000,"subagents":2,` +
				`"cost_per_run":0.72,"cost_per_day":207.36,"days":30,"cost_per_horizon":6220.8,` +
				`"caching":{"beneficial":true,"ttl":"5m","prefix_tokens":36000,"cost_per_day":151.6212,"cost_per_horizon":4548.64,"savings_pct":26.9}}`,
		},
		"daily-scan": {
			workload("daily-scan", "claude-opus-4-8", "6h", 4),
			`{"pattern":"daily-scan","model":"claude-opus-4-8","cadence":"6h","runs_per_day":4,` +
				`"tokens_per_run":46000,"input_tokens":40000,"output_tokens":6000,"subagents":1,` +
				`"cost_per_run":0.35,"cost_per_day":1.4,"days":30,"cost_per_horizon":42,` +
				`"caching":{"beneficial":false,"reason":"360 min exceeds every TTL","prefix_tokens":24000}}`,
		},
		"monitor": {
			monitor,
			`{"pattern":"monitor","model":"claude-haiku-4-5","cadence":"5m","runs_per_day":288,` +
				`"tokens_per_run":15000,"input_tokens":12000,"output_tokens":3000,"subagents":1,` +
				`"cost_per_run":0.027,"cost_per_day":7.776,"days":30,"cost_per_horizon":233.28,` +
				`"caching":{"beneficial":false,"reason":"prefix 3600 \u003c 4096","prefix_tokens":3600}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(mustEstimate(t, price.BuiltIn(), c.workload).Data())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The numbers of this test were computed in exact decimals, outside of Go: two
// agents with 20011 tokens of input and 3001 of output each, for 31 days.
func TestEveryModelAtEveryTTL(t *testing.T) {
	input, output, subagents := int64(20_011), int64(3_001), int64(2)
	const tooSeldom = "20 min exceeds the 5m TTL"
	for _, c := range []struct {
		model, cadence             string
		runs                       float64
		ttl                        string
		perRun, perDay, perHorizon float64
		caching                    Caching
		savings                    float64 // percent
	}{
		{"claude-fable-5", "5m", 288, "auto", 0.70032, 201.69216, 6252.45696, Caching{true, "", "5m", 12007, 139.724033, 4331.445023, 0}, 30.7},
		{"claude-fable-5", "5m", 288, "5m", 0.70032, 201.69216, 6252.45696, Caching{true, "", "5m", 12007, 139.724033, 4331.445023, 0}, 30.7},
		{"claude-fable-5", "5m", 288, "1h", 0.70032, 201.69216, 6252.45696, Caching{true, "", "1h", 12007, 139.904138, 4337.028278, 0}, 30.6},
		{"claude-fable-5", "20m", 72, "auto", 0.70032, 50.42304, 1563.11424, Caching{true, "", "1h", 12007, 35.318234, 1094.865254, 0}, 30},
		{"claude-fable-5", "20m", 72, "5m", 0.70032, 50.42304, 1563.11424, Caching{Reason: tooSeldom, Prefix: 12007}, 0},
		{"claude-fable-5", "20m", 72, "1h", 0.70032, 50.42304, 1563.11424, Caching{true, "", "1h", 12007, 35.318234, 1094.865254, 0}, 30},
		{"claude-opus-4-8", "5m", 288, "auto", 0.35016, 100.84608, 3126.22848, Caching{true, "", "5m", 12007, 69.8620165, 2165.7225115, 0}, 30.7},
		{"claude-opus-4-8", "5m", 288, "5m", 0.35016, 100.84608, 3126.22848, Caching{true, "", "5m", 12007, 69.8620165, 2165.7225115, 0}, 30.7},
		{"claude-opus-4-8", "5m", 288, "1h", 0.35016, 100.84608, 3126.22848, Caching{true, "", "1h", 12007, 69.952069, 2168.514139, 0}, 30.6},
		{"claude-opus-4-8", "20m", 72, "auto", 0.35016, 25.21152, 781.55712, Caching{true, "", "1h", 12007, 17.659117, 547.432627, 0}, 30},
		{"claude-opus-4-8", "20m", 72, "5m", 0.35016, 25.21152, 781.55712, Caching{Reason: tooSeldom, Prefix: 12007}, 0},
		{"claude-opus-4-8", "20m", 72, "1h", 0.35016, 25.21152, 781.55712, Caching{true, "", "1h", 12007, 17.659117, 547.432627, 0}, 30},
		{"claude-sonnet-4-6", "5m", 288, "auto", 0.210096, 60.507648, 1875.737088, Caching{true, "", "5m", 12007, 41.9172099, 1299.4335069, 0}, 30.7},
		{"claude-sonnet-4-6", "5m", 288, "5m", 0.210096, 60.507648, 1875.737088, Caching{true, "", "5m", 12007, 41.9172099, 1299.4335069, 0}, 30.7},
		{"claude-sonnet-4-6", "5m", 288, "1h", 0.210096, 60.507648, 1875.737088, Caching{true, "", "1h", 12007, 41.9712414, 1301.1084834, 0}, 30.6},
		{"claude-sonnet-4-6", "20m", 72, "auto", 0.210096, 15.126912, 468.934272, Caching{true, "", "1h", 12007, 10.5954702, 328.4595762, 0}, 30},
		{"claude-sonnet-4-6", "20m", 72, "5m", 0.210096, 15.126912, 468.934272, Caching{Reason: tooSeldom, Prefix: 12007}, 0},
		{"claude-sonnet-4-6", "20m", 72, "1h", 0.210096, 15.126912, 468.934272, Caching{true, "", "1h", 12007, 10.5954702, 328.4595762, 0}, 30},
		{"claude-haiku-4-5", "5m", 288, "auto", 0.070032, 20.169216, 625.245696, Caching{true, "", "5m", 12007, 13.9724033, 433.1445023, 0}, 30.7},
		{"claude-haiku-4-5", "5m", 288, "5m", 0.070032, 20.169216, 625.245696, Caching{true, "", "5m", 12007, 13.9724033, 433.1445023, 0}, 30.7},
		{"claude-haiku-4-5", "5m", 288, "1h", 0.070032, 20.169216, 625.245696, Caching{true, "", "1h", 12007, 13.9904138, 433.7028278, 0}, 30.6},
		{"claude-haiku-4-5", "20m", 72, "auto", 0.070032, 5.042304, 156.311424, Caching{true, "", "1h", 12007, 3.5318234, 109.4865254, 0}, 30},
		{"claude-haiku-4-5", "20m", 72, "5m", 0.070032, 5.042304, 156.311424, Caching{Reason: tooSeldom, Prefix: 12007}, 0},
		{"claude-haiku-4-5", "20m", 72, "1h", 0.070032, 5.042304, 156.311424, Caching{true, "", "1h", 12007, 3.5318234, 109.4865254, 0}, 30},
	} {
		t.Run(c.model+" each "+c.cadence+" kept "+c.ttl, func(t *testing.T) {
			w := workload("of my own", c.model, c.cadence, c.runs)
			w.Input, w.Output, w.Subagents, w.Days, w.TTL = &input, &output, &subagents, 31, c.ttl
			want := Cost{
				Pattern: "of my own", Model: c.model, Cadence: c.cadence, RunsPerDay: c.runs,
				Input: 20_011, Output: 3_001, Subagents: 2, TokensPerRun: 46_024, Days: 31,
				PerRun: c.perRun, PerDay: c.perDay, PerHorizon: c.perHorizon, Caching: &c.caching,
			}
			got := mustEstimate(t, price.BuiltIn(), w)
			if savings := 100 * got.Caching.Savings; math.Abs(savings-c.savings) > 0.05 {
				t.Errorf("savings = %v %%, want %v", savings, c.savings)
			}
			c.caching.Savings = got.Caching.Savings
			if diff := cmp.Diff(want, got, nearly); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			w.NoCache, want.Caching = true, nil
			if diff := cmp.Diff(want, mustEstimate(t, price.BuiltIn(), w), nearly); diff != "" {
				t.Errorf("without a cache (-want +got):\n%s", diff)
			}
		})
	}
}

// nearly allows what the last bits of a double may differ from a decimal.
var nearly = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-13*max(math.Abs(a), math.Abs(b)) })

func TestWithoutACacheThereIsNoWordAboutOne(t *testing.T) {
	w := usualWorkload()
	w.NoCache = true
	got, err := json.Marshal(mustEstimate(t, price.BuiltIn(), w).Data())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"pattern":"custom","model":"claude-haiku-4-5","cadence":"1h","runs_per_day":24,` +
		`"tokens_per_run":38000,"input_tokens":30000,"output_tokens":8000,"subagents":1,` +
		`"cost_per_run":0.07,"cost_per_day":1.68,"days":30,"cost_per_horizon":50.4}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatEveryPatternCostsHourlyWithHaiku(t *testing.T) {
	rows := map[string]struct {
		input, output, subagents, perRun int64
		run, day, horizon                float64
	}{
		"daily-scan":       {40000, 6000, 1, 46000, 0.07, 1.68, 50.4},
		"pr-watch":         {15000, 3000, 1, 18000, 0.03, 0.72, 21.6},
		"ci-watch":         {60000, 12000, 2, 144000, 0.24, 5.76, 172.8},
		"dep-bump":         {30000, 8000, 1, 38000, 0.07, 1.68, 50.4},
		"changelog-gen":    {25000, 9000, 1, 34000, 0.07, 1.68, 50.4},
		"merge-hygiene":    {20000, 4000, 1, 24000, 0.04, 0.96, 28.8},
		"issue-sort":       {18000, 4000, 1, 22000, 0.038, 0.912, 27.36},
		"metric-chase":     {50000, 20000, 3, 210000, 0.45, 10.8, 324},
		"regression-watch": {45000, 8000, 1, 53000, 0.085, 2.04, 61.2},
		"digest":           {30000, 7000, 1, 37000, 0.065, 1.56, 46.8},
		"backfill":         {40000, 15000, 2, 110000, 0.23, 5.52, 165.6},
		"monitor":          {12000, 3000, 1, 15000, 0.027, 0.648, 19.44},
		"freshness":        {35000, 6000, 1, 41000, 0.065, 1.56, 46.8},
		"custom":           {30000, 8000, 1, 38000, 0.07, 1.68, 50.4},
	}
	if len(rows) != len(pattern.Names()) {
		t.Fatalf("%d rows for %d patterns", len(rows), len(pattern.Names()))
	}
	for name, row := range rows {
		w := workload(name, DefaultModel, "1h", 24)
		w.NoCache = true
		want := CostData{
			Pattern: name, Model: DefaultModel, Cadence: "1h", RunsPerDay: 24,
			TokensPerRun: row.perRun, InputTokens: row.input, OutputTokens: row.output, Subagents: row.subagents,
			CostPerRun: row.run, CostPerDay: row.day, Days: 30, CostPerHorizon: row.horizon,
		}
		if diff := cmp.Diff(want, mustEstimate(t, price.BuiltIn(), w).Data()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCostGrowsInProportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, c := drawEstimate(t)
		for name, twice := range map[string]func(*Workload){
			"runs per day": func(w *Workload) { w.RunsPerDay *= 2 },
			"days":         func(w *Workload) { w.Days *= 2 },
			"subagents":    func(w *Workload) { w.Subagents = new(2 * c.Subagents) },
		} {
			more := w
			twice(&more)
			got, err := Estimate(price.BuiltIn(), more)
			if err != nil {
				t.Fatal(err)
			}
			// Doubling a double is exact.
			if got.PerHorizon != 2*c.PerHorizon {
				t.Fatalf("twice the %s of %+v cost %v, want %v", name, w, got.PerHorizon, 2*c.PerHorizon)
			}
		}
		if c.PerDay != c.PerRun*w.RunsPerDay || c.PerHorizon != c.PerDay*float64(w.Days) {
			t.Fatalf("%+v does not add up", c)
		}
	})
}

func TestACacheThatPaysNeverCostsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, c := drawEstimate(t)
		k := c.Caching
		if k.Prefix < 0 || k.Prefix > c.Input {
			t.Fatalf("%+v: a prefix of %d tokens", w, k.Prefix)
		}
		if !k.Beneficial {
			if k.Reason == "" || k.TTL != "" || k.PerDay != 0 || k.PerHorizon != 0 || k.Savings != 0 {
				t.Fatalf("%+v: %+v", w, k)
			}
			return
		}
		// The price of a read is paid for the prefix of each run, and more for the one that writes it.
		m, _ := price.BuiltIn().PriceOf(w.Model)
		if k.Reason != "" || k.PerDay >= c.PerDay || k.Savings <= 0 || k.Savings >= 1-m.CacheRead/m.Input {
			t.Fatalf("%+v: %v a day with a cache, %v without; %+v", w, k.PerDay, c.PerDay, k)
		}
		if interval := 1440 / w.RunsPerDay; interval > 60 || k.TTL == TTL5m && interval > 5 || w.TTL != TTLAuto && w.TTL != k.TTL {
			t.Fatalf("%+v: %s each %v minutes", w, k.TTL, interval)
		}
	})
}

func drawEstimate(t *rapid.T) (Workload, Cost) {
	w := Workload{
		Pattern:        rapid.SampledFrom(pattern.Names()).Draw(t, "pattern"),
		Model:          rapid.SampledFrom(price.BuiltIn().Models).Draw(t, "model").ID,
		RunsPerDay:     rapid.OneOf(rapid.Float64Range(0.001, 1440), rapid.SampledFrom([]float64{1, 24, 48, 144, 288, 1440})).Draw(t, "runs"),
		Days:           rapid.IntRange(1, 4000).Draw(t, "days"),
		PrefixFraction: rapid.Float64Range(0, 1).Draw(t, "fraction"),
		TTL:            rapid.SampledFrom([]string{TTLAuto, TTL5m, TTL1h}).Draw(t, "ttl"),
	}
	if rapid.Bool().Draw(t, "own tokens") {
		w.Input = new(rapid.Int64Range(0, 1e6).Draw(t, "input"))
		w.Output = new(rapid.Int64Range(0, 1e6).Draw(t, "output"))
		w.Subagents = new(rapid.Int64Range(1, 20).Draw(t, "subagents"))
	}
	c, err := Estimate(price.BuiltIn(), w)
	if err != nil {
		t.Fatalf("Estimate(%+v): %v", w, err)
	}
	return w, c
}
