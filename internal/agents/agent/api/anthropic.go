package api

import (
	"encoding/json"
	"net/http"
)

// maxAnswerTokens is how many tokens an answer of Anthropic's may have, which its
// API requires.
const maxAnswerTokens = 16_384

type object = map[string]any

// cacheMark marks the end of what will be the same in the next call.
var cacheMark = object{"type": "ephemeral"}

func anthropicRequest(c conversation, key string) (string, http.Header, []byte) {
	messages := make([]object, 0, len(c.messages))
	for i, m := range c.messages {
		blocks := anthropicBlocks(m)
		if i == len(c.messages)-1 && len(blocks) > 0 {
			blocks[len(blocks)-1]["cache_control"] = cacheMark
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
		"model": c.model, "max_tokens": maxAnswerTokens, "stream": true, "tools": tools, "messages": messages,
		"system": []object{{"type": "text", "text": c.system, "cache_control": cacheMark}},
	}
	if c.effort != "" {
		body["output_config"] = object{"effort": c.effort}
	}
	return "/v1/messages", http.Header{"X-Api-Key": {key}, "Anthropic-Version": {"2023-06-01"}}, encodeJSON(body)
}

func anthropicBlocks(m message) []object {
	var blocks []object
	if m.text != "" {
		blocks = append(blocks, object{"type": "text", "text": m.text})
	}
	for _, c := range m.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": c.id, "name": c.tool, "input": inputObject(c.input)})
	}
	for _, r := range m.results {
		blocks = append(blocks, object{"type": "tool_result", "tool_use_id": r.call.id, "content": r.text, "is_error": r.bad})
	}
	return blocks
}

// inputObject returns the input of a call as an object; empty if the model wrote
// none.
func inputObject(text string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &m) != nil || m == nil {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(text)
}

type anthropicEvent struct {
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

func anthropicReader(r *reply) func([]byte) error {
	at := map[int]int{} // index in calls, by index of the block
	return func(data []byte) error {
		var e anthropicEvent
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
			r.stop = map[string]stopReason{
				"max_tokens": stopMax, "model_context_window_exceeded": stopMax, "refusal": stopRefusal,
			}[e.Delta.Stop]
		case "message_stop":
			r.done = true
			return errEnd
		case "error":
			return interruptedFailure(data)
		}
		return nil
	}
}
