package agent

import (
	"encoding/json"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events, with the fields that each uses.
const (
	EventText       EventKind = "text"       // Text: a complete text of the agent
	EventReasoning  EventKind = "reasoning"  // Text
	EventCall       EventKind = "call"       // ID, Tool, Input: a tool is called
	EventReturn     EventKind = "return"     // ID, Tool, Text, Bad: the result of a tool
	EventPermission EventKind = "permission" // ID, Tool, Wanted, Answer: permission was asked for and answered
	EventUsage      EventKind = "usage"      // Usage, Model: tokens of one or more calls, not reported before
	EventLimit      EventKind = "limit"      // Reset, Text: the account's limit is near or reached
	EventRetry      EventKind = "retry"      // Text: the program retries a call
	EventError      EventKind = "error"      // Failure
	EventEnd        EventKind = "end"        // the turn is over: no more events
)

// Event is one thing that happened in a turn, in the same form for every driver.
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
