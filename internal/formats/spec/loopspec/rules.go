package loopspec

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Rules is what the texts of a spec mean.
type Rules struct {
	GiveUp      loop.GiveUpRule
	ErrorPolicy loop.ErrorPolicy
	HumanGate   HumanGate
	Guardrails  Guardrails
	StateSource StateSource
	Trigger     Schedule
}

// DefaultGiveUp is how often in a row, unless a number is written.
const DefaultGiveUp = 3

// backoff is how long the first retry waits.
const backoff = 1500 * time.Millisecond

// HumanGate is what approval does with a result.
type HumanGate struct {
	Gate    loop.HumanGate
	LandVia string // of loop.HumanGateDecide: how the result lands, as the key land_via says
}

// Guardrails are the rules of all entries. What they do not allow is denied.
type Guardrails struct {
	Scope      []string      // globs of what may be changed; empty: nothing is written
	NoBranch   bool          // what it makes is output and a snapshot
	ReportOnly bool          // the report is the result, and the entry in the inbox the one message
	Deny       []loop.Denial // in the order of loop.Denials, each once
	Notes      []string      // advice that nothing enforces
}

// Denies reports whether something is denied.
func (g Guardrails) Denies(d loop.Denial) bool { return slices.Contains(g.Deny, d) }

// Writes reports whether the spec may write into the workspace. If not, the report is
// its result, and changes are kept as a snapshot only.
func (g Guardrails) Writes() bool { return len(g.Scope) > 0 && !g.ReportOnly }

// guardKind is what a guardrail that is not a loop.Denial does.
type guardKind int

const (
	guardScope guardKind = iota
	guardNoBranch
	guardReportOnly
	guardNote
)

// StateSource is what is sensed in each iteration.
type StateSource struct {
	Kind    SenseKind
	Command string // of SenseCommand and SenseQueue
	Path    string // of SenseFile, relative to the workspace
}

// SenseKind is a kind of source. Only a queue can say that there is nothing to do.
type SenseKind string

// The kinds.
const (
	SenseCommand    SenseKind = "command"
	SenseTestOutput SenseKind = "test_output" // the command of the first command gate
	SenseDiff       SenseKind = "diff"
	SenseQueue      SenseKind = "queue"
	SenseMemory     SenseKind = "memory"
	SenseFile       SenseKind = "file"
)

// Schedule is a parsed trigger.
type Schedule struct {
	Type    TriggerType
	Cadence string           // of TriggerSchedule, as package schedule reads it
	Event   loop.EventSource // of TriggerEvent
}

// Rules parses all texts of a spec. Absent ones mean their defaults. The rules must
// not be used if a finding refuses them.
func (s Spec) Rules() (Rules, []Finding) {
	s = s.WithDefaults()
	var r Rules
	var p phraseParser
	r.GiveUp = p.giveUp(s.GiveUp)
	r.ErrorPolicy = p.errorPolicy(s.ErrorPolicy)
	r.HumanGate = p.humanGate(s.HumanGate)
	r.Guardrails = p.guardrails(s.Guardrails)
	r.StateSource = p.stateSource(s.StateSource)
	r.Trigger = p.trigger(s.Trigger)
	return r, p.findings
}
