package acp

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
)

// update reads a notice of what happened. What comes before the prompt is of
// earlier turns.
func (d *decoder) update(params json.RawMessage) []agent.Event {
	var p struct {
		Update json.RawMessage `json:"update"`
	}
	var u update
	if !d.prompted || json.Unmarshal(params, &p) != nil || json.Unmarshal(p.Update, &u) != nil {
		return nil
	}
	switch u.What {
	case "agent_message_chunk":
		return append(d.say(agent.EventText, u), d.count(u)...)
	case "agent_thought_chunk":
		return d.say(agent.EventReasoning, u)
	case "tool_call", "tool_call_update":
		var t tool
		if json.Unmarshal(p.Update, &t) != nil || t.ID == "" {
			return nil
		}
		return append(d.flush(), d.use(t)...)
	}
	return nil
}

// say collects what is said in pieces; what is told is whole.
func (d *decoder) say(kind agent.EventKind, u update) []agent.Event {
	var b block
	if json.Unmarshal(u.Content, &b) != nil || b.Text == "" {
		return nil
	}
	if d.program.notices && u.MessageID == "" && kind == agent.EventText {
		return d.note(string(b.Text))
	}
	var events []agent.Event
	if d.said.kind != kind || d.said.id != u.MessageID {
		events = d.flush()
	}
	d.said.kind, d.said.id = kind, u.MessageID
	d.said.text.WriteString(string(b.Text))
	return events
}

// flush tells what was collected. With it, what the program said for itself
// before is over: the agent went on.
func (d *decoder) flush() []agent.Event {
	said := strings.TrimSpace(d.said.text.String())
	d.said.text.Reset()
	if said == "" {
		return nil
	}
	if d.said.kind == agent.EventText {
		d.notice = ""
	}
	return []agent.Event{{Kind: d.said.kind, Text: said}}
}

// warnings are how notices begin that tell of no error.
var warnings = regexp.MustCompile(`^(Warning|Config warning): |^\*Context compacted`)

// note keeps what the program says for itself, which is not text of the agent.
func (d *decoder) note(said string) []agent.Event {
	events := d.flush()
	_, _ = d.r.Output.Write([]byte(strings.TrimRight(said, "\n") + "\n")) // It is shown, and never stops the turn.
	if !warnings.MatchString(said) {
		d.notice = strings.TrimSpace(d.notice + " " + said)
	}
	return events
}

// last is flush for the end of a turn. What the program says of an error, for
// which no tokens were counted, is taken out.
func (d *decoder) last(counted bool) []agent.Event {
	said := d.said.text.String()
	at := strings.LastIndex(said, d.program.confesses)
	if counted || d.program.confesses == "" || d.said.kind != agent.EventText || at < 0 {
		return d.flush()
	}
	d.said.text.Reset()
	d.said.text.WriteString(said[:at])
	events := d.flush()
	d.notice = strings.TrimSpace(said[at+len(d.program.confesses):])
	return events
}

// count tells the tokens of one call, where a program counts them so.
func (d *decoder) count(u update) []agent.Event {
	usage, ok := u.Meta.Usage.usage()
	if !ok {
		return nil
	}
	d.counted = d.counted.Add(usage)
	return []agent.Event{{Kind: agent.EventUsage, Usage: usage, Model: d.model}}
}

// use makes events of the use of a tool: one when its input is known, one when
// it is over.
func (d *decoder) use(later tool) []agent.Event {
	t := d.know(later)
	over := t.Status == "completed" || t.Status == "failed"
	var events []agent.Event
	if !empty(t.Input) && t.Status != "pending" || over {
		events = d.call(t)
	}
	if !over || d.returned[t.ID] {
		return events
	}
	d.returned[t.ID] = true
	return append(events, agent.Event{
		Kind: agent.EventReturn, ID: string(t.ID), Tool: d.told[t.ID], Text: later.gave(), Bad: t.Status == "failed",
	})
}

// plainName is a title that is a tool's name, as some programs announce it.
var plainName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// know adds what a message says of the use of a tool to what was said before.
func (d *decoder) know(later tool) tool {
	known, old := d.tools[later.ID]
	t := known.over(later)
	if !old && t.Name == "" && plainName.MatchString(string(t.Title)) {
		t.Name = t.Title
	}
	if t.ID != "" {
		d.tools[t.ID] = t
	}
	return t
}

// call tells that a tool is used, once.
func (d *decoder) call(t tool) []agent.Event {
	if d.told[t.ID] != "" {
		return nil
	}
	input := t.Input
	if empty(input) {
		input, _ = json.Marshal(map[string]string{"title": string(t.Title)}) // Strings can always be written.
	}
	d.told[t.ID] = cmp.Or(t.name(), "tool")
	return []agent.Event{{Kind: agent.EventCall, ID: string(t.ID), Tool: d.told[t.ID], Input: input}}
}

// gave is what the tool gave back, in words.
func (t tool) gave() string {
	var out text
	if json.Unmarshal(t.Output, &out) == nil && out != "" {
		return string(out)
	}
	var blocks []block
	var all []string
	if json.Unmarshal(t.Content, &blocks) == nil {
		for i := range blocks {
			if w := blocks[i].words(); w != "" {
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
