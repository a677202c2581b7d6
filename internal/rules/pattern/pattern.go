// Package pattern is the catalogue of loop patterns: for each kind of loop that
// people run, what sets it off, what it needs, what it usually costs, and the
// words with which a new definition begins.
//
// It is data. It reads no files and knows nothing about any workspace.
package pattern

import "slices"

// Custom is the pattern of a loop that none of the others describes. It has
// tokens and no words.
const Custom = "custom"

// Pattern is one entry of the catalogue.
type Pattern struct {
	Name     string
	Triggers []string // cadence, event, goal; the best first
	Locus    string   // local: touches the repository; connector: touches services only
	Tiers    []string // recommended; every loop starts at L1 nevertheless
	Does     string   // what it does and what it hands over, one sentence

	Goal       string // what the loop does and what it must not do
	Escalation string // what is handed to a human instead of done
	Scope      string // the one glob that a new definition has
	Verify     string // gate command, empty if the pattern has no usual one
	Guard      string
	Sense      string // what looks for work at L2 and above; empty: nothing
	Budget     int64  // output tokens of one run
	Tokens     Tokens // what one run usually uses
	Priority   int    // among loops of one repository that may touch the same; the higher one goes first
}

// Tokens is what one run of a loop uses. Input and Output are of one agent;
// Subagents is how many agents there are, at least 1 in the catalogue.
type Tokens struct {
	Input     int64
	Output    int64
	Subagents int64
}

// PerRun is what all agents of one run use together.
func (t Tokens) PerRun() int64 { return (t.Input + t.Output) * t.Subagents }

// All lists the catalogue in its order, Custom last. The caller owns the list.
func All() []Pattern { return slices.Clone(catalogue) }

// Names lists the names of the catalogue in its order, Custom last.
func Names() []string {
	names := make([]string, len(catalogue))
	for i, p := range catalogue {
		names[i] = p.Name
	}
	return names
}

// Find looks a name up.
func Find(name string) (Pattern, bool) {
	i := slices.IndexFunc(catalogue, func(p Pattern) bool { return p.Name == name })
	if i < 0 {
		return Pattern{}, false
	}
	return catalogue[i], true
}
