package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/modelapi"
)

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
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, errLong) || errors.Is(err, modelapi.ErrHugeEvent) {
		return malformed("read the model's answer: " + agent.OneLine(err.Error(), agent.LongText))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return malformed("read the model's answer: " + agent.OneLine(err.Error(), agent.LongText))
	}
	return &failedError{Failure: loop.Failure{Class: loop.FailureServer, Text: agent.OneLine(err.Error(), agent.LongText)}, again: true}
}

// explain turns an error response into a failure.
func explain(status int, h http.Header, body []byte, now time.Time) *failedError {
	e := modelapi.ReadError(body)
	f := &failedError{Failure: modelapi.FailureOf(status, h, e, now), after: e.RetryAfter(h, now)}
	f.Text = cmp.Or(f.Text, "no reason was given")
	if status > 0 && status < http.StatusBadRequest {
		f.Class = loop.FailureRequest // It redirects, or is no answer to a call.
	}
	if f.Reset.Before(now) {
		f.Reset = time.Time{}
	}
	switch f.Class {
	case loop.FailureRateLimit:
		f.again = h.Get("X-Should-Retry") != "false" && !e.Is("usage_limit_reached")
	case loop.FailureServer:
		f.again = h.Get("X-Should-Retry") != "false"
	}
	return f
}

// interrupted turns an error in the middle of an answer into a failure.
func interrupted(data []byte) *failedError {
	f := explain(0, nil, data, time.Time{})
	if f.Class == loop.FailureRequest && !modelapi.ReadError(data).Is("invalid_request_error") {
		f.Class, f.again = loop.FailureServer, true
	}
	f.Reset = time.Time{} // Nothing says when it was sent.
	return f
}
