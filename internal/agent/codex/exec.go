package codex

import (
	"cmp"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// execDecoder reads what a Codex prints that is not talked with.
type execDecoder struct {
	before *loop.Session
	keep   bool
	model  string

	id     string
	total  *loop.Usage // the counter of the conversation, at the end of the turn
	bad    bool
	items  items
	failed *loop.Failure
}

// execLine is any line of it.
type execLine struct {
	Type    text     `json:"type"`
	Thread  text     `json:"thread_id"`
	Message text     `json:"message"`
	Item    execItem `json:"item"`
	Error   struct {
		Message text `json:"message"`
	} `json:"error"`
	Usage struct {
		Input      loop.Count `json:"input_tokens"`
		Cached     loop.Count `json:"cached_input_tokens"`
		CacheWrite loop.Count `json:"cache_write_input_tokens"`
		Output     loop.Count `json:"output_tokens"`
	} `json:"usage"`
}

// execItem is an item in the words of this output.
type execItem struct {
	item

	Out  text `json:"aggregated_output"`
	Code int  `json:"exit_code"`
}

var execTypes = map[text]text{
	"agent_message": "agentMessage", "command_execution": "commandExecution", "file_change": "fileChange",
	"mcp_tool_call": "mcpToolCall", "web_search": "webSearch", "error": "", "todo_list": "",
}

// Line reads one line.
func (d *execDecoder) Line(line []byte) ([]agent.Event, bool) {
	var m execLine
	_ = json.Unmarshal(line, &m) // What cannot be read is empty.
	if m.Type == "" {
		return nil, false
	}
	if d.items.open == nil {
		d.items.open = map[string]item{}
	}
	it := m.Item.item
	it.Output, it.Exit = cmp.Or(m.Item.Out, it.Output), cmp.Or(m.Item.Code, it.Exit)
	if name, known := execTypes[it.Type]; known {
		it.Type = name
	}
	switch m.Type {
	case "thread.started":
		if threadID.MatchString(string(m.Thread)) {
			d.id = string(m.Thread)
		}
	case "item.started":
		return d.items.started(it), true
	case "item.completed":
		return d.items.completed(it, true), true
	case "error":
		d.failed = turnError{Message: m.Message}.failure(limits{})
	case "turn.failed":
		d.failed = turnError{Message: m.Error.Message}.failure(limits{})
		return []agent.Event{{Kind: agent.EventError, Failure: d.failed}, {Kind: agent.EventEnd}}, true
	case "turn.completed":
		return d.completed(m), true
	}
	return nil, true
}

func (d *execDecoder) completed(m execLine) []agent.Event {
	t := tokens{Input: m.Usage.Input, Cached: m.Usage.Cached, CacheWrite: m.Usage.CacheWrite, Output: m.Usage.Output}
	if t.bad() {
		d.bad = true
		return []agent.Event{
			{Kind: agent.EventError, Failure: &loop.Failure{Class: loop.FailureMalformed, Text: "it reports an invalid usage"}}, {Kind: agent.EventEnd},
		}
	}
	total := t.usage()
	d.total = &total
	var events []agent.Event
	if used := total.Since(totalOf(d.before)); !used.Zero() {
		events = append(events, agent.Event{Kind: agent.EventUsage, Model: d.model, Usage: used})
	}
	if d.items.all == 0 {
		events = append(events, agent.Event{Kind: agent.EventError, Failure: &loop.Failure{
			Class: loop.FailureRefusal, Text: "it ended without a word, as it does when its model declines",
		}})
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

// Finish fills in what was only known in the end.
func (d *execDecoder) Finish(r *agent.Result, _ string) {
	if r.Failure == nil && d.total == nil {
		r.Failure = d.failed
	}
	(&counts{}).finish(r, d.total != nil, false, d.model)
	if !d.keep || d.id == "" {
		return
	}
	total := totalOf(d.before)
	if d.total != nil {
		total = *d.total
	}
	r.Session = sessionOf(d.before, d.id, d.model, total)
}
