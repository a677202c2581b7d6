package modelapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const maxSaid = 500 // bytes of a vendor's message that are kept

// VendorError is what a vendor says about a failed call, in any of the APIs. The
// zero VendorError says nothing.
type VendorError struct {
	Type    string  `json:"type"`
	Code    anyText `json:"code"`   // a word at OpenAI, the HTTP status at Gemini
	Status  string  `json:"status"` // a word, at Gemini
	Message string  `json:"message"`

	ResetsAt int64   `json:"resets_at"` // Unix seconds
	ResetsIn float64 `json:"resets_in_seconds"`
	Details  []struct {
		Reason string `json:"reason"`
		Delay  string `json:"retryDelay"`
	} `json:"details"`
}

// anyText is a JSON string, or the text of any other value.
type anyText string

// UnmarshalJSON never fails.
func (a *anyText) UnmarshalJSON(data []byte) error {
	*a = anyText(strings.Trim(string(data), `"`))
	return nil
}

// ReadError reads the body of an error response. If its form is unknown, the
// whole body is the message.
func ReadError(body []byte) VendorError {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"`
	}
	raw := body
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		raw = list[0] // Gemini's answer if a list was to be streamed.
	}
	if !decode(raw, &e) {
		return VendorError{Message: string(body)}
	}
	var said VendorError
	if !decode(e.Error, &said) || said.Message == "" {
		var text string
		_ = json.Unmarshal(e.Error, &text) // Some servers have only a string there.
		said.Message = cmp.Or(text, e.Message, e.Detail, said.Message)
	}
	return said
}

// Is reports whether the error is of one of these kinds.
func (e VendorError) Is(names ...string) bool {
	for _, name := range names {
		if e.Type == name || string(e.Code) == name || e.Status == name {
			return true
		}
		for _, d := range e.Details {
			if d.Reason == name {
				return true
			}
		}
	}
	return false
}

// overflows are parts of the messages with which vendors say that a request is
// too long for the model.
var overflows = []string{
	"prompt is too long", "exceed context limit", "context window", "maximum context length", "context length", "context size",
	"input token count", "maximum number of tokens allowed", "too many tokens", "input is too long", "reduce the length",
}

// FailureOf returns what an error response means. Status is 0 for an error inside
// of an answer. It reads only fields that the vendor writes.
func FailureOf(status int, header http.Header, e VendorError, now time.Time) loop.Failure {
	f := loop.Failure{Text: OneLine(e.Message), Status: status, Typed: true}
	if f.Text == "" {
		f.Text = http.StatusText(status)
	}
	text := strings.ToLower(e.Message)
	switch {
	case e.Is("insufficient_quota", "billing_error", "usage_not_included") || status == http.StatusPaymentRequired:
		f.Class = loop.FailureQuota
	case e.Is("context_length_exceeded", "exceed_context_size_error") || status == http.StatusRequestEntityTooLarge:
		f.Class = loop.FailureOverflow
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		e.Is("authentication_error", "permission_error", "invalid_api_key", "API_KEY_INVALID", "UNAUTHENTICATED", "PERMISSION_DENIED"):
		f.Class = loop.FailureAuth
	case status == http.StatusTooManyRequests,
		e.Is("rate_limit_error", "rate_limit_exceeded", "usage_limit_reached", "RESOURCE_EXHAUSTED"):
		f.Class, f.Reset = loop.FailureRateLimit, resetTime(header, e, now)
	case status >= http.StatusInternalServerError, status == http.StatusRequestTimeout,
		e.Is("overloaded_error", "api_error", "server_error", "server_is_overloaded", "timeout_error", "INTERNAL", "UNAVAILABLE"):
		f.Class = loop.FailureServer
	case containsAny(text, overflows...):
		f.Class, f.Typed = loop.FailureOverflow, false
	case containsAny(text, "credit balance is too low"):
		f.Class, f.Typed = loop.FailureQuota, false
	case containsAny(text, "api key not valid", "api key expired"):
		f.Class, f.Typed = loop.FailureAuth, false
	default:
		f.Class = loop.FailureRequest
	}
	return f
}

// OneLine returns a vendor's text as one line of at most 500 bytes.
func OneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid-len("...")], "") + "..."
	}
	return text
}

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
