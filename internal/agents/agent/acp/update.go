package acp

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
)

// takeUpdate reads a notification. Updates before the prompt belong to earlier
// turns.
func (d *decoder) takeUpdate(params json.RawMessage) []agent.Event {
	var p struct {
		Update json.RawMessage `json:"update"`
	}
	var u update
	if !d.prompted || json.Unmarshal(params, &p) != nil || json.Unmarshal(p.Update, &u) != nil {
		return nil
	}
	switch u.What {
	case "agent_message_chunk":
		return append(d.addPiece(agent.EventText, u), d.countCall(u)...)
	case "agent_thought_chunk":
		return d.addPiece(agent.EventReasoning, u)
	case "tool_call", "tool_call_update":
		var t tool
		if json.Unmarshal(p.Update, &t) != nil || t.ID == "" {
			return nil
		}
		return append(d.flushText(), d.toolEvents(t)...)
	}
	return nil
}

// addPiece collects a piece of a text. Complete texts become events.
func (d *decoder) addPiece(kind agent.EventKind, u update) []agent.Event {
	var b block
	if json.Unmarshal(u.Content, &b) != nil || b.Text == "" {
		return nil
	}
	if d.program.hasNotices && u.MessageID == "" && kind == agent.EventText {
		return d.takeNotice(string(b.Text))
	}
	var events []agent.Event
	if d.collected.kind != kind || d.collected.id != u.MessageID {
		events = d.flushText()
	}
	d.collected.kind, d.collected.id = kind, u.MessageID
	d.collected.text.WriteString(string(b.Text))
	return events
}

// flushText returns the event of the collected text. It drops an earlier notice
// of the program, since the agent has continued after it.
func (d *decoder) flushText() []agent.Event {
	said := strings.TrimSpace(d.collected.text.String())
	d.collected.text.Reset()
	if said == "" {
		return nil
	}
	if d.collected.kind == agent.EventText {
		d.notice = ""
	}
	return []agent.Event{{Kind: d.collected.kind, Text: said}}
}

// warningPattern matches notices that are not errors.
var warningPattern = lazyregexp.New(`^(Warning|Config warning): |^\*Context compacted`)

// takeNotice keeps a message of the program itself, which is not text of the
// agent.
func (d *decoder) takeNotice(said string) []agent.Event {
	events := d.flushText()
	_, _ = d.r.Output.Write([]byte(strings.TrimRight(said, "\n") + "\n")) // Errors of the output never stop the turn.
	if !warningPattern.MatchString(said) {
		d.notice = strings.TrimSpace(d.notice + " " + said)
	}
	return events
}

// flushLast is flushText for the end of a turn. If no tokens were counted, it
// takes an error report of the program out of the text.
func (d *decoder) flushLast(counted bool) []agent.Event {
	said := d.collected.text.String()
	at := strings.LastIndex(said, d.program.errorPrefix)
	if counted || d.program.errorPrefix == "" || d.collected.kind != agent.EventText || at < 0 {
		return d.flushText()
	}
	d.collected.text.Reset()
	d.collected.text.WriteString(said[:at])
	events := d.flushText()
	d.notice = strings.TrimSpace(said[at+len(d.program.errorPrefix):])
	return events
}

// countCall returns the usage of one call, if the program reports single calls.
func (d *decoder) countCall(u update) []agent.Event {
	usage, ok := u.Meta.Usage.toUsage()
	if !ok {
		return nil
	}
	d.counted = d.counted.Add(usage)
	return []agent.Event{{Kind: agent.EventUsage, Usage: usage, Model: d.model}}
}

// toolEvents returns the events of a tool's call: one when its input is known,
// and one when it has ended.
func (d *decoder) toolEvents(later tool) []agent.Event {
	t := d.mergeTool(later)
	over := t.Status == "completed" || t.Status == "failed"
	var events []agent.Event
	if !isEmpty(t.Input) && t.Status != "pending" || over {
		events = d.callEvents(t)
	}
	if !over || d.returned[t.ID] {
		return events
	}
	d.returned[t.ID] = true
	return append(events, agent.Event{
		Kind: agent.EventReturn, ID: string(t.ID), Tool: d.announced[t.ID], Text: later.resultText(), Bad: t.Status == "failed",
	})
}

// toolNamePattern matches titles that are a tool's name: some programs announce
// tools that way.
var toolNamePattern = lazyregexp.New(`^[a-z][a-z0-9_]*$`)

// mergeTool adds a message about a tool's call to what is known of the call.
func (d *decoder) mergeTool(later tool) tool {
	known, old := d.tools[later.ID]
	t := known.merged(later)
	if !old && t.Name == "" && toolNamePattern.MatchString(string(t.Title)) {
		t.Name = t.Title
	}
	if t.ID != "" {
		d.tools[t.ID] = t
	}
	return t
}

// callEvents reports a tool's call once.
func (d *decoder) callEvents(t tool) []agent.Event {
	if d.announced[t.ID] != "" {
		return nil
	}
	input := t.Input
	if isEmpty(input) {
		input, _ = json.Marshal(map[string]string{"title": string(t.Title)}) // Encoding strings never fails.
	}
	d.announced[t.ID] = cmp.Or(t.shownName(), "tool")
	return []agent.Event{{Kind: agent.EventCall, ID: string(t.ID), Tool: d.announced[t.ID], Input: input}}
}

// resultText returns the text of a tool's result.
func (t tool) resultText() string {
	var out text
	if json.Unmarshal(t.Output, &out) == nil && out != "" {
		return string(out)
	}
	var blocks []block
	var all []string
	if json.Unmarshal(t.Content, &blocks) == nil {
		for i := range blocks {
			if w := blocks[i].innerText(); w != "" {
				all = append(all, w)
			}
		}
	}
	if len(all) > 0 {
		return strings.Join(all, "\n")
	}
	var fields struct {
		Output text `json:"output"`
		Text   text `json:"text"`
		Stdout text `json:"stdout"`
	}
	_ = json.Unmarshal(t.Output, &fields) // It may be something other than an object.
	return string(fields.Output + fields.Text + fields.Stdout)
}
