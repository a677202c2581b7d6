package fakemodel

import (
	"cmp"
	"fmt"
	"net/http"
)

var chat = wire{name: "chat", read: readChat, whole: wholeChat, sse: streamChat, fail: failOpenAI, early: earlyChat}

func readChat(m object, _ string) request {
	q := request{
		model: text(m["model"]), stream: m["stream"] == true, usage: fields(m["stream_options"])["include_usage"] == true,
	}
	for _, t := range list(m["tools"]) {
		o := fields(fields(t)["function"])
		q.tools = append(q.tools, tool{name: text(o["name"]), fields: fields(fields(o["parameters"])["properties"])})
	}
	for _, x := range list(m["messages"]) {
		q.messages++
		if o := fields(x); o["role"] == "tool" {
			q.returned(words(o["content"]))
		}
	}
	return q
}

var reasonsChat = map[stop]string{stopEnd: "stop", stopTool: "tool_calls", stopMax: "length", stopRefusal: "content_filter"}

// tellOpenAI is the usage as OpenAI counts it: tokens that were written to a
// cache are input like any other, and those that were read are a part of it.
func (a answer) tellOpenAI() Usage {
	u := a.told()
	return Usage{Input: u.Input + u.CacheWrite, Output: u.Output, CacheRead: u.CacheRead}
}

func usageChat(a answer) object {
	l, u := a.lies(), a.usage
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"prompt_tokens": number(in, l.Input), "completion_tokens": number(u.Output, l.Output), "total_tokens": in + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": number(u.CacheRead, l.CacheRead)},
		"completion_tokens_details": object{"reasoning_tokens": 0},
	}
}

func (a answer) chatCall(arguments string) object {
	return object{
		"index": 0, "id": fmt.Sprintf("call_%03d", a.id), "type": "function",
		"function": object{"name": a.call.tool.name, "arguments": arguments},
	}
}

func wholeChat(o *out, q request, a answer) {
	message := object{"role": "assistant", "content": a.whole(), "refusal": nil}
	if a.call != nil {
		message["content"], message["tool_calls"] = nil, []any{a.chatCall(a.whole())}
	}
	v := object{
		"id": fmt.Sprintf("chatcmpl-%03d", a.id), "object": "chat.completion", "created": 1, "model": q.model,
		"choices": []any{object{"index": 0, "message": message, "finish_reason": reasonsChat[a.stop]}},
	}
	if !a.lies().Missing {
		v["usage"] = usageChat(a)
	}
	o.body(v, a)
	o.told(a.tellOpenAI())
}

func streamChat(o *out, q request, a answer) {
	send := func(choices []any, usage any) {
		v := object{
			"id": fmt.Sprintf("chatcmpl-%03d", a.id), "object": "chat.completion.chunk", "created": 1, "model": q.model,
			"choices": choices,
		}
		if usage != nil {
			v["usage"] = usage
		}
		o.event("", v)
	}
	say := func(delta object, reason any) {
		send([]any{object{"index": 0, "delta": delta, "finish_reason": reason}}, nil)
	}
	say(object{"role": "assistant", "content": ""}, nil)
	if a.call != nil {
		say(object{"tool_calls": []any{a.chatCall("")}}, nil)
	}
	for piece := range a.pieces() {
		if a.call == nil {
			say(object{"content": piece}, nil)
			continue
		}
		say(object{"tool_calls": []any{object{"index": 0, "function": object{"arguments": piece}}}}, nil)
	}
	if a.half != "" {
		o.snap(a)
		return
	}
	say(object{}, reasonsChat[a.stop])
	if q.usage && !a.lies().Missing {
		send([]any{}, usageChat(a))
		o.told(a.tellOpenAI())
	}
	o.line("", []byte("[DONE]"))
}

func errorOpenAI(code, kind, message string) object {
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}
}

// failOpenAI is an error of both of OpenAI's shapes.
func failOpenAI(f Fault) (int, http.Header, object) {
	h := http.Header{"X-Request-Id": {"req_standin"}}
	say := func(status int, code, kind, message string) (int, http.Header, object) {
		return cmp.Or(f.Status, status), h, errorOpenAI(code, kind, cmp.Or(f.Text, message))
	}
	switch {
	case f.Kind == FaultOverflow:
		return say(400, "context_length_exceeded", "invalid_request_error",
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens. Please reduce the length of the messages.")
	case f.Kind == FaultQuota:
		return say(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case f.Kind == FaultOverload:
		return say(503, "server_overloaded", "server_error", "The engine is currently overloaded, please try again later")
	case f.Kind == FaultUsageLimit:
		status, _, body := say(429, "usage_limit_reached", "usage_limit_reached", "The usage limit has been reached")
		e := fields(body["error"])
		e["plan_type"], e["resets_at"] = "plus", f.lifted().Unix()
		return status, h, body
	case f.Status == http.StatusUnauthorized:
		return say(401, "invalid_api_key", "invalid_request_error", "Incorrect API key provided.")
	case f.Status == http.StatusNotFound:
		return say(404, "model_not_found", "invalid_request_error", "The model does not exist or you do not have access to it.")
	case f.Status == http.StatusTooManyRequests:
		return say(429, "rate_limit_exceeded", "requests", "Rate limit reached for requests")
	case f.Status >= 400 && f.Status < 500:
		return say(f.Status, "invalid_request", "invalid_request_error", "The request is not valid.")
	}
	return say(500, "server_error", "server_error", "The server had an error while processing your request")
}

// earlyChat is an overload that shows once the stream has begun.
func earlyChat(o *out, _ request, f Fault) bool {
	if f.Kind != FaultOverload {
		return false
	}
	_, _, body := failOpenAI(f)
	o.event("", body)
	return true
}
