package readiness

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// mostTokens is the largest number of tokens that a float64 holds exactly.
const mostTokens = 1 << 53

// resolveTokens decides how many tokens a run uses. Each number is the one of the
// workload, else that of the price table, else that of the catalogue.
func resolveTokens(t price.Table, w Workload) (pattern.Tokens, error) {
	usual := price.Tokens{}
	if w.Input == nil || w.Output == nil {
		var err error
		if usual, err = usualTokens(t, w.Pattern); err != nil {
			return pattern.Tokens{}, err
		}
	}
	input, output := cmp.Or(w.Input, usual.Input), cmp.Or(w.Output, usual.Output)
	one := int64(1)
	subagents := cmp.Or(w.Subagents, usual.Subagents, &one)
	for _, n := range []struct {
		option, key string
		tokens      *int64
	}{{"--input-tokens", "input", input}, {"--output-tokens", "output", output}, {"--subagents", "subagents", subagents}} {
		switch {
		case n.tokens == nil:
			return pattern.Tokens{}, fmt.Errorf("--pattern: the price table has no %s for %s; add it there, or give %s",
				n.key, Quote(w.Pattern), n.option)
		case *n.tokens < 0:
			return pattern.Tokens{}, fmt.Errorf("%s: %d is negative; give a number from 0 up", n.option, *n.tokens)
		}
	}
	if (float64(*input)+float64(*output))*float64(max(*subagents, 1)) > mostTokens {
		return pattern.Tokens{}, errors.New("--input-tokens, --output-tokens, --subagents: more tokens in a run than can be counted; " +
			"give smaller numbers")
	}
	return pattern.Tokens{Input: *input, Output: *output, Subagents: *subagents}, nil
}

// usualTokens returns the tokens of a run of a pattern, as far as table and catalogue
// have them.
func usualTokens(t price.Table, name string) (price.Tokens, error) {
	given, inTable := t.Patterns[name]
	known, inCatalogue := pattern.Find(name)
	switch {
	case !inTable && !inCatalogue:
		return price.Tokens{}, unknownPattern(t, name)
	case !inCatalogue:
		return given, nil
	}
	return price.Tokens{
		Input:     cmp.Or(given.Input, &known.Tokens.Input),
		Output:    cmp.Or(given.Output, &known.Tokens.Output),
		Subagents: cmp.Or(given.Subagents, &known.Tokens.Subagents),
	}, nil
}

func unknownPattern(t price.Table, name string) error {
	names := pattern.Names()
	for _, more := range slices.Sorted(maps.Keys(t.Patterns)) {
		if !slices.Contains(names, more) {
			names = append(names, more)
		}
	}
	return fmt.Errorf("--pattern: %s is unknown; %sgive one of %s, or both --input-tokens and --output-tokens",
		Quote(name), orSuggest(name, names), listed(names))
}

func unknownModel(t price.Table, id string) error {
	var ids []string
	for _, m := range t.Models {
		ids = append(ids, m.ID)
	}
	if ids == nil {
		return fmt.Errorf("--model: %s has no price, the table is empty; give --pricing with a table that has it", Quote(id))
	}
	suggestion := "" // Only a similar name: many contain the same part, mostly of old models.
	if near := NearestName(id, ids); near != "" {
		suggestion = "did you mean " + Printable(near) + "? Or "
	}
	return &loop.Fault{
		Exit: loop.ExitUnreadable, What: "--model: " + Quote(id) + " has no price", Fix: suggestion + "add one with {1}; {2} lists those that are known",
		Actions: []loop.Command{loop.PawlCommand("prices update").WithFlag("file", "F").WithBlanks("F"), loop.PawlCommand("prices")},
	}
}

func listed(names []string) string { return Printable(strings.Join(names, ", ")) }

func orSuggest(text string, names []string) string {
	if name := likelyName(text, names); name != "" {
		return "did you mean " + Printable(name) + "? Or "
	}
	return ""
}

// likelyName returns the name that a person probably meant: the nearest, else the first
// that contains the text; empty if missing.
func likelyName(text string, names []string) string {
	if near := NearestName(text, names); near != "" || len(text) < 3 {
		return near
	}
	i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, strings.ToLower(text)) })
	if i < 0 {
		return ""
	}
	return names[i]
}
