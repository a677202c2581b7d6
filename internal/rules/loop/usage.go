package loop

import (
	"encoding/json"
	"math"
)

// Usage counts tokens of model calls, each token once: Input are those that were
// neither read from a cache nor written to one. Source says how they were counted.
type Usage struct {
	Input        int64       `json:"input"`
	Output       int64       `json:"output"`
	CacheRead    int64       `json:"cache_read"`
	CacheWrite   int64       `json:"cache_write"`
	CacheWrite1h int64       `json:"cache_write_1h,omitempty"` // the part of CacheWrite that is kept for an hour
	Reasoning    int64       `json:"reasoning,omitempty"`      // the part of Output that was reasoning, if reported
	WebSearches  int64       `json:"web_searches,omitempty"`   // by tools that the vendor runs, which have a fee
	FileSearches int64       `json:"file_searches,omitempty"`
	Source       UsageSource `json:"source,omitempty"`
}

// ModelUsage is what one model was used for.
type ModelUsage struct {
	Model string `json:"model"`
	Usage
	MicroUSD int64 `json:"micro_usd"`        // millionths of a US dollar
	Priced   bool  `json:"priced,omitempty"` // false: not every call had a price, and MicroUSD is what the others cost
}

// UsageSource says how a Usage was obtained.
type UsageSource string

// The sources, from the most to the least exact. A sum is as exact as its
// least exact part.
const (
	UsageMetered   UsageSource = "metered"
	UsageReported  UsageSource = "reported"
	UsageEstimated UsageSource = "estimated"
)

var exactness = map[UsageSource]int{"": 0, UsageMetered: 1, UsageReported: 2, UsageEstimated: 3}

// ChargedTokens returns the tokens that count against token budgets. Cache reads do
// not: they have a price, and no cap.
func (u Usage) ChargedTokens() int64 { return addCounts(addCounts(u.Input, u.CacheWrite), u.Output) }

// Zero reports whether all counts are zero, whatever the source.
func (u Usage) Zero() bool {
	u.Source = ""
	return u == Usage{}
}

// Add returns the sum of both usages, with the less exact source. A number that
// would overflow is the largest one.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		Input: addCounts(u.Input, v.Input), Output: addCounts(u.Output, v.Output), CacheRead: addCounts(u.CacheRead, v.CacheRead),
		CacheWrite: addCounts(u.CacheWrite, v.CacheWrite), CacheWrite1h: addCounts(u.CacheWrite1h, v.CacheWrite1h),
		Reasoning: addCounts(u.Reasoning, v.Reasoning), WebSearches: addCounts(u.WebSearches, v.WebSearches), FileSearches: addCounts(u.FileSearches, v.FileSearches),
		Source: u.Source,
	}
	if exactness[v.Source] > exactness[u.Source] {
		sum.Source = v.Source
	}
	return sum
}

// Since returns what was used after v, an earlier reading of the same counters. A
// counter that is lower than before was reset, and all of it counts.
func (u Usage) Since(v Usage) Usage {
	return Usage{
		Input: countSince(u.Input, v.Input), Output: countSince(u.Output, v.Output), CacheRead: countSince(u.CacheRead, v.CacheRead),
		CacheWrite: countSince(u.CacheWrite, v.CacheWrite), CacheWrite1h: countSince(u.CacheWrite1h, v.CacheWrite1h),
		Reasoning: countSince(u.Reasoning, v.Reasoning), WebSearches: countSince(u.WebSearches, v.WebSearches), FileSearches: countSince(u.FileSearches, v.FileSearches),
		Source: u.Source,
	}
}

func countSince(now, before int64) int64 {
	if now < before {
		return now
	}
	return now - before
}

// addCounts adds two counts. A negative count is zero, and a sum that would overflow
// is the largest number.
func addCounts(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// MostTokens is the largest valid count of tokens. A larger number is invalid,
// whoever reports it.
const MostTokens = 1 << 40

// Count is a number of tokens as a model or a program reports it. The zero Count was
// not reported. Anything but a whole number from 0 to MostTokens is Bad, and N is
// then 0.
type Count struct {
	N   int64
	Set bool
	Bad bool
}

// UnmarshalJSON accepts any JSON value: a value that is not a count is Bad, and null
// is not reported.
func (c *Count) UnmarshalJSON(data []byte) error {
	*c = Count{Set: true}
	if string(data) == "null" {
		*c = Count{}
		return nil
	}
	var f float64
	c.Bad = json.Unmarshal(data, &f) != nil || f < 0 || f > MostTokens || f != math.Trunc(f)
	if !c.Bad {
		c.N = int64(f)
	}
	return nil
}
