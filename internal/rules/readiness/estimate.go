package readiness

import (
	"errors"
	"fmt"
	"math"

	"github.com/pawl-run/pawl/internal/rules/pattern"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// Defaults that a caller puts into a Workload.
const (
	DefaultPattern        = pattern.Custom
	DefaultModel          = "claude-haiku-4-5"
	DefaultCadence        = "1h"
	DefaultDays           = 30
	DefaultPrefixFraction = 0.6
	DefaultTTL            = TTLAuto
)

// Workload is the expected use of a loop. No field has a default.
type Workload struct {
	Pattern        string
	Model          string
	Cadence        string  // as it was written; only RunsPerDay counts
	RunsPerDay     float64 // schedule.Cadence.PerDay, or what a person expects
	Input          *int64  // tokens of one agent in one run; nil: the pattern's
	Output         *int64  // the same
	Subagents      *int64  // how many agents each run has; nil: the pattern's
	Days           int
	PrefixFraction float64 // 0 to 1: the part of the input that stays the same
	TTL            string  // TTLAuto, TTL5m or TTL1h
	NoCache        bool
}

// Cost is the cost of a Workload, not rounded. Money is in US dollars, without
// caching; Input and Output are tokens of one agent.
type Cost struct {
	Pattern      string
	Model        string
	Assumed      string // the family of which the model's price is assumed; empty: the price is known
	Cadence      string
	RunsPerDay   float64
	Input        int64
	Output       int64
	Subagents    int64
	TokensPerRun int64 // of all agents
	PerRun       float64
	PerDay       float64
	Days         int
	PerHorizon   float64  // of all Days
	Caching      *Caching // nil if the Workload has none
}

// Estimate computes the cost of w with the prices of t. The Patterns of t take
// precedence over the catalogue. The error names the option of the command line and
// the fix.
func Estimate(t price.Table, w Workload) (Cost, error) {
	m, ok := t.PriceOf(w.Model)
	if !ok {
		return Cost{}, unknownModel(t, w.Model)
	}
	tokens, err := resolveTokens(t, w)
	if err != nil {
		return Cost{}, err
	}
	if err := w.validate(); err != nil {
		return Cost{}, err
	}
	c := Cost{
		Pattern: w.Pattern, Model: w.Model, Assumed: m.Assumed, Cadence: w.Cadence, RunsPerDay: w.RunsPerDay,
		Input: tokens.Input, Output: tokens.Output, Subagents: tokens.Subagents, TokensPerRun: tokens.PerRun(),
		Days: w.Days,
	}
	// The conversions keep the compiler from fusing operations, so that every machine
	// gives the same digits.
	c.PerRun = (float64(float64(c.Input)/1e6*m.Input) + float64(float64(c.Output)/1e6*m.Output)) * float64(c.Subagents)
	c.PerDay = c.PerRun * c.RunsPerDay
	c.PerHorizon = c.PerDay * float64(c.Days)
	if math.IsInf(c.PerHorizon, 0) || math.IsNaN(c.PerHorizon) {
		return Cost{}, errors.New("--runs-per-day: costs more than can be computed; give a smaller number")
	}
	if !w.NoCache {
		c.Caching = c.estimateCaching(m, w)
	}
	return c, nil
}

// validate checks the values that depend neither on the pattern nor on the prices.
// Every range excludes NaN.
func (w Workload) validate() error {
	switch {
	case math.IsInf(w.RunsPerDay, 1):
		return fmt.Errorf("--runs-per-day: %v is not a number of runs; give one, or a --cadence that fires", w.RunsPerDay)
	case !(w.RunsPerDay > 0):
		return fmt.Errorf("--runs-per-day: %v is not above 0; give a number of runs, or a --cadence that fires", w.RunsPerDay)
	case w.Days <= 0:
		return fmt.Errorf("--days: %d is not above 0; give a number of days like %d", w.Days, DefaultDays)
	case !(w.PrefixFraction >= 0 && w.PrefixFraction <= 1):
		return fmt.Errorf("--cache-prefix-frac: %v is not from 0 to 1; give the part of the input that stays the same, like %v",
			w.PrefixFraction, DefaultPrefixFraction)
	case w.TTL != TTLAuto && w.TTL != TTL5m && w.TTL != TTL1h:
		return fmt.Errorf("--cache-ttl: %s is invalid; give %s, %s or %s", Quote(w.TTL), TTLAuto, TTL5m, TTL1h)
	}
	return nil
}
