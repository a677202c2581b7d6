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
	"strings"
)

// DefaultMinPrefix is the MinPrefix, in tokens, of a model for which no table
// has another.
const DefaultMinPrefix = 1024

// Table is a dated list of prices. The zero Table knows no model.
type Table struct {
	AsOf     string // YYYY-MM or YYYY-MM-DD; empty if the table does not say
	Source   string // where the prices are from, for people
	Notice   string // the licence that comes with them
	Models   []Model
	Patterns map[string]Tokens // by the name of a pattern
}

// Rates are prices in US dollars per million tokens.
type Rates struct {
	Input        float64 `json:"input_per_mtok"`
	Output       float64 `json:"output_per_mtok"`
	CacheRead    float64 `json:"cache_read_per_mtok"`
	CacheWrite5m float64 `json:"cache_write_5m_per_mtok"` // kept for minutes, the vendor's usual time
	CacheWrite1h float64 `json:"cache_write_1h_per_mtok"` // kept for an hour
	Reasoning    float64 `json:"reasoning_per_mtok"`      // thoughts that are billed as output
}

// Tier replaces all rates of a call whose whole input, cached tokens included,
// has more than Above tokens.
type Tier struct {
	Above int64 `json:"above_tokens"`
	Rates
}

// Model is what one model costs.
type Model struct {
	ID string `json:"model"`
	Rates

	MinPrefix int64  `json:"min_prefix_tokens"`      // the shortest prompt prefix that is cached
	Long      []Tier `json:"long_context,omitempty"` // from the lowest bound up

	// Fees are in US dollars per 1,000; nil: the table does not say.
	WebSearch  *float64 `json:"web_search_per_1000,omitempty"`
	FileSearch *float64 `json:"file_search_per_1000,omitempty"`

	Vendor   string   `json:"vendor,omitempty"`
	Names    []string `json:"names,omitempty"`    // other names for the same model
	Prefixes []string `json:"prefixes,omitempty"` // names that begin so are the same model if only a release follows

	From []Change `json:"from,omitempty"` // announced changes, the earliest first
}

// Change is what a model costs from a day on, YYYY-MM-DD in UTC.
type Change struct {
	Date string `json:"date"`
	Rates
}

// Tokens is what one run of a pattern usually uses, as far as a table says:
// Input and Output are of one agent, and Subagents is how many there are. A nil
// number is not in the table.
type Tokens struct {
	Input     *int64
	Output    *int64
	Subagents *int64
}

// Model looks a model up by its own name.
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
	at := map[string]int{}
	for i, m := range merged.Models {
		at[m.ID] = i
	}
	for _, m := range t.Models {
		if i, ok := at[m.ID]; ok {
			merged.Models[i] = m
			continue
		}
		merged.Models = append(merged.Models, m)
	}
	maps.Copy(merged.Patterns, base.Patterns)
	maps.Copy(merged.Patterns, t.Patterns)
	return merged
}

// On is t with the prices of a day, YYYY-MM-DD: a change that has come by then
// counts. t does not change.
func (t Table) On(day string) Table {
	t.Models = slices.Clone(t.Models)
	for i, m := range t.Models {
		for _, c := range m.From {
			if strings.Compare(c.Date, day) <= 0 {
				t.Models[i].Rates = c.Rates
			}
		}
	}
	return t
}

// Usage is how many tokens were used, each counted once: Input are those that
// were neither read from a cache nor written to one. Reasoning is a part of
// Output. Searches are counted by the vendor's own tools.
type Usage struct {
	Input        int64
	Output       int64
	CacheRead    int64
	CacheWrite5m int64 // kept for five minutes
	CacheWrite1h int64 // kept for an hour
	Reasoning    int64
	WebSearches  int64
	FileSearches int64
}

// Cost is what one call costs that used u, in millionths of a US dollar, rounded
// to the nearest. The length of its whole input chooses the tier. Negative
// numbers count as nothing, and a cost that an int64 cannot hold is the largest
// that it can. A search without a price adds nothing: see Covers.
func (m Model) Cost(u Usage) int64 {
	whole := count(u.Input) + count(u.CacheRead) + count(u.CacheWrite5m) + count(u.CacheWrite1h)
	rates := m.Rates
	for _, t := range m.Long {
		if whole > float64(t.Above) {
			rates = t.Rates
		}
	}
	return m.cost(rates, u)
}

// CostOfMany is Cost for the sum of several calls of which nobody knows how long
// each was: the prices of short input count.
func (m Model) CostOfMany(u Usage) int64 { return m.cost(m.Rates, u) }

func (m Model) cost(r Rates, u Usage) int64 {
	thoughts := min(count(u.Reasoning), count(u.Output))
	// A dollar per million tokens is a millionth of a dollar per token, and a dollar
	// per thousand searches is a thousand millionths each.
	sum := float64(count(u.Input)*r.Input) +
		float64((count(u.Output)-thoughts)*r.Output) +
		float64(thoughts*r.Reasoning) +
		float64(count(u.CacheRead)*r.CacheRead) +
		float64(count(u.CacheWrite5m)*r.CacheWrite5m) +
		float64(count(u.CacheWrite1h)*r.CacheWrite1h) +
		float64(count(u.WebSearches)*fee(m.WebSearch)*1000) +
		float64(count(u.FileSearches)*fee(m.FileSearch)*1000)
	if sum >= math.MaxInt64 {
		return math.MaxInt64
	}
	// Prices are decimals, and a sum that is half a millionth in decimals may be a
	// hair less as a double.
	return int64(math.Floor(sum + 0.5 + 1e-7))
}

// Covers reports whether everything in u has a price.
func (m Model) Covers(u Usage) bool {
	return (u.WebSearches <= 0 || m.WebSearch != nil) && (u.FileSearches <= 0 || m.FileSearch != nil)
}

func fee(perThousand *float64) float64 {
	if perThousand == nil {
		return 0
	}
	return *perThousand
}

func count(n int64) float64 { return float64(max(n, 0)) }
