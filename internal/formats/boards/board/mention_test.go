package board_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
)

func TestAMentionIsAHandleInText(t *testing.T) {
	for text, want := range map[string][]string{
		"@dev please look":                       {"dev"},
		"ask @qa, @dev. And @qa again!":          {"qa", "dev"},
		"(@front-end) *@dev*: \"@qa\"":           {"front-end", "dev", "qa"},
		"[@dev](https://x.example/@other)":       {"dev"},
		"@Dev and @DEV":                          {"dev"},
		"mail dev@example.com":                   nil,
		"mail first.last@dev.example":            nil,
		"@example.com is a domain":               nil,
		"npm i @types/node":                      nil,
		"git@host:path":                          nil,
		"see `@dev` and ``a ` @qa`` but @ops":    {"ops"},
		"an open ` mark, @dev":                   {"dev"},
		"```\n@dev\n```\n@qa":                    {"qa"},
		"~~~go\n@dev\n```\n@ops\n~~~\n@qa":       {"qa"},
		"````\n```\n@dev\n````\n@qa":             {"qa"},
		"```\n@dev, and the block never ends":    nil,
		"@@dev":                                  nil,
		`\@dev`:                                  nil,
		"@dev-":                                  {"dev"},
		"@dev--x":                                nil,
		"@9lives":                                nil,
		"@ dev":                                  nil,
		"@":                                      nil,
		"é@dev":                                  nil,
		"@devé":                                  nil,
		"@a2345678901234567890123456789012":      {"a2345678901234567890123456789012"},
		"@a23456789012345678901234567890123":     nil,
		"one line\n@dev\n\n@qa at the beginning": {"dev", "qa"},
	} {
		if got := board.Mentions(text); !slices.Equal(got, want) {
			t.Errorf("%q mentions %q, want %q", text, got, want)
		}
	}
}

func TestMentionsAreHandlesAndEachComesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("([a-c@.`~/ \n-]|@a|@b-c|```|é){0,60}").Draw(t, "text")
		seen := map[string]bool{}
		for _, h := range board.Mentions(text) {
			if !board.IsHandle(h) || seen[h] {
				t.Fatalf("%q mentions %q", text, h)
			}
			seen[h] = true
		}
	})
}
