package acp

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
)

// takeUpdate reads a notice of what happened. What comes before the prompt is of
// earlier turns.
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

// addPiece collects what is said in pieces; what is told is whole.
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

// flushText tells what was collected. With it, what the program said for itself
// before is over: the agent went on.
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

// warningPattern are how notices begin that tell of no error.
var warningPattern = regexp.MustCompile(`^(Warning|Config warning): |^\*Context compacted`)

// takeNotice keeps what the program says for itself, which is not text of the agent.
func (d *decoder) takeNotice(said string) []agent.Event {
	events := d.flushText()
	_, _ = d.r.Output.Write([]byte(strings.TrimRight(said, "\n") + "\n")) // It is shown, and never stops the turn.
	if !warningPattern.MatchString(said) {
		d.notice = strings.TrimSpace(d.notice + " " + said)
	}
	return events
}

// flushLast is flush for the end of a turn. What the program says of an error, for
// which no tokens were counted, is taken out.
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

// countCall tells the tokens of one call, where a program counts them so.
func (d *decoder) countCall(u update) []agent.Event {
	usage, ok := u.Meta.Usage.toUsage()
	if !ok {
		return nil
	}
	d.counted = d.counted.Add(usage)
	return []agent.Event{{Kind: agent.EventUsage, Usage: usage, Model: d.model}}
}

// toolEvents makes events of the use of a tool: one when its input is known, one when
// it is over.
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

// toolNamePattern is a title that is a tool's name, as some programs announce it.
var toolNamePattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// mergeTool adds what a message says of the use of a tool to what was said before.
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

// callEvents tells that a tool is used, once.
func (d *decoder) callEvents(t tool) []agent.Event {
	if d.announced[t.ID] != "" {
		return nil
	}
	input := t.Input
	if isEmpty(input) {
		input, _ = json.Marshal(map[string]string{"title": string(t.Title)}) // Strings can always be written.
	}
	d.announced[t.ID] = cmp.Or(t.shownName(), "tool")
	return []agent.Event{{Kind: agent.EventCall, ID: string(t.ID), Tool: d.announced[t.ID], Input: input}}
}

// resultText is what the tool gave back, in words.
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
	_ = json.Unmarshal(t.Output, &fields) // It need not be an object.
	return string(fields.Output + fields.Text + fields.Stdout)
}
