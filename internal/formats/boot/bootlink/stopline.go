package bootlink

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

// StopLine is when a metric is worth a warning, and when the run halts. A limit is
// crossed by a value that is at least as large; for Confidence, by one below it.
type StopLine struct {
	Metric   Metric
	Warning  *float64 // nil: never
	Critical *float64
}

// DefaultStopLines are those that hold where a table says nothing.
func DefaultStopLines() []StopLine {
	return []StopLine{
		{Iterations, new(50.0), new(100.0)},
		{Errors, new(3.0), new(5.0)},
		{Minutes, new(30.0), new(60.0)},
		{Confidence, new(0.7), new(0.5)},
	}
}

// ParseStopLines reads the tables of a STOP_LINES.md that have the columns Warning and
// Critical. A metric without a row keeps its default. What cannot be read is a finding,
// and the lines must not be used then; a metric that pawl does not know is a note.
func ParseStopLines(src []byte) (lines []StopLine, findings, notes []Finding) {
	lines = DefaultStopLines()
	if message, lineNumber, column := textProblem(src); message != "" {
		return lines, []Finding{{loop.ReasonBootMalformed, message, lineNumber, column}}, nil
	}
	var head Row
	warning, critical := -1, -1
	seen := map[Metric]StopLine{}
	for _, row := range readTables(src) {
		if row.Head {
			head, warning, critical = row, columnOf(row, "warning"), columnOf(row, "critical")
			continue
		}
		if head.table != row.table || warning < 1 || critical < 1 || len(row.Cells) == 0 {
			continue
		}
		metric, factor, known := metricOf(row.Label)
		if !known {
			notes = append(notes, Finding{
				loop.ReasonStopLine, fmt.Sprintf("%s is not counted by pawl, and is not enforced", readiness.Quote(row.Label)), row.Line, row.columns[0],
			})
			continue
		}
		l := StopLine{Metric: metric}
		faults := len(findings)
		for _, limit := range []struct {
			column int
			to     **float64
		}{{warning, &l.Warning}, {critical, &l.Critical}} {
			if limit.column >= len(row.Cells) {
				continue
			}
			cell := row.Cells[limit.column]
			n, ok := limitOf(cell, metric, factor)
			if !ok {
				findings = append(findings, Finding{
					loop.ReasonBootMalformed, fmt.Sprintf("%s: %s is not a limit; write a number", metric, readiness.Quote(cell)),
					row.Line, row.columns[limit.column],
				})
			}
			*limit.to = n
		}
		if len(findings) > faults {
			continue
		}
		if before, twice := seen[metric]; twice && !sameLine(before, l) {
			findings = append(findings, Finding{
				loop.ReasonBootMalformed, fmt.Sprintf("%s has two rows with other limits; remove one", metric), row.Line, row.columns[0],
			})
			continue
		}
		if l.Warning != nil && l.Critical != nil && !l.crosses(*l.Critical, *l.Warning) && *l.Warning != *l.Critical {
			findings = append(findings, Finding{
				loop.ReasonBootMalformed, fmt.Sprintf("%s halts before it warns; swap the limits", metric), row.Line, row.columns[0],
			})
			continue
		}
		seen[metric] = l
		lines[slices.IndexFunc(lines, func(x StopLine) bool { return x.Metric == metric })] = l
	}
	return lines, findings, notes
}

// ConditionForm says how a condition for ParseCondition is written.
const ConditionForm = "write iterations, errors or minutes, >= and a number above 0, like errors >= 5; or confidence, < and a number up to 1"

// ParseCondition reads a critical limit as a definition has it, like errors >= 5. The
// error says what to write.
func ParseCondition(text string) (StopLine, error) {
	name, limit, found := strings.Cut(text, ">=")
	if !found {
		name, limit, found = strings.Cut(text, "<")
	}
	l := StopLine{Metric: Metric(strings.TrimSpace(name))}
	limit = strings.TrimSpace(limit)
	known, operator := l.Metric == Iterations || l.Metric == Errors || l.Metric == Minutes, ">="
	if l.Metric == Confidence {
		known, operator = true, "<"
	}
	n, ok := limitOf(limit, l.Metric, 1)
	ok = ok && n != nil && *n > 0 && strings.Trim(limit, "0123456789.") == ""
	if !found || !known || !ok || !strings.Contains(text, operator) {
		return StopLine{}, fmt.Errorf("%s is not a stop line; %s", readiness.Quote(text), ConditionForm)
	}
	l.Critical = n
	return l, nil
}

// ParseConditions reads all conditions of a definition. The error is that of the first
// that cannot be read, or that has the metric of an earlier one.
func ParseConditions(texts []string) ([]StopLine, error) {
	var lines []StopLine
	for _, text := range texts {
		l, err := ParseCondition(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(lines, func(x StopLine) bool { return x.Metric == l.Metric }) {
			return nil, fmt.Errorf("%s is the second stop line for %s; remove one", readiness.Quote(text), l.Metric)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func sameLine(a, b StopLine) bool {
	same := func(x, y *float64) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	return same(a.Warning, b.Warning) && same(a.Critical, b.Critical)
}

func columnOf(head Row, word string) int {
	return slices.IndexFunc(head.Cells, func(cell string) bool { return strings.Contains(strings.ToLower(cell), word) })
}

// metricOf reads a metric as people write it, such as Time (minutes), and returns by
// what its numbers are multiplied.
func metricOf(label string) (m Metric, factor float64, known bool) {
	words := strings.FieldsFunc(strings.ToLower(label), func(c rune) bool { return c < 'a' || c > 'z' })
	has := func(names ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) })
	}
	switch {
	case has("iterations", "iteration"):
		return Iterations, 1, true
	case has("errors", "error"):
		return Errors, 1, true
	case has("confidence"):
		return Confidence, 1, true
	case has("hours", "hour"):
		return Minutes, 60, true
	case has("seconds", "second"):
		return Minutes, 1.0 / 60, true
	case has("minutes", "minute", "time", "duration"):
		return Minutes, 1, true
	}
	return "", 0, false
}

// limitOf reads a limit as people write it: 50, > 50, below 0.7, 70%, 30 minutes. A cell
// without a limit is nil.
func limitOf(cell string, m Metric, factor float64) (*float64, bool) {
	text := strings.ToLower(strings.Trim(cell, "*_` "))
	if text == "" || text == "-" || text == "–" || text == "none" || text == "n/a" {
		return nil, true
	}
	for _, prefix := range []string{"below", "under", "less than", "over", "above", "more than", "at least", ">=", "<=", "≥", "≤", ">", "<"} {
		if rest, cut := strings.CutPrefix(text, prefix); cut {
			text = strings.TrimSpace(rest)
			break
		}
	}
	number, unit, _ := strings.Cut(text, " ")
	if rest, isPercent := strings.CutSuffix(number, "%"); isPercent && m == Confidence {
		number, factor = rest, 0.01
	}
	n, err := strconv.ParseFloat(number, 64)
	unit = strings.TrimSpace(unit)
	switch {
	case err != nil || !(n >= 0) || n > 1e9 || strings.ContainsAny(number, "xp_in"):
		return nil, false
	case unit == "" || strings.HasPrefix(string(m), unit) || unit == "min" && m == Minutes:
	case strings.HasPrefix("hours", unit) && m == Minutes:
		factor = 60
	default:
		return nil, false
	}
	if n *= factor; m == Confidence && n > 1 {
		return nil, false
	}
	return &n, true
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

func (l StopLine) crosses(value, limit float64) bool {
	if l.Metric == Confidence {
		return value < limit
	}
	return value >= limit
}

// Judge returns the lines that are crossed, those that halt the run first.
func Judge(lines []StopLine, c Counters) []Crossing {
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
		case l.Critical != nil && l.crosses(value, *l.Critical):
			crossed = append(crossed, Crossing{l.Metric, true, value, *l.Critical})
		case l.Warning != nil && l.crosses(value, *l.Warning):
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
