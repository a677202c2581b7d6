package gemini

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/proc"
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

// tokens count from the start of the process, also where a session goes on.
type tokens struct {
	Total  loop.Count `json:"total_tokens"`  // with thoughts, which stand nowhere else
	Prompt loop.Count `json:"input_tokens"`  // with what was read from a cache
	Output loop.Count `json:"output_tokens"` // without thoughts
	Cached loop.Count `json:"cached"`
}

// decoder reads one turn.
type decoder struct {
	beside  *words
	keep    bool
	turns   int
	session string
	text    strings.Builder
	tools   map[string]line
	said    string // the last error that is no end
}

// DecodeLine reads an event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, false
	}
	if l.Type == "message" {
		if l.Role == "assistant" {
			d.text.WriteString(l.Content) // It comes in pieces.
		}
		return nil, true
	}
	events := d.flush()
	switch l.Type {
	case "init":
		d.session = l.SessionID
	case "tool_use":
		events = append(events, d.use(l)...)
	case "tool_result":
		events = append(events, d.back(l)...)
	case "error":
		d.said = cmp.Or(l.Message, "an error without words")
		if strings.HasPrefix(l.Message, "Loop detected") {
			events = append(events, failed(&loop.Failure{Class: loop.FailureTurns, Text: l.Message})) // It ends as a success.
		}
	case "result":
		events = append(events, d.result(l)...)
	default:
		return events, false
	}
	return events, true
}

// flush is what the agent said until now, whole.
func (d *decoder) flush() []agent.Event {
	text := d.text.String()
	d.text.Reset()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []agent.Event{{Kind: agent.EventText, Text: text}}
}

func (d *decoder) use(l line) []agent.Event {
	if _, again := d.tools[l.ID]; again || l.ID == "" || l.Tool == "" {
		return nil
	}
	if d.tools == nil {
		d.tools = map[string]line{}
	}
	d.tools[l.ID] = l
	return []agent.Event{{Kind: agent.EventCall, ID: l.ID, Tool: l.Tool, Input: l.Input}}
}

// back is what a tool gave back, and before it that it was denied.
func (d *decoder) back(l line) []agent.Event {
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
		Kind: agent.EventPermission, ID: l.ID, Tool: use.Tool, Wanted: wanted(use),
		Answer: policy.Answer{Rule: l.Error.Type, Words: l.Error.Message},
	}, e}
}

// result is the end of the turn.
func (d *decoder) result(l line) []agent.Event {
	events := usage(l.Stats.Models)
	if l.Status != "success" {
		events = append(events, failed(d.classify(l.Error)))
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

// usage is what each model was used for. If a number is invalid, the others
// are but an estimate.
func usage(models map[string]tokens) []agent.Event {
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

func failed(f *loop.Failure) agent.Event { return agent.Event{Kind: agent.EventError, Failure: f} }

// Finish adds the session, and what only the exit status says.
func (d *decoder) Finish(r *agent.Result, stderr string) {
	if d.keep && d.session != "" {
		r.Session = &loop.Session{ID: d.session, Turns: d.turns + 1}
	}
	if r.Ended == proc.Exited {
		r.Failure = byExit(r.Failure, r.Exit, d.beside.name, stderr)
	}
}
