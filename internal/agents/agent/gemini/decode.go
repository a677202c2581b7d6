package gemini

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// line is any of the program's events.
type line struct {
	Type      string          `json:"type"`
	SessionID string          `json:"session_id"`
	Model     string          `json:"model"`
	Role      string          `json:"role"`
	Content   string          `json:"content"`
	Tool      string          `json:"tool_name"`
	ID        string          `json:"tool_id"`
	Input     json.RawMessage `json:"parameters"`
	Status    string          `json:"status"`
	Output    string          `json:"output"`
	Message   string          `json:"message"`
	Error     *problem        `json:"error"`
	Stats     struct {
		Models map[string]tokens `json:"models"`
	} `json:"stats"`
}

type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// tokens are counted from the start of the process, also if a session is
// continued.
type tokens struct {
	Total  loop.Count `json:"total_tokens"`  // including thoughts, which are counted nowhere else
	Prompt loop.Count `json:"input_tokens"`  // including cached tokens
	Output loop.Count `json:"output_tokens"` // without thoughts
	Cached loop.Count `json:"cached"`
}

// decoder decodes one turn.
type decoder struct {
	stderr    *stderrReader
	keep      bool
	turns     int
	session   string
	text      strings.Builder
	tools     map[string]line
	lastError string // the last error that did not end the turn
}

// DecodeLine decodes an event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, false
	}
	if l.Type == "message" {
		if l.Role == "assistant" {
			d.text.WriteString(l.Content) // A text comes in pieces.
		}
		return nil, true
	}
	events := d.flushText()
	switch l.Type {
	case "init":
		d.session = l.SessionID
	case "tool_use":
		events = append(events, d.beginCall(l)...)
	case "tool_result":
		events = append(events, d.endCall(l)...)
	case "error":
		d.lastError = cmp.Or(l.Message, "an error without words")
		if strings.HasPrefix(l.Message, "Loop detected") {
			events = append(events, errorEvent(&loop.Failure{Class: loop.FailureTurns, Text: l.Message})) // The turn ends as a success.
		}
	case "result":
		events = append(events, d.endTurn(l)...)
	default:
		return events, false
	}
	return events, true
}

// flushText returns the event of the collected text.
func (d *decoder) flushText() []agent.Event {
	text := d.text.String()
	d.text.Reset()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []agent.Event{{Kind: agent.EventText, Text: text}}
}

func (d *decoder) beginCall(l line) []agent.Event {
	if _, again := d.tools[l.ID]; again || l.ID == "" || l.Tool == "" {
		return nil
	}
	if d.tools == nil {
		d.tools = map[string]line{}
	}
	d.tools[l.ID] = l
	return []agent.Event{{Kind: agent.EventCall, ID: l.ID, Tool: l.Tool, Input: l.Input}}
}

// endCall reports a tool's result, and before it a denial.
func (d *decoder) endCall(l line) []agent.Event {
	use, ok := d.tools[l.ID]
	if !ok {
		return nil
	}
	e := agent.Event{Kind: agent.EventReturn, ID: l.ID, Tool: use.Tool, Text: l.Output, Bad: l.Status != "success"}
	if l.Error == nil {
		return []agent.Event{e}
	}
	e.Text, e.Bad = cmp.Or(l.Error.Message, l.Output), true
	if l.Error.Type != "policy_violation" {
		return []agent.Event{e}
	}
	return []agent.Event{{
		Kind: agent.EventPermission, ID: l.ID, Tool: use.Tool, Wanted: callOf(use),
		Answer: policy.Answer{Rule: l.Error.Type, Words: l.Error.Message},
	}, e}
}

// endTurn reports the end of the turn.
func (d *decoder) endTurn(l line) []agent.Event {
	events := usageEvents(l.Stats.Models)
	if l.Status != "success" {
		events = append(events, errorEvent(d.classify(l.Error)))
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

// usageEvents reports the usage of each model. If one number is invalid, the
// others are an estimate.
func usageEvents(models map[string]tokens) []agent.Event {
	var events []agent.Event
	for model, t := range models {
		u := loop.Usage{
			Input: max(0, t.Prompt.N-t.Cached.N), Output: max(t.Output.N, t.Total.N-t.Prompt.N), CacheRead: t.Cached.N,
			Source: loop.UsageReported,
		}
		bad := t.Total.Bad || t.Prompt.Bad || t.Output.Bad || t.Cached.Bad
		if bad {
			u.Source = loop.UsageEstimated
		}
		if bad || !u.Zero() {
			events = append(events, agent.Event{Kind: agent.EventUsage, Model: model, Usage: u})
		}
	}
	slices.SortFunc(events, func(a, b agent.Event) int { return strings.Compare(a.Model, b.Model) })
	return events
}

func errorEvent(f *loop.Failure) agent.Event { return agent.Event{Kind: agent.EventError, Failure: f} }

// Finish adds the session, and what only the exit status says.
func (d *decoder) Finish(r *agent.Result, stderr string) {
	if d.keep && d.session != "" {
		r.Session = &loop.Session{ID: d.session, Turns: d.turns + 1}
	}
	if r.Ended == proc.Exited {
		r.Failure = refineByExit(r.Failure, r.Exit, d.stderr.name, stderr)
	}
}
