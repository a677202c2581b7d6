package modelapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Chat is POST /v1/chat/completions of OpenAI and of compatible servers.
var Chat = &Shape{
	maxOutput: func(top fields) int64 {
		answers, _ := top.count("n")
		return outputCap(top, "max_completion_tokens", "max_tokens") * max(min(answers, 128), 1)
	},
	lowerOutput: func(top fields, most int64) bool {
		// Some servers know only the old name, and some models refuse it: the client
		// uses the right one.
		_, name := top.count("max_completion_tokens", "max_tokens")
		if name == "" {
			name = "max_completion_tokens"
		}
		if answers, _ := top.count("n"); answers > 1 {
			most /= answers
		}
		top.set(name, max(most, 1))
		return most > 0
	},
	readEvent: (*Tally).addCompletion,
	readWhole: func(t *Tally, data []byte) { t.addCompletion(data) },
}

// chatMessage is a message of a model, or an addition to one. Vendors use two
// names for reasoning.
type chatMessage struct {
	Content          length `json:"content"`
	ReasoningContent length `json:"reasoning_content"`
	Reasoning        length `json:"reasoning"`
	Refusal          length `json:"refusal"`
	ToolCalls        []struct {
		Function functionCall `json:"function"`
	} `json:"tool_calls"`
	FunctionCall functionCall `json:"function_call"`
}

type functionCall struct {
	Name      length `json:"name"`
	Arguments length `json:"arguments"`
}

func (s chatMessage) size() int64 {
	n := s.Content + max(s.ReasoningContent, s.Reasoning) + s.Refusal + s.FunctionCall.Name + s.FunctionCall.Arguments
	for _, c := range s.ToolCalls {
		n += c.Function.Name + c.Function.Arguments
	}
	return int64(n)
}

// addCompletion adds an event or a whole answer. It reports whether the event was
// sent only because usage was requested.
func (t *Tally) addCompletion(data []byte) (usageOnly bool) {
	var c struct {
		Model   string `json:"model"`
		Choices []struct {
			Delta   chatMessage `json:"delta"`
			Message chatMessage `json:"message"`
			Text    length      `json:"text"`
			Finish  string      `json:"finish_reason"`
		} `json:"choices"`
		Usage json.RawMessage `json:"usage"`
		Error *VendorError    `json:"error"`
	}
	if !decode(data, &c) {
		t.addUnreadable(data)
		return false
	}
	if c.Error != nil {
		t.Failure = c.Error
	}
	if c.Model != "" {
		t.Model = c.Model
	}
	for _, choice := range c.Choices {
		t.text += choice.Delta.size() + choice.Message.size() + int64(choice.Text)
		t.ended = t.ended || choice.Finish != ""
	}
	hasUsage := t.addOpenAIUsage(c.Usage)
	return hasUsage && c.Choices != nil && len(c.Choices) == 0
}

// inputDetails are parts of a count of input.
type inputDetails struct {
	Cached loop.Count `json:"cached_tokens"`
	Write  loop.Count `json:"cache_write_tokens"`
}

// outputDetails are parts of a count of output.
type outputDetails struct {
	Reasoning loop.Count `json:"reasoning_tokens"`
}

// addOpenAIUsage adds a report in the fields of Chat or of Responses. It returns
// false if there is no report.
func (t *Tally) addOpenAIUsage(raw json.RawMessage) bool {
	var u struct {
		Prompt        loop.Count    `json:"prompt_tokens"`
		Completion    loop.Count    `json:"completion_tokens"`
		PromptDetails inputDetails  `json:"prompt_tokens_details"`
		PromptHit     loop.Count    `json:"prompt_cache_hit_tokens"` // DeepSeek
		CachedBeside  loop.Count    `json:"cached_tokens"`           // Moonshot
		Completed     outputDetails `json:"completion_tokens_details"`

		Input        loop.Count    `json:"input_tokens"`
		Output       loop.Count    `json:"output_tokens"`
		InputDetails inputDetails  `json:"input_tokens_details"`
		Written      outputDetails `json:"output_tokens_details"`

		Total loop.Count `json:"total_tokens"`
		Tools struct {
			Searches loop.Count `json:"web_search_requests"`
		} `json:"server_tool_use"` // OpenRouter
	}
	found, bad := decodeUsage(raw, &u)
	t.bad = t.bad || bad
	if !found {
		return false
	}
	r := reported{
		input: u.Prompt, output: u.Completion, cacheRead: largerCount(u.PromptDetails.Cached, largerCount(u.PromptHit, u.CachedBeside)),
		cacheWrite: u.PromptDetails.Write, reasoning: u.Completed.Reasoning, web: u.Tools.Searches,
	}
	if u.Input.Set || u.Output.Set {
		r.input, r.output, r.cacheRead, r.cacheWrite, r.reasoning = u.Input, u.Output, u.InputDetails.Cached, u.InputDetails.Write, u.Written.Reasoning
	}
	r.output.N += uncountedOutput(r, u.Total)
	t.add(r.withoutCachedInput())
	return true
}

// uncountedOutput returns how many tokens are missing from a report's count of
// output: some servers count reasoning only in their total, or only separately,
// and bill it like any other output.
func uncountedOutput(r reported, total loop.Count) int64 {
	rest := total.N - r.input.N - r.output.N
	switch cached := r.cacheRead.N + r.cacheWrite.N; {
	case r.output.Bad || r.input.Bad || r.reasoning.Bad || !r.output.Set:
		return 0
	case total.Set && !total.Bad && rest > 0 && (rest != cached || rest == r.reasoning.N):
		return rest
	case r.reasoning.N > r.output.N:
		return r.reasoning.N
	}
	return 0
}

// Responses is POST /v1/responses of OpenAI.
var Responses = &Shape{
	maxOutput: func(top fields) int64 { return outputCap(top, "max_output_tokens") },
	lowerOutput: func(top fields, most int64) bool {
		// The API's minimum is 16.
		const least = 16
		top.set("max_output_tokens", max(most, least))
		return most >= least
	},
	readEvent: readResponsesEvent,
	readWhole: func(t *Tally, data []byte) {
		var a response
		if !decode(data, &a) {
			t.addUnreadable(data)
			return
		}
		t.addResponse(a)
	},
}

// outputItem is a finished part of an answer.
type outputItem struct {
	Type   string `json:"type"`
	Action struct {
		Type string `json:"type"`
	} `json:"action"`
	Content []struct {
		Text    length `json:"text"`
		Refusal length `json:"refusal"`
	} `json:"content"`
	Arguments length `json:"arguments"`
	Input     length `json:"input"`
}

func (i outputItem) size() int64 {
	n := i.Arguments + i.Input
	for _, c := range i.Content {
		n += c.Text + c.Refusal
	}
	return int64(n)
}

// searches counts the searches of the item that have a fee. Opening a page that
// was found has no fee.
func (i outputItem) searches() (s searches) {
	switch {
	case i.Type == "file_search_call":
		s.file = 1
	case i.Type == "web_search_call" && (i.Action.Type == "" || i.Action.Type == "search"):
		s.web = 1
	}
	return s
}

// response is a whole answer.
type response struct {
	Model  string          `json:"model"`
	Output []outputItem    `json:"output"`
	Usage  json.RawMessage `json:"usage"`
	Error  *VendorError    `json:"error"`
}

func (t *Tally) addResponse(a response) {
	if a.Model != "" {
		t.Model = a.Model
	}
	if a.Error != nil {
		t.Failure = a.Error
	}
	var size int64
	var all searches
	for _, i := range a.Output {
		size, all = size+i.size(), all.plus(i.searches())
	}
	t.items = max(t.items, size)
	t.addSearches(all)
	t.addOpenAIUsage(a.Usage)
}

func readResponsesEvent(t *Tally, data []byte) bool {
	var e struct {
		Type     string       `json:"type"`
		Delta    length       `json:"delta"`
		Item     outputItem   `json:"item"`
		Response *response    `json:"response"`
		Error    *VendorError `json:"error"`
		VendorError
	}
	if !decode(data, &e) {
		t.addUnreadable(data)
		return false
	}
	switch {
	case e.Type == "error" && e.Error != nil:
		t.Failure = e.Error
	case e.Type == "error":
		t.Failure = &e.VendorError
	case e.Type == "response.output_item.done":
		t.items += e.Item.size()
		t.found = t.found.plus(e.Item.searches())
		t.addSearches(t.found)
	case strings.HasSuffix(e.Type, ".delta") && !strings.Contains(e.Type, "summary") && !strings.Contains(e.Type, "audio"):
		// Summaries of reasoning are written by another model and are not billed.
		t.text += int64(e.Delta)
	}
	t.ended = t.ended || slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, e.Type)
	if e.Response != nil {
		t.addResponse(*e.Response)
	}
	return false
}
