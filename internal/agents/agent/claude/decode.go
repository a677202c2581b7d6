package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

type text = agent.Text

// sessionID matches valid IDs of conversations, which never look like an option.
var sessionID = lazyregexp.New(`^[0-9A-Za-z][0-9A-Za-z-]{0,63}$`)

// exitTerminated is the program's exit status after SIGTERM.
const exitTerminated = 128 + 15

// decoder decodes the lines of one turn.
type decoder struct {
	in    *agent.Input
	judge func(policy.Call) policy.Answer
	keep  bool

	before    *loop.Session     // the conversation to continue
	id        string            // of the current conversation
	stopped   bool              // it was interrupted
	lost      bool              // the conversation to continue does not exist
	finalText string            // the last text of the agent, according to the result
	calls     map[string]string // tools by the IDs of their calls
	asks      []agent.Ask
	ended     int      // results so far: a program that retries has several
	failed    bool     // the last result was a failure
	apiError  apiError // of the last message
	synthetic bool     // the last message is the program's own, in place of the model's
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

// DecodeLine decodes one line.
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

// messageEvents reports a message of the agent, or results of tools.
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
			return nil // The program's message about a failure, which the result repeats.
		}
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Message.Content, &blocks) // Only the program itself sends a plain string.
	var events []agent.Event
	for _, b := range blocks {
		if e, ok := d.blockEvent(b, string(m.Parent), m.Type == "assistant"); ok {
			events = append(events, e)
		}
	}
	return events
}

// blockEvent reports one part of a message. The text of a sub-agent is not text
// of the agent.
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

// nestedID returns the ID of a sub-agent's call, whose own IDs may repeat.
func nestedID(parent, id string) string {
	if parent == "" {
		return id
	}
	return parent + "/" + id
}

// contentText returns the text of a tool's result: a string, or parts with
// strings.
func contentText(raw json.RawMessage) string {
	var whole text
	if _ = whole.UnmarshalJSON(raw); whole != "" {
		return string(whole)
	}
	var parts []struct {
		Text text `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // An image has no text.
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
	_ = json.Unmarshal(line, &m) // Invalid numbers stay zero.
	words := fmt.Sprintf("attempt %d of %d: %s", m.Attempt, m.Most, m.Error)
	if m.Status != 0 {
		words += fmt.Sprintf(" (%d)", m.Status)
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: words}}
}

// Finish adds what is known only at the end.
func (d *decoder) Finish(r *agent.Result, _ string) {
	d.counts.completeUsage(r)
	r.Asks = d.asks
	if d.ended > 1 && !d.failed {
		r.Failure, r.Message = nil, d.finalText // It retried, and that succeeded.
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
