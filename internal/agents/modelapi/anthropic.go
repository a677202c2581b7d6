package modelapi

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Messages is POST /v1/messages of Anthropic.
var Messages = &Shape{
	maxOutput: func(top fields) int64 { return outputCap(top, "max_tokens") },
	lowerOutput: func(top fields, most int64) bool {
		thinking, _ := top.object("thinking")
		if budget, _ := thinking.count("budget_tokens"); budget >= most {
			return false
		}
		top.set("max_tokens", most)
		return true
	},
	readEvent: readMessagesEvent,
	readWhole: readMessage,
}

// contentBlock is a part of an answer, or an addition to one.
type contentBlock struct {
	Text        length `json:"text"`
	Thinking    length `json:"thinking"`
	PartialJSON length `json:"partial_json"`
	Input       length `json:"input"`
}

// size returns how many bytes the model wrote. An empty input is a placeholder
// for the input that follows.
func (b contentBlock) size() int64 {
	n := b.Text + b.Thinking + b.PartialJSON
	if b.Input > length(len("{}")) {
		n += b.Input
	}
	return int64(n)
}

func readMessagesEvent(t *Tally, data []byte) bool {
	var e struct {
		Type    string `json:"type"`
		Message struct {
			Model string          `json:"model"`
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
		Delta contentBlock    `json:"delta"`
		Block contentBlock    `json:"content_block"`
		Usage json.RawMessage `json:"usage"`
		Error *VendorError    `json:"error"`
	}
	if !decode(data, &e) {
		t.addUnreadable(data)
		return false
	}
	if e.Type == "error" && e.Error != nil {
		t.Failure = e.Error
	}
	t.ended = t.ended || e.Type == "message_stop"
	if e.Message.Model != "" {
		t.Model = e.Message.Model
	}
	t.text += e.Delta.size() + e.Block.size()
	t.addMessagesUsage(e.Message.Usage)
	t.addMessagesUsage(e.Usage)
	return false
}

func readMessage(t *Tally, data []byte) {
	var m struct {
		Model   string          `json:"model"`
		Content []contentBlock  `json:"content"`
		Usage   json.RawMessage `json:"usage"`
	}
	if !decode(data, &m) {
		t.addUnreadable(data)
		return
	}
	t.Model = m.Model
	for _, b := range m.Content {
		t.text += b.size()
	}
	t.addMessagesUsage(m.Usage)
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

// addMessagesUsage adds a report of usage. If a request took several passes, for
// example to compact a conversation that became too long, the numbers at the top
// level are incomplete, and the sum of all passes is billed.
func (t *Tally) addMessagesUsage(raw json.RawMessage) {
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
	_, bad := decodeUsage(raw, &u)
	t.bad = t.bad || bad
	var passes messageTokens
	for _, pass := range u.Iterations {
		passes.Input = sumCounts(passes.Input, pass.Input)
		passes.Output = sumCounts(passes.Output, pass.Output)
		passes.Read = sumCounts(passes.Read, pass.Read)
		passes.Write = sumCounts(passes.Write, pass.Write)
		passes.Creation.Hour = sumCounts(passes.Creation.Hour, pass.Creation.Hour)
	}
	t.add(reported{
		input: largerCount(u.Input, passes.Input), output: largerCount(u.Output, passes.Output),
		cacheRead: largerCount(u.Read, passes.Read), cacheWrite: largerCount(u.Write, passes.Write),
		cacheWrite1h: largerCount(u.Creation.Hour, passes.Creation.Hour), reasoning: u.Details.Thinking, web: u.Tools.Searches,
	})
}

func sumCounts(a, b loop.Count) loop.Count {
	return loop.Count{N: a.N + b.N, Set: a.Set || b.Set, Bad: a.Bad || b.Bad || a.N+b.N > loop.MostTokens}
}

// largerCount returns the larger of two reports of one count. It is bad if either
// is.
func largerCount(a, b loop.Count) loop.Count {
	return loop.Count{N: max(a.N, b.N), Set: a.Set || b.Set, Bad: a.Bad || b.Bad}
}
