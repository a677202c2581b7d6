package loop

// Acceptance is the record that a definition of a loop was accepted: an agent may fire it as
// long as it has this digest. The id of the loop says of which workspace it is.
type Acceptance struct {
	LoopID string
	Digest string // of the definition with its defaults
	How    AcceptedBy
	By     Actor
}

// AcceptedBy says what made a definition accepted.
type AcceptedBy string

// The values. A person did each of them, except for AcceptedTemplate.
const (
	AcceptedCheck    AcceptedBy = "check"    // a check found it ready
	AcceptedRegister AcceptedBy = "register" // all definitions of the workspace were registered
	AcceptedRun      AcceptedBy = "run"      // a run of it was fired
	AcceptedApproval AcceptedBy = "approve"  // a result of it was approved
	AcceptedEdit     AcceptedBy = "edit"     // it is in the store, and was made or changed
	AcceptedTemplate AcceptedBy = "template" // pawl made it from a template for an agent, who chose no command, scope or sandbox
)
