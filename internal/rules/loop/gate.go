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

// Determinism decides which gates may say that a goal is met.
type Determinism string

// The two.
const (
	Deterministic    Determinism = "deterministic"    // commands and invariants decide; a reviewer can only object
	Nondeterministic Determinism = "nondeterministic" // a reviewer or a human decides; commands and invariants can only object
)

// AllGates returns the gates of the definition in the order in which they run: commands,
// invariants, reviewers, each as they are written.
func (d Definition) AllGates() []Gate {
	var all []Gate
	if d.Verify != "" {
		all = append(all, Gate{Name: GateVerify, Kind: GateCommand, Check: d.Verify})
	}
	if d.Guard != "" {
		all = append(all, Gate{Name: GateGuard, Kind: GateCommand, Check: d.Guard})
	}
	for _, kind := range []GateKind{GateCommand, GateInvariant, GateReviewer} {
		for _, g := range d.Gates {
			if g.Kind == kind {
				all = append(all, g)
			}
		}
	}
	return all
}

// Names of the gates that have a key of their own.
const (
	GateVerify = "verify"
	GateGuard  = "guard"
)

// HumanGate says what happens to a result when all gates pass.
type HumanGate string

// The human gates.
const (
	HumanGatePropose HumanGate = "propose" // its step is done, and approval lands it as land_via says
	HumanGateDecide  HumanGate = "decide"  // its step waits for an answer, and approval lands it as land_via says
	HumanGateKeep    HumanGate = "keep"    // its step waits for an answer, and approval keeps the branch as it is
	HumanGateAccept  HumanGate = "accept"  // its step waits for an answer, and approval moves nothing
)

// Waits reports whether a step that passed waits for a human before it is done.
func (g HumanGate) Waits() bool { return g != "" && g != HumanGatePropose }
