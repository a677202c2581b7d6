package price

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTheBuiltInTableIsTheOneOfJune2026(t *testing.T) {
	want := Table{
		AsOf:   "2026-06",
		Source: "the table built into pawl",
		Models: []Model{
			{"claude-fable-5", 10, 50, 512},
			{"claude-opus-4-8", 5, 25, 1024},
			{"claude-sonnet-4-6", 3, 15, 1024},
			{"claude-haiku-4-5", 1, 5, 4096},
		},
		Patterns: map[string]Tokens{},
	}
	if diff := cmp.Diff(want, BuiltIn()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAModelHasAPriceOrNone(t *testing.T) {
	table := BuiltIn()
	for _, m := range table.Models {
		if got, ok := table.Model(m.ID); !ok || got != m {
			t.Errorf("Model(%s) = %v, %v, want %v", m.ID, got, ok, m)
		}
	}
	for _, id := range []string{"", "claude-haiku", "CLAUDE-HAIKU-4-5", "claude-haiku-4-5 "} {
		if got, ok := table.Model(id); ok {
			t.Errorf("Model(%q) = %v, want none", id, got)
		}
	}
}

func TestATableOverAnother(t *testing.T) {
	five, six := int64(5), int64(6)
	base := Table{
		"2026-06", "base",
		[]Model{{"a", 1, 2, 3}, {"b", 4, 5, 6}},
		map[string]Tokens{"p": {Input: &five, Output: &five}, "q": {Input: &five}},
	}
	for name, c := range map[string]struct{ over, want Table }{
		"nothing changes nothing": {Table{}, base},
		"a model replaces its namesake and dates the table": {
			Table{AsOf: "2027-01", Source: "mine", Models: []Model{{"b", 7, 8, 9}}},
			Table{"2027-01", "mine", []Model{{"a", 1, 2, 3}, {"b", 7, 8, 9}}, base.Patterns},
		},
		"another model comes last": {
			Table{Models: []Model{{"c", 7, 8, 9}}},
			Table{"", "", []Model{{"a", 1, 2, 3}, {"b", 4, 5, 6}, {"c", 7, 8, 9}}, base.Patterns},
		},
		"patterns alone leave the date": {
			Table{AsOf: "2027-01", Source: "mine", Patterns: map[string]Tokens{"p": {Input: &six}, "r": {Output: &six}}},
			Table{"2026-06", "base", base.Models, map[string]Tokens{"p": {Input: &six}, "q": {Input: &five}, "r": {Output: &six}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.over.Over(Table{}).Over(base) // A copy, to see that nothing is shared.
			if diff := cmp.Diff(c.want, c.over.Over(base)); diff != "" {
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

func TestCostOfWhatWasUsed(t *testing.T) {
	haiku, opus, odd := Model{Input: 1, Output: 5}, Model{Input: 5, Output: 25}, Model{Input: 0.0375, Output: 0.15}
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
		"all of them": {
			opus,
			Usage{Input: 1_234, Output: 567, CacheRead: 89_000, CacheWrite5m: 4_321, CacheWrite1h: 1_111},
			6_170 + 14_175 + 44_500 + 27_006 + 11_110, // 4321 · 6.25 = 27006.25
		},
		"a pr-watch run":             {haiku, Usage{Input: 15_000, Output: 3_000}, 30_000},
		"a half goes up":             {haiku, Usage{CacheRead: 5}, 1},
		"less than a half goes down": {haiku, Usage{CacheRead: 4}, 0},
		"fractions of a cent":        {odd, Usage{Input: 1_000, Output: 1_000}, 188}, // 37.5 + 150
		"negative numbers":           {haiku, Usage{Input: -5, Output: 1}, 5},
		"more than fits":             {opus, Usage{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64},
		"a free model":               {Model{}, Usage{Input: 1e9, Output: 1e9}, 0},
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
		a := Usage{n.Draw(t, "in"), n.Draw(t, "out"), n.Draw(t, "read"), n.Draw(t, "write5m"), n.Draw(t, "write1h")}
		b := Usage{
			a.Input + n.Draw(t, "more"), a.Output + n.Draw(t, "more"), a.CacheRead + n.Draw(t, "more"),
			a.CacheWrite5m + n.Draw(t, "more"), a.CacheWrite1h + n.Draw(t, "more"),
		}
		if m.Cost(a) > m.Cost(b) {
			t.Fatalf("%s: %v costs %d, and %v costs %d", m.ID, a, m.Cost(a), b, m.Cost(b))
		}
	})
}
