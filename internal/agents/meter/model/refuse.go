package model

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/pawl-run/pawl/internal/agents/meter"
	"github.com/pawl-run/pawl/internal/agents/modelapi"
	"github.com/pawl-run/pawl/internal/agents/modeltool"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Reasons of denials, in addition to those of package meter.
const (
	ReasonNoCall   loop.Reason = "no_model_call"    // telemetry, files, or any other request to the vendor
	ReasonBudget   loop.Reason = "budget_exhausted" // a call was refused or a stream cut
	ReasonBadUsage loop.Reason = "bad_usage"        // the usage that the provider reports is implausible

	ReasonModelTool loop.Reason = "model_tool" // a request uses a vendor's tool that model_tools does not name
	ReasonLeftOut   loop.Reason = "left_out"   // a part of a request is not forwarded, but the rest is
)

// refusal is an answer that pawl gives itself.
type refusal struct {
	status int
	reason loop.Reason // empty if nothing was denied
	text   string
}

// sendRefusal answers in the form in which the provider's clients read errors,
// and asks them not to try again.
func (e *Endpoint) sendRefusal(w http.ResponseWriter, r refusal) {
	if r.reason != "" {
		e.reportDenial(r.reason, r.text)
	}
	r.text = "pawl: " + r.text
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if r.status < http.StatusInternalServerError {
		h.Set("X-Should-Retry", "false")
	}
	body, _ := json.Marshal(errorBody(e.Provider, r)) // It consists of text and numbers.
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(r.status)
	_, _ = w.Write(body) // The client may have gone.
}

func errorBody(provider string, r refusal) any {
	type words map[string]any
	switch provider {
	case modelapi.Anthropic:
		kind := map[int]string{
			http.StatusNotFound: "not_found_error", http.StatusForbidden: "permission_error", http.StatusBadGateway: "api_error",
			http.StatusRequestEntityTooLarge: "request_too_large",
		}[r.status]
		if kind == "" {
			kind = "invalid_request_error"
		}
		return words{"type": "error", "error": words{"type": kind, "message": r.text}}
	case modelapi.Gemini:
		status := map[int]string{
			http.StatusNotFound: "NOT_FOUND", http.StatusForbidden: "PERMISSION_DENIED", http.StatusBadGateway: "UNAVAILABLE",
		}[r.status]
		if status == "" {
			status = "INVALID_ARGUMENT"
		}
		return words{"error": words{"code": r.status, "message": r.text, "status": status}}
	}
	kind := "invalid_request_error"
	if r.status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	var code any
	if r.reason != "" {
		code = string(r.reason)
	}
	return words{"error": words{"message": r.text, "type": kind, "param": nil, "code": code}}
}

// reportDenial reports a denial. A program can cause any number of denials, so
// the number of reports is capped.
func (e *Endpoint) reportDenial(reason loop.Reason, detail string) {
	if e.Denied == nil || e.told.Add(1) > int64(e.limits().Denials) {
		return
	}
	port, _ := strconv.ParseUint(e.Base.Port(), 10, 16) // An empty port, the scheme's default, becomes 0.
	e.Denied(meter.Denial{
		At: e.now(), Host: e.Base.Hostname(), Port: uint16(port), Reason: reason, Detail: e.hide.redactText(detail),
	})
}

// refuseDenied answers a request that may not be forwarded. It is recorded as a
// failure of its own kind: neither the vendor nor the account caused it.
func (x *exchange) refuseDenied(err error, body []byte) {
	if errors.Is(err, modeltool.ErrNoObject) {
		x.sendRefusal(x.w, refusal{http.StatusBadRequest, "", "the request cannot be read: " + err.Error()})
		return
	}
	reason, text := ReasonModelTool, err.Error()
	if _, odd := errors.AsType[*modeltool.AmbiguousError](err); odd {
		reason, text = meter.ReasonRequest, "the request cannot be forwarded: "+text
	}
	if x.to.shape != nil {
		x.q, _ = modelapi.ReadRequest(x.to.shape, x.to.model, x.to.stream, body) // Only to find out whether it offers tools.
	}
	x.recordFailure(loop.Failure{Class: loop.FailureDenied, Text: text, Typed: true})
	x.sendRefusal(x.w, refusal{x.finalStatus(), reason, text})
}

// reportLeftOut reports once that something is not forwarded.
func (e *Endpoint) reportLeftOut(what string) {
	const most = 100
	e.mu.Lock()
	first := !e.omitted[what] && len(e.omitted) < most
	if first {
		if e.omitted == nil {
			e.omitted = map[string]bool{}
		}
		e.omitted[what] = true
	}
	e.mu.Unlock()
	if first {
		e.reportDenial(ReasonLeftOut, what)
	}
}
