package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

func chatRequest(c conversation, key string) (string, http.Header, []byte) {
	messages := []object{{"role": "system", "content": c.system}}
	for _, m := range c.messages {
		messages = append(messages, chatMessages(m)...)
	}
	tools := make([]object, 0, len(c.tools))
	for _, t := range c.tools {
		tools = append(tools, object{
			"type": "function", "function": object{"name": t.name, "description": t.about, "parameters": json.RawMessage(t.schema)},
		})
	}
	body := object{
		"model": c.model, "stream": true, "stream_options": object{"include_usage": true}, "tools": tools, "messages": messages,
	}
	if c.effort != "" {
		body["reasoning_effort"] = c.effort
	}
	return "/v1/chat/completions", http.Header{"Authorization": {"Bearer " + key}}, encodeJSON(body)
}

func chatMessages(m message) []object {
	if !m.model && len(m.results) == 0 {
		return []object{{"role": "user", "content": m.text}}
	}
	var all []object
	for _, r := range m.results {
		all = append(all, object{"role": "tool", "tool_call_id": r.call.id, "content": r.text})
	}
	if !m.model {
		return all
	}
	said := object{"role": "assistant", "content": m.text}
	calls := make([]object, 0, len(m.calls))
	for _, c := range m.calls {
		calls = append(calls, object{
			"id": c.id, "type": "function", "function": object{"name": c.tool, "arguments": string(inputObject(c.input))},
		})
	}
	if len(calls) > 0 {
		said["tool_calls"] = calls
	}
	return append(all, said)
}

type chatChunk struct {
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Delta struct {
			Content   string     `json:"content"`
			Refusal   string     `json:"refusal"`
			Reasoning string     `json:"reasoning_content"` // of local servers
			Calls     []chatCall `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
}

type chatCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func chatReader(r *reply) func([]byte) error {
	at := map[int]int{} // index in calls, by the model's index
	return func(data []byte) error {
		if bytes.Equal(data, []byte("[DONE]")) {
			return errEnd
		}
		var c chatChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return err
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return interruptedFailure(data)
		}
		r.begun = true
		for _, choice := range c.Choices {
			d := choice.Delta
			r.text = append(append(r.text, d.Content...), d.Refusal...)
			r.thought = append(r.thought, d.Reasoning...)
			if d.Refusal != "" {
				r.stop = stopRefusal
			}
			for _, part := range d.Calls {
				r.addChatCall(at, part)
			}
			r.finishChat(choice.Finish)
		}
		return nil
	}
}

// addChatCall adds a part of a call. Some local servers send complete calls that
// all have the index 0: another ID means another call.
func (r *reply) addChatCall(at map[int]int, part chatCall) {
	i, known := at[part.Index]
	if !known || part.ID != "" && r.calls[i].id != part.ID {
		i = len(r.calls)
		at[part.Index] = i
		id := part.ID
		if id == "" {
			id = "call_" + strconv.Itoa(i)
		}
		r.calls = append(r.calls, call{id: id})
	}
	r.calls[i].tool += part.Function.Name
	r.calls[i].input += part.Function.Arguments
}

func (r *reply) finishChat(reason string) {
	switch reason {
	case "":
		return
	case "length":
		r.stop = stopMax
	case "content_filter":
		r.stop = stopRefusal
	}
	r.done = true
}
