package price

import (
	"testing"

	"pgregory.net/rapid"
)

// sold is the built-in table with models of two other vendors.
func sold() Table {
	return Table{Models: []Model{
		{ID: "gpt-5", Input: 1.25, Output: 10},
		{ID: "gpt-5-mini", Input: 0.25, Output: 2},
		{ID: "gemini-2.5-pro", Input: 1.25, Output: 10},
		{ID: "router/special", Input: 7, Output: 7},
	}}.Over(BuiltIn())
}

func TestAModelIsFoundByTheNamesUnderWhichItIsSold(t *testing.T) {
	for name, want := range map[string]string{
		"claude-haiku-4-5":                                       "claude-haiku-4-5",
		"claude-haiku-4-5-20251001":                              "claude-haiku-4-5",
		"claude-haiku-4-5@20251001":                              "claude-haiku-4-5",
		"anthropic/claude-haiku-4-5":                             "claude-haiku-4-5",
		"anthropic/claude-haiku-4-5-20251001":                    "claude-haiku-4-5",
		"openrouter/anthropic/claude-opus-4-8":                   "claude-opus-4-8",
		"us.anthropic.claude-haiku-4-5-20251001-v1:0":            "claude-haiku-4-5",
		"anthropic.claude-haiku-4-5-20251001-v1:0":               "claude-haiku-4-5",
		"bedrock/global.anthropic.claude-opus-4-8-v1":            "claude-opus-4-8",
		"publishers/anthropic/models/claude-sonnet-4-6@20260301": "claude-sonnet-4-6",
		"gpt-5-2025-10-01":                                       "gpt-5",
		"openai/gpt-5-mini":                                      "gpt-5-mini",
		"models/gemini-2.5-pro":                                  "gemini-2.5-pro",
		"publishers/google/models/gemini-2.5-pro":                "gemini-2.5-pro",
		"router/special":                                         "router/special",
		"":                                                       "",
		"claude":                                                 "",
		"claude-haiku-4":                                         "",
		"claude-haiku-4-6":                                       "",
		"claude-haiku-4-5-latest":                                "",
		"claude-opus-4-8[1m]":                                    "",
		"gpt-5-nano":                                             "",
		"gpt-5-codex":                                            "",
		"gpt-5.1":                                                "",
		"gemini-2.5-pro-preview":                                 "",
		"GPT-5":                                                  "",
		"somebody/gpt-5":                                         "",
		"anthropic/claude-haiku-4-5:free":                        "",
		"claude-haiku-4-5-v1":                                    "",
		"special":                                                "",
		"-20251001":                                              "",
		"anthropic/":                                             "",
	} {
		got, ok := sold().Find(name)
		if got.ID != want || ok != (want != "") {
			t.Errorf("Find(%q) = %q, %v, want %q", name, got.ID, ok, want)
		}
	}
}

func TestATablesOwnNameGoesFirst(t *testing.T) {
	table := Table{Models: []Model{{ID: "m", Input: 1}, {ID: "m-20251001", Input: 2}, {ID: "anthropic/m", Input: 3}}}
	for name, want := range map[string]float64{"m": 1, "m-20251001": 2, "m-20261001": 1, "anthropic/m": 3, "anthropic/m-20261001": 3, "openai/m-20261001": 1} {
		if got, ok := table.Find(name); !ok || got.Input != want {
			t.Errorf("Find(%q) = %v, %v, want that for %v", name, got, ok, want)
		}
	}
}

// What is found is one of the table whose name stands in what was asked for.
func TestAFamilyIsNeverGuessed(t *testing.T) {
	table := sold()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(table.Models).Draw(t, "model").ID
		tail := rapid.StringMatching(`[-.:a-z0-9]{0,10}`).Draw(t, "tail")
		got, ok := table.Find(id + tail)
		if tail == "" && (!ok || got.ID != id) {
			t.Fatalf("%s is not found", id)
		}
		if _, exact := table.Model(id + tail); ok && tail != "" && !exact && !release.MatchString(id+tail) && !revision.MatchString(id+tail) {
			t.Fatalf("Find(%q) = %s", id+tail, got.ID)
		}
	})
}
