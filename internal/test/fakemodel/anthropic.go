package fakemodel

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
)

var anthropic = wire{
	name: "anthropic", read: readAnthropic, whole: wholeAnthropic, sse: streamAnthropic, fail: failAnthropic, early: earlyAnthropic,
}

func readAnthropic(m object, _ string) request {
	q := request{model: text(m["model"]), stream: m["stream"] == true, usage: true}
	for _, t := range list(m["tools"]) {
		o := fields(t)
		q.tools = append(q.tools, tool{name: text(o["name"]), kind: text(o["type"]), fields: fields(fields(o["input_schema"])["properties"])})
	}
	for _, x := range list(m["messages"]) {
		q.messages++
		for _, b := range list(fields(x)["content"]) {
			if o := fields(b); o["type"] == "tool_result" {
				q.returned(words(o["content"]))
			}
		}
	}
	return q
}

// usageAnthropic is the usage object with as much of the output as was made.
func usageAnthropic(a answer, output int64) object {
	l := a.lies()
	usage := object{
		"input_tokens": number(a.usage.Input, l.Input), "output_tokens": number(output, l.Output),
		"cache_read_input_tokens":     number(a.usage.CacheRead, l.CacheRead),
		"cache_creation_input_tokens": number(a.usage.CacheWrite, l.CacheWrite),
		"cache_creation":              object{"ephemeral_5m_input_tokens": number(a.usage.CacheWrite, l.CacheWrite), "ephemeral_1h_input_tokens": 0},
		"service_tier":                "standard",
	}
	if a.found > 0 {
		usage["server_tool_use"] = object{"web_search_requests": a.found}
	}
	return usage
}

func (a answer) block() object {
	if a.call == nil {
		return object{"type": "text", "text": a.whole()}
	}
	return object{"type": "tool_use", "id": fmt.Sprintf("toolu_%03d", a.id), "name": a.call.tool.name, "input": a.call.input}
}

func (a answer) message(q request, content []any, reason any, usage object) object {
	m := object{
		"id": fmt.Sprintf("msg_%03d", a.id), "type": "message", "role": "assistant", "model": q.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil,
	}
	if !a.lies().Missing {
		m["usage"] = usage
	}
	return m
}

var reasonsAnthropic = map[stop]string{stopEnd: "end_turn", stopTool: "tool_use", stopMax: "max_tokens", stopRefusal: "refusal"}

func wholeAnthropic(o *out, q request, a answer) {
	o.w.Header().Set("Request-Id", "req_standin")
	o.body(a.message(q, []any{a.block()}, reasonsAnthropic[a.stop], usageAnthropic(a, a.usage.Output)), a)
	o.told(a.told())
}

func streamAnthropic(o *out, q request, a answer) {
	o.w.Header().Set("Request-Id", "req_standin")
	first := a
	first.usage.Output = 1
	o.event("message_start", object{"type": "message_start", "message": a.message(q, []any{}, nil, usageAnthropic(first, 1))})
	o.told(first.told())
	block, delta, field := object{"type": "text", "text": ""}, "text_delta", "text"
	if a.call != nil {
		block, delta, field = a.block(), "input_json_delta", "partial_json"
		block["input"] = object{}
	}
	o.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	o.event("ping", object{"type": "ping"})
	for piece := range a.pieces() {
		o.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": delta, field: piece}})
	}
	if a.half != "" {
		o.snap(a)
		return
	}
	o.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
	end := object{"type": "message_delta", "delta": object{"stop_reason": reasonsAnthropic[a.stop], "stop_sequence": nil}}
	if !a.lies().Missing {
		end["usage"] = usageAnthropic(a, a.usage.Output)
	}
	o.event("message_delta", end)
	o.told(a.told())
	o.event("message_stop", object{"type": "message_stop"})
}

var typesAnthropic = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

func errorAnthropic(status int, message string) object {
	return object{
		"type": "error", "error": object{"type": cmp.Or(typesAnthropic[status], "api_error"), "message": message},
		"request_id": "req_standin",
	}
}

func failAnthropic(f Fault) (int, http.Header, object) {
	status, message, h := 500, "Internal server error", http.Header{"Request-Id": {"req_standin"}}
	switch f.Kind {
	case FaultOverflow:
		status, message = 400, "prompt is too long: 210000 tokens > 200000 maximum"
	case FaultQuota:
		status, message = 400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
	case FaultOverload:
		status, message = 529, "Overloaded"
	case FaultUsageLimit:
		status, message = 429, "usage limit reached"
		windowAnthropic(h, strconv.FormatInt(f.lifted().Unix(), 10))
	case FaultStatus, FaultRefusal, FaultMaxTokens, FaultCut, FaultStall, FaultHang, FaultDelay:
		message = cmp.Or(map[int]string{
			401: "invalid x-api-key", 429: "This request would exceed your organization's rate limit", 529: "Overloaded",
		}[f.Status], message)
	}
	status = cmp.Or(f.Status, status)
	return status, h, errorAnthropic(status, cmp.Or(f.Text, message))
}

// windowAnthropic adds what a subscription is told whose window is used up.
func windowAnthropic(h http.Header, reset string) {
	const prefix = "Anthropic-Ratelimit-Unified-"
	for k, v := range map[string]string{
		"Status": "rejected", "Reset": reset, "Representative-Claim": "five_hour", "5h-Status": "rejected", "5h-Reset": reset,
		"5h-Utilization": "1.0", "Overage-Status": "rejected", "Overage-Disabled-Reason": "out_of_credits",
	} {
		h.Set(prefix+k, v)
	}
	h.Set("X-Should-Retry", "false")
}

// earlyAnthropic is an overload that shows once the stream has begun.
func earlyAnthropic(o *out, _ request, f Fault) bool {
	if f.Kind != FaultOverload {
		return false
	}
	o.event("error", errorAnthropic(529, cmp.Or(f.Text, "Overloaded")))
	return true
}
