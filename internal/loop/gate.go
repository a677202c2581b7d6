package loop

// GateKind says who decides about a gate.
type GateKind string

// Kinds of gates.
const (
	GateCommand   GateKind = "command"   // the exit status of a command
	GateInvariant GateKind = "invariant" // an expression that is true or false
	GateReviewer  GateKind = "reviewer"  // a model other than the one that did the work
)

// Gate is one check of a definition's list.
type Gate struct {
	Name     string   `json:"name"` // unique in its definition
	Kind     GateKind `json:"kind"`
	Check    string   `json:"check"` // command line, expression, or what the reviewer has to find
	Reviewer Reviewer `json:"reviewer,omitzero"`
}

// Reviewer is who judges for a gate of kind GateReviewer. The zero value is the
// workspace's configured critic.
type Reviewer struct {
	Agent string `json:"agent,omitempty"` // of the roster
	Model string `json:"model,omitempty"` // empty: the agent's own
}

// LoopType decides which gates may say that a goal is met.
type LoopType string

// Types of loops.
const (
	Deterministic    LoopType = "deterministic"    // commands and invariants decide; a reviewer can only object
	Nondeterministic LoopType = "nondeterministic" // a reviewer or a human decides; commands and invariants can only object
)
