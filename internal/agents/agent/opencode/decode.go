package opencode

import (
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// maxOverflows is how often in a row a conversation may become too long
	// for its model. The program shortens it each time and continues, without
	// a limit.
	maxOverflows = 3
	// callsBetween is how many calls between two overflows make them
	// unrelated.
	callsBetween = 5
)

// decoder decodes the output of `opencode run --format json`.
type decoder struct {
	request      agent.Request
	session      string
	calls        map[string]bool
	reason       string     // why the last step ended; empty while a step is running
	lastStep     loop.Usage // usage of the last step
	overflows    int
	lastOverflow int           // calls at the last overflow
	overflow     *loop.Failure // an overflow that was not overcome yet
	failed       bool
}

// line is one event of the program.
type line struct {
	Type      string     `json:"type"`
	Timestamp unixMillis `json:"timestamp"`
	SessionID string     `json:"sessionID"`
	Part      part       `json:"part"`
	Error     *fault     `json:"error"`
}

// unixMillis is a time in Unix milliseconds. An invalid time is 0, so that the
// rest of its event can still be read.
type unixMillis int64

// UnmarshalJSON never fails.
func (m *unixMillis) UnmarshalJSON(data []byte) error {
	var n float64
	if *m = 0; json.Unmarshal(data, &n) == nil && n > 0 && n < 1<<53 {
		*m = unixMillis(n)
	}
	return nil
}

type part struct {
	ID        string `json:"id"`
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"`
	Tool      string `json:"tool"`
	State     struct {
		Status string          `json:"status"`
		Input  json.RawMessage `json:"input"`
		Output string          `json:"output"`
		Error  string          `json:"error"`
	} `json:"state"`
	Reason string  `json:"reason"`
	Tokens *tokens `json:"tokens"`
}

type tokens struct {
	Input     loop.Count `json:"input"`
	Output    loop.Count `json:"output"`
	Reasoning loop.Count `json:"reasoning"`
	Cache     struct {
		Read  loop.Count `json:"read"`
		Write loop.Count `json:"write"`
	} `json:"cache"`
}

// toUsage counts each token once: the program's input excludes cached tokens, and
// its output excludes reasoning. If one number is invalid, all of them are an
// estimate.
func (t *tokens) toUsage() loop.Usage {
	u := loop.Usage{
		Input: t.Input.N, Output: t.Output.N + t.Reasoning.N, CacheRead: t.Cache.Read.N, CacheWrite: t.Cache.Write.N,
	}
	if t.Input.Bad || t.Output.Bad || t.Reasoning.Bad || t.Cache.Read.Bad || t.Cache.Write.Bad {
		u.Source = loop.UsageEstimated
	}
	return u
}

// DecodeLine decodes one event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if json.Unmarshal(text, &l) != nil || l.SessionID == "" {
		return nil, false
	}
	d.session = l.SessionID
	switch l.Type {
	case "step_start":
		d.reason = ""
		return nil, true
	case "step_finish":
		return d.stepEvents(l.Part), true
	case "tool_use":
		return d.toolEvents(l.Part), true
	case "text":
		return textEvents(agent.EventText, l.Part), true
	case "reasoning":
		return textEvents(agent.EventReasoning, l.Part), true
	case "error":
		return d.takeError(l), true
	}
	return nil, true
}

// textEvents reports a text of the model. Texts that the program adds to the
// conversation by itself are marked as synthetic.
func textEvents(kind agent.EventKind, p part) []agent.Event {
	if p.Synthetic || strings.TrimSpace(p.Text) == "" {
		return nil
	}
	return []agent.Event{{Kind: kind, Text: p.Text}}
}

func (d *decoder) stepEvents(p part) []agent.Event {
	d.reason = p.Reason
	var events []agent.Event
	if p.Tokens != nil {
		d.lastStep = p.Tokens.toUsage()
		if d.lastStep != (loop.Usage{}) {
			events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.request.Model, Usage: d.lastStep})
		}
	}
	if p.Reason == "length" {
		d.failed = true
		events = append(events, errorEvent(loop.Failure{
			Class: loop.FailureMaxTokens, Text: "the model's answer was cut at the length that it may have", Typed: true,
		}))
	}
	return events
}

// toolEvents reports a call and its result: the program reports a call after it
// has ended. It does not use the model's own ID of the call, since some models
// count from zero in each step.
func (d *decoder) toolEvents(p part) []agent.Event {
	if p.Tool == "" || d.calls[p.ID] {
		return nil
	}
	if d.calls == nil {
		d.calls = map[string]bool{}
	}
	d.calls[p.ID] = true
	back := agent.Event{Kind: agent.EventReturn, ID: p.ID, Tool: p.Tool, Text: p.State.Output}
	if p.State.Status == "error" {
		back.Text, back.Bad = p.State.Error, true
	}
	return []agent.Event{{Kind: agent.EventCall, ID: p.ID, Tool: p.Tool, Input: p.State.Input}, back}
}

// takeError reads an error. If the conversation is too long for the model, the
// program shortens it and continues; its exit status is that of a failure even if
// it succeeds. DecodeExit finds out which.
func (d *decoder) takeError(l line) []agent.Event {
	f := failureOf(l)
	if f.Class != loop.FailureOverflow {
		d.failed = true
		return []agent.Event{errorEvent(f)}
	}
	d.overflow, d.reason = &f, ""
	if d.overflows++; len(d.calls)-d.lastOverflow >= callsBetween {
		d.overflows = 1
	}
	d.lastOverflow = len(d.calls)
	if d.overflows >= maxOverflows {
		d.failed = true
		return []agent.Event{errorEvent(f), {Kind: agent.EventEnd}}
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: f.Text}}
}

func errorEvent(f loop.Failure) agent.Event { return agent.Event{Kind: agent.EventError, Failure: &f} }

// DecodeExit ends the turn, for which the program has no event. A step that
// called tools, or never ended, does not end a turn.
func (d *decoder) DecodeExit(int) []agent.Event {
	switch {
	case d.failed || d.hasFinished():
		return []agent.Event{{Kind: agent.EventEnd}}
	case d.overflow != nil:
		return []agent.Event{errorEvent(*d.overflow), {Kind: agent.EventEnd}}
	}
	return nil
}

// EndsSilently allows a turn without a text if tools were called: some models
// write nothing when their work is done.
func (d *decoder) EndsSilently() bool { return d.hasFinished() && len(d.calls) > 0 }

func (d *decoder) hasFinished() bool {
	switch d.reason {
	case "", "tool-calls", "unknown", "error":
		return false
	}
	return true
}

// Finish adds the conversation, and an estimate of a call that was cut, which no
// event reports.
func (d *decoder) Finish(r *agent.Result, _ string) {
	if d.session != "" && d.request.Keep {
		r.Session = &loop.Session{ID: d.session, Turns: 1}
		if was := d.request.Session; was != nil && was.ID == d.session {
			r.Session.Turns += was.Turns
		}
	}
	if r.Ended == proc.Exited || d.hasFinished() || d.lastStep.Zero() {
		return
	}
	cut := loop.Usage{
		Input: d.lastStep.Input + d.lastStep.CacheRead + d.lastStep.CacheWrite + d.lastStep.Output, Output: 1, Source: loop.UsageEstimated,
	}
	r.Usage = r.Usage.Add(cut)
	for i := range r.Models {
		if r.Models[i].Model == d.request.Model {
			r.Models[i].Usage = r.Models[i].Add(cut)
		}
	}
}
