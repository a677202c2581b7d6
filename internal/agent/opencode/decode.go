package opencode

import (
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

const (
	// mostOverflows is how often in a row a conversation may outgrow its model. The
	// program shortens it each time and goes on, without an end.
	mostOverflows = 3
	// progress is how many calls between two overflows make them two of their own.
	progress = 5
)

// decoder reads what `opencode run --format json` prints.
type decoder struct {
	request   agent.Request
	session   string
	calls     map[string]bool
	reason    string     // for which the last step ended; empty: it goes on
	last      loop.Usage // of the last step
	overflows int
	at        int           // calls at the last overflow
	overflow  *loop.Failure // not yet overcome
	failed    bool
}

// line is one event of the program.
type line struct {
	Type      string `json:"type"`
	Timestamp moment `json:"timestamp"`
	SessionID string `json:"sessionID"`
	Part      part   `json:"part"`
	Error     *fault `json:"error"`
}

// moment is in Unix milliseconds; what is not a time is 0, and keeps nothing else of
// its event from being read.
type moment int64

// UnmarshalJSON never fails.
func (m *moment) UnmarshalJSON(data []byte) error {
	var n float64
	if *m = 0; json.Unmarshal(data, &n) == nil && n > 0 && n < 1<<53 {
		*m = moment(n)
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

// usage counts each token once: the program's input is without the cache, and
// its output without the reasoning. If a number is invalid, the others are
// but an estimate.
func (t *tokens) usage() loop.Usage {
	u := loop.Usage{
		Input: t.Input.N, Output: t.Output.N + t.Reasoning.N, CacheRead: t.Cache.Read.N, CacheWrite: t.Cache.Write.N,
	}
	if t.Input.Bad || t.Output.Bad || t.Reasoning.Bad || t.Cache.Read.Bad || t.Cache.Write.Bad {
		u.Source = loop.UsageEstimated
	}
	return u
}

// DecodeLine reads one event.
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
		return d.step(l.Part), true
	case "tool_use":
		return d.tool(l.Part), true
	case "text":
		return said(agent.EventText, l.Part), true
	case "reasoning":
		return said(agent.EventReasoning, l.Part), true
	case "error":
		return d.fail(l), true
	}
	return nil, true
}

// said is what the model said. What the program puts into the conversation by
// itself is marked as synthetic.
func said(kind agent.EventKind, p part) []agent.Event {
	if p.Synthetic || strings.TrimSpace(p.Text) == "" {
		return nil
	}
	return []agent.Event{{Kind: kind, Text: p.Text}}
}

func (d *decoder) step(p part) []agent.Event {
	d.reason = p.Reason
	var events []agent.Event
	if p.Tokens != nil {
		d.last = p.Tokens.usage()
		if d.last != (loop.Usage{}) {
			events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.request.Model, Usage: d.last})
		}
	}
	if p.Reason == "length" {
		d.failed = true
		events = append(events, failure(loop.Failure{
			Class: loop.FailureMaxTokens, Text: "the model's answer was cut at the length that it may have", Typed: true,
		}))
	}
	return events
}

// tool is a call and what came back: the program tells of a call once it is over.
// The model's own id of a call is not used, since some models count from zero
// in each step.
func (d *decoder) tool(p part) []agent.Event {
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

// fail reads an error. A conversation that outgrew its model is shortened by the
// program, which goes on, and in the end has the exit status of a failure all
// the same: whether it was one shows at the end.
func (d *decoder) fail(l line) []agent.Event {
	f := classify(l)
	if f.Class != loop.FailureOverflow {
		d.failed = true
		return []agent.Event{failure(f)}
	}
	d.overflow, d.reason = &f, ""
	if d.overflows++; len(d.calls)-d.at >= progress {
		d.overflows = 1
	}
	d.at = len(d.calls)
	if d.overflows >= mostOverflows {
		d.failed = true
		return []agent.Event{failure(f), {Kind: agent.EventEnd}}
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: f.Text}}
}

func failure(f loop.Failure) agent.Event { return agent.Event{Kind: agent.EventError, Failure: &f} }

// DecodeExit ends the turn: the program has no event for that. A step that asked
// for tools, or never ended, is no end.
func (d *decoder) DecodeExit(int) []agent.Event {
	switch {
	case d.failed || d.finished():
		return []agent.Event{{Kind: agent.EventEnd}}
	case d.overflow != nil:
		return []agent.Event{failure(*d.overflow), {Kind: agent.EventEnd}}
	}
	return nil
}

// EndsSilently allows a turn without a text in which something was done: some models say
// nothing once their work is.
func (d *decoder) EndsSilently() bool { return d.finished() && len(d.calls) > 0 }

func (d *decoder) finished() bool {
	switch d.reason {
	case "", "tool-calls", "unknown", "error":
		return false
	}
	return true
}

// Finish adds the conversation, and an estimate of the call that was cut short
// with the program: no event tells of it.
func (d *decoder) Finish(r *agent.Result, _ string) {
	if d.session != "" && d.request.Keep {
		r.Session = &loop.Session{ID: d.session, Turns: 1}
		if was := d.request.Session; was != nil && was.ID == d.session {
			r.Session.Turns += was.Turns
		}
	}
	if r.Ended == proc.Exited || d.finished() || d.last.Zero() {
		return
	}
	cut := loop.Usage{
		Input: d.last.Input + d.last.CacheRead + d.last.CacheWrite + d.last.Output, Output: 1, Source: loop.UsageEstimated,
	}
	r.Usage = r.Usage.Add(cut)
	for i := range r.Models {
		if r.Models[i].Model == d.request.Model {
			r.Models[i].Usage = r.Models[i].Add(cut)
		}
	}
}
