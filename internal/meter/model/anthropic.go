package model

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/loop"
)

// messages is POST /v1/messages of Anthropic.
var messages = &shape{
	most: func(top fields) int64 { return named(top, "max_tokens") },
	lower: func(top fields, most int64) bool {
		thinking, _ := top.under("thinking")
		if budget, _ := thinking.count("budget_tokens"); budget >= most {
			return false
		}
		top.set("max_tokens", most)
		return true
	},
	event: messagesEvent,
	whole: messagesWhole,
}

// block is a part of an answer, or what is added to one.
type block struct {
	Text        length `json:"text"`
	Thinking    length `json:"thinking"`
	PartialJSON length `json:"partial_json"`
	Input       length `json:"input"`
}

// size is how much the model wrote. An empty input stands for one that follows.
func (b block) size() int64 {
	n := b.Text + b.Thinking + b.PartialJSON
	if b.Input > length(len("{}")) {
		n += b.Input
	}
	return int64(n)
}

func messagesEvent(t *tally, data []byte) bool {
	var e struct {
		Type    string `json:"type"`
		Message struct {
			Model string          `json:"model"`
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
		Delta block           `json:"delta"`
		Block block           `json:"content_block"`
		Usage json.RawMessage `json:"usage"`
		Error *vendorError    `json:"error"`
	}
	if !decode(data, &e) {
		t.unread(data)
		return false
	}
	if e.Type == "error" && e.Error != nil {
		t.failure = e.Error
	}
	t.ended = t.ended || e.Type == "message_stop"
	if e.Message.Model != "" {
		t.model = e.Message.Model
	}
	t.text += e.Delta.size() + e.Block.size()
	t.messagesUsage(e.Message.Usage)
	t.messagesUsage(e.Usage)
	return false
}

func messagesWhole(t *tally, data []byte) {
	var m struct {
		Model   string          `json:"model"`
		Content []block         `json:"content"`
		Usage   json.RawMessage `json:"usage"`
	}
	if !decode(data, &m) {
		t.unread(data)
		return
	}
	t.model = m.Model
	for _, b := range m.Content {
		t.text += b.size()
	}
	t.messagesUsage(m.Usage)
}

// messageTokens are the counts of one pass of the model over a request.
type messageTokens struct {
	Input    loop.Count `json:"input_tokens"`
	Output   loop.Count `json:"output_tokens"`
	Read     loop.Count `json:"cache_read_input_tokens"`
	Write    loop.Count `json:"cache_creation_input_tokens"`
	Creation struct {
		Hour loop.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
}

// messagesUsage reads a report. Where a request took several passes, as to compact
// a conversation that became too long, the numbers at the top leave some out, and
// the bill is the sum of all.
func (t *tally) messagesUsage(raw json.RawMessage) {
	var u struct {
		messageTokens

		Iterations []messageTokens `json:"iterations"`
		Details    struct {
			Thinking loop.Count `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
		Tools struct {
			Searches loop.Count `json:"web_search_requests"`
		} `json:"server_tool_use"`
	}
	_, bad := report(raw, &u)
	t.bad = t.bad || bad
	var passes messageTokens
	for _, pass := range u.Iterations {
		passes.Input = sumOf(passes.Input, pass.Input)
		passes.Output = sumOf(passes.Output, pass.Output)
		passes.Read = sumOf(passes.Read, pass.Read)
		passes.Write = sumOf(passes.Write, pass.Write)
		passes.Creation.Hour = sumOf(passes.Creation.Hour, pass.Creation.Hour)
	}
	t.take(said{
		input: largerOf(u.Input, passes.Input), output: largerOf(u.Output, passes.Output),
		cacheRead: largerOf(u.Read, passes.Read), cacheWrite: largerOf(u.Write, passes.Write),
		cacheWrite1h: largerOf(u.Creation.Hour, passes.Creation.Hour), reasoning: u.Details.Thinking, web: u.Tools.Searches,
	})
}

func sumOf(a, b loop.Count) loop.Count {
	return loop.Count{N: a.N + b.N, Set: a.Set || b.Set, Bad: a.Bad || b.Bad || a.N+b.N > loop.MostTokens}
}

// largerOf is the larger of two reports of one count. If either is bad, so is it.
func largerOf(a, b loop.Count) loop.Count {
	return loop.Count{N: max(a.N, b.N), Set: a.Set || b.Set, Bad: a.Bad || b.Bad}
}
