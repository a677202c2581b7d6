package api

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/loop"
)

// reply is an answer of the model, as far as it was received.
type reply struct {
	text    []byte
	thought []byte
	calls   []call
	stop    stop
	counts  counts
	bytes   int64 // that the model produced
	begun   bool  // something of it was received
	done    bool  // all of it was
}

// stop is why an answer ended.
type stop int

const (
	stopEnd stop = iota
	stopMax
	stopRefusal
	stopBroken // the model made a call that cannot be read
)

// counts are tokens as a vendor reports them.
type counts struct {
	input, output, thought, read, write, hour loop.Count
	nested                                    bool // input holds read
}

const (
	// bytesPerToken is the rule of thumb behind an estimate.
	bytesPerToken = 4
	// mostBytesPerToken is more than any model needs: a report of fewer tokens is
	// none.
	mostBytesPerToken = 16
)

// usage is what a call used, by what was reported or else by the bytes that went
// out and came back: never zero.
func (r reply) usage(sent int64) loop.Usage {
	c := r.counts
	u := loop.Usage{Input: c.input.N, Output: c.output.N + c.thought.N, CacheRead: c.read.N, CacheWrite: c.write.N, CacheWrite1h: c.hour.N}
	if c.nested {
		u.Input -= u.CacheRead
	}
	bad := c.input.Bad || c.output.Bad || c.thought.Bad || c.read.Bad || c.write.Bad || c.hour.Bad || !c.input.Set || !c.output.Set
	if bad || u.Input < 0 || u.Output < r.bytes/mostBytesPerToken || u.CacheWrite1h > u.CacheWrite || u.Zero() {
		return loop.Usage{Input: 1 + sent/bytesPerToken, Output: 1 + r.bytes/bytesPerToken, Source: loop.UsageEstimated}
	}
	u.Source = loop.UsageReported
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
