package fakemodel

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

var gemini = wire{name: "gemini", read: readGemini, whole: wholeGemini, sse: streamGemini, fail: failGemini}

func readGemini(m object, path string) request {
	q := request{stream: strings.HasSuffix(path, ":streamGenerateContent"), usage: true}
	_, q.model, _ = strings.Cut(path, "/models/")
	q.model, _, _ = strings.Cut(q.model, ":")
	for _, t := range list(m["tools"]) {
		for _, f := range list(fields(t)["functionDeclarations"]) {
			o := fields(f)
			p := fields(fields(o["parametersJsonSchema"])["properties"])
			if p == nil {
				p = fields(fields(o["parameters"])["properties"])
			}
			q.tools = append(q.tools, tool{name: text(o["name"]), fields: p})
		}
	}
	for _, x := range list(m["contents"]) {
		q.messages++
		for _, p := range list(fields(x)["parts"]) {
			if r := fields(fields(p)["functionResponse"]); r != nil {
				q.returned(encode(r["response"]))
			}
		}
	}
	return q
}

var reasonsGemini = map[stop]string{stopEnd: "STOP", stopTool: "STOP", stopMax: "MAX_TOKENS", stopRefusal: "SAFETY"}

func usageGemini(a answer) object {
	l, u := a.lies(), a.usage
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"promptTokenCount": number(in, l.Input), "candidatesTokenCount": number(u.Output, l.Output),
		"cachedContentTokenCount": number(u.CacheRead, l.CacheRead), "totalTokenCount": in + u.Output,
	}
}

// contentGemini is one response, or one piece of it if there is no reason.
func contentGemini(q request, a answer, part object, reason string) object {
	c := object{"index": 0}
	if part != nil {
		c["content"] = object{"role": "model", "parts": []any{part}}
	}
	v := object{"candidates": []any{c}, "modelVersion": q.model, "responseId": fmt.Sprintf("fakemodel-%03d", a.id)}
	if reason != "" {
		c["finishReason"] = reason
		if a.found > 0 {
			c["groundingMetadata"] = object{"webSearchQueries": slices.Repeat([]string{"x"}, a.found)}
		}
		if !a.lies().Missing {
			v["usageMetadata"] = usageGemini(a)
		}
	}
	return v
}

// lastGemini is what the last piece says: a call, which is never in pieces, or
// nothing more.
func lastGemini(a answer) object {
	if a.call == nil {
		return nil
	}
	return object{"functionCall": object{"name": a.call.tool.name, "args": a.call.input, "id": fmt.Sprintf("fc_%03d", a.id)}}
}

func wholeGemini(o *out, q request, a answer) {
	part := lastGemini(a)
	if part == nil && a.stop != stopRefusal {
		part = object{"text": a.whole()}
	}
	o.body(contentGemini(q, a, part, reasonsGemini[a.stop]), a)
	o.told(a.tellOpenAI())
}

func streamGemini(o *out, q request, a answer) {
	if a.call == nil && a.stop != stopRefusal {
		for piece := range a.pieces() {
			o.event("", contentGemini(q, a, object{"text": piece}, ""))
		}
	}
	if a.half != "" {
		o.snap(a)
		return
	}
	last := lastGemini(a)
	if last == nil && a.stop != stopRefusal {
		last = object{"text": ""}
	}
	o.event("", contentGemini(q, a, last, reasonsGemini[a.stop]))
	o.told(a.tellOpenAI())
}

var statusesGemini = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
	500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func failGemini(f Fault) (int, http.Header, object) {
	status, message := cmp.Or(f.Status, 500), "An internal error has occurred. Please retry."
	var details []any
	switch {
	case f.Kind == FaultOverflow:
		status, message = 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
	case f.Kind == FaultQuota || f.Kind == FaultUsageLimit:
		status, message = 429, "You exceeded your current quota, please check your plan and billing details."
		details = append(details, object{
			"@type":      "type.googleapis.com/google.rpc.QuotaFailure",
			"violations": []any{object{"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaValue": "250"}},
		})
	case f.Kind == FaultOverload:
		status, message = 503, "The model is overloaded. Please try again later."
	case status == http.StatusUnauthorized:
		message = "API key not valid. Please pass a valid API key."
	case status == http.StatusTooManyRequests:
		message = "Resource has been exhausted (e.g. check quota)."
	}
	if f.RetryAfter > 0 {
		details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", f.RetryAfter)})
	}
	status = cmp.Or(f.Status, status)
	e := object{"code": status, "message": cmp.Or(f.Text, message), "status": cmp.Or(statusesGemini[status], "UNKNOWN")}
	if details != nil {
		e["details"] = details
	}
	return status, nil, object{"error": e}
}
