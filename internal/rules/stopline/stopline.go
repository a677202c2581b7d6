// Package stopline halts or warns a run whose iterations, errors, minutes or confidence have
// crossed a limit. It is pure: it counts what it is told, and reads no clock.
package stopline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// Metric is what a stop line bounds.
type Metric string

// Metrics, all of one run.
const (
	Iterations Metric = "iterations" // turns
	Errors     Metric = "errors"
	Minutes    Metric = "minutes"    // wall-clock time
	Confidence Metric = "confidence" // from 0 to 1, as the agent reports it
)

// Line is when a metric is worth a warning, and when the run halts. A limit is
// crossed by a value that is at least as large; for Confidence, by one below it.
type Line struct {
	Metric   Metric
	Warning  *float64 // nil: never
	Critical *float64
}

// Defaults are those that hold where a table says nothing.
func Defaults() []Line {
	return []Line{
		{Iterations, new(50.0), new(100.0)},
		{Errors, new(3.0), new(5.0)},
		{Minutes, new(30.0), new(60.0)},
		{Confidence, new(0.7), new(0.5)},
	}
}

// MostLimit is the largest limit of a line.
const MostLimit = 1e9

// ConditionForm says how a condition for ParseCondition is written.
const ConditionForm = "write iterations, errors or minutes, >= and a number above 0, like errors >= 5; or confidence, < and a number up to 1"

// ParseCondition reads a critical limit as a definition has it, like errors >= 5. The
// error says what to write.
func ParseCondition(text string) (Line, error) {
	name, limit, found := strings.Cut(text, ">=")
	if !found {
		name, limit, found = strings.Cut(text, "<")
	}
	l := Line{Metric: Metric(strings.TrimSpace(name))}
	limit = strings.TrimSpace(limit)
	known, operator := l.Metric == Iterations || l.Metric == Errors || l.Metric == Minutes, ">="
	if l.Metric == Confidence {
		known, operator = true, "<"
	}
	n, err := strconv.ParseFloat(limit, 64)
	ok := err == nil && n > 0 && n <= MostLimit && (l.Metric != Confidence || n <= 1) && strings.Trim(limit, "0123456789.") == ""
	if !found || !known || !ok || !strings.Contains(text, operator) {
		return Line{}, fmt.Errorf("%s is not a stop line; %s", readiness.Quote(text), ConditionForm)
	}
	l.Critical = &n
	return l, nil
}

// ParseConditions reads all conditions of a definition. The error is that of the first
// that cannot be read, or that has the metric of an earlier one.
func ParseConditions(texts []string) ([]Line, error) {
	var lines []Line
	for _, text := range texts {
		l, err := ParseCondition(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(lines, func(x Line) bool { return x.Metric == l.Metric }) {
			return nil, fmt.Errorf("%s is the second stop line for %s; remove one", readiness.Quote(text), l.Metric)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// Counters are what a run has come to.
type Counters struct {
	Iterations int
	Errors     int
	Minutes    float64
	Confidence *float64 // nil: the agent did not say
}

// Add counts an iteration.
func (c *Counters) Add(it loop.Iteration) {
	c.Iterations++
	if it.Verdict == loop.VerdictFail {
		c.Errors++
	}
	if r, err := report.Parse([]byte(it.Report)); err == nil && r.Confidence != nil {
		c.Confidence = r.Confidence
	}
}

// Crossing is a stop line that was crossed.
type Crossing struct {
	Metric   Metric
	Critical bool
	Value    float64
	Limit    float64
}

// Reason is the code of the crossing.
func (c Crossing) Reason() loop.Reason {
	if c.Critical {
		return loop.ReasonStopLine
	}
	return loop.ReasonStopLineWarning
}

// String says which line was crossed, like "errors 5, critical at 5".
func (c Crossing) String() string {
	level, how := "warning", "at"
	if c.Critical {
		level = "critical"
	}
	if c.Metric == Confidence {
		how = "below"
	}
	return fmt.Sprintf("%s %s, %s %s %s", c.Metric, shortNumber(c.Value), level, how, shortNumber(c.Limit))
}

func shortNumber(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(n, 'f', 2, 64), "0"), ".")
}

// Crosses reports whether a value crosses a limit of the line.
func (l Line) Crosses(value, limit float64) bool {
	if l.Metric == Confidence {
		return value < limit
	}
	return value >= limit
}

// Judge returns the lines that are crossed, those that halt the run first.
func Judge(lines []Line, c Counters) []Crossing {
	var crossed []Crossing
	for _, l := range lines {
		value := 0.0
		switch l.Metric {
		case Iterations:
			value = float64(c.Iterations)
		case Errors:
			value = float64(c.Errors)
		case Minutes:
			value = c.Minutes
		case Confidence:
			if c.Confidence == nil {
				continue
			}
			value = *c.Confidence
		}
		switch {
		case l.Critical != nil && l.Crosses(value, *l.Critical):
			crossed = append(crossed, Crossing{l.Metric, true, value, *l.Critical})
		case l.Warning != nil && l.Crosses(value, *l.Warning):
			crossed = append(crossed, Crossing{l.Metric, false, value, *l.Warning})
		}
	}
	slices.SortStableFunc(crossed, func(a, b Crossing) int {
		switch {
		case a.Critical == b.Critical:
			return 0
		case a.Critical:
			return -1
		}
		return 1
	})
	return crossed
}
