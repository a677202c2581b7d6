package qwen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// line is any of the program's events.
type line struct {
	Type    string  `json:"type"`
	Session string  `json:"session_id"`
	Parent  string  `json:"parent_tool_use_id"` // set for what a sub-agent does
	Message message `json:"message"`

	// Of a result.
	Subtype string   `json:"subtype"`
	IsError bool     `json:"is_error"`
	Usage   tokens   `json:"usage"` // of all turns since the conversation began
	Denied  []denial `json:"permission_denials"`
	Error   problem  `json:"error"`

	// Of a system event.
	Data struct {
		Attempt int `json:"attempt"`
		Most    int `json:"maxRetries"`
		DelayMS int `json:"delayMs"`
	} `json:"data"`
}

type message struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Content blocks `json:"content"`
	Usage   tokens `json:"usage"`
}

// block is a part of a message.
type block struct {
	Type     string          `json:"type"` // text thinking tool_use tool_result
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Use      string          `json:"tool_use_id"`
	IsError  bool            `json:"is_error"`
	Content  flatText        `json:"content"`
}

// blocks reads a list of blocks; anything else is empty.
type blocks []block

// UnmarshalJSON never fails.
func (b *blocks) UnmarshalJSON(data []byte) error {
	*b = nil
	var all []block
	if json.Unmarshal(data, &all) == nil {
		*b = all
	}
	return nil
}

// flatText reads a text, or the texts of a list of blocks.
type flatText string

// UnmarshalJSON never fails.
func (w *flatText) UnmarshalJSON(data []byte) error {
	*w = ""
	var text string
	if json.Unmarshal(data, &text) == nil {
		*w = flatText(text)
		return nil
	}
	var all []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &all) == nil {
		for _, b := range all {
			*w += flatText(b.Text)
		}
	}
	return nil
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// tokens are those of one call in a message, and those of the whole conversation
// in a result.
type tokens struct {
	Input  loop.Count `json:"input_tokens"` // including cached tokens
	Output loop.Count `json:"output_tokens"`
	Cached loop.Count `json:"cache_read_input_tokens"`
	Total  loop.Count `json:"total_tokens"`
}

func (t tokens) isBad() bool { return t.Input.Bad || t.Output.Bad || t.Cached.Bad || t.Total.Bad }

// toUsage returns zero if a number is invalid.
func (t tokens) toUsage() loop.Usage {
	if t.isBad() {
		return loop.Usage{}
	}
	u := loop.Usage{
		Input: max(0, t.Input.N-t.Cached.N), Output: max(t.Output.N, t.Total.N-t.Input.N), CacheRead: t.Cached.N,
	}
	if !u.Zero() {
		u.Source = loop.UsageReported
	}
	return u
}

// decoder decodes one turn.
type decoder struct {
	keep      bool
	before    *loop.Session // nil if the conversation begins with this turn
	session   string
	model     string
	tools     map[string]string
	reported  loop.Usage // the sum of the messages
	lastCall  loop.Usage // of the last message
	ended     int        // results so far: a program that retries has several
	failed    bool       // the last result was a failure
	finalText string     // the last text of the agent
	total     loop.Usage // since the conversation began; zero if unknown
}

// DecodeLine decodes an event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, false
	}
	d.session = cmp.Or(d.session, l.Session)
	switch l.Type {
	case "system":
		return d.systemEvents(l), true
	case "stream_event":
		return nil, true
	case "assistant":
		return d.messageEvents(l), true
	case "user":
		return d.resultEvents(l), true
	case "result":
		return d.endTurn(l), true
	}
	return nil, false
}

// systemEvents reports messages of the program itself.
func (d *decoder) systemEvents(l line) []agent.Event {
	if l.Subtype != "retry" {
		return nil
	}
	text := "a call of the model is tried again"
	if l.Data.DelayMS > 0 {
		text += fmt.Sprintf(" in %d ms, attempt %d of %d", l.Data.DelayMS, l.Data.Attempt, l.Data.Most)
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: text}}
}

// messageEvents reports what the agent says and which tools it calls.
func (d *decoder) messageEvents(l line) []agent.Event {
	if l.Parent != "" {
		return nil
	}
	d.model = cmp.Or(l.Message.Model, d.model)
	var events []agent.Event
	for _, b := range l.Message.Content {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			d.finalText = strings.TrimSpace(b.Text)
			events = append(events, agent.Event{Kind: agent.EventText, Text: b.Text})
		case b.Type == "thinking" && b.Thinking != "":
			events = append(events, agent.Event{Kind: agent.EventReasoning, Text: b.Thinking})
		case b.Type == "tool_use":
			events = append(events, d.beginCall(b)...)
		}
	}
	if u := l.Message.Usage.toUsage(); !u.Zero() {
		d.reported, d.lastCall = d.reported.Add(u), u
		events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.model, Usage: u})
	}
	return events
}

func (d *decoder) beginCall(b block) []agent.Event {
	if d.tools[b.ID] != "" || b.ID == "" || b.Name == "" {
		return nil
	}
	if d.tools == nil {
		d.tools = map[string]string{}
	}
	d.tools[b.ID] = b.Name
	return []agent.Event{{Kind: agent.EventCall, ID: b.ID, Tool: b.Name, Input: b.Input}}
}

// resultEvents reports results of tools.
func (d *decoder) resultEvents(l line) []agent.Event {
	var events []agent.Event
	for _, b := range l.Message.Content {
		if tool := d.tools[b.Use]; b.Type == "tool_result" && tool != "" && l.Parent == "" {
			events = append(events, agent.Event{Kind: agent.EventReturn, ID: b.Use, Tool: tool, Text: string(b.Content), Bad: b.IsError})
		}
	}
	return events
}

// endTurn reports the end of the turn: what was denied, what was used in addition
// to the messages, and why it failed.
func (d *decoder) endTurn(l line) []agent.Event {
	var events []agent.Event
	for _, n := range l.Denied {
		events = append(events, agent.Event{
			Kind: agent.EventPermission, ID: n.ID, Tool: n.Tool, Wanted: callOf(n),
			Answer: policy.Answer{Rule: "permission_denied", Words: "the program's rules do not allow it"},
		})
	}
	d.total = l.Usage.toUsage()
	u := d.unreportedUsage()
	if l.Usage.isBad() {
		u.Source = loop.UsageEstimated // Then the sum of the messages is an estimate too.
	}
	if u != (loop.Usage{}) {
		events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.model, Usage: u})
	}
	d.ended++
	if d.failed = l.IsError || l.Subtype != "success"; d.failed {
		events = append(events, agent.Event{Kind: agent.EventError, Failure: failureOf(l)})
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

// unreportedUsage returns what this turn used in addition to its messages: calls
// whose answers were discarded, and calls for the program's own purposes.
func (d *decoder) unreportedUsage() loop.Usage {
	before := agent.SessionUsage(d.before)
	if d.before != nil && before.Zero() {
		return loop.Usage{} // The usage of earlier turns is unknown and must not be counted again.
	}
	turn := d.total.Since(before)
	u := loop.Usage{
		Input: max(0, turn.Input-d.reported.Input), Output: max(0, turn.Output-d.reported.Output), CacheRead: max(0, turn.CacheRead-d.reported.CacheRead),
	}
	if !u.Zero() {
		u.Source = loop.UsageReported
	}
	return u
}

// classByExitStatus has the exit statuses with a documented meaning. The program
// exits with them without a result.
var classByExitStatus = map[int]loop.FailureClass{
	41: loop.FailureAuth,
	53: loop.FailureTurns,
}

// Finish adds the session, and what only the exit status says.
func (d *decoder) Finish(r *agent.Result, stderr string) {
	if d.ended > 1 && !d.failed {
		r.Failure, r.Message = nil, d.finalText // It retried, and that succeeded.
		if u := d.total.Since(agent.SessionUsage(d.before)); !u.Zero() {
			r.Usage, r.Models = u, []loop.ModelUsage{{Model: d.model, Usage: u}}
		}
	}
	if class := classByExitStatus[r.Exit]; class != "" && r.Ended == proc.Exited && r.Failure == nil {
		r.Failure = &loop.Failure{Class: class, Text: agent.LastLine(stderr), Typed: true}
	}
	if r.Ended != proc.Exited && d.total.Zero() && !d.lastCall.Zero() {
		// The call under way is estimated to use as much as the one before.
		call := d.lastCall
		call.Source = loop.UsageEstimated
		r.Usage, r.Models = r.Usage.Add(call), agent.AddUsage(r.Models, d.model, call)
	}
	if !d.keep || d.session == "" {
		return
	}
	if d.total.Zero() {
		d.total = agent.SessionUsage(d.before).Add(d.reported) // After a turn that was cut, the next one continues from its reports.
	}
	r.Session = &loop.Session{ID: d.session, Turns: 1, Totals: []loop.ModelUsage{{Model: d.model, Usage: d.total}}}
	if d.before != nil {
		r.Session.Turns += d.before.Turns
	}
}
