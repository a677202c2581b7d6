package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

func geminiRequest(c conversation, key string) (string, http.Header, []byte) {
	contents := make([]object, 0, len(c.messages))
	for _, m := range c.messages {
		role := "user"
		if m.model {
			role = "model"
		}
		contents = append(contents, object{"role": role, "parts": geminiParts(m)})
	}
	tools := make([]object, 0, len(c.tools))
	for _, t := range c.tools {
		tools = append(tools, object{"name": t.name, "description": t.about, "parameters": json.RawMessage(t.schema)})
	}
	body := object{
		"systemInstruction": object{"parts": []object{{"text": c.system}}}, "contents": contents,
		"tools": []object{{"functionDeclarations": tools}},
	}
	if c.effort != "" {
		body["generationConfig"] = object{"thinkingConfig": object{"thinkingLevel": strings.ToUpper(c.effort)}}
	}
	path := "/v1beta/models/" + url.PathEscape(c.model) + ":streamGenerateContent?alt=sse"
	return path, http.Header{"X-Goog-Api-Key": {key}}, encodeJSON(body)
}

func geminiParts(m message) []object {
	var parts []object
	if m.text != "" {
		parts = append(parts, object{"text": m.text})
	}
	for _, c := range m.calls {
		part := object{"functionCall": object{"name": c.tool, "args": inputObject(c.input)}}
		if c.sign != "" {
			part["thoughtSignature"] = c.sign
		}
		parts = append(parts, part)
	}
	for _, r := range m.results {
		key := "output"
		if r.bad {
			key = "error"
		}
		parts = append(parts, object{"functionResponse": object{"name": r.call.tool, "response": object{key: r.text}}})
	}
	return parts
}

type geminiChunk struct {
	Error      json.RawMessage `json:"error"`
	Candidates []struct {
		Content struct {
			Parts []geminiPart `json:"parts"`
		} `json:"content"`
		Finish string `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
}

type geminiPart struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"`
	Sign    string `json:"thoughtSignature"`
	Call    *struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

func geminiReader(r *reply) func([]byte) error {
	return func(data []byte) error {
		var c geminiChunk
		if err := json.Unmarshal(data, &c); err != nil {
			return err
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			return interruptedFailure(data)
		}
		r.begun = true
		if c.Feedback.Block != "" {
			r.stop, r.done = stopRefusal, true
			r.text = []byte("the request was blocked: " + c.Feedback.Block)
		}
		for _, candidate := range c.Candidates {
			for _, p := range candidate.Content.Parts {
				r.addGeminiPart(p)
			}
			r.finishGemini(candidate.Finish)
		}
		return nil
	}
}

func (r *reply) addGeminiPart(p geminiPart) {
	switch {
	case p.Call != nil:
		input := cmp.Or(string(p.Call.Args), "{}")
		r.calls = append(r.calls, call{id: "call_" + strconv.Itoa(len(r.calls)), tool: p.Call.Name, input: input, sign: p.Sign})
	case p.Thought:
		r.thought = append(r.thought, p.Text...)
	default:
		r.text = append(r.text, p.Text...)
	}
}

func (r *reply) finishGemini(reason string) {
	switch reason {
	case "", "FINISH_REASON_UNSPECIFIED":
		return
	case "STOP":
	case "MAX_TOKENS":
		r.stop = stopMax
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		r.stop = stopBroken
	default: // SAFETY, RECITATION, PROHIBITED_CONTENT and future reasons: the vendor withholds the answer.
		r.stop = stopRefusal
	}
	r.done = true
}
