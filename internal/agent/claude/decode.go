package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/lazyregexp"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/policy"
	"github.com/pawl-run/pawl/internal/proc"
)

type text = agent.Text

// sessionID is what an id of a conversation can look like: never an option.
var sessionID = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z-]{0,63}$`)

// exitTerminated is how the program ends by itself after SIGTERM.
const exitTerminated = 128 + 15

// decoder reads the lines of one turn.
type decoder struct {
	in    *agent.Input
	judge func(policy.Call) policy.Answer
	keep  bool

	before    *loop.Session     // the conversation that goes on
	id        string            // of this conversation
	stopped   bool              // it was interrupted
	lost      bool              // there is no such conversation
	finalText string            // what the agent said last, by the program's own account
	calls     map[string]string // tools by the ids of their uses
	asks      []agent.Ask
	ended     int      // results so far: a program that tries again has several
	failed    bool     // the last of them was a failure
	apiError  apiError // the last answer that was none
	synthetic bool     // what was said last are the program's own words, in the place of its model's
	limit     limitInfo
	counts    counts
}

func newDecoder(before *loop.Session, keep bool, in *agent.Input, judge func(policy.Call) policy.Answer) *decoder {
	d := &decoder{before: before, keep: keep, in: in, judge: judge, calls: map[string]string{}}
	d.counts.live = map[string]*liveCall{}
	if before != nil {
		d.counts.before = before.Totals
	}
	return d
}

// DecodeLine reads one line.
func (d *decoder) DecodeLine(line []byte) ([]agent.Event, bool) {
	var head struct {
		Type    text `json:"type"`
		Subtype text `json:"subtype"`
		Session text `json:"session_id"`
		Status  text `json:"status"`
	}
	if json.Unmarshal(line, &head) != nil || head.Type == "" {
		return nil, false
	}
	if sessionID.MatchString(string(head.Session)) {
		d.id = string(head.Session)
	}
	switch head.Type {
	case "assistant", "user":
		return d.messageEvents(line), true
	case "stream_event":
		return d.counts.takePartial(line), true
	case "control_request":
		return d.answerControl(line), true
	case "rate_limit_event":
		return d.limitEvents(line), true
	case "result":
		return d.takeResult(line), true
	case "system":
		if head.Subtype == "api_retry" {
			return retryEvents(line), true
		}
		d.counts.asked = d.counts.asked || head.Subtype == "status" && head.Status == "requesting"
	}
	return nil, true
}

// messageEvents is something that was said: by the agent, or to it by a tool.
func (d *decoder) messageEvents(line []byte) []agent.Event {
	var m struct {
		Type    text `json:"type"`
		Parent  text `json:"parent_tool_use_id"`
		Message struct {
			Model   text            `json:"model"`
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		apiError
	}
	if json.Unmarshal(line, &m) != nil {
		return nil
	}
	if m.Type == "assistant" {
		d.apiError = m.apiError
		d.synthetic = m.Message.Model == "<synthetic>" && m.Parent == ""
		if m.Parent == "" && !d.synthetic {
			d.counts.model = string(m.Message.Model)
		}
		if d.apiError.Class != "" {
			return nil // The program's words for a failure, which the result repeats.
		}
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Message.Content, &blocks) // A text is told by no one but the program itself.
	var events []agent.Event
	for _, b := range blocks {
		if e, ok := d.blockEvent(b, string(m.Parent), m.Type == "assistant"); ok {
			events = append(events, e)
		}
	}
	return events
}

// blockEvent is one part of a message. What a sub-agent says is not a word of the agent.
func (d *decoder) blockEvent(raw json.RawMessage, parent string, said bool) (agent.Event, bool) {
	var b struct {
		Type     text            `json:"type"`
		Text     text            `json:"text"`
		Thinking text            `json:"thinking"`
		ID       text            `json:"id"`
		Name     text            `json:"name"`
		Input    json.RawMessage `json:"input"`
		UseID    text            `json:"tool_use_id"`
		Content  json.RawMessage `json:"content"`
		Bad      json.RawMessage `json:"is_error"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return agent.Event{}, false
	}
	switch {
	case said && b.Type == "text" && parent == "":
		return agent.Event{Kind: agent.EventText, Text: string(b.Text)}, true
	case said && (b.Type == "text" || b.Type == "thinking"):
		return agent.Event{Kind: agent.EventReasoning, Text: string(b.Text + b.Thinking)}, true
	case said && b.Type == "tool_use" && b.Name != "":
		id := nestedID(parent, string(b.ID))
		if _, twice := d.calls[id]; twice {
			return agent.Event{}, false
		}
		d.calls[id] = string(b.Name)
		return agent.Event{Kind: agent.EventCall, ID: id, Tool: string(b.Name), Input: b.Input}, true
	case !said && b.Type == "text" && parent == "":
		d.stopped = strings.HasPrefix(string(b.Text), "[Request interrupted by user")
	case !said && b.Type == "tool_result":
		id := nestedID(parent, string(b.UseID))
		tool, known := d.calls[id]
		return agent.Event{Kind: agent.EventReturn, ID: id, Tool: tool, Text: contentText(b.Content), Bad: string(b.Bad) == "true"}, known
	}
	return agent.Event{}, false
}

// nestedID is the id of a tool's use by a sub-agent, whose own ids may repeat.
func nestedID(parent, id string) string {
	if parent == "" {
		return id
	}
	return parent + "/" + id
}

// contentText is the text of what a tool gave back: a text, or parts of one.
func contentText(raw json.RawMessage) string {
	var whole text
	if _ = whole.UnmarshalJSON(raw); whole != "" {
		return string(whole)
	}
	var parts []struct {
		Text text `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // A picture has no text.
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(string(p.Text))
	}
	return all.String()
}

func retryEvents(line []byte) []agent.Event {
	var m struct {
		Attempt int  `json:"attempt"`
		Most    int  `json:"max_retries"`
		Status  int  `json:"error_status"`
		Error   text `json:"error"`
	}
	_ = json.Unmarshal(line, &m) // Numbers that are none are zero.
	words := fmt.Sprintf("attempt %d of %d: %s", m.Attempt, m.Most, m.Error)
	if m.Status != 0 {
		words += fmt.Sprintf(" (%d)", m.Status)
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: words}}
}

// Finish fills in what was only known in the end.
func (d *decoder) Finish(r *agent.Result, _ string) {
	d.counts.completeUsage(r)
	r.Asks = d.asks
	if d.ended > 1 && !d.failed {
		r.Failure, r.Message = nil, d.finalText // It tried again by itself, and that went well.
	}
	if d.counts.final == nil && r.Ended == proc.Exited && (d.stopped || r.Exit == exitTerminated) {
		r.Failure = &loop.Failure{Class: loop.FailureKilled, Text: "it was asked to end, and not by pawl"}
	}
	if r.Message == "" {
		r.Message = d.finalText
	}
	if !d.keep || d.id == "" {
		return
	}
	r.Session = &loop.Session{ID: d.id, Totals: d.counts.sessionTotals(), Turns: 1}
	if d.before != nil && d.before.ID == d.id {
		r.Session.Turns += d.before.Turns
	}
}
