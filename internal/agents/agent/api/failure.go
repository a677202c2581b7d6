package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// failedError is a failed call of the model.
type failedError struct {
	loop.Failure

	retryable  bool          // the call may be repeated
	retryAfter time.Duration // how long the vendor asks to wait; 0 if it does not say
}

// Error returns the class and the vendor's message.
func (f *failedError) Error() string { return string(f.Class) + ": " + f.Text }

// malformedAnswer returns the failure for an answer that cannot be understood.
func malformedAnswer(text string) *failedError {
	return &failedError{Failure: loop.Failure{Class: loop.FailureMalformed, Text: text}}
}

// toFailure turns any error of a call into a failure. Unless the vendor answered,
// the connection failed.
func (m *model) toFailure(err error) *failedError {
	if f, ok := errors.AsType[*failedError](err); ok {
		return f
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok || errors.Is(err, errLong) || errors.Is(err, modelapi.ErrHugeEvent) {
		return malformedAnswer("read the model's answer: " + agent.OneLine(err.Error(), agent.LongText))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return malformedAnswer("read the model's answer: " + agent.OneLine(err.Error(), agent.LongText))
	}
	return &failedError{Failure: loop.Failure{Class: loop.FailureServer, Text: agent.OneLine(err.Error(), agent.LongText)}, retryable: true}
}

// responseFailure turns an error response into a failure.
func responseFailure(status int, h http.Header, body []byte, now time.Time) *failedError {
	e := modelapi.ReadError(body)
	f := &failedError{Failure: modelapi.FailureOf(status, h, e, now), retryAfter: e.RetryAfter(h, now)}
	f.Text = cmp.Or(f.Text, "no reason was given")
	if status > 0 && status < http.StatusBadRequest {
		f.Class = loop.FailureRequest // A redirect, or not an answer to a call.
	}
	if f.Reset.Before(now) {
		f.Reset = time.Time{}
	}
	switch f.Class {
	case loop.FailureRateLimit:
		f.retryable = h.Get("X-Should-Retry") != "false" && !e.Is("usage_limit_reached")
	case loop.FailureServer:
		f.retryable = h.Get("X-Should-Retry") != "false"
	}
	return f
}

// interruptedFailure turns an error inside of an answer into a failure.
func interruptedFailure(data []byte) *failedError {
	f := responseFailure(0, nil, data, time.Time{})
	if f.Class == loop.FailureRequest && !modelapi.ReadError(data).Is("invalid_request_error") {
		f.Class, f.retryable = loop.FailureServer, true
	}
	f.Reset = time.Time{} // The time of the answer is unknown.
	return f
}
