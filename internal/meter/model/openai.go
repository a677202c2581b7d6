package model

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

// chat is POST /v1/chat/completions of OpenAI and of all that speak like it.
var chat = &shape{
	most: func(top fields) int64 {
		answers, _ := top.count("n")
		return named(top, "max_completion_tokens", "max_tokens") * max(min(answers, 128), 1)
	},
	lower: func(top fields, most int64) bool {
		// Servers that know only the old name stand behind this API as well as
		// models that refuse it: what the client uses is right.
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
	event: func(t *tally, data []byte) bool { return t.completion(data) },
	whole: func(t *tally, data []byte) { t.completion(data) },
}

// spoken is what a model wrote, in a message or in what is added to one. Vendors
// have two names for thoughts.
type spoken struct {
	Content          length `json:"content"`
	ReasoningContent length `json:"reasoning_content"`
	Reasoning        length `json:"reasoning"`
	Refusal          length `json:"refusal"`
	ToolCalls        []struct {
		Function called `json:"function"`
	} `json:"tool_calls"`
	FunctionCall called `json:"function_call"`
}

type called struct {
	Name      length `json:"name"`
	Arguments length `json:"arguments"`
}

func (s spoken) size() int64 {
	n := s.Content + max(s.ReasoningContent, s.Reasoning) + s.Refusal + s.FunctionCall.Name + s.FunctionCall.Arguments
	for _, c := range s.ToolCalls {
		n += c.Function.Name + c.Function.Arguments
	}
	return int64(n)
}

// completion reads an event or a whole answer. It tells whether the event is the
// one that is only sent because usage was asked for.
func (t *tally) completion(data []byte) (usageOnly bool) {
	var c struct {
		Model   string `json:"model"`
		Choices []struct {
			Delta   spoken `json:"delta"`
			Message spoken `json:"message"`
			Text    length `json:"text"`
			Finish  string `json:"finish_reason"`
		} `json:"choices"`
		Usage json.RawMessage `json:"usage"`
		Error *vendorError    `json:"error"`
	}
	if !decode(data, &c) {
		t.unread(data)
		return false
	}
	if c.Error != nil {
		t.failure = c.Error
	}
	if c.Model != "" {
		t.model = c.Model
	}
	for _, choice := range c.Choices {
		t.text += choice.Delta.size() + choice.Message.size() + int64(choice.Text)
		t.ended = t.ended || choice.Finish != ""
	}
	there := t.openAIUsage(c.Usage)
	return there && c.Choices != nil && len(c.Choices) == 0
}

// details are parts of a count.
type details struct {
	Cached loop.Count `json:"cached_tokens"`
	Write  loop.Count `json:"cache_write_tokens"`
}

// thoughts are parts of the output.
type thoughts struct {
	Reasoning loop.Count `json:"reasoning_tokens"`
}

func (t *tally) openAIUsage(raw json.RawMessage) (there bool) {
	var u struct {
		Prompt        loop.Count `json:"prompt_tokens"`
		Completion    loop.Count `json:"completion_tokens"`
		PromptDetails details    `json:"prompt_tokens_details"`
		PromptHit     loop.Count `json:"prompt_cache_hit_tokens"` // DeepSeek
		CachedBeside  loop.Count `json:"cached_tokens"`           // Moonshot
		Completed     thoughts   `json:"completion_tokens_details"`

		Input        loop.Count `json:"input_tokens"`
		Output       loop.Count `json:"output_tokens"`
		InputDetails details    `json:"input_tokens_details"`
		Written      thoughts   `json:"output_tokens_details"`

		Total loop.Count `json:"total_tokens"`
		Tools struct {
			Searches loop.Count `json:"web_search_requests"`
		} `json:"server_tool_use"` // OpenRouter
	}
	there, bad := report(raw, &u)
	t.bad = t.bad || bad
	if !there {
		return false
	}
	s := said{
		input: u.Prompt, output: u.Completion, cacheRead: largerOf(u.PromptDetails.Cached, largerOf(u.PromptHit, u.CachedBeside)),
		cacheWrite: u.PromptDetails.Write, reasoning: u.Completed.Reasoning, web: u.Tools.Searches,
	}
	if u.Input.Set || u.Output.Set {
		s.input, s.output, s.cacheRead, s.cacheWrite, s.reasoning = u.Input, u.Output, u.InputDetails.Cached, u.InputDetails.Write, u.Written.Reasoning
	}
	s.output.N += beside(s, u.Total)
	t.take(s.inclusive())
	return true
}

// beside is how many tokens of output a report has beside the output that it
// names: some servers count thoughts there only in their total, or only by
// themselves, and bill them like any other output.
func beside(s said, total loop.Count) int64 {
	rest := total.N - s.input.N - s.output.N
	switch cached := s.cacheRead.N + s.cacheWrite.N; {
	case s.output.Bad || s.input.Bad || s.reasoning.Bad || !s.output.Set:
		return 0
	case total.Set && !total.Bad && rest > 0 && (rest != cached || rest == s.reasoning.N):
		return rest
	case s.reasoning.N > s.output.N:
		return s.reasoning.N
	}
	return 0
}

// responses is POST /v1/responses of OpenAI.
var responses = &shape{
	most: func(top fields) int64 { return named(top, "max_output_tokens") },
	lower: func(top fields, most int64) bool {
		// The API takes no less than 16.
		const least = 16
		top.set("max_output_tokens", max(most, least))
		return most >= least
	},
	event: responsesEvent,
	whole: func(t *tally, data []byte) {
		var a answer
		if !decode(data, &a) {
			t.unread(data)
			return
		}
		t.answer(a)
	},
}

// item is a finished part of an answer.
type item struct {
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

func (i item) size() int64 {
	n := i.Arguments + i.Input
	for _, c := range i.Content {
		n += c.Text + c.Refusal
	}
	return int64(n)
}

// part is what the item has a fee for. A search of the web that only opens a page
// that was found has none.
func (i item) part() (p parts) {
	switch {
	case i.Type == "file_search_call":
		p.file = 1
	case i.Type == "web_search_call" && (i.Action.Type == "" || i.Action.Type == "search"):
		p.web = 1
	}
	return p
}

func (p parts) plus(q parts) parts { return parts{p.web + q.web, p.file + q.file} }

// answer is a whole response.
type answer struct {
	Model  string          `json:"model"`
	Output []item          `json:"output"`
	Usage  json.RawMessage `json:"usage"`
	Error  *vendorError    `json:"error"`
}

func (t *tally) answer(a answer) {
	if a.Model != "" {
		t.model = a.Model
	}
	if a.Error != nil {
		t.failure = a.Error
	}
	var size int64
	var all parts
	for _, i := range a.Output {
		size, all = size+i.size(), all.plus(i.part())
	}
	t.items = max(t.items, size)
	t.searched(all)
	t.openAIUsage(a.Usage)
}

func responsesEvent(t *tally, data []byte) bool {
	var e struct {
		Type     string       `json:"type"`
		Delta    length       `json:"delta"`
		Item     item         `json:"item"`
		Response *answer      `json:"response"`
		Error    *vendorError `json:"error"`
		vendorError
	}
	if !decode(data, &e) {
		t.unread(data)
		return false
	}
	switch {
	case e.Type == "error" && e.Error != nil:
		t.failure = e.Error
	case e.Type == "error":
		t.failure = &e.vendorError
	case e.Type == "response.output_item.done":
		t.items += e.Item.size()
		t.parts = t.parts.plus(e.Item.part())
		t.searched(t.parts)
	case strings.HasSuffix(e.Type, ".delta") && !strings.Contains(e.Type, "summary") && !strings.Contains(e.Type, "audio"):
		// A summary of thoughts is not written by the model that is paid for them.
		t.text += int64(e.Delta)
	}
	t.ended = t.ended || slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, e.Type)
	if e.Response != nil {
		t.answer(*e.Response)
	}
	return false
}
