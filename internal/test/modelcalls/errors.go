package modelcalls

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Noon is when the vendors of ErrorAnswers answer.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Error is an answer that is an error, and what it means.
type Error struct {
	Status int
	Header string // lines
	Body   string
	Want   loop.Failure // without its status
}

// ErrorAnswers returns the errors of vendors, of compatible servers, and of gateways.
func ErrorAnswers() map[string]Error {
	in := func(d time.Duration) time.Time { return Noon.Add(d) }
	return map[string]Error{
		"Anthropic, no key": {
			401, "", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`,
			loop.Failure{Class: loop.FailureAuth, Text: "invalid x-api-key", Typed: true},
		},
		"Anthropic, no permission": {
			403, "", `{"type":"error","error":{"type":"permission_error","message":"Your API key does not have permission"}}`,
			loop.Failure{Class: loop.FailureAuth, Text: "Your API key does not have permission", Typed: true},
		},
		"Anthropic, rate limit with retry-after": {
			429, "Retry-After: 30\nAnthropic-Ratelimit-Requests-Reset: 2026-11-20T12:09:00Z", `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed the rate limit"}}`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "This request would exceed the rate limit", Reset: in(30 * time.Second), Typed: true},
		},
		"Anthropic, the window that is empty counts": {
			429, "Anthropic-Ratelimit-Requests-Remaining: 7\nAnthropic-Ratelimit-Requests-Reset: 2026-11-20T12:09:00Z\n" +
				"Anthropic-Ratelimit-Input-Tokens-Remaining: 0\nAnthropic-Ratelimit-Input-Tokens-Reset: 2026-11-20T12:01:00Z",
			`{"type":"error","error":{"type":"rate_limit_error","message":"too fast"}}`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "too fast", Reset: in(time.Minute), Typed: true},
		},
		"modelapi.Anthropic, subscription": {
			429, fmt.Sprintf("Anthropic-Ratelimit-Unified-Status: rejected\nAnthropic-Ratelimit-Unified-Reset: %d", in(3*time.Hour).Unix()),
			`{"type":"error","error":{"type":"rate_limit_error","message":"limit"}}`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "limit", Reset: in(3 * time.Hour), Typed: true},
		},
		"modelapi.Anthropic, overloaded": {
			529, "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			loop.Failure{Class: loop.FailureServer, Text: "Overloaded", Typed: true},
		},
		"Anthropic, too long": {
			400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`,
			loop.Failure{Class: loop.FailureOverflow, Text: "prompt is too long: 208310 tokens > 200000 maximum"},
		},
		"Anthropic, too long with the answer": {
			400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 1 + 2 > 2"}}`,
			loop.Failure{Class: loop.FailureOverflow, Text: "input length and `max_tokens` exceed context limit: 1 + 2 > 2"},
		},
		"Anthropic, no money": {
			400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`,
			loop.Failure{Class: loop.FailureQuota, Text: "Your credit balance is too low to access the Anthropic API."},
		},
		"Anthropic, unknown model": {
			404, "", `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`,
			loop.Failure{Class: loop.FailureRequest, Text: "model: claude-9", Typed: true},
		},
		"Anthropic, too large": {
			413, "", `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`,
			loop.Failure{Class: loop.FailureOverflow, Text: "Request exceeds the maximum size", Typed: true},
		},
		"modelapi.OpenAI, quota": {
			429, "Retry-After: 5", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			loop.Failure{Class: loop.FailureQuota, Text: "You exceeded your current quota", Typed: true},
		},
		"OpenAI, rate limit": {
			429, "X-Ratelimit-Remaining-Requests: 59\nX-Ratelimit-Reset-Requests: 1s\nX-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 6m0s",
			`{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "Rate limit reached", Reset: in(6 * time.Minute), Typed: true},
		},
		"OpenAI, usage limit of a plan": {
			429, "", fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_at":%d}}`, in(5*time.Hour).Unix()),
			loop.Failure{Class: loop.FailureRateLimit, Text: "The usage limit has been reached", Reset: in(5 * time.Hour), Typed: true},
		},
		"modelapi.OpenAI, overflow": {
			400, "", `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			loop.Failure{Class: loop.FailureOverflow, Text: "This model's maximum context length is 128000 tokens.", Typed: true},
		},
		"OpenAI, unknown model": {
			404, "", `{"error":{"message":"The model does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
			loop.Failure{Class: loop.FailureRequest, Text: "The model does not exist", Typed: true},
		},
		"OpenAI, its fault": {
			500, "", `{"error":{"message":"The server had an error","type":"server_error"}}`,
			loop.Failure{Class: loop.FailureServer, Text: "The server had an error", Typed: true},
		},
		"Gemini, rate limit": {
			429, "", `{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "Resource has been exhausted", Reset: in(34500 * time.Millisecond), Typed: true},
		},
		"Gemini, rate limit in a list": {
			429, "", `[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED"}}]`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "Resource has been exhausted", Typed: true},
		},
		"Gemini, bad key": {
			400, "", `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`,
			loop.Failure{Class: loop.FailureAuth, Text: "API key not valid. Please pass a valid API key.", Typed: true},
		},
		"modelapi.Gemini, overflow": {
			400, "", `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`,
			loop.Failure{Class: loop.FailureOverflow, Text: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
		},
		"modelapi.Gemini, overloaded": {
			503, "", `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`,
			loop.Failure{Class: loop.FailureServer, Text: "The model is overloaded.", Typed: true},
		},
		"a local server": {
			400, "", `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`,
			loop.Failure{Class: loop.FailureOverflow, Text: "the request exceeds the available context size", Typed: true},
		},
		"a text for an error": {
			404, "", `{"error":"model 'x' not found"}`,
			loop.Failure{Class: loop.FailureRequest, Text: "model 'x' not found", Typed: true},
		},
		"a gateway": {
			502, "", "<html>\n<h1>Bad Gateway</h1></html>",
			loop.Failure{Class: loop.FailureServer, Text: "<html> <h1>Bad Gateway</h1></html>", Typed: true},
		},
		"a list without an error": {
			503, "", "[]", loop.Failure{Class: loop.FailureServer, Text: "Service Unavailable", Typed: true},
		},
		"nothing is said": {
			402, "", "", loop.Failure{Class: loop.FailureQuota, Text: "Payment Required", Typed: true},
		},
		"a date to wait for": {
			429, "Retry-After: Fri, 20 Nov 2026 12:40:00 GMT", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(40 * time.Minute), Typed: true},
		},
		"a time that cannot be": {
			429, "Retry-After: 1e300", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Typed: true},
		},
		"milliseconds to wait for": {
			429, "Retry-After-Ms: 1500\nRetry-After: 40", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(1500 * time.Millisecond), Typed: true},
		},
		"seconds to wait for, in the body": {
			429, "", `{"error":{"type":"usage_limit_reached","message":"limit","resets_in_seconds":90}}`,
			loop.Failure{Class: loop.FailureRateLimit, Text: "limit", Reset: in(90 * time.Second), Typed: true},
		},
		"a reset in milliseconds since 1970": {
			429, fmt.Sprintf("X-Ratelimit-Reset-Requests: %d", in(2*time.Minute).UnixMilli()), "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(2 * time.Minute), Typed: true},
		},
		"a reset in seconds from now, and an earlier one": {
			429, "X-Ratelimit-Reset-Requests: 20\nX-Ratelimit-Reset-Tokens: 10", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(20 * time.Second), Typed: true},
		},
		"the last of two windows that are empty": {
			429, "X-Ratelimit-Remaining-Requests: 0\nX-Ratelimit-Reset-Requests: 20\nX-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 10", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(20 * time.Second), Typed: true},
		},
		"nothing to wait for": {
			429, "Retry-After: 0", "{}", loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: Noon, Typed: true},
		},
		"as long as can be believed": {
			429, "Retry-After: 3456000", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(40 * 24 * time.Hour), Typed: true},
		},
		"less than nothing to wait for": {
			429, "Retry-After: -5", "{}", loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Typed: true},
		},
		"a reset that nobody waits for": {
			429, "Retry-After: Fri, 01 Jan 2027 12:00:00 GMT\nX-Ratelimit-Reset-Requests: 20", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Reset: in(20 * time.Second), Typed: true},
		},
		"a key that is over": {
			400, "", `{"error":{"code":400,"message":"API key expired. Please renew it!"}}`, loop.Failure{Class: loop.FailureAuth, Text: "API key expired. Please renew it!"},
		},
		"a reset of something else": {
			429, "Cache-Reset-Requests: 20\nX-Reset-Tokens: 20\nRequests-Reset: 20", "{}", loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Typed: true},
		},
		"a reset that is not a time": {
			429, "X-Ratelimit-Reset-Requests: soon", "{}", loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Typed: true},
		},
		"a long text": {
			400, "", strings.Repeat("x", 496) + "ä and more",
			loop.Failure{Class: loop.FailureRequest, Text: strings.Repeat("x", 496) + "...", Typed: true},
		},
		"a reset that is long over": {
			429, "Anthropic-Ratelimit-Requests-Reset: 2020-11-20T12:09:00Z", "{}",
			loop.Failure{Class: loop.FailureRateLimit, Text: "Too Many Requests", Typed: true},
		},
	}
}
