package qwen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/proc"
)

// line is any of the program's events.
type line struct {
	Type    string  `json:"type"`
	Session string  `json:"session_id"`
	Parent  string  `json:"parent_tool_use_id"` // of what a sub-agent does
	Message message `json:"message"`

	// Of a result.
	Subtype string   `json:"subtype"`
	IsError bool     `json:"is_error"`
	Usage   tokens   `json:"usage"` // since the conversation began, over all its turns
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
	Content  words           `json:"content"`
}

// blocks reads a list of blocks; anything else has none.
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

// words reads a text, or the texts of a list of blocks.
type words string

// UnmarshalJSON never fails.
func (w *words) UnmarshalJSON(data []byte) error {
	*w = ""
	var text string
	if json.Unmarshal(data, &text) == nil {
		*w = words(text)
		return nil
	}
	var all []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &all) == nil {
		for _, b := range all {
			*w += words(b.Text)
		}
	}
	return nil
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// tokens are those of one call in a message, and of the whole conversation in a
// result.
type tokens struct {
	Input  loop.Count `json:"input_tokens"` // with what was read from a cache
	Output loop.Count `json:"output_tokens"`
	Cached loop.Count `json:"cache_read_input_tokens"`
	Total  loop.Count `json:"total_tokens"`
}

func (t tokens) bad() bool { return t.Input.Bad || t.Output.Bad || t.Cached.Bad || t.Total.Bad }

// usage is zero where a number is none.
func (t tokens) usage() loop.Usage {
	if t.bad() {
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

// decoder reads one turn.
type decoder struct {
	keep    bool
	before  *loop.Session // nil: it began with this turn
	session string
	model   string
	tools   map[string]string
	told    loop.Usage // of messages
	last    loop.Usage // of the last message
	ended   int        // results so far: a program that tries again has several
	failed  bool       // the last of them was a failure
	final   string     // what the agent said last
	total   loop.Usage // since the conversation began; zero: it did not say
}

// DecodeLine reads an event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, false
	}
	d.session = cmp.Or(d.session, l.Session)
	switch l.Type {
	case "system":
		return d.system(l), true
	case "stream_event":
		return nil, true
	case "assistant":
		return d.said(l), true
	case "user":
		return d.back(l), true
	case "result":
		return d.result(l), true
	}
	return nil, false
}

// system is what the program says of itself.
func (d *decoder) system(l line) []agent.Event {
	if l.Subtype != "retry" {
		return nil
	}
	text := "a call of the model is tried again"
	if l.Data.DelayMS > 0 {
		text += fmt.Sprintf(" in %d ms, attempt %d of %d", l.Data.DelayMS, l.Data.Attempt, l.Data.Most)
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: text}}
}

// said is what the agent said and does next.
func (d *decoder) said(l line) []agent.Event {
	if l.Parent != "" {
		return nil
	}
	d.model = cmp.Or(l.Message.Model, d.model)
	var events []agent.Event
	for _, b := range l.Message.Content {
		switch {
		case b.Type == "text" && strings.TrimSpace(b.Text) != "":
			d.final = strings.TrimSpace(b.Text)
			events = append(events, agent.Event{Kind: agent.EventText, Text: b.Text})
		case b.Type == "thinking" && b.Thinking != "":
			events = append(events, agent.Event{Kind: agent.EventReasoning, Text: b.Thinking})
		case b.Type == "tool_use":
			events = append(events, d.use(b)...)
		}
	}
	if u := l.Message.Usage.usage(); !u.Zero() {
		d.told, d.last = d.told.Add(u), u
		events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.model, Usage: u})
	}
	return events
}

func (d *decoder) use(b block) []agent.Event {
	if d.tools[b.ID] != "" || b.ID == "" || b.Name == "" {
		return nil
	}
	if d.tools == nil {
		d.tools = map[string]string{}
	}
	d.tools[b.ID] = b.Name
	return []agent.Event{{Kind: agent.EventCall, ID: b.ID, Tool: b.Name, Input: b.Input}}
}

// back is what tools gave back.
func (d *decoder) back(l line) []agent.Event {
	var events []agent.Event
	for _, b := range l.Message.Content {
		if tool := d.tools[b.Use]; b.Type == "tool_result" && tool != "" && l.Parent == "" {
			events = append(events, agent.Event{Kind: agent.EventReturn, ID: b.Use, Tool: tool, Text: string(b.Content), Bad: b.IsError})
		}
	}
	return events
}

// result is the end of the turn: what was denied in it, what it used beside its
// messages, and why it failed.
func (d *decoder) result(l line) []agent.Event {
	var events []agent.Event
	for _, n := range l.Denied {
		events = append(events, agent.Event{
			Kind: agent.EventPermission, ID: n.ID, Tool: n.Tool, Wanted: wanted(n),
			Answer: policy.Answer{Rule: "permission_denied", Words: "the program's rules do not allow it"},
		})
	}
	d.total = l.Usage.usage()
	u := d.beside()
	if l.Usage.bad() {
		u.Source = loop.UsageEstimated // What was told of messages is no more then.
	}
	if u != (loop.Usage{}) {
		events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.model, Usage: u})
	}
	d.ended++
	if d.failed = l.IsError || l.Subtype != "success"; d.failed {
		events = append(events, agent.Event{Kind: agent.EventError, Failure: classify(l)})
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

// beside is what this turn used beside its messages: calls whose answers were
// thrown away, and such for the program's own ends.
func (d *decoder) beside() loop.Usage {
	before := agent.SessionUsage(d.before)
	if d.before != nil && before.Zero() {
		return loop.Usage{} // What earlier turns used is not known, and must not be counted again.
	}
	turn := d.total.Since(before)
	u := loop.Usage{
		Input: max(0, turn.Input-d.told.Input), Output: max(0, turn.Output-d.told.Output), CacheRead: max(0, turn.CacheRead-d.told.CacheRead),
	}
	if !u.Zero() {
		u.Source = loop.UsageReported
	}
	return u
}

// exits are the exit statuses that the program gives a meaning to. It ends with
// them without a result.
var exits = map[int]loop.FailureClass{
	41: loop.FailureAuth,
	53: loop.FailureTurns,
}

// Finish adds the session, and what only the exit status says.
func (d *decoder) Finish(r *agent.Result, stderr string) {
	if d.ended > 1 && !d.failed {
		r.Failure, r.Message = nil, d.final // It tried again by itself, and that went well.
		if u := d.total.Since(agent.SessionUsage(d.before)); !u.Zero() {
			r.Usage, r.Models = u, []loop.ModelUsage{{Model: d.model, Usage: u}}
		}
	}
	if class := exits[r.Exit]; class != "" && r.Ended == proc.Exited && r.Failure == nil {
		r.Failure = &loop.Failure{Class: class, Text: agent.LastLine(stderr), Typed: true}
	}
	if r.Ended != proc.Exited && d.total.Zero() && !d.last.Zero() {
		// The call under way is taken to use as much as the one before.
		call := d.last
		call.Source = loop.UsageEstimated
		r.Usage, r.Models = r.Usage.Add(call), agent.AddUsage(r.Models, d.model, call)
	}
	if !d.keep || d.session == "" {
		return
	}
	if d.total.Zero() {
		d.total = agent.SessionUsage(d.before).Add(d.told) // A turn that was cut short goes on counting from what it told.
	}
	r.Session = &loop.Session{ID: d.session, Turns: 1, Totals: []loop.ModelUsage{{Model: d.model, Usage: d.total}}}
	if d.before != nil {
		r.Session.Turns += d.before.Turns
	}
}
