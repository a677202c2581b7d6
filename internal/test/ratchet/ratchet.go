// Package ratchet holds numbers of the house that may fall and not rise. Raising one is a
// commit of its own that says why: what is added is paid for by what goes.
package ratchet

import "testing"

// Measure is what is counted.
type Measure string

// The measures.
const (
	Keys     Measure = "keys of a definition"
	Commands Measure = "commands, aliases and those below others apart"
	Shown    Measure = "commands that pawl --help shows"
	Lines    Measure = "lines of the product in Go"
	Readme   Measure = "lines of README.md"
	Wide     Measure = "lines of README.md and docs/ with more than 120 columns, tables and code apart"
)

// limit is what a measure is today at most, and what it is to become.
type limit struct{ most, goal int }

var limits = map[Measure]limit{
	Keys:     {71, 71},
	Commands: {55, 50},
	Shown:    {54, 12},
	Lines:    {178_400, 172_000},
	Readme:   {86, 86},
	Wide:     {0, 0},
}

// Hold fails the test if there is more of something than it may have, or less by so much
// that its number has to follow.
func Hold(tb testing.TB, m Measure, have int) {
	tb.Helper()
	l := limits[m]
	switch {
	case have > l.most:
		tb.Errorf("%s: %d, and at most %d (the goal is %d): take something away, or raise the number in internal/test/ratchet in a commit of its own that says why", m, have, l.most, l.goal)
	case have < l.most-l.most/100 && have >= l.goal:
		tb.Errorf("%s: %d, and %d were held: lower the number in internal/test/ratchet, so that it stays so", m, have, l.most)
	}
}
