package goose

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

const (
	// mostOverflows is how often in a row a conversation may outgrow its model. The
	// program shortens it each time and goes on, without an end.
	mostOverflows = 3
	// progress is how many calls between two overflows make them two of their own.
	progress = 5
)

// decoder reads what `goose run --output-format stream-json` prints.
type decoder struct {
	request agent.Request
	session loop.Session

	said      strings.Builder // text that comes in pieces
	sayer     string          // id of the message that it belongs to
	notice    string          // that the program may have given; it has if nothing follows but the end
	anonymous bool            // messages of the model have no id either, so a notice is not known by that
	open      map[string]string
	names     map[string]string // of the tools of calls
	calls     int
	overflows int
	last      int // calls at the last overflow
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

// DecodeLine reads one event.
func (d *decoder) DecodeLine(text []byte) ([]agent.Event, bool) {
	var l line
	if json.Unmarshal(text, &l) != nil {
		return nil, false
	}
	switch l.Type {
	case "message":
		var events []agent.Event
		for _, c := range l.Message.Content {
			events = append(events, d.content(l.Message, c)...)
		}
		return events, true
	case "complete":
		return d.complete(l), true
	case "error":
		return append(d.flush(), failure(loop.Failure{Class: loop.FailureCrash, Text: agent.OneLine(l.Error, agent.LongText), Typed: true})), true
	case "notification":
		return nil, true
	}
	return nil, false
}

func (d *decoder) content(m message, c content) []agent.Event {
	switch c.Type {
	case "text":
		return d.text(m, c.Text)
	case "thinking":
		if strings.TrimSpace(c.Thinking) != "" {
			return append(d.flush(), agent.Event{Kind: agent.EventReasoning, Text: c.Thinking})
		}
	case "toolRequest":
		d.anonymous = d.anonymous || m.ID == nil
		return append(d.flush(), d.call(c))
	case "toolResponse":
		return append(d.flush(), d.back(c)...)
	case "systemNotification":
		return append(d.flush(), d.told(c)...)
	}
	return nil
}

// text gathers the pieces of what the model says. What the program says by
// itself has no id and comes whole.
func (d *decoder) text(m message, text string) []agent.Event {
	if m.Role != "assistant" {
		return nil
	}
	id := ""
	if m.ID != nil {
		id = "id " + *m.ID
	}
	var events []agent.Event
	if d.notice != "" || id != d.sayer {
		events = d.flush()
	}
	if m.ID == nil && isNotice(text) && d.said.Len() == 0 {
		d.notice = text
		return events
	}
	d.sayer = id
	d.said.WriteString(text)
	return events
}

// flush is what the model has said so far. A notice that something follows was
// none.
func (d *decoder) flush() []agent.Event {
	text := d.notice + d.said.String()
	d.notice, d.sayer = "", ""
	d.said.Reset()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []agent.Event{{Kind: agent.EventText, Text: text}}
}

// call begins a call. An id that was used before gets a number, since some models count
// from zero in each step.
func (d *decoder) call(c content) agent.Event {
	if d.names == nil {
		d.open, d.names = map[string]string{}, map[string]string{}
	}
	d.calls++
	id := c.ID
	if _, used := d.names[id]; used || id == "" {
		id = fmt.Sprintf("%s#%d", c.ID, d.calls)
	}
	tool := cmp.Or(c.Call.Value.Name, "unreadable")
	d.open[c.ID], d.names[id] = id, tool
	return agent.Event{Kind: agent.EventCall, ID: id, Tool: tool, Input: c.Call.Value.Arguments}
}

func (d *decoder) back(c content) []agent.Event {
	id, ok := d.open[c.ID]
	if !ok {
		return nil
	}
	delete(d.open, c.ID)
	var texts []string
	for _, part := range c.Result.Value.Content {
		texts = append(texts, part.Text)
	}
	return []agent.Event{{
		Kind: agent.EventReturn, ID: id, Tool: d.names[id], Text: cmp.Or(c.Result.Error, strings.Join(texts, "\n")),
		Bad: c.Result.Value.IsError || c.Result.Status == "error",
	}}
}

// told is something that the program tells by itself.
func (d *decoder) told(c content) []agent.Event {
	switch {
	case c.Notification == "creditsExhausted":
		return []agent.Event{failure(loop.Failure{Class: loop.FailureQuota, Text: agent.OneLine(c.Msg, agent.LongText), Typed: true})}
	case c.Notification != "inlineMessage" || !strings.HasPrefix(c.Msg, "Context limit reached."):
		return nil
	}
	if d.overflows++; d.calls-d.last >= progress {
		d.overflows = 1
	}
	d.last = d.calls
	if d.overflows >= mostOverflows {
		return []agent.Event{failure(loop.Failure{Class: loop.FailureOverflow, Text: agent.OneLine(c.Msg, agent.LongText)}), {Kind: agent.EventEnd}}
	}
	return []agent.Event{{Kind: agent.EventRetry, Text: agent.OneLine(c.Msg, agent.LongText)}}
}

// complete ends the turn. Its numbers are those of the whole conversation, and
// count what was read from a cache as input. There are none if no call of the
// model came back.
func (d *decoder) complete(l line) []agent.Event {
	none := l.Total == nil || !l.Total.Set
	var events []agent.Event
	if d.notice != "" {
		f := classify(d.notice)
		if d.anonymous && !none {
			f.Class = loop.FailureCrash // It may be the model that says so.
		}
		d.notice = ""
		events = append(events, failure(f))
	}
	events = append(events, d.flush()...)
	if !none {
		events = append(events, d.usage(l)...)
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

func (d *decoder) usage(l line) []agent.Event {
	now := loop.Usage{Input: count(l.Input), Output: count(l.Output)}
	if now.Zero() {
		now.Input = count(l.Total)
	}
	if bad(l.Total) || bad(l.Input) || bad(l.Output) {
		now.Source = loop.UsageEstimated // If a number is invalid, the others are not believed either.
	}
	before := agent.SessionUsage(&d.session)
	d.session.Totals = []loop.ModelUsage{{Model: d.request.Model, Usage: now}}
	u := now.Since(before)
	if u == (loop.Usage{}) {
		return nil
	}
	return []agent.Event{{Kind: agent.EventUsage, Model: d.request.Model, Usage: u}}
}

func bad(c *loop.Count) bool { return c != nil && c.Bad }

func count(c *loop.Count) int64 {
	if c == nil {
		return 0
	}
	return c.N
}

func failure(f loop.Failure) agent.Event { return agent.Event{Kind: agent.EventError, Failure: &f} }

// Finish adds the conversation. What a turn used that was cut short is in the
// numbers of the next one, since the program goes on counting.
func (d *decoder) Finish(r *agent.Result, _ string) {
	if d.request.Keep && (d.calls > 0 || r.Message != "") {
		d.session.Turns++
		r.Session = &d.session
	}
}
