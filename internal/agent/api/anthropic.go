package api

import (
	"encoding/json"
	"net/http"
)

// longestAnswer is how many tokens an answer of Anthropic's may have; this API
// wants to be told.
const longestAnswer = 16_384

type object = map[string]any

// cached marks the end of what is the same in the next call.
var cached = object{"type": "ephemeral"}

func requestAnthropic(c conversation, key string) (string, http.Header, []byte) {
	messages := make([]object, 0, len(c.messages))
	for i, m := range c.messages {
		blocks := blocksAnthropic(m)
		if i == len(c.messages)-1 && len(blocks) > 0 {
			blocks[len(blocks)-1]["cache_control"] = cached
		}
		role := "user"
		if m.model {
			role = "assistant"
		}
		messages = append(messages, object{"role": role, "content": blocks})
	}
	tools := make([]object, 0, len(c.tools))
	for _, t := range c.tools {
		tools = append(tools, object{"name": t.name, "description": t.about, "input_schema": json.RawMessage(t.schema)})
	}
	body := object{
		"model": c.model, "max_tokens": longestAnswer, "stream": true, "tools": tools, "messages": messages,
		"system": []object{{"type": "text", "text": c.system, "cache_control": cached}},
	}
	if c.effort != "" {
		body["output_config"] = object{"effort": c.effort}
	}
	return "/v1/messages", http.Header{"X-Api-Key": {key}, "Anthropic-Version": {"2023-06-01"}}, encode(body)
}

func blocksAnthropic(m message) []object {
	var blocks []object
	if m.text != "" {
		blocks = append(blocks, object{"type": "text", "text": m.text})
	}
	for _, c := range m.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": c.id, "name": c.tool, "input": inputOf(c.input)})
	}
	for _, r := range m.results {
		blocks = append(blocks, object{"type": "tool_result", "tool_use_id": r.call.id, "content": r.text, "is_error": r.bad})
	}
	return blocks
}

// inputOf is the input of a call as an object, also where the model wrote none.
func inputOf(text string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &m) != nil || m == nil {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(text)
}

type eventAnthropic struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Block struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"content_block"`
	Delta struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		JSON     string `json:"partial_json"`
		Stop     string `json:"stop_reason"`
	} `json:"delta"`
}

func readAnthropic(r *reply) func([]byte) error {
	at := map[int]int{} // of a block, in calls
	return func(data []byte) error {
		var e eventAnthropic
		if err := json.Unmarshal(data, &e); err != nil {
			return err
		}
		r.begun = true
		switch e.Type {
		case "content_block_start":
			if e.Block.Type == "tool_use" {
				at[e.Index] = len(r.calls)
				r.calls = append(r.calls, call{id: e.Block.ID, tool: e.Block.Name})
			}
		case "content_block_delta":
			r.text = append(r.text, e.Delta.Text...)
			r.thought = append(r.thought, e.Delta.Thinking...)
			if i, ok := at[e.Index]; ok {
				r.calls[i].input += e.Delta.JSON
			}
		case "message_delta":
			r.stop = map[string]stop{
				"max_tokens": stopMax, "model_context_window_exceeded": stopMax, "refusal": stopRefusal,
			}[e.Delta.Stop]
		case "message_stop":
			r.done = true
			return errEnd
		case "error":
			return interrupted(data)
		}
		return nil
	}
}
