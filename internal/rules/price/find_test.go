package price

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sold is the built-in table with a model of a router.
func sold() Table {
	return Table{Models: []Model{
		{ID: "router/special", Rates: Rates{Input: 7, Output: 7}},
	}}.MergeOver(BuiltIn())
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
		"claude-haiku-4-5-latest":                                "claude-haiku-4-5",
		"claude-opus-4-8[1m]":                                    "claude-opus-4-8",
		"claude-sonnet-5":                                        "claude-sonnet-5",
		"claude-sonnet-5-5":                                      "claude-sonnet-5-5",
		"claude-sonnet-5-5-20260928":                             "claude-sonnet-5-5",
		"claude-sonnet-5-6":                                      "",
		"claude-opus-5-5":                                        "claude-opus-5-5",
		"claude-opus-5-fast":                                     "",
		"gpt-5-nano":                                             "gpt-5-nano",
		"gpt-5-codex":                                            "gpt-5",
		"gpt-5.1-codex-mini":                                     "gpt-5.1-codex-mini",
		"gpt-5.6":                                                "gpt-5.6-sol",
		"gpt-6.1-sol":                                            "gpt-6.1-sol",
		"gpt-6.2-sol":                                            "",
		"gemini-2.5-pro-preview-05-06":                           "gemini-2.5-pro",
		"gemini-3.5-flash-lite-preview":                          "gemini-3.5-flash-lite",
		"gemini-3.1-pro-preview":                                 "gemini-3.1-pro-preview",
		"gemini-3.9-pro":                                         "",
		"x-ai/grok-4.5":                                          "grok-4.5",
		"grok-4-latest":                                          "grok-4-0709",
		"qwen3.7-max":                                            "qwen3.7-max",
		"kimi-k2.6":                                              "kimi-k2.6",
		"moonshotai/kimi-k2.6":                                   "",
		"glm-5.3":                                                "GLM-5.3",
		"deepseek-v4-pro":                                        "deepseek-v4-pro",
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
	table := Table{Models: []Model{{ID: "m", Rates: Rates{Input: 1}}, {ID: "m-20251001", Rates: Rates{Input: 2}}, {ID: "anthropic/m", Rates: Rates{Input: 3}}}}
	for name, want := range map[string]float64{"m": 1, "m-20251001": 2, "m-20261001": 1, "anthropic/m": 3, "anthropic/m-20261001": 3, "openai/m-20261001": 1} {
		if got, ok := table.Find(name); !ok || got.Input != want {
			t.Errorf("Find(%q) = %v, %v, want that for %v", name, got, ok, want)
		}
	}
}

// A name that begins like a model and goes on otherwise is another model.
func TestAFamilyIsNeverGuessed(t *testing.T) {
	table := sold()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom(table.Models).Draw(t, "model").ID
		tail := rapid.StringMatching(`(-[a-z]{4,8}|-[0-9]{1,2}|\.[0-9])`).Draw(t, "tail")
		if got, ok := table.Find(id); !ok || got.ID != id {
			t.Fatalf("%s is not found", id)
		}
		got, ok := table.Find(id + tail)
		if _, exact := table.FindID(id + tail); !ok || exact || releaseSuffix.MatchString(tail) {
			return
		}
		if !slices.Contains(got.Names, id+tail) && !slices.ContainsFunc(got.Prefixes, func(p string) bool { return len(p) >= len(id+tail)-len("-preview") }) {
			t.Fatalf("Find(%q) = %s", id+tail, got.ID)
		}
	})
}
