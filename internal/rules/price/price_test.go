package price

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTheBuiltInTableSaysWhenAndWhereItIsFrom(t *testing.T) {
	table := BuiltIn()
	if table.AsOf != "2026-09-23" || !strings.Contains(table.Source, "genai-prices") || !strings.Contains(table.Notice, "Copyright (c) Pydantic Services Inc.") {
		t.Errorf("as of %q, source %q, notice %.60q", table.AsOf, table.Source, table.Notice)
	}
	for _, m := range table.Models {
		if m.Input <= 0 || m.Output <= 0 || m.CacheRead > m.Input || m.CacheWrite1h < m.CacheWrite5m || m.Reasoning <= 0 || m.Vendor == "" {
			t.Errorf("%s: %+v", m.ID, m.Rates)
		}
	}
}

func TestAModelHasAPriceOrNone(t *testing.T) {
	table := BuiltIn()
	for _, m := range table.Models {
		if got, ok := table.FindID(m.ID); !ok || cmp.Diff(m, got) != "" {
			t.Errorf("Model(%s) = %v, %v, want %v", m.ID, got, ok, m)
		}
	}
	for _, id := range []string{"", "claude-haiku", "CLAUDE-HAIKU-4-5", "claude-haiku-4-5 "} {
		if got, ok := table.FindID(id); ok {
			t.Errorf("Model(%q) = %v, want none", id, got)
		}
	}
}

func TestATableOverAnother(t *testing.T) {
	five, six := int64(5), int64(6)
	base := Table{
		"2026-06", "base", "",
		[]Model{flat("a", 1, 2, 3), flat("b", 4, 5, 6)},
		map[string]Tokens{"p": {Input: &five, Output: &five}, "q": {Input: &five}},
		false,
	}
	for name, c := range map[string]struct{ over, want Table }{
		"nothing changes nothing": {Table{}, base},
		"a model replaces its namesake and dates the table": {
			Table{AsOf: "2027-01", Source: "mine", Models: []Model{flat("b", 7, 8, 9)}},
			Table{"2027-01", "mine", "", []Model{flat("a", 1, 2, 3), flat("b", 7, 8, 9)}, base.Patterns, false},
		},
		"another model comes last": {
			Table{Models: []Model{flat("c", 7, 8, 9)}},
			Table{"", "", "", []Model{flat("a", 1, 2, 3), flat("b", 4, 5, 6), flat("c", 7, 8, 9)}, base.Patterns, false},
		},
		"patterns alone leave the date": {
			Table{AsOf: "2027-01", Source: "mine", Patterns: map[string]Tokens{"p": {Input: &six}, "r": {Output: &six}}},
			Table{"2026-06", "base", "", base.Models, map[string]Tokens{"p": {Input: &six}, "q": {Input: &five}, "r": {Output: &six}}, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.over.MergeOver(Table{}).MergeOver(base) // A copy, to see that nothing is shared.
			if diff := cmp.Diff(c.want, c.over.MergeOver(base)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			before.Models[0].Input = 99
			before.Patterns["p"] = Tokens{}
			if base.Models[0].Input != 1 || base.Patterns["p"].Input != &five {
				t.Errorf("the base has changed: %v", base)
			}
		})
	}
}

// flat is a model whose cached tokens have no price of their own.
func flat(id string, input, output float64, prefix int64) Model {
	return Model{ID: id, Rates: Rates{Input: input, Output: output, CacheRead: input, CacheWrite5m: input, CacheWrite1h: input, Reasoning: output}, MinPrefix: prefix}
}

// priced is a model of the built-in table.
func priced(t *testing.T, id string) Model {
	t.Helper()
	m, ok := BuiltIn().Find(id)
	if !ok {
		t.Fatalf("%s has no price", id)
	}
	return m
}

// Each sum was worked out by hand from the vendor's list of prices, in millionths
// of a US dollar: a dollar per million tokens is one for each token, and a dollar per
// thousand searches is 1000 for each.
func TestWhatACallCostsIsWhatAPersonWorksOut(t *testing.T) {
	for name, c := range map[string]struct {
		model string
		used  Usage
		want  int64
	}{
		// 1,200·4 + 850·20 = 4,800 + 17,000
		"Anthropic, Claude Opus 5.5": {"claude-opus-5-5", Usage{Input: 1_200, Output: 850}, 21_800},
		// 12·4 + 40,000·0.20 + 1,000·5 + 2,000·8 + 500·20 = 48 + 8,000 + 5,000 + 16,000 + 10,000. A read is a twentieth.
		"Anthropic, Opus 5.5 with its cache": {"claude-opus-5-5", Usage{Input: 12, CacheRead: 40_000, CacheWrite5m: 1_000, CacheWrite1h: 2_000, Output: 500}, 39_048},
		// 10·3 + 90,000·0.30 + 4,321·3.75 + 700·15 = 30 + 27,000 + 16,203.75 + 10,500 = 53,733.75
		"Anthropic, Sonnet 4.6 by its dated name": {"claude-sonnet-4-6-20260217", Usage{Input: 10, CacheRead: 90_000, CacheWrite5m: 4_321, Output: 700}, 53_734},
		// 5,000·1 + 300·5 + 3 searches·10,000 = 5,000 + 1,500 + 30,000
		"Anthropic, Haiku 4.5 that searched the web": {"claude-haiku-4-5-20251001", Usage{Input: 5_000, Output: 300, WebSearches: 3}, 36_500},
		// 100,000 tokens are not above the bound: 20,000·0.10 + 80,000·0.01 + 1,000·0.50 = 2,000 + 800 + 500
		"Anthropic, Haiku 5.5 at its bound": {"claude-haiku-5-5", Usage{Input: 20_000, CacheRead: 80_000, Output: 1_000}, 3_300},
		// 100,001 are: 20,001·0.50 + 80,000·0.05 + 1,000·2.50 = 10,000.5 + 4,000 + 2,500
		"Anthropic, Haiku 5.5 above it": {"claude-haiku-5-5", Usage{Input: 20_001, CacheRead: 80_000, Output: 1_000}, 16_501},
		// 150,000·6 + 100,000·0.60 + 2,000·22.50 = 900,000 + 60,000 + 45,000
		"Anthropic, Sonnet 4.5 with long input": {"claude-sonnet-4-5-20250929", Usage{Input: 150_000, CacheRead: 100_000, Output: 2_000}, 1_005_000},
		// 2,000·2 + 8,000·0.10 + 400·10 = 4,000 + 800 + 4,000; 300 of the output were thought, at the same price.
		"OpenAI, GPT-6.1 Sol": {"gpt-6.1-sol", Usage{Input: 2_000, CacheRead: 8_000, Output: 400, Reasoning: 300}, 8_800},
		// 200,000·4 + 72,001·0.20 + 1,000·15 = 800,000 + 14,400.2 + 15,000
		"OpenAI, GPT-6.1 Sol with long input": {"openai/gpt-6.1-sol-2026-09-29", Usage{Input: 200_000, CacheRead: 72_001, Output: 1_000}, 829_400},
		// 1,500·1.25 + 10,240·0.125 + 950·10 + 2·10,000 + 1·2,500 = 1,875 + 1,280 + 9,500 + 20,000 + 2,500
		"OpenAI, GPT-5 Codex that searched": {"gpt-5-codex", Usage{Input: 1_500, CacheRead: 10_240, Output: 950, WebSearches: 2, FileSearches: 1}, 35_155},
		// 333·0.25 + 77·2 = 83.25 + 154
		"OpenAI, GPT-5.1 Codex Mini": {"gpt-5.1-codex-mini", Usage{Input: 333, Output: 77}, 237},
		// 2,000·2 + 4,000·0.20 + 300·12 = 4,000 + 800 + 3,600
		"Google, Gemini 3.1 Pro": {"models/gemini-3.1-pro-preview", Usage{Input: 2_000, CacheRead: 4_000, Output: 300}, 8_400},
		// 200,001·4 + 1,000·18 = 800,004 + 18,000
		"Google, Gemini 3.1 Pro with long input": {"gemini-3.1-pro-preview", Usage{Input: 200_001, Output: 1_000}, 818_004},
		// 7,777·0.30 + 111·2.50 + 2·14,000 = 2,333.1 + 277.5 + 28,000
		"Google, Gemini 3.5 Flash-Lite that searched": {"gemini-3.5-flash-lite", Usage{Input: 7_777, Output: 111, WebSearches: 2}, 30_611},
		// 10,000·0.95 + 50,000·0.16 + 2,500·4 = 9,500 + 8,000 + 10,000
		"Moonshot, Kimi K2.6": {"kimi-k2.6", Usage{Input: 10_000, CacheRead: 50_000, Output: 2_500}, 27_500},
		// 100,000·2 + 99,999·0.30 + 1,000·6 = 200,000 + 29,999.7 + 6,000
		"xAI, Grok 4.5": {"x-ai/grok-4.5", Usage{Input: 100_000, CacheRead: 99_999, Output: 1_000}, 236_000},
		// xAI's bound is inclusive: 100,000·4 + 100,000·0.60 + 1,000·12 = 400,000 + 60,000 + 12,000
		"xAI, Grok 4.5 from 200,000 on": {"grok-4.5", Usage{Input: 100_000, CacheRead: 100_000, Output: 1_000}, 472_000},
		// At the dearest hour: 1,000·1.32 + 64,000·0.044 + 500·3.96 = 1,320 + 2,816 + 1,980
		"DeepSeek V4 Pro": {"deepseek-v4-pro", Usage{Input: 1_000, CacheRead: 64_000, Output: 500}, 6_116},
		// 4,000·0.40 + 1,000·0.04 + 600·2 = 1,600 + 40 + 1,200
		"Mistral, Devstral": {"devstral-2512", Usage{Input: 4_000, CacheRead: 1_000, Output: 600}, 2_840},
		// 900·2.50 + 100·0.50 + 40·7.50 = 2,250 + 50 + 300
		"Qwen 3.7 Max": {"qwen3.7-max", Usage{Input: 900, CacheRead: 100, Output: 40}, 2_600},
		// 1,000·1.40 + 9,000·0.26 + 100·4.40 = 1,400 + 2,340 + 440
		"Z.ai, GLM 5.3": {"glm-5.3", Usage{Input: 1_000, CacheRead: 9_000, Output: 100}, 4_180},
	} {
		t.Run(name, func(t *testing.T) {
			if got := priced(t, c.model).Cost(c.used); got != c.want {
				t.Errorf("Cost = %d, want %d millionths of a dollar", got, c.want)
			}
		})
	}
}

func TestPricesThatChangeOnADayCountFromThenOn(t *testing.T) {
	for day, want := range map[string]int64{"2026-12-31": 750, "2027-01-01": 1500, "2027-02-01": 1500} {
		m, _ := BuiltIn().OnDay(day).Find("gemini-3.6-flash")
		if got := m.Cost(Usage{Input: 1000}); got != want {
			t.Errorf("on %s 1000 tokens cost %d, want %d", day, got, want)
		}
	}
	if m, _ := BuiltIn().Find("gemini-3.6-flash"); m.Input != 0.75 {
		t.Errorf("the built-in table has changed: %v", m.Input)
	}
}

func TestTheSumOfManyCallsIsNotTakenForOneLongCall(t *testing.T) {
	m := priced(t, "gpt-6.1-sol")
	if got := m.CostOfMany(Usage{Input: 1_000_000}); got != 2_000_000 {
		t.Errorf("CostOfMany = %d, want 2,000,000", got)
	}
}

func TestASearchWithoutAPriceIsNotCovered(t *testing.T) {
	m := priced(t, "deepseek-v4-pro")
	if m.Covers(Usage{WebSearches: 1}) || m.Covers(Usage{FileSearches: 1}) || !m.Covers(Usage{Input: 1}) {
		t.Error("a search of a model without a fee is covered, or its tokens are not")
	}
}

func TestCostOfWhatWasUsed(t *testing.T) {
	haiku, opus := priced(t, "claude-haiku-4-5"), priced(t, "claude-opus-4-8")
	odd := Model{Rates: Rates{Input: 0.0375, Output: 0.15, Reasoning: 0.3}}
	for name, c := range map[string]struct {
		model Model
		used  Usage
		want  int64
	}{
		"nothing":                         {haiku, Usage{}, 0},
		"input":                           {haiku, Usage{Input: 1_000_000}, 1_000_000},
		"output":                          {haiku, Usage{Output: 1_000_000}, 5_000_000},
		"a cache read is a tenth":         {opus, Usage{CacheRead: 1_000_000}, 500_000},
		"a short write is a quarter more": {opus, Usage{CacheWrite5m: 1_000_000}, 6_250_000},
		"a long write is twice":           {opus, Usage{CacheWrite1h: 1_000_000}, 10_000_000},
		"a half goes up":                  {haiku, Usage{CacheRead: 5}, 1},
		"less than a half goes down":      {haiku, Usage{CacheRead: 4}, 0},
		"fractions of a cent":             {odd, Usage{Input: 1_000, Output: 1_000}, 188},   // 37.5 + 150
		"thoughts with their own price":   {odd, Usage{Output: 1_000, Reasoning: 400}, 210}, // 600·0.15 + 400·0.3
		"more thoughts than output":       {odd, Usage{Output: 10, Reasoning: 400}, 3},
		"negative numbers":                {haiku, Usage{Input: -5, Output: 1}, 5},
		"more than fits":                  {opus, Usage{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64},
		"a free model":                    {Model{}, Usage{Input: 1e9, Output: 1e9}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.model.Cost(c.used); got != c.want {
				t.Errorf("Cost = %d, want %d millionths of a dollar", got, c.want)
			}
		})
	}
}

func TestMoreTokensNeverCostLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(BuiltIn().Models).Draw(t, "model")
		n := rapid.Int64Range(0, 1e12)
		draw := func() (u Usage) {
			for _, into := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite5m, &u.CacheWrite1h, &u.WebSearches} {
				*into = n.Draw(t, "n")
			}
			return u
		}
		a, more := draw(), draw()
		b := Usage{
			Input: a.Input + more.Input, Output: a.Output + more.Output, CacheRead: a.CacheRead + more.CacheRead,
			CacheWrite5m: a.CacheWrite5m + more.CacheWrite5m, CacheWrite1h: a.CacheWrite1h + more.CacheWrite1h, WebSearches: a.WebSearches + more.WebSearches,
		}
		if m.Cost(a) > m.Cost(b) {
			t.Fatalf("%s: %v costs %d, and %v costs %d", m.ID, a, m.Cost(a), b, m.Cost(b))
		}
	})
}
