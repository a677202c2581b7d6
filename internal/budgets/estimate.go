package budgets

import (
	"math"

	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/readiness"
)

// Estimate is what a loop will cost, schema pawl.estimate/v1.
type Estimate struct {
	Data EstimateData `json:"data"`
	Meta PricesMeta   `json:"meta"`
}

// EstimateData is an estimate with what runs really used.
type EstimateData struct {
	readiness.CostData

	Actual *EstimateActual `json:"actual,omitempty"` // absent without runs that used tokens
}

// EstimateActual compares an estimate with what runs used.
type EstimateActual struct {
	Runs       int     `json:"runs"`
	P50        int64   `json:"p50_tokens"`
	P95        int64   `json:"p95_tokens"`
	OfEstimate float64 `json:"of_estimate"`
	Drift      float64 `json:"drift"`
	Drifted    bool    `json:"drifted"`
}

// PricesMeta says which prices something was counted with.
type PricesMeta struct {
	AsOf   string `json:"as_of"`
	Source string `json:"source,omitempty"`
	Schema string `json:"schema"`
}

// NewEstimate makes the estimate of a cost by prices. Past is nil if no run has
// used tokens.
func NewEstimate(t price.Table, c readiness.Cost, past *readiness.Actuals) Estimate {
	e := Estimate{Data: EstimateData{CostData: c.Data()}, Meta: PricesMeta{t.AsOf, t.Source, "pawl.estimate/v1"}}
	if past != nil {
		round := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
		e.Data.Actual = &EstimateActual{past.Runs, past.P50, past.P95, round(past.Ratio), round(past.Drift), past.Drifted}
	}
	return e
}

// PriceList is the prices that count, schema pawl.pricing/v1.
type PriceList struct {
	Data []price.Model `json:"data"`
	Meta PricesMeta    `json:"meta"`
}

// NewPriceList lists the prices of a table.
func NewPriceList(t price.Table) PriceList {
	return PriceList{t.Models, PricesMeta{t.AsOf, t.Source, "pawl.pricing/v1"}}
}
