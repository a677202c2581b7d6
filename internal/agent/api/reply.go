package api

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/modelapi"
)

// reply is an answer of the model, as far as it was received.
type reply struct {
	text    []byte
	thought []byte
	calls   []call
	stop    stop
	tally   modelapi.Tally
	begun   bool // something of it was received
	done    bool // all of it was
}

// stop is why an answer ended.
type stop int

const (
	stopEnd stop = iota
	stopMax
	stopRefusal
	stopBroken // the model made a call that cannot be read
)

// usage is what a call used, as was reported or else as is estimated: never zero.
func (r reply) usage(q *modelapi.Request) loop.Usage {
	u, _ := r.tally.Usage(q)
	if u.Source == loop.UsageMetered {
		u.Source = loop.UsageReported
	}
	return u
}

// shown is the input of a call for those who watch: JSON, whatever the model
// wrote.
func shown(input string) json.RawMessage {
	if json.Valid([]byte(input)) {
		return json.RawMessage(input)
	}
	return encode(input)
}

// encode is for values that are made here.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode for a model: " + err.Error())
	}
	return b
}
