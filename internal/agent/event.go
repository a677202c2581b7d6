package agent

import (
	"encoding/json"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
)

// EventKind is what an Event tells.
type EventKind string

// The kinds of events. Beside each stands which fields it uses.
const (
	EventText       EventKind = "text"       // Text: the agent said something, whole
	EventReasoning  EventKind = "reasoning"  // Text
	EventCall       EventKind = "call"       // ID, Tool, Input: a tool is used
	EventReturn     EventKind = "return"     // ID, Tool, Text, Bad: what the tool gave back
	EventPermission EventKind = "permission" // ID, Tool, Wanted, Answer: leave was asked for, and answered
	EventUsage      EventKind = "usage"      // Usage, Model: tokens of one or more calls, not told before
	EventLimit      EventKind = "limit"      // Reset, Text: the account's limit is near or reached
	EventRetry      EventKind = "retry"      // Text: the program tries a call again
	EventError      EventKind = "error"      // Failure
	EventEnd        EventKind = "end"        // the turn is over: no more events
)

// Event is one thing that happened in a turn, in the same words for every
// driver.
type Event struct {
	Kind    EventKind
	ID      string // of a tool's use
	Tool    string
	Text    string
	Input   json.RawMessage
	Bad     bool
	Model   string
	Usage   loop.Usage
	Reset   time.Time
	Wanted  policy.Call
	Answer  policy.Answer
	Failure *loop.Failure
}
