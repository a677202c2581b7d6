package price

import (
	"testing"

	"pgregory.net/rapid"
)

func TestAnUnpricedModelOfAKnownFamilyTakesTwiceTheDearestPriceOfIt(t *testing.T) {
	table := BuiltIn()
	for name, want := range map[string]struct {
		family        string
		input, output float64
	}{
		"gpt-6.2-sol":                       {"gpt", 20, 100},
		"openai/gpt-6.2-sol-2026-11-20":     {"gpt", 20, 100},
		"gpt-7":                             {"gpt", 20, 100},
		"gpt-7.1-pro":                       {"gpt pro", 60, 360},
		"gpt-5.7-sol":                       {"gpt-5", 10, 60},
		"claude-opus-6":                     {"claude opus", 30, 150},
		"us.anthropic.claude-sonnet-6-v1:0": {"claude sonnet", 6, 30},
		"gemini-4-pro-preview":              {"gemini pro", 4, 24},
		"qwen4-max":                         {"qwen max", 5, 15},
		"gpt-6.1-sol":                       {"", 2, 10},
		"anthropic/claude-haiku-4-5":        {"", 1, 5},
		"gemini-3-pro-image-preview":        {"-", 0, 0},
		"gpt-6.2-sol-ultra":                 {"-", 0, 0},
		"my-gpt-6.2-sol":                    {"-", 0, 0},
		"gpt-oss-500b":                      {"-", 0, 0},
		"claude-nova-6":                     {"-", 0, 0},
		"house-model":                       {"-", 0, 0},
		"":                                  {"-", 0, 0},
	} {
		m, ok := table.PriceOf(name)
		if ok != (want.family != "-") || ok && (m.Assumed != want.family || m.Input != want.input || m.Output != want.output) {
			t.Errorf("%s: %+v, %v; want %+v", name, m, ok, want)
		}
		if _, exact := table.Find(name); exact && m.Assumed != "" {
			t.Errorf("%s has a price, and another one is assumed", name)
		}
		refused := table
		refused.NoAssumed = true
		if m, ok := refused.PriceOf(name); ok && m.Assumed != "" {
			t.Errorf("%s: %+v is assumed in spite of NoAssumed", name, m)
		}
	}
}

func TestAnAssumedPriceIsAtLeastTwiceThatOfEachModelOfItsFamily(t *testing.T) {
	table := BuiltIn()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"gpt-6.2-sol", "gpt-9-mini", "gpt-5.9", "gpt-8-pro", "claude-opus-7", "claude-haiku-7", "gemini-5-flash", "qwen5-plus"}).Draw(t, "model")
		assumed, ok := table.PriceOf(name)
		if !ok || assumed.ID != name {
			t.Fatalf("%s has no price: %+v", name, assumed)
		}
		u := Usage{
			Input: rapid.Int64Range(0, 400_000).Draw(t, "input"), Output: rapid.Int64Range(0, 40_000).Draw(t, "output"),
			CacheRead: rapid.Int64Range(0, 400_000).Draw(t, "read"), CacheWrite5m: rapid.Int64Range(0, 40_000).Draw(t, "write"), WebSearches: rapid.Int64Range(0, 9).Draw(t, "searches"),
		}
		for _, m := range table.Models {
			if familyOf(m.ID) == familyOf(name) && assumed.Cost(u)+2 < 2*m.Cost(u) {
				t.Fatalf("%s is assumed to cost %d for %+v, and %s costs %d", name, assumed.Cost(u), u, m.ID, m.Cost(u))
			}
		}
	})
}

func TestOnePriceOfAPersonsOwnCountsBeforeAnAssumedOne(t *testing.T) {
	own := Table{Models: []Model{{ID: "gpt-6.2-sol", Rates: Rates{Input: 3, Output: 12}}}}
	if m, ok := own.MergeOver(BuiltIn()).PriceOf("gpt-6.2-sol"); !ok || m.Assumed != "" || m.Input != 3 {
		t.Errorf("%+v, %v", m, ok)
	}
	own.NoAssumed = true
	if m, ok := own.MergeOver(BuiltIn()).PriceOf("gpt-6.3-sol"); ok {
		t.Errorf("%+v is assumed", m)
	}
	if m, ok := (Table{}).PriceOf("gpt-6.2-sol"); ok {
		t.Errorf("%+v is assumed of a table without prices", m)
	}
}
