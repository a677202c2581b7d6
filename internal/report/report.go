// Package report reads what an agent says about its own step: the JSON file
// that PAWL_REPORT names, schema pawl.report/v1.
//
// A report is a claim. This package only reads it; nothing here decides
// whether the claim is true.
package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxSize is the largest report that is read, in bytes.
const MaxSize = 1 << 20

// Outcome is what the agent claims.
type Outcome string

// The claims an agent can make. The empty Outcome means that it made none.
const (
	Done     Outcome = "done"
	Blocked  Outcome = "blocked"
	Failed   Outcome = "failed"
	Quiet    Outcome = "quiet"
	Escalate Outcome = "escalate"
)

// Report is pawl.report/v1. All fields are optional; the zero Report claims
// nothing.
type Report struct {
	Outcome   Outcome   `json:"outcome,omitempty"`
	Summary   string    `json:"summary,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	NoChange  bool      `json:"no_change,omitempty"`
	Item      string    `json:"item,omitempty"`  // what the run was about, key=value for the run log
	Items     []string  `json:"items,omitempty"` // findings
	State     *State    `json:"state,omitempty"`
	Readiness *int      `json:"readiness,omitempty"` // 0..100
	Pitfalls  []string  `json:"pitfalls,omitempty"`
	Memory    []string  `json:"memory,omitempty"`
	Messages  []Message `json:"messages,omitempty"`
	Handoff   string    `json:"handoff,omitempty"`
}

// State is the agent's proposal for the three lists of a snapshot. A nil list
// leaves the section as it is; an empty one empties it.
type State struct {
	Priority []string `json:"priority"`
	Watch    []string `json:"watch"`
	Noise    []string `json:"noise"`
}

// Message is a message to another agent. The runtime sets the sender.
type Message struct {
	To      string `json:"to"`
	Kind    string `json:"kind"`
	Content string `json:"content"`
}

// Parse reads a report. Empty input is the zero Report: the agent claimed
// nothing. Unknown fields are ignored, so that newer agents can say more.
// Errors name the place and what was expected there.
func Parse(data []byte) (Report, error) {
	var r Report
	if len(data) > MaxSize {
		return r, fmt.Errorf("the report has %d bytes, at most %d are read", len(data), MaxSize)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return r, nil
	}
	if !utf8.Valid(data) {
		return r, errors.New("the report is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&r); err != nil {
		return Report{}, place(data, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Report{}, fmt.Errorf("the report goes on after its JSON object, at %s", position(data, dec.InputOffset()))
	}
	return r, r.check()
}

func (r *Report) check() error {
	switch r.Outcome {
	case "", Done, Blocked, Failed, Quiet, Escalate:
	default:
		return fmt.Errorf("outcome %q is not one of done, blocked, failed, quiet, escalate", r.Outcome)
	}
	if r.Outcome == Blocked && strings.TrimSpace(r.Reason) == "" {
		return errors.New("outcome blocked needs a reason: what does the step wait for?")
	}
	if r.Readiness != nil && (*r.Readiness < 0 || *r.Readiness > 100) {
		return fmt.Errorf("readiness %d is not between 0 and 100", *r.Readiness)
	}
	return nil
}

// place turns an error of the JSON reader into one that says where.
func place(data []byte, err error) error {
	if syn, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the report is no JSON at %s: %w", position(data, syn.Offset), err)
	}
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the report's field %q is a %s at %s, expected %s", typ.Field, typ.Value, position(data, typ.Offset), typ.Type)
	}
	return fmt.Errorf("the report is cut off after %d bytes: %w", len(data), err)
}

func position(data []byte, offset int64) string {
	before := data[:min(max(offset, 0), int64(len(data)))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Sprintf("line %d column %d", line, max(1, column))
}
