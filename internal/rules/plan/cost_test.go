package plan_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// dated has the prices of three vendors in round numbers, in USD per million
// tokens.
var dated = price.Table{AsOf: "2026-10", Models: []price.Model{
	{ID: "claude-opus-4-8", Rates: price.Rates{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite5m: 6.25, CacheWrite1h: 10}},
	{ID: "claude-haiku-4-5", Rates: price.Rates{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite5m: 1.25, CacheWrite1h: 2}},
	{ID: "gpt-5", Rates: price.Rates{Input: 1.25, Output: 10, CacheRead: 0.125}, WebSearch: new(10.0)},
	{ID: "gemini-2.5-pro", Rates: price.Rates{Input: 1.25, Output: 10, CacheRead: 0.125}},
}}

func used(model string, u loop.Usage) loop.ModelUsage { return loop.ModelUsage{Model: model, Usage: u} }

var (
	opus   = loop.ModelPrice{Model: "claude-opus-4-8", Input: 5, Output: 25, CacheRead: 0.5, CacheWrite5m: 6.25, CacheWrite1h: 10}
	haiku  = loop.ModelPrice{Model: "claude-haiku-4-5", Input: 1, Output: 5, CacheRead: 0.1, CacheWrite5m: 1.25, CacheWrite1h: 2}
	gpt    = loop.ModelPrice{Model: "gpt-5", Input: 1.25, Output: 10, CacheRead: 0.125, WebSearch: 10}
	gemini = loop.ModelPrice{Model: "gemini-2.5-pro", Input: 1.25, Output: 10, CacheRead: 0.125}
)

func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		models []loop.ModelUsage
		each   []int64
		want   loop.Cost
	}{
		// {"input_tokens":12,"cache_creation_input_tokens":3000,"cache_creation":{"ephemeral_5m_input_tokens":1000,
		// "ephemeral_1h_input_tokens":2000},"cache_read_input_tokens":40000,"output_tokens":500}:
		// 12·5 + 1000·6.25 + 2000·10 + 40000·0.5 + 500·25
		"Anthropic, whose input has no cached token": {
			[]loop.ModelUsage{used("claude-opus-4-8-20260101", loop.Usage{Input: 12, Output: 500, CacheRead: 40_000, CacheWrite: 3000, CacheWrite1h: 2000})},
			[]int64{60 + 6250 + 20_000 + 20_000 + 12_500},
			loop.Cost{MicroUSD: 58_810, Prices: []loop.ModelPrice{opus}, AsOf: "2026-10"},
		},
		// {"input_tokens":10000,"input_tokens_details":{"cached_tokens":8000},"output_tokens":400,
		// "output_tokens_details":{"reasoning_tokens":300}}: 2000·1.25 + 8000·0.125 + 400·10
		"OpenAI, whose input has the cached tokens in it": {
			[]loop.ModelUsage{used("openai/gpt-5-2025-10-01", loop.Usage{Input: 2000, Output: 400, CacheRead: 8000})},
			[]int64{2500 + 1000 + 4000},
			loop.Cost{MicroUSD: 7500, Prices: []loop.ModelPrice{gpt}, AsOf: "2026-10"},
		},
		// {"promptTokenCount":6000,"cachedContentTokenCount":4000,"candidatesTokenCount":200,"thoughtsTokenCount":100}:
		// 2000·1.25 + 4000·0.125 + 300·10
		"Gemini, whose thoughts are output": {
			[]loop.ModelUsage{used("models/gemini-2.5-pro", loop.Usage{Input: 2000, Output: 300, CacheRead: 4000})},
			[]int64{2500 + 500 + 3000},
			loop.Cost{MicroUSD: 6000, Prices: []loop.ModelPrice{gemini}, AsOf: "2026-10"},
		},
		"a side call of a second model, and the first again": {
			[]loop.ModelUsage{
				used("claude-opus-4-8", loop.Usage{Output: 10}), used("claude-haiku-4-5", loop.Usage{Input: 1000, Output: 50}),
				used("claude-opus-4-8", loop.Usage{Input: 100}),
			},
			[]int64{250, 1250, 500},
			loop.Cost{MicroUSD: 2000, Prices: []loop.ModelPrice{opus, haiku}, AsOf: "2026-10"},
		},
		"a model without a price is named, not free": {
			[]loop.ModelUsage{used("local", loop.Usage{Input: 1}), used("gpt-5", loop.Usage{Output: 1}), used("local", loop.Usage{Input: 2}), used("idle", loop.Usage{})},
			[]int64{0, 10, 0, 0},
			loop.Cost{MicroUSD: 10, Unpriced: []string{"local"}, Prices: []loop.ModelPrice{gpt}, AsOf: "2026-10"},
		},
		"more kept for an hour than was written": {
			[]loop.ModelUsage{used("claude-haiku-4-5", loop.Usage{CacheWrite: 10, CacheWrite1h: 20})},
			[]int64{40},
			loop.Cost{MicroUSD: 40, Prices: []loop.ModelPrice{haiku}, AsOf: "2026-10"},
		},
		"a sum that fits no number": {
			[]loop.ModelUsage{used("gpt-5", loop.Usage{Output: math.MaxInt64}), used("gpt-5", loop.Usage{Output: math.MaxInt64})},
			[]int64{math.MaxInt64, math.MaxInt64},
			loop.Cost{MicroUSD: math.MaxInt64, Prices: []loop.ModelPrice{gpt}, AsOf: "2026-10"},
		},
		"searches with a fee": {
			[]loop.ModelUsage{used("gpt-5", loop.Usage{Output: 100, WebSearches: 2})},
			[]int64{1000 + 20_000},
			loop.Cost{MicroUSD: 21_000, Prices: []loop.ModelPrice{gpt}, AsOf: "2026-10"},
		},
		"searches whose fee nobody knows": {
			[]loop.ModelUsage{used("gemini-2.5-pro", loop.Usage{Output: 100, WebSearches: 2})},
			[]int64{1000},
			loop.Cost{MicroUSD: 1000, Unpriced: []string{"searches of gemini-2.5-pro"}, Prices: []loop.ModelPrice{gemini}, AsOf: "2026-10"},
		},
		"nothing": {nil, nil, loop.Cost{}},
	} {
		t.Run(name, func(t *testing.T) {
			models, cost := plan.PriceModels(c.models, dated)
			if d := cmp.Diff(c.want, cost); d != "" {
				t.Error(d)
			}
			for i, m := range models {
				_, ok := dated.Find(m.Model)
				if m.MicroUSD != c.each[i] || m.Priced != ok || c.models[i].MicroUSD != 0 {
					t.Errorf("%s: %+v, want %d", m.Model, m, c.each[i])
				}
			}
		})
	}
}

// A meter prices call by call, which a sum of tokens cannot: one call of 300,000
// tokens costs more than two of 150,000.
func TestWhatWasPricedCallByCallIsNotPricedAgain(t *testing.T) {
	metered := used("gpt-5", loop.Usage{Input: 1_000_000})
	metered.MicroUSD, metered.Priced = 7, true
	half := used("nobody-sells-it", loop.Usage{Input: 5})
	half.MicroUSD = 4 // of those of its calls that had a price
	models, cost := plan.PriceModels([]loop.ModelUsage{metered, half}, dated)
	want := loop.Cost{MicroUSD: 11, Unpriced: []string{"nobody-sells-it"}, Prices: []loop.ModelPrice{gpt}, AsOf: "2026-10"}
	if diff := cmp.Diff(want, cost); diff != "" || models[0].MicroUSD != 7 {
		t.Errorf("%+v (-want +got):\n%s", models, diff)
	}
}

func TestTheWholeCostsWhatItsPartsCost(t *testing.T) {
	n := rapid.Int64Range(0, 1_000_000)
	usage := rapid.Custom(func(t *rapid.T) loop.ModelUsage {
		write := n.Draw(t, "write")
		return used(rapid.SampledFrom([]string{"gpt-5", "claude-haiku-4-5", "unknown"}).Draw(t, "model"), loop.Usage{
			Input: n.Draw(t, "input"), Output: n.Draw(t, "output"), CacheRead: n.Draw(t, "read"), CacheWrite: write, CacheWrite1h: write / 2,
		})
	})
	rapid.Check(t, func(t *rapid.T) {
		models, cost := plan.PriceModels(rapid.SliceOf(usage).Draw(t, "models"), dated)
		var sum int64
		for _, m := range models {
			sum += m.MicroUSD
			if !m.Priced && m.MicroUSD != 0 {
				t.Fatalf("%+v", m)
			}
		}
		if sum != cost.MicroUSD {
			t.Fatalf("the parts cost %d, the whole %d", sum, cost.MicroUSD)
		}
	})
}
