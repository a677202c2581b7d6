package bootlink

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

// ParseStopLines reads the tables of a STOP_LINES.md that have the columns Warning and
// Critical. A metric without a row keeps its default. What cannot be read is a finding,
// and the lines must not be used then; a metric that pawl does not know is a note.
func ParseStopLines(src []byte) (lines []stopline.Line, findings, notes []Finding) {
	lines = stopline.Defaults()
	if message, lineNumber, column := textProblem(src); message != "" {
		return lines, []Finding{{loop.ReasonBootMalformed, message, lineNumber, column}}, nil
	}
	var head Row
	warning, critical := -1, -1
	seen := map[stopline.Metric]stopline.Line{}
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
		l := stopline.Line{Metric: metric}
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
		if l.Warning != nil && l.Critical != nil && !l.Crosses(*l.Critical, *l.Warning) && *l.Warning != *l.Critical {
			findings = append(findings, Finding{
				loop.ReasonBootMalformed, fmt.Sprintf("%s halts before it warns; swap the limits", metric), row.Line, row.columns[0],
			})
			continue
		}
		seen[metric] = l
		lines[slices.IndexFunc(lines, func(x stopline.Line) bool { return x.Metric == metric })] = l
	}
	return lines, findings, notes
}

func sameLine(a, b stopline.Line) bool {
	same := func(x, y *float64) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	return same(a.Warning, b.Warning) && same(a.Critical, b.Critical)
}

func columnOf(head Row, word string) int {
	return slices.IndexFunc(head.Cells, func(cell string) bool { return strings.Contains(strings.ToLower(cell), word) })
}

// metricOf reads a metric as people write it, such as Time (minutes), and returns by
// what its numbers are multiplied.
func metricOf(label string) (m stopline.Metric, factor float64, known bool) {
	words := strings.FieldsFunc(strings.ToLower(label), func(c rune) bool { return c < 'a' || c > 'z' })
	has := func(names ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) })
	}
	switch {
	case has("iterations", "iteration"):
		return stopline.Iterations, 1, true
	case has("errors", "error"):
		return stopline.Errors, 1, true
	case has("confidence"):
		return stopline.Confidence, 1, true
	case has("hours", "hour"):
		return stopline.Minutes, 60, true
	case has("seconds", "second"):
		return stopline.Minutes, 1.0 / 60, true
	case has("minutes", "minute", "time", "duration"):
		return stopline.Minutes, 1, true
	}
	return "", 0, false
}

// limitOf reads a limit as people write it: 50, > 50, below 0.7, 70%, 30 minutes. A cell
// without a limit is nil.
func limitOf(cell string, m stopline.Metric, factor float64) (*float64, bool) {
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
	if rest, isPercent := strings.CutSuffix(number, "%"); isPercent && m == stopline.Confidence {
		number, factor = rest, 0.01
	}
	n, err := strconv.ParseFloat(number, 64)
	unit = strings.TrimSpace(unit)
	switch {
	case err != nil || !(n >= 0) || n > stopline.MostLimit || strings.ContainsAny(number, "xp_in"):
		return nil, false
	case unit == "" || strings.HasPrefix(string(m), unit) || unit == "min" && m == stopline.Minutes:
	case strings.HasPrefix("hours", unit) && m == stopline.Minutes:
		factor = 60
	default:
		return nil, false
	}
	if n *= factor; m == stopline.Confidence && n > 1 {
		return nil, false
	}
	return &n, true
}
