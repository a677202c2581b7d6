// Package loopspec holds the LoopSpec, the contract between what a user wants and
// what the runtime enforces: its document, the phrases of its texts and what they
// mean, and the rules by which a spec runs, waits, ends and has children.
//
// It never reads a file, a clock or a source of randomness and never starts a
// process: a caller passes in what a machine has to be asked for, and the same inputs
// always give the same answer. It never drops a rule silently: what is not in the
// table of phrases is a finding, and Rules has what a loop.Definition has no field for.
package loopspec

import (
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Spec is a LoopSpec. Its JSON fields are those of the format, in its order. Times are
// Unix milliseconds.
type Spec struct {
	ID           string           `json:"id"` // empty: it is not stored yet
	AgentID      string           `json:"agentId"`
	Goal         string           `json:"goal"`
	LoopType     loop.Determinism `json:"loopType"`
	Trigger      Trigger          `json:"trigger"`
	StateSource  string           `json:"stateSource"`
	Gates        []loop.Gate      `json:"gates"`
	Budget       Budget           `json:"budget"`
	GiveUp       string           `json:"giveUp"`
	ErrorPolicy  string           `json:"errorPolicy"`
	Guardrails   []string         `json:"guardrails"`
	HumanGate    string           `json:"humanGate"`
	MemoryWrites string           `json:"memoryWrites"`
	Role         Role             `json:"role"`
	Concurrency  Concurrency      `json:"concurrency"`
	ParentID     string           `json:"parentId,omitempty"`
	ChildIDs     []string         `json:"childIds,omitempty"`
	BoardEntry   string           `json:"boardEntry,omitempty"`
	CreatedAt    int64            `json:"createdAt"`
	UpdatedAt    int64            `json:"updatedAt"`
}

// Trigger says how a spec starts, as written.
type Trigger struct {
	Type TriggerType `json:"type"`
	On   string      `json:"on,omitempty"` // of a schedule: milliseconds, interval or cron; of an event: its source
}

// TriggerType is how a spec starts.
type TriggerType string

// Types of triggers.
const (
	TriggerManual   TriggerType = "manual" // never by itself
	TriggerSchedule TriggerType = "schedule"
	TriggerEvent    TriggerType = "event"
)

// Budget bounds a spec over its whole life, across runs. Each number includes its
// value: a spec that has used so much has used it up.
type Budget struct {
	MaxIterations  int64 `json:"maxIterations"`
	MaxTokens      int64 `json:"maxTokens"` // input, cache writes and output
	MaxWallClockMs int64 `json:"maxWallClockMs"`
	MaxItems       int64 `json:"maxItems,omitempty"` // how many children it may have; 0: only MaxChildren bounds them
}

// Defaults of a budget.
const (
	DefaultIterations  = 8
	DefaultTokens      = 400_000
	DefaultWallClockMs = 45 * 60 * 1000
)

// Role says what a spec may do with others.
type Role string

// Roles of specs.
const (
	RoleMonitor     Role = "monitor"     // looks, and may spawn workers
	RoleWorker      Role = "worker"      // does what another spec has spawned it for, or one thing
	RoleCoordinator Role = "coordinator" // may spawn workers
	RoleStandalone  Role = "standalone"
)

// maySpawn reports whether a spec of this role may have children.
func (r Role) maySpawn() bool { return r == RoleMonitor || r == RoleCoordinator }

// Concurrency says whether a spec may run beside another one with its board entry.
type Concurrency string

// The two ways.
const (
	Sequential Concurrency = "sequential"
	Parallel   Concurrency = "parallel"
)

// WithDefaults returns s with each absent field that has a default filled in, as it is
// stored. A text gets the phrase that its table marks as the default.
func (s Spec) WithDefaults() Spec {
	s.Budget = s.Budget.withDefaults()
	for text, field := range map[*string]Field{&s.GiveUp: FieldGiveUp, &s.ErrorPolicy: FieldErrorPolicy, &s.HumanGate: FieldHumanGate} {
		if isBlank(*text) {
			*text = DefaultText(field)
		}
	}
	if s.Role == "" {
		s.Role = RoleStandalone
	}
	if s.Concurrency == "" {
		s.Concurrency = Sequential
	}
	if s.Gates == nil {
		s.Gates = []loop.Gate{}
	}
	if s.Guardrails == nil {
		s.Guardrails = []string{}
	}
	return s
}

func (b Budget) withDefaults() Budget {
	for number, byDefault := range map[*int64]int64{
		&b.MaxIterations: DefaultIterations, &b.MaxTokens: DefaultTokens, &b.MaxWallClockMs: DefaultWallClockMs,
	} {
		if *number == 0 {
			*number = byDefault
		}
	}
	return b
}

// hasKind reports whether the spec has a gate of one of the kinds.
func (s Spec) hasKind(kinds ...loop.GateKind) bool {
	return slices.ContainsFunc(s.Gates, func(g loop.Gate) bool { return slices.Contains(kinds, g.Kind) })
}
