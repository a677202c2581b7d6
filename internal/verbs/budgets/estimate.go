package budgets

import (
	"errors"
	"fmt"
	"math"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Estimate is what a loop will cost, schema pawl.estimate/v1.
type Estimate struct {
	Data EstimateData `json:"data"`
	Meta PricesMeta   `json:"meta"`

	Cost readiness.Cost     `json:"-"` // Data before it is rounded
	Past *readiness.Actuals `json:"-"` // what the runs used; nil: none used tokens
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

// What an estimate is for that names nothing else.
const (
	DefaultPattern = readiness.DefaultPattern
	DefaultModel   = readiness.DefaultModel
	DefaultCadence = readiness.DefaultCadence
)

// EstimateRequest says for what to estimate the cost. What is nil is as the loop has
// it, and else the default.
type EstimateRequest struct {
	Pattern    *string
	Model      *string
	Cadence    *string
	RunsPerDay *float64 // nil: as often as the cadence says
	Input      *int64   // tokens of one run; nil: the pattern's
	Output     *int64   // the same
	Subagents  *int64   // agents that work in one run; nil: the pattern's

	Days           int
	PrefixFraction float64 // of the input, 0 to 1: what stays the same
	TTL            string  // how long a cached prefix is kept: auto, 5m or 1h
	NoCache        bool

	Loop EstimatedLoop
}

// EstimatedLoop is what is known of a loop before its next run. The zero value is no
// loop. What its definition leaves out or to be filled in has the default.
type EstimatedLoop struct {
	Name    string
	Pattern string
	Cadence string
	Model   string  // that its agent asks; empty: not known
	Past    []int64 // tokens of each of its newest runs that used any, oldest first
}

// NewEstimateRequest returns a request with all defaults.
func NewEstimateRequest() EstimateRequest {
	return EstimateRequest{Days: readiness.DefaultDays, PrefixFraction: readiness.DefaultPrefixFraction, TTL: readiness.DefaultTTL}
}

// plainCadence is a cadence that somebody asks about. A definition may say more, like
// 1d12h.
var plainCadence = lazyregexp.New(`^([0-9]+[mhd]|\S+([ \t]+\S+){4})$`)

// NewEstimate says what a loop will cost at the prices of a table, and compares it
// with what its runs used. The error is a *loop.Fault.
func NewEstimate(t price.Table, r EstimateRequest) (Estimate, error) {
	w := readiness.Workload{
		Pattern: DefaultPattern, Model: DefaultModel, Cadence: DefaultCadence, Input: r.Input, Output: r.Output, Subagents: r.Subagents,
		Days: r.Days, PrefixFraction: r.PrefixFraction, TTL: r.TTL, NoCache: r.NoCache,
	}
	for _, k := range []struct {
		asked *string
		loop  string
		into  *string
	}{{r.Pattern, r.Loop.Pattern, &w.Pattern}, {r.Model, r.Loop.Model, &w.Model}, {r.Cadence, r.Loop.Cadence, &w.Cadence}} {
		switch {
		case k.asked != nil:
			*k.into = *k.asked
		case readiness.IsFilled(k.loop):
			*k.into = k.loop
		}
	}
	switch {
	case r.RunsPerDay != nil:
		w.RunsPerDay = *r.RunsPerDay
	case r.Cadence != nil && !plainCadence.MatchString(w.Cadence):
		return Estimate{}, estimateFault(fmt.Errorf("--cadence: %s is neither an interval in m, h or d nor five cron fields; write it like 10m, 6h, 1d or 0 9 * * 1-5",
			readiness.Quote(w.Cadence)))
	default:
		c, err := schedule.Parse(w.Cadence)
		if err != nil {
			from := "--cadence"
			if r.Loop.Name != "" && r.Cadence == nil {
				from = "cadence of " + r.Loop.Name
			}
			return Estimate{}, estimateFault(fmt.Errorf("%s: %w", from, err))
		}
		w.RunsPerDay = c.PerDay()
	}
	cost, err := readiness.Estimate(t, w)
	if err != nil {
		return Estimate{}, estimateFault(err)
	}
	e := Estimate{Data: EstimateData{CostData: cost.Data()}, Meta: PricesMeta{t.AsOf, t.Source, "pawl.estimate/v1"}, Cost: cost}
	if len(r.Loop.Past) > 0 {
		past := readiness.CompareActuals(r.Loop.Past, cost.TokensPerRun)
		round := func(x float64) float64 { return math.Round(x*1e4) / 1e4 }
		e.Past = &past
		e.Data.Actual = &EstimateActual{past.Runs, past.P50, past.P95, round(past.Ratio), round(past.Drift), past.Drifted}
	}
	return e, nil
}

func estimateFault(err error) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f
	}
	return &loop.Fault{Exit: loop.ExitUnreadable, What: "estimate", Why: err.Error(), Err: err, Fix: "correct the request; --help lists the options"}
}
