package goose

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// maxOverflows is how often in a row a conversation may become too long
	// for its model. The program shortens it each time and continues, without
	// a limit.
	maxOverflows = 3
	// callsBetween is how many calls between two overflows make them
	// unrelated.
	callsBetween = 5
)

// decoder decodes the output of `goose run --output-format stream-json`.
type decoder struct {
	request agent.Request
	session loop.Session

	collected    strings.Builder // text that comes in pieces
	messageID    string          // ID of the message that it belongs to
	notice       string          // possibly a message of the program; it is one if only the end of the turn follows
	anonymous    bool            // the model's messages have no ID either, so that notices cannot be recognized by that
	openCalls    map[string]string
	toolNames    map[string]string // by ID of the call
	calls        int
	overflows    int
	lastOverflow int // calls at the last overflow
}

// line is one event of the program.
type line struct {
	Type    string      `json:"type"`
	Message message     `json:"message"`
	Error   string      `json:"error"`
	Total   *loop.Count `json:"total_tokens"`
	Input   *loop.Count `json:"input_tokens"`
	Output  *loop.Count `json:"output_tokens"`
}

type message struct {
	ID      *string   `json:"id"`
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

type content struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
	Call     struct {
		Value struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"value"`
	} `json:"toolCall"`
	Result struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Value  struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
		} `json:"value"`
	} `json:"toolResult"`
	Notification string `json:"notificationType"`
	Msg          string `json:"msg"`
}

// DecodeLine decodes one event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if json.Unmarshal(text, &l) != nil {
		return nil, false
	}
	switch l.Type {
	case "message":
		var events []agent.Event
		for _, c := range l.Message.Content {
			events = append(events, d.contentEvents(l.Message, c)...)
		}
		return events, true
	case "complete":
		return d.completeTurn(l), true
	case "error":
		return append(d.flushText(), errorEvent(loop.Failure{Class: loop.FailureCrash, Text: agent.OneLine(l.Error, agent.LongText), Typed: true})), true
	case "notification":
		return nil, true
	}
	return nil, false
}

func (d *decoder) contentEvents(m message, c content) []agent.Event {
	switch c.Type {
	case "text":
		return d.addText(m, c.Text)
	case "thinking":
		if strings.TrimSpace(c.Thinking) != "" {
			return append(d.flushText(), agent.Event{Kind: agent.EventReasoning, Text: c.Thinking})
		}
	case "toolRequest":
		d.anonymous = d.anonymous || m.ID == nil
		return append(d.flushText(), d.beginCall(c))
	case "toolResponse":
		return append(d.flushText(), d.endCall(c)...)
	case "systemNotification":
		return append(d.flushText(), d.systemNotice(c)...)
	}
	return nil
}

// addText collects the pieces of a text of the model. A message of the program
// itself has no ID and comes in one piece.
func (d *decoder) addText(m message, text string) []agent.Event {
	if m.Role != "assistant" {
		return nil
	}
	id := ""
	if m.ID != nil {
		id = "id " + *m.ID
	}
	var events []agent.Event
	if d.notice != "" || id != d.messageID {
		events = d.flushText()
	}
	if m.ID == nil && isNotice(text) && d.collected.Len() == 0 {
		d.notice = text
		return events
	}
	d.messageID = id
	d.collected.WriteString(text)
	return events
}

// flushText returns the collected text as an event. It begins with a held notice: text
// that follows a notice shows that the notice was text of the model.
func (d *decoder) flushText() []agent.Event {
	text := d.notice + d.collected.String()
	d.notice, d.messageID = "", ""
	d.collected.Reset()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []agent.Event{{Kind: agent.EventText, Text: text}}
}

// beginCall reports a call. An ID that was used before gets a number, since some
// models count from zero in each step.
func (d *decoder) beginCall(c content) agent.Event {
	if d.toolNames == nil {
		d.openCalls, d.toolNames = map[string]string{}, map[string]string{}
	}
	d.calls++
	id := c.ID
	if _, used := d.toolNames[id]; used || id == "" {
		id = fmt.Sprintf("%s#%d", c.ID, d.calls)
	}
	tool := cmp.Or(c.Call.Value.Name, "unreadable")
	d.openCalls[c.ID], d.toolNames[id] = id, tool
	return agent.Event{Kind: agent.EventCall, ID: id, Tool: tool, Input: c.Call.Value.Arguments}
}

func (d *decoder) endCall(c content) []agent.Event {
	id, ok := d.openCalls[c.ID]
	if !ok {
		return nil
	}
	delete(d.openCalls, c.ID)
	var texts []string
	for _, part := range c.Result.Value.Content {
		texts = append(texts, part.Text)
	}
	return []agent.Event{{
		Kind: agent.EventReturn, ID: id, Tool: d.toolNames[id], Text: cmp.Or(c.Result.Error, strings.Join(texts, "\n")),
		Bad: c.Result.Value.IsError || c.Result.Status == "error",
	}}
}

// systemNotice reads a message of the program itself.
func (d *decoder) systemNotice(c content) []agent.Event {
	switch {
	case c.Notification == "creditsExhausted":
		return []agent.Event{errorEvent(loop.Failure{Class: loop.FailureQuota, Text: agent.OneLine(c.Msg, agent.LongText), Typed: true})}
	case c.Notification != "inlineMessage" || !strings.HasPrefix(c.Msg, "Context limit reached."):
		return nil
	}
	if d.overflows++; d.calls-d.lastOverflow >= callsBetween {
		d.overflows = 1
	}
	d.lastOverflow = d.calls
	if d.overflows >= maxOverflows {
		return []agent.Event{errorEvent(loop.Failure{Class: loop.FailureOverflow, Text: agent.OneLine(c.Msg, agent.LongText)}), {Kind: agent.EventEnd}}
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: agent.OneLine(c.Msg, agent.LongText)}}
}

// completeTurn ends the turn. Its counts are those of the whole conversation, and
// include cached tokens in the input. They are missing if no call of the model
// was answered.
func (d *decoder) completeTurn(l line) []agent.Event {
	none := l.Total == nil || !l.Total.Set
	var events []agent.Event
	if d.notice != "" {
		f := noticeFailure(d.notice)
		if d.anonymous && !none {
			f.Class = loop.FailureCrash // It may be the model's own text.
		}
		d.notice = ""
		events = append(events, errorEvent(f))
	}
	events = append(events, d.flushText()...)
	if !none {
		events = append(events, d.usageEvents(l)...)
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

func (d *decoder) usageEvents(l line) []agent.Event {
	now := loop.Usage{Input: countOf(l.Input), Output: countOf(l.Output)}
	if now.Zero() {
		now.Input = countOf(l.Total)
	}
	if isBad(l.Total) || isBad(l.Input) || isBad(l.Output) {
		now.Source = loop.UsageEstimated // If one number is invalid, the others are not trusted either.
	}
	before := agent.SessionUsage(&d.session)
	d.session.Totals = []loop.ModelUsage{{Model: d.request.Model, Usage: now}}
	u := now.Since(before)
	if u == (loop.Usage{}) {
		return nil
	}
	return []agent.Event{{Kind: agent.EventUsage, Model: d.request.Model, Usage: u}}
}

func isBad(c *loop.Count) bool { return c != nil && c.Bad }

func countOf(c *loop.Count) int64 {
	if c == nil {
		return 0
	}
	return c.N
}

func errorEvent(f loop.Failure) agent.Event { return agent.Event{Kind: agent.EventError, Failure: &f} }

// Finish adds the conversation. The usage of a turn that was cut is included in
// the next report, since the program counts on.
func (d *decoder) Finish(r *agent.Result, _ string) {
	if d.request.Keep && (d.calls > 0 || r.Message != "") {
		d.session.Turns++
		r.Session = &d.session
	}
}
