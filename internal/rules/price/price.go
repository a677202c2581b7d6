// Package price holds the prices of models, as dated data with its source, and
// computes what a run's usage costs.
//
// It never fetches a price and never guesses one from a name: a model that is in no table
// has no price, or the one that is assumed of its family, which says so. It reads no files;
// the caller passes a user's own table as bytes.
package price

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// DefaultMinPrefix is the MinPrefix, in tokens, of a model if no table says
// otherwise.
const DefaultMinPrefix = 1024

// Table is a dated list of prices. The zero Table has no models.
type Table struct {
	AsOf     string // YYYY-MM or YYYY-MM-DD; empty if the table does not say
	Source   string // where the prices are from, for people
	Notice   string // the licence that comes with them
	Models   []Model
	Patterns map[string]Tokens // by the pattern's name

	NoAssumed bool // a model without a price has none, whatever its family
}

// Rates are prices in US dollars per million tokens.
type Rates struct {
	Input        float64 `json:"input_per_mtok"`
	Output       float64 `json:"output_per_mtok"`
	CacheRead    float64 `json:"cache_read_per_mtok"`
	CacheWrite5m float64 `json:"cache_write_5m_per_mtok"` // kept for some minutes, the vendor's default
	CacheWrite1h float64 `json:"cache_write_1h_per_mtok"` // kept for an hour
	Reasoning    float64 `json:"reasoning_per_mtok"`      // thoughts that are billed as output
}

// Tier replaces all rates of a call whose whole input, cached tokens included,
// has more than Above tokens.
type Tier struct {
	Above int64 `json:"above_tokens"`
	Rates
}

// Model holds the prices of one model.
type Model struct {
	ID string `json:"model"`
	Rates

	MinPrefix int64  `json:"min_prefix_tokens"`      // the shortest prompt prefix that is cached
	Long      []Tier `json:"long_context,omitempty"` // from the lowest bound up

	// Fees are in US dollars per 1,000 searches; nil means unknown.
	WebSearch  *float64 `json:"web_search_per_1000,omitempty"`
	FileSearch *float64 `json:"file_search_per_1000,omitempty"`

	Vendor   string   `json:"vendor,omitempty"`
	Names    []string `json:"names,omitempty"`    // other names for the same model
	Prefixes []string `json:"prefixes,omitempty"` // prefixes of names of the same model, if only a release follows

	From []Change `json:"from,omitempty"` // announced changes, the earliest first

	Assumed string `json:"assumed,omitempty"` // the family of which the price is assumed; empty: the price is known
}

// Change holds the prices of a model from a day on, YYYY-MM-DD in UTC.
type Change struct {
	Date string `json:"date"`
	Rates
}

// Tokens is what one run of a pattern usually uses: Input and Output of each
// agent, and the number of Subagents. A nil number is not in the table.
type Tokens struct {
	Input     *int64
	Output    *int64
	Subagents *int64
}

// FindID looks up a model by its ID.
func (t Table) FindID(id string) (Model, bool) {
	i := slices.IndexFunc(t.Models, func(m Model) bool { return m.ID == id })
	if i < 0 {
		return Model{}, false
	}
	return t.Models[i], true
}

// MergeOver returns base with the models and patterns of t added; those of t
// replace those of base with the same name. The date and the source are those of
// t if it has any model. Neither table changes.
func (t Table) MergeOver(base Table) Table {
	merged := Table{AsOf: base.AsOf, Source: base.Source, Models: slices.Clone(base.Models), Patterns: map[string]Tokens{}, NoAssumed: t.NoAssumed || base.NoAssumed}
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

// OnDay returns t with the prices of a day, YYYY-MM-DD, after all changes up
// to that day. t does not change.
func (t Table) OnDay(day string) Table {
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

// Usage counts tokens, each once: Input excludes tokens that were read from a
// cache or written to one. Reasoning is a part of Output. Searches are those of
// the vendor's own tools.
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

// Cost returns what one call with usage u costs, in millionths of a US dollar,
// rounded to the nearest. The length of its whole input selects the tier.
// Negative numbers count as zero, and a cost beyond an int64 is the largest
// int64. A search without a price costs nothing: see Covers.
func (m Model) Cost(u Usage) int64 {
	whole := nonNegative(u.Input) + nonNegative(u.CacheRead) + nonNegative(u.CacheWrite5m) + nonNegative(u.CacheWrite1h)
	rates := m.Rates
	for _, t := range m.Long {
		if whole > float64(t.Above) {
			rates = t.Rates
		}
	}
	return m.costAt(rates, u)
}

// CostOfMany returns the cost of several calls with a total usage of u. The
// length of each call is not known, so the prices of short input apply.
func (m Model) CostOfMany(u Usage) int64 { return m.costAt(m.Rates, u) }

func (m Model) costAt(r Rates, u Usage) int64 {
	thoughts := min(nonNegative(u.Reasoning), nonNegative(u.Output))
	// A dollar per million tokens is a millionth of a dollar per token, and a dollar
	// per thousand searches is a thousand millionths each.
	sum := float64(nonNegative(u.Input)*r.Input) +
		float64((nonNegative(u.Output)-thoughts)*r.Output) +
		float64(thoughts*r.Reasoning) +
		float64(nonNegative(u.CacheRead)*r.CacheRead) +
		float64(nonNegative(u.CacheWrite5m)*r.CacheWrite5m) +
		float64(nonNegative(u.CacheWrite1h)*r.CacheWrite1h) +
		float64(nonNegative(u.WebSearches)*feeOrZero(m.WebSearch)*1000) +
		float64(nonNegative(u.FileSearches)*feeOrZero(m.FileSearch)*1000)
	if sum >= math.MaxInt64 {
		return math.MaxInt64
	}
	// Prices are decimals: a sum that ends in exactly half a millionth may be
	// slightly less as a float64.
	return int64(math.Floor(sum + 0.5 + 1e-7))
}

// Covers reports whether everything in u has a price.
func (m Model) Covers(u Usage) bool {
	return (u.WebSearches <= 0 || m.WebSearch != nil) && (u.FileSearches <= 0 || m.FileSearch != nil)
}

func feeOrZero(perThousand *float64) float64 {
	if perThousand == nil {
		return 0
	}
	return *perThousand
}

func nonNegative(n int64) float64 { return float64(max(n, 0)) }
