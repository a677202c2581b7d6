package readiness

import (
	"strconv"
)

// CostData is a Cost for JSON, schema pawl.estimate/v1. Money is in US dollars, rounded
// from the exact value of the float64.
type CostData struct {
	Pattern        string       `json:"pattern"`
	Model          string       `json:"model"`
	Assumed        string       `json:"assumed,omitempty"` // the family of which the model's price is assumed
	Cadence        string       `json:"cadence"`
	RunsPerDay     float64      `json:"runs_per_day"`
	TokensPerRun   int64        `json:"tokens_per_run"`
	InputTokens    int64        `json:"input_tokens"`
	OutputTokens   int64        `json:"output_tokens"`
	Subagents      int64        `json:"subagents"`
	CostPerRun     float64      `json:"cost_per_run"`
	CostPerDay     float64      `json:"cost_per_day"`
	Days           int          `json:"days"`
	CostPerHorizon float64      `json:"cost_per_horizon"`
	Caching        *CachingData `json:"caching,omitempty"` // absent without a cache
}

// CachingData is a Caching for JSON. It has either a reason, or a TTL and money.
type CachingData struct {
	Beneficial     bool     `json:"beneficial"`
	TTL            string   `json:"ttl,omitempty"`
	Reason         string   `json:"reason,omitempty"`
	PrefixTokens   int64    `json:"prefix_tokens"`
	CostPerDay     *float64 `json:"cost_per_day,omitempty"`
	CostPerHorizon *float64 `json:"cost_per_horizon,omitempty"`
	SavingsPct     *float64 `json:"savings_pct,omitempty"`
}

// Data rounds the cost for JSON.
func (c Cost) Data() CostData {
	d := CostData{
		Pattern: c.Pattern, Model: c.Model, Assumed: c.Assumed, Cadence: c.Cadence,
		RunsPerDay:   roundTo(c.RunsPerDay, 3),
		TokensPerRun: c.TokensPerRun, InputTokens: c.Input, OutputTokens: c.Output, Subagents: c.Subagents,
		CostPerRun: roundTo(c.PerRun, 6),
		CostPerDay: roundTo(c.PerDay, 4),
		Days:       c.Days, CostPerHorizon: roundTo(c.PerHorizon, 2),
	}
	if c.Caching != nil {
		d.Caching = c.Caching.jsonData()
	}
	return d
}

func (k *Caching) jsonData() *CachingData {
	d := &CachingData{Beneficial: k.Beneficial, TTL: k.TTL, Reason: k.Reason, PrefixTokens: k.Prefix}
	if k.Beneficial {
		d.CostPerDay = new(roundTo(k.PerDay, 4))
		d.CostPerHorizon = new(roundTo(k.PerHorizon, 2))
		d.SavingsPct = new(roundTo(100*k.Savings, 1))
	}
	return d
}

// roundTo rounds x, which must be finite, to so many decimals.
func roundTo(x float64, decimals int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', decimals, 64), 64)
	if err != nil {
		return x
	}
	return r + 0 // A 0 never has a sign.
}
