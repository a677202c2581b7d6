package api

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// reply is the model's answer as far as it was received.
type reply struct {
	text    []byte
	thought []byte
	calls   []call
	stop    stopReason
	tally   modelapi.Tally
	begun   bool // a part was received
	done    bool // all of it was received
}

// stopReason is why an answer ended.
type stopReason int

const (
	stopEnd stopReason = iota
	stopMax
	stopRefusal
	stopBroken // the model made a call that cannot be read
)

// callUsage returns what a call used, as reported or else estimated; never zero.
func (r reply) callUsage(q *modelapi.Request) loop.Usage {
	u, _ := r.tally.Usage(q)
	if u.Source == loop.UsageMetered {
		u.Source = loop.UsageReported
	}
	return u
}

// inputJSON returns the input of a call as valid JSON for events, whatever the
// model wrote.
func inputJSON(input string) json.RawMessage {
	if json.Valid([]byte(input)) {
		return json.RawMessage(input)
	}
	return encodeJSON(input)
}

// encodeJSON encodes values that are made here, which never fails.
func encodeJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode for a model: " + err.Error())
	}
	return b
}
