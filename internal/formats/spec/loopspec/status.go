package loopspec

import "github.com/pawl-run/pawl/internal/rules/loop"

// Status is where a spec is in its life.
type Status = loop.SpecStatus

// The statuses.
const (
	StatusDraft        = loop.SpecDraft
	StatusRunning      = loop.SpecRunning
	StatusPaused       = loop.SpecPaused
	StatusWaitingHuman = loop.SpecWaitingHuman
	StatusDone         = loop.SpecDone
	StatusGaveUp       = loop.SpecGaveUp
)

// Statuses are all of them.
var Statuses = []Status{StatusDraft, StatusRunning, StatusPaused, StatusWaitingHuman, StatusDone, StatusGaveUp}

// Event is what moves a spec from a status to another.
type Event string

// The events.
const (
	EventStep    Event = "step"     // somebody or a trigger asks for a step
	EventPass    Event = "pass"     // the gates passed
	EventPending Event = "pending"  // the gates leave it to a human
	EventFail    Event = "fail"     // a gate failed, and it is tried again
	EventGiveUp  Event = "give_up"  // the give-up rule is met, and its consequence gives up
	EventPause   Event = "pause"    // the give-up rule is met, and its consequence pauses
	EventBudget  Event = "budget"   // the budget is used up, before a step or after it
	EventError   Event = "error"    // the last retry failed, and the policy pauses
	EventHandOff Event = "hand_off" // the same, and the policy escalates
	EventAbandon Event = "abandon"  // the same, and the policy stops
	EventApprove Event = "approve"  // a human accepts the result, and closes the spec
	EventAccept  Event = "accept"   // a human accepts the result of a spec that goes on
	EventReject  Event = "reject"   // a human rejects the result, with a note
	EventStop    Event = "stop"     // a human stops it
	EventFlag    Event = "flag"     // a human says what was missed
)

// Edge is one row of the table of statuses.
type Edge struct {
	From  Status
	Event Event
	To    Status
}

// Edges is the table of statuses. What has no row is refused.
var Edges = []Edge{
	{StatusDraft, EventStep, StatusRunning},
	{StatusRunning, EventStep, StatusRunning},
	{StatusPaused, EventStep, StatusRunning},

	{StatusRunning, EventPass, StatusWaitingHuman},
	{StatusRunning, EventPending, StatusWaitingHuman},
	{StatusRunning, EventFail, StatusRunning},
	{StatusRunning, EventGiveUp, StatusGaveUp},
	{StatusRunning, EventPause, StatusPaused},
	{StatusRunning, EventBudget, StatusGaveUp},
	{StatusRunning, EventError, StatusPaused},
	{StatusRunning, EventHandOff, StatusWaitingHuman},
	{StatusRunning, EventAbandon, StatusGaveUp},

	{StatusWaitingHuman, EventApprove, StatusDone},
	{StatusWaitingHuman, EventAccept, StatusRunning},
	{StatusWaitingHuman, EventReject, StatusRunning},

	{StatusDraft, EventStop, StatusPaused},
	{StatusRunning, EventStop, StatusPaused},
	{StatusPaused, EventStop, StatusPaused},
	{StatusWaitingHuman, EventStop, StatusPaused},
	{StatusDone, EventStop, StatusDone},
	{StatusGaveUp, EventStop, StatusGaveUp},

	{StatusDraft, EventFlag, StatusDraft},
	{StatusRunning, EventFlag, StatusRunning},
	{StatusPaused, EventFlag, StatusPaused},
	{StatusWaitingHuman, EventFlag, StatusWaitingHuman},
	{StatusDone, EventFlag, StatusRunning},
	{StatusGaveUp, EventFlag, StatusGaveUp},
}

// refusals say why a status refuses an event, and what to do.
var refusals = map[Status]string{
	StatusDraft:        "it has not run yet: step it first",
	StatusRunning:      "it is running: nothing waits for an answer",
	StatusPaused:       "it is paused: step it to go on",
	StatusWaitingHuman: "it waits for a human: approve or reject its result",
	StatusDone:         "it is done: flag what was missed to open it again",
	StatusGaveUp:       "it gave up: answer what it asks, edit it, or create another spec",
}

// After returns the status after an event. If the status refuses the event, it stays and
// refused says why and what to do.
func After(s Status, e Event) (to Status, refused string) {
	for _, edge := range Edges {
		if edge.From == s && edge.Event == e {
			return edge.To, ""
		}
	}
	return s, refusals[s]
}
