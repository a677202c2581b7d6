package fakemodel

import (
	"cmp"
	"fmt"
	"maps"
)

var responses = wire{
	name: "responses", read: readResponses, whole: wholeResponses, sse: streamResponses, fail: failOpenAI, early: earlyResponses,
}

func readResponses(m object, _ string) request {
	q := request{model: text(m["model"]), stream: m["stream"] == true, usage: true}
	q.offerResponses(list(m["tools"]), "")
	for _, x := range list(m["input"]) {
		q.messages++
		o := fields(x)
		switch o["type"] {
		case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
			q.returned(words(o["output"]))
		}
	}
	return q
}

func (q *request) offerResponses(all []any, space string) {
	for _, t := range all {
		o := fields(t)
		if o["type"] == "namespace" {
			q.offerResponses(list(o["tools"]), text(o["name"]))
			continue
		}
		q.tools = append(q.tools, tool{
			name: cmp.Or(text(o["name"]), text(o["type"])), space: space, kind: text(o["type"]), custom: o["type"] == "custom",
			fields: fields(fields(o["parameters"])["properties"]),
		})
	}
}

func usageResponses(a answer) object {
	l, u := a.lies(), a.usage
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"input_tokens": number(in, l.Input), "output_tokens": number(u.Output, l.Output), "total_tokens": in + u.Output,
		"input_tokens_details":  object{"cached_tokens": number(u.CacheRead, l.CacheRead)},
		"output_tokens_details": object{"reasoning_tokens": 0},
	}
}

// itemResponses is the answer's one item, and what its pieces are called.
func itemResponses(a answer) (item object, id, piece, field string) {
	at := func(prefix string) string { return fmt.Sprintf("%s_%03d", prefix, a.id) }
	switch {
	case a.call != nil && a.call.tool.custom:
		item = object{"type": "custom_tool_call", "call_id": at("call"), "name": a.call.tool.name, "input": a.call.text}
		id, piece, field = at("ctc"), "response.custom_tool_call_input", "input"
	case a.call != nil:
		item = object{"type": "function_call", "call_id": at("call"), "name": a.call.tool.name, "arguments": a.whole()}
		id, piece, field = at("fc"), "response.function_call_arguments", "arguments"
	case a.stop == stopRefusal:
		item = object{"type": "message", "role": "assistant", "content": []any{object{"type": "refusal", "refusal": a.whole()}}}
		id, piece, field = at("msg"), "response.refusal", "refusal"
	default:
		item = object{
			"type": "message", "role": "assistant",
			"content": []any{object{"type": "output_text", "text": a.whole(), "annotations": []any{}}},
		}
		id, piece, field = at("msg"), "response.output_text", "text"
	}
	if a.call != nil && a.call.tool.space != "" {
		item["namespace"] = a.call.tool.space
	}
	item["id"], item["status"] = id, "completed"
	return item, id, piece, field
}

func headResponses(q request, id int, status string) object {
	return object{
		"id": fmt.Sprintf("resp_%03d", id), "object": "response", "created_at": 1, "status": status, "model": q.model,
		"output": []any{}, "error": nil, "incomplete_details": nil, "parallel_tool_calls": false, "tool_choice": "auto", "tools": []any{},
	}
}

// doneResponses is the whole response, and the name of the event that says so.
func doneResponses(q request, a answer, item object) (object, string) {
	v, name := headResponses(q, a.id, "completed"), "response.completed"
	output := []any{}
	for n := range a.found {
		output = append(output, object{"type": "web_search_call", "id": fmt.Sprintf("ws_%03d_%d", a.id, n), "status": "completed", "action": object{"type": "search", "query": "x"}})
	}
	v["output"] = append(output, item)
	if !a.lies().Missing {
		v["usage"] = usageResponses(a)
	}
	if a.stop == stopMax {
		v["status"], v["incomplete_details"], name = "incomplete", object{"reason": "max_output_tokens"}, "response.incomplete"
	}
	return v, name
}

func wholeResponses(o *out, q request, a answer) {
	item, _, _, _ := itemResponses(a)
	v, _ := doneResponses(q, a, item)
	o.body(v, a)
	o.told(a.tellOpenAI())
}

func streamResponses(o *out, q request, a answer) {
	n := 0
	send := func(name string, v object) {
		v["type"], v["sequence_number"] = name, n
		n++
		o.event(name, v)
	}
	item, id, piece, field := itemResponses(a)
	send("response.created", object{"response": headResponses(q, a.id, "in_progress")})
	send("response.output_item.added", object{"output_index": 0, "item": empty(item)})
	if a.call == nil {
		send("response.content_part.added", object{"item_id": id, "output_index": 0, "content_index": 0, "part": emptyPart(item)})
	}
	for text := range a.pieces() {
		send(piece+".delta", object{"item_id": id, "output_index": 0, "content_index": 0, "delta": text})
	}
	if a.half != "" {
		o.snap(a)
		return
	}
	send(piece+".done", object{"item_id": id, "output_index": 0, "content_index": 0, field: a.whole()})
	if a.call == nil {
		send("response.content_part.done", object{"item_id": id, "output_index": 0, "content_index": 0, "part": list(item["content"])[0]})
	}
	send("response.output_item.done", object{"output_index": 0, "item": item})
	v, name := doneResponses(q, a, item)
	send(name, object{"response": v})
	o.told(a.tellOpenAI())
}

// empty is an item before any of it was said.
func empty(item object) object {
	v := maps.Clone(item)
	v["status"] = "in_progress"
	for k, x := range map[string]any{"content": []any{}, "arguments": "", "input": ""} {
		if _, ok := v[k]; ok {
			v[k] = x
		}
	}
	return v
}

// emptyPart is the first part of a message before any of it was said.
func emptyPart(item object) object {
	p := maps.Clone(fields(list(item["content"])[0]))
	for _, k := range []string{"text", "refusal"} {
		if _, ok := p[k]; ok {
			p[k] = ""
		}
	}
	return p
}

// earlyResponses is an error that shows once the stream has begun: this API
// tells so of a conversation that does not fit.
func earlyResponses(o *out, q request, f Fault) bool {
	code := map[FaultKind]string{FaultOverflow: "context_length_exceeded", FaultOverload: "server_is_overloaded"}[f.Kind]
	if code == "" {
		return false
	}
	message := map[FaultKind]string{
		FaultOverflow: "Your input exceeds the context window of this model. Please adjust your input and try again.",
		FaultOverload: "Our servers are currently overloaded. Please try again later.",
	}[f.Kind]
	o.event("response.created", object{"type": "response.created", "sequence_number": 0, "response": headResponses(q, q.messages, "in_progress")})
	v := headResponses(q, q.messages, "failed")
	v["error"], v["usage"] = object{"code": code, "message": cmp.Or(f.Text, message)}, nil
	o.event("response.failed", object{"type": "response.failed", "sequence_number": 1, "response": v})
	return true
}
