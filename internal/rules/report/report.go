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
	"reflect"
	"slices"
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

	// Continue means that the agent goes on when the runtime has run its commands and
	// told it what they said.
	Continue Outcome = "continue"
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
	Handoff   string    `json:"handoff,omitempty"` // what comes next

	Confidence *float64 `json:"confidence,omitempty"` // 0..1

	// Commands are what the runtime is to run, in this order, now that the turn is over.
	Commands []Command `json:"commands,omitempty"`
}

// MostCommands is how many commands a report may have.
const MostCommands = 20

// Command is a program that the runtime is to run, without a shell.
type Command struct {
	Argv   []string `json:"argv"` // the program and its arguments
	Why    string   `json:"why,omitempty"`
	Expect *Expect  `json:"expect,omitempty"` // nil: exit status 0
}

// Expect is what the agent expects of a command.
type Expect struct {
	Exit   int    `json:"exit,omitempty"`   // its exit status
	Output string `json:"output,omitempty"` // a text that it prints; empty: any
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
	if at := invalid(data); at >= 0 {
		return r, fmt.Errorf("the report is not UTF-8 at %s", position(data, at))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&r); err != nil {
		return Report{}, place(data, err)
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(data[end:], " \t\r\n"); len(rest) > 0 {
		return Report{}, fmt.Errorf("the report goes on after its JSON object, at %s", position(data, len(data)-len(rest)))
	}
	if err := r.check(); err != nil {
		return Report{}, err
	}
	return r, nil
}

func (r *Report) check() error {
	switch r.Outcome {
	case "", Done, Blocked, Failed, Quiet, Escalate, Continue:
	default:
		return fmt.Errorf("outcome %.*q is not one of done, blocked, failed, quiet, escalate, continue", quoted, r.Outcome)
	}
	if r.Outcome == Blocked && strings.TrimSpace(r.Reason) == "" {
		return errors.New("outcome blocked needs a reason: what does the step wait for?")
	}
	if r.Readiness != nil && (*r.Readiness < 0 || *r.Readiness > 100) {
		return fmt.Errorf("readiness %d is not between 0 and 100", *r.Readiness)
	}
	if c := r.Confidence; c != nil && (*c < 0 || *c > 1) {
		return fmt.Errorf("confidence %g is not between 0 and 1", *c)
	}
	return r.checkCommands()
}

func (r *Report) checkCommands() error {
	switch n := len(r.Commands); {
	case n == 0 && r.Outcome == Continue:
		return errors.New("outcome continue needs commands: what is to be run before the next turn?")
	case n == 0:
		return nil
	case r.Outcome != "" && r.Outcome != Done && r.Outcome != Continue:
		return fmt.Errorf("commands are run with outcome done or continue, and not with %s", r.Outcome)
	case n > MostCommands:
		return fmt.Errorf("commands has %d entries, at most %d are run for one report", n, MostCommands)
	}
	for i, c := range r.Commands {
		switch {
		case len(c.Argv) == 0 || c.Argv[0] == "":
			return fmt.Errorf("commands[%d].argv names no program: write it as a list, the program first", i)
		case slices.ContainsFunc(c.Argv, func(a string) bool { return strings.ContainsRune(a, 0) }):
			return fmt.Errorf("commands[%d].argv has a NUL character", i)
		case c.Expect != nil && (c.Expect.Exit < 0 || c.Expect.Exit > 255):
			return fmt.Errorf("commands[%d].expect.exit is %d, and an exit status is between 0 and 255", i, c.Expect.Exit)
		}
	}
	return nil
}

// quoted is how much of a value is repeated in an error, in runes.
const quoted = 40

// place turns an error of the JSON reader into one that says where. The
// reader's offsets count the byte at fault.
func place(data []byte, err error) error {
	if syn, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the report is not JSON at %s: %w", position(data, int(syn.Offset)-1), err)
	}
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "the report"
		if typ.Field != "" {
			what += fmt.Sprintf("'s field %q", typ.Field)
		}
		return fmt.Errorf("%s is a JSON %.*s at %s, expected %s", what, quoted, typ.Value, position(data, int(typ.Offset)-1), wanted(typ.Type))
	}
	return fmt.Errorf("the report is cut off after %d bytes: %w", len(data), err)
}

// wanted is a type in the words of whoever writes JSON.
func wanted(t reflect.Type) string {
	words := map[reflect.Kind]string{
		reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.Float64: "a number", reflect.String: "a string", reflect.Slice: "a list", reflect.Struct: "an object",
	}
	return words[t.Kind()]
}

// invalid is the offset of the first byte that is not UTF-8, -1 for none.
func invalid(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// position is the place of the byte at an offset, as editors count it.
func position(data []byte, at int) string {
	before := data[:min(max(at, 0), len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return fmt.Sprintf("line %d column %d", line, column)
}
