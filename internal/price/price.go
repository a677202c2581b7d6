// Package price holds what models cost, as dated data that says where it is
// from, and prices what a run has used.
//
// It never fetches a price and never guesses one: a model that is in no table
// has no price. It reads no files; a table of one's own is given as bytes.
package price

import (
	"maps"
	"math"
	"slices"
)

// What a token of a cached prompt prefix costs, as a multiple of an input
// token. A write costs more the longer the prefix is kept.
const (
	CacheRead    = 0.1
	CacheWrite5m = 1.25
	CacheWrite1h = 2.0
)

// DefaultMinPrefix is the MinPrefix, in tokens, of a model for which no table
// has another.
const DefaultMinPrefix = 1024

// Table is a dated list of prices. The zero Table knows no model.
type Table struct {
	AsOf     string // YYYY-MM or YYYY-MM-DD; empty if the table does not say
	Source   string // where the prices are from, for people
	Models   []Model
	Patterns map[string]Tokens // by the name of a pattern
}

// Model is what one model costs, in US dollars per million tokens.
type Model struct {
	ID        string  `json:"model"`
	Input     float64 `json:"input_per_mtok"`
	Output    float64 `json:"output_per_mtok"`
	MinPrefix int64   `json:"min_prefix_tokens"` // the shortest prompt prefix that is cached
}

// Tokens is what one run of a pattern usually uses, as far as a table says:
// Input and Output are of one agent, and Subagents is how many there are. A nil
// number is not in the table.
type Tokens struct {
	Input     *int64
	Output    *int64
	Subagents *int64
}

// Model looks a model up.
func (t Table) Model(id string) (Model, bool) {
	i := slices.IndexFunc(t.Models, func(m Model) bool { return m.ID == id })
	if i < 0 {
		return Model{}, false
	}
	return t.Models[i], true
}

// Over is base with the models and patterns of t in place of its own of the
// same name, and with those that only t has. The date and the source are those
// of t if it has any model. Neither table changes.
func (t Table) Over(base Table) Table {
	merged := Table{AsOf: base.AsOf, Source: base.Source, Models: slices.Clone(base.Models), Patterns: map[string]Tokens{}}
	if len(t.Models) > 0 {
		merged.AsOf, merged.Source = t.AsOf, t.Source
	}
	for _, m := range t.Models {
		if i := slices.IndexFunc(merged.Models, func(old Model) bool { return old.ID == m.ID }); i >= 0 {
			merged.Models[i] = m
			continue
		}
		merged.Models = append(merged.Models, m)
	}
	maps.Copy(merged.Patterns, base.Patterns)
	maps.Copy(merged.Patterns, t.Patterns)
	return merged
}

// Usage is how many tokens were used, each counted once: Input are those that
// were neither read from a cache nor written to one.
type Usage struct {
	Input        int64
	Output       int64
	CacheRead    int64
	CacheWrite5m int64 // kept for five minutes
	CacheWrite1h int64 // kept for an hour
}

// Cost is what u costs, in millionths of a US dollar, rounded to the nearest.
// Negative numbers count as nothing, and a cost that an int64 cannot hold is
// the largest that it can.
func (m Model) Cost(u Usage) int64 {
	// A dollar per million tokens is a millionth of a dollar per token.
	sum := float64(count(u.Input)*m.Input) +
		float64(count(u.Output)*m.Output) +
		float64(count(u.CacheRead)*CacheRead*m.Input) +
		float64(count(u.CacheWrite5m)*CacheWrite5m*m.Input) +
		float64(count(u.CacheWrite1h)*CacheWrite1h*m.Input)
	if sum >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(math.Round(sum))
}

func count(tokens int64) float64 { return float64(max(tokens, 0)) }
