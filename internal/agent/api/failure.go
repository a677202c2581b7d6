package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
)

// longText is how much of a vendor's words is kept.
const longText = 500

// failedError is a call that failed.
type failedError struct {
	loop.Failure

	again bool          // it may be tried again
	after time.Duration // that the vendor asks to wait; 0: it does not say
}

// Error is the vendor's message.
func (f *failedError) Error() string { return string(f.Class) + ": " + f.Text }

// malformed is an answer that makes no sense.
func malformed(text string) *failedError {
	return &failedError{Failure: loop.Failure{Class: loop.FailureMalformed, Text: text}}
}

// failed makes a failure of any error of a call. What is not an answer of the
// vendor is a failure of the connection.
func (m *model) failed(err error) *failedError {
	if f, ok := errors.AsType[*failedError](err); ok {
		return f
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, errLong) {
		return malformed("read the model's answer: " + agent.OneLine(err.Error(), longText))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return malformed("read the model's answer: " + agent.OneLine(err.Error(), longText))
	}
	return &failedError{Failure: loop.Failure{Class: loop.FailureServer, Text: agent.OneLine(err.Error(), longText)}, again: true}
}

// complaint is an error in the words of any of the vendors.
type complaint struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a text or a number
	Message string          `json:"message"`
	Status  string          `json:"status"`
	Resets  json.Number     `json:"resets_at"` // in Unix seconds
	Details []struct {
		Reason string `json:"reason"`
		Delay  string `json:"retryDelay"`
	} `json:"details"`
}

// complain reads the error in a body: {"error": {…}}, {"error": "…"}, either of
// them in a list, or no JSON at all.
func complain(body []byte) complaint {
	var c complaint
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	text := bytes.TrimSpace(body)
	var many []json.RawMessage
	if json.Unmarshal(text, &many) == nil && len(many) > 0 {
		text = many[0]
	}
	if json.Unmarshal(text, &outer) != nil || len(outer.Error) == 0 {
		c.Message = string(text)
		return c
	}
	if json.Unmarshal(outer.Error, &c.Message) == nil {
		return c
	}
	if err := json.Unmarshal(outer.Error, &c); err != nil && c.Message == "" {
		c.Message = string(text)
	}
	return c
}

func (c complaint) is(words ...string) bool {
	code := strings.Trim(string(c.Code), `"`)
	for _, w := range words {
		if c.Type == w || code == w {
			return true
		}
	}
	return false
}

func (c complaint) says(words ...string) bool {
	m := strings.ToLower(c.Message)
	for _, w := range words {
		if strings.Contains(m, w) {
			return true
		}
	}
	return false
}

// explain turns an error response into a failure.
func explain(status int, h http.Header, body []byte, now time.Time) *failedError {
	c := complain(body)
	f := &failedError{Failure: loop.Failure{Text: agent.OneLine(cmp.Or(c.Message, http.StatusText(status), "no reason was given"), longText), Status: status, Typed: true}}
	f.Class = c.class(status)
	f.Typed = f.Class != loop.FailureOverflow || c.is("context_length_exceeded")
	f.after = c.delay(h, now)
	switch f.Class {
	case loop.FailureRateLimit:
		f.Reset = c.reset(h, now)
		if f.Reset.IsZero() && f.after > 0 {
			f.Reset = now.Add(f.after)
		}
		f.again = h.Get("X-Should-Retry") != "false" && !c.is("usage_limit_reached")
	case loop.FailureServer:
		f.again = h.Get("X-Should-Retry") != "false"
	}
	return f
}

// interrupted turns an error in the middle of an answer into a failure.
func interrupted(data []byte) *failedError {
	f := explain(0, nil, data, time.Time{})
	if f.Class == loop.FailureRequest && !complain(data).is("invalid_request_error") {
		f.Class, f.again = loop.FailureServer, true
	}
	f.Reset = time.Time{} // Nothing says when it was sent.
	return f
}

// class is what kind of failure it is: by typed fields first, then by the
// status, and by words only where the vendors have nothing else.
func (c complaint) class(status int) loop.FailureClass {
	for _, d := range c.Details {
		if d.Reason == "API_KEY_INVALID" {
			return loop.FailureAuth
		}
	}
	switch {
	case c.is("insufficient_quota", "billing_error", "billing_hard_limit_reached"), status == http.StatusPaymentRequired:
		return loop.FailureQuota
	case c.is("usage_limit_reached", "rate_limit_error", "rate_limit_exceeded"), status == http.StatusTooManyRequests:
		return loop.FailureRateLimit
	case c.is("authentication_error", "permission_error", "invalid_api_key"), status == http.StatusUnauthorized, status == http.StatusForbidden:
		return loop.FailureAuth
	case c.is("context_length_exceeded", "request_too_large"), status == http.StatusRequestEntityTooLarge:
		return loop.FailureOverflow
	case status == 0 && c.is("overloaded_error", "api_error", "timeout_error", "server_error"),
		status >= http.StatusInternalServerError, status == http.StatusRequestTimeout:
		return loop.FailureServer
	case status == http.StatusBadRequest && c.says("prompt is too long", "input token count", "context length", "context window", "context size"):
		return loop.FailureOverflow
	case status == http.StatusBadRequest && c.says("credit balance is too low"):
		return loop.FailureQuota
	case status == http.StatusBadRequest && c.says("api key not valid"):
		return loop.FailureAuth
	}
	return loop.FailureRequest
}

// delay is how long the vendor asks to wait.
func (c complaint) delay(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	for _, d := range c.Details {
		if wait, err := time.ParseDuration(d.Delay); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}

// reset is when a limit is lifted, zero if the vendor does not say.
func (c complaint) reset(h http.Header, now time.Time) time.Time {
	value := c.Resets.String()
	if h.Get("Anthropic-Ratelimit-Unified-Status") == "rejected" {
		value = cmp.Or(h.Get("Anthropic-Ratelimit-Unified-Reset"), value)
	}
	s, err := strconv.ParseInt(value, 10, 64)
	if err != nil || s <= now.Unix() || s > 1<<40 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}
