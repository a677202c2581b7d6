package loop

import "slices"

// RunState says whether a run still needs a process to continue it.
type RunState string

// States of a run.
const (
	RunQueued   RunState = "queued"   // fired, nobody holds it yet
	RunRunning  RunState = "running"  // held, between claim and conclude
	RunSettling RunState = "settling" // concluded; files or effects may be outstanding
	RunEnded    RunState = "ended"    // nothing is outstanding
)

// StepState is the state of a step between runs.
type StepState string

// States of a step.
const (
	StepOpen      StepState = "open"
	StepClaimed   StepState = "claimed" // a live run works on it
	StepBlocked   StepState = "blocked"
	StepFailed    StepState = "failed"
	StepWaiting   StepState = "waiting_human"
	StepEscalated StepState = "escalated"
	StepDone      StepState = "done"
	StepDropped   StepState = "dropped" // no longer in the protocol's memory
)

// EffectState is the state of an effect.
type EffectState string

// States of an effect.
const (
	EffectRequested EffectState = "requested"
	EffectApplying  EffectState = "applying" // intent is durable; the outcome is unknown until looked at
	EffectDone      EffectState = "done"
	EffectFailed    EffectState = "failed"
	EffectRefused   EffectState = "refused" // a kill switch or guardrail prevented it
)

// ApprovalState is the state of an approval.
type ApprovalState string

// States of an approval. Everything but open and landing is final.
const (
	ApprovalOpen     ApprovalState = "open"
	ApprovalLanding  ApprovalState = "landing"  // a human said yes to a landing, and nothing has landed yet
	ApprovalApproved ApprovalState = "approved" // a human said yes, and what they allowed to land has landed
	ApprovalRejected ApprovalState = "rejected"
	ApprovalVoid     ApprovalState = "void"
	ApprovalExpired  ApprovalState = "expired"
)

// Transition is one allowed change of state, with what causes it.
type Transition struct {
	Thing, From, To, When string
}

// Transitions is the state table: every change of state that a row may make.
// docs/dev/states.md is drawn from it, and the store refuses any other change.
var Transitions = []Transition{
	{"run", "", "queued", "a trigger fires"},
	{"run", "", "running", "a foreground run is fired and claimed at once"},
	{"run", "queued", "running", "claimed: fence + 1"},
	{"run", "running", "running", "taken over from a dead holder: fence + 1"},
	{"run", "running", "settling", "concluded with effects requested"},
	{"run", "running", "ended", "concluded, nothing requested"},
	{"run", "settling", "settling", "taken over from a dead holder: fence + 1"},
	{"run", "settling", "ended", "effects drained"},
	{"step", "", "open", "seen in the protocol's memory for the first time"},
	{"step", "open", "claimed", "chosen by decide"},
	{"step", "claimed", "open", "the run ended without settling it"},
	{"step", "claimed", "done", "report, gates and changes agree"},
	{"step", "claimed", "blocked", "the report says what it waits for"},
	{"step", "claimed", "failed", "a gate or the agent failed"},
	{"step", "claimed", "waiting_human", "an approval was asked for"},
	{"step", "claimed", "escalated", "given up, or handed over by the agent"},
	{"step", "blocked", "claimed", "its waiting time is over"},
	{"step", "failed", "claimed", "tried again"},
	{"step", "waiting_human", "claimed", "the human answered"},
	{"step", "waiting_human", "done", "the human accepted its result"},
	{"step", "waiting_human", "open", "its question could not be asked, or a human rejected its result"},
	{"step", "escalated", "open", "a human put it back"},
	{"step", "open", "escalated", "what it may use in its whole life is used up"},
	{"step", "failed", "escalated", "what it may use in its whole life is used up"},
	{"step", "blocked", "escalated", "what it may use in its whole life is used up"},
	{"step", "open", "blocked", "a person wrote so into the memory"},
	{"step", "blocked", "open", "a person wrote so into the memory"},
	{"step", "failed", "open", "a person wrote so into the memory"},
	{"step", "done", "open", "it is in the memory again"},
	{"step", "dropped", "open", "it is in the memory again"},
	{"step", "done", "dropped", "it left the protocol's memory"},
	{"step", "open", "dropped", "it left the protocol's memory"},
	{"step", "blocked", "dropped", "it left the protocol's memory"},
	{"step", "failed", "dropped", "it left the protocol's memory"},
	{"step", "escalated", "dropped", "it left the protocol's memory"},
	{"step", "waiting_human", "dropped", "it left the protocol's memory"},
	{"effect", "", "requested", "conclude asks for it"},
	{"effect", "requested", "applying", "the outbox starts it, kill switch read first"},
	{"effect", "requested", "refused", "the kill switch is set"},
	{"effect", "applying", "refused", "looking found that it did not happen, and the kill switch is set"},
	{"effect", "applying", "done", "applied, or found applied by looking"},
	{"effect", "applying", "failed", "it did not happen, and looking proves it"},
	{"effect", "applying", "requested", "looking found that it did not happen: try again"},
	{"effect", "failed", "requested", "tried again"},
	{"approval", "", "open", "an action needs a human"},
	{"approval", "open", "approved", "a human said yes, and nothing has to land"},
	{"approval", "open", "landing", "a human said yes to a landing"},
	{"approval", "landing", "approved", "it has landed"},
	{"approval", "landing", "rejected", "a human takes the yes back"},
	{"approval", "landing", "void", "branch, base or definition moved, or superseded"},
	{"approval", "landing", "expired", "it did not land in time"},
	{"approval", "open", "rejected", "a human said no"},
	{"approval", "open", "void", "branch or definition moved, or superseded"},
	{"approval", "open", "expired", "nobody answered in time"},
}

// MayChange reports whether the state table lists the change of thing ("run",
// "step", "effect", "approval") from one state to another.
func MayChange[S ~string](thing string, from, to S) bool {
	return slices.ContainsFunc(Transitions, func(t Transition) bool {
		return t.Thing == thing && t.From == string(from) && t.To == string(to)
	})
}

// StepMayBecome reports whether one transaction may take a step from one state to another:
// as the state table lists, or by way of open. A step may be claimed when it is seen for the
// first time, and a person may write anything of one that is done.
func StepMayBecome(from, to StepState) bool {
	if MayChange("step", from, to) {
		return true
	}
	return to != StepOpen && MayChange("step", from, StepOpen) && MayChange("step", StepOpen, to)
}

// SourceStates returns the states from which thing may change to the given one.
func SourceStates[S ~string](thing string, to S) []S {
	var from []S
	for _, t := range Transitions {
		if t.Thing == thing && t.To == string(to) && t.From != "" {
			from = append(from, S(t.From))
		}
	}
	return from
}

// SpecStatus is where a LoopSpec is in its life. It holds whatever its last run was.
type SpecStatus string

// The statuses of a LoopSpec.
const (
	SpecDraft        SpecStatus = "draft"
	SpecRunning      SpecStatus = "running"
	SpecPaused       SpecStatus = "paused"
	SpecWaitingHuman SpecStatus = "waiting_human"
	SpecDone         SpecStatus = "done"
	SpecGaveUp       SpecStatus = "gave_up"
)
