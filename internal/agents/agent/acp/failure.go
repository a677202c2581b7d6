package acp

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// canceledElsewhere is the failure of a turn that reports a cancellation that
// pawl did not send. Programs that are ended say the same.
const canceledElsewhere = "its turn was cancelled, and not by pawl"

// Codes of JSON-RPC and of the protocol.
const (
	codeAuth    = -32000
	codeRequest = -32602
)

// stopFailure returns the failure for a stop reason; nil if the turn ended well.
// Ours means that pawl had a part in it: it canceled the turn or denied
// something.
func stopFailure(reason string, ours bool) *loop.Failure {
	f := &loop.Failure{Typed: true, Text: "it stopped: " + reason}
	switch reason {
	case "end_turn":
		return nil
	case "max_tokens":
		f.Class = loop.FailureMaxTokens
	case "max_turn_requests":
		f.Class = loop.FailureTurns
	case "refusal":
		f.Class = loop.FailureRefusal
	case "cancelled":
		if ours {
			return nil
		}
		f.Class, f.Text = loop.FailureMalformed, canceledElsewhere
	default:
		f.Class, f.Text = loop.FailureMalformed, "it stopped for a reason that the protocol does not have: "+agent.OneLine(reason, longDetail)
	}
	return f
}

// errorKinds are the values of data.errorKind.
var errorKinds = map[text]loop.FailureClass{
	"rate_limit": loop.FailureRateLimit, "authentication_failed": loop.FailureAuth, "authentication_error": loop.FailureAuth, "oauth_org_not_allowed": loop.FailureAuth,
	"billing_error": loop.FailureQuota, "server_error": loop.FailureServer, "overloaded": loop.FailureServer, "invalid_request": loop.FailureRequest,
	"model_not_found": loop.FailureRequest, "max_output_tokens": loop.FailureMaxTokens, "prompt_too_long": loop.FailureOverflow,
}

// errorNames are the values of data.errorName.
var errorNames = map[text]loop.FailureClass{
	"ProviderAuthError": loop.FailureAuth, "ContextOverflowError": loop.FailureOverflow, "MessageOutputLengthError": loop.FailureMaxTokens,
	"ContentFilterError": loop.FailureRefusal,
}

// apiError is the name of any error that a vendor answered with.
const apiError = "APIError"

// overflowPattern matches messages that a conversation is too long for the model.
var overflowPattern = lazyregexp.New(`(?i)context[ _-]?(length|window|limit)|(prompt|input) is too long|maximum context|too many tokens|maximum number of tokens`)

// errorSigns are patterns in vendors' errors, the most reliable first.
var errorSigns = []struct {
	sign  *lazyregexp.Regexp
	class loop.FailureClass
}{
	{lazyregexp.New(`(?i)max[_ ]output[_ ]tokens|output token maximum`), loop.FailureMaxTokens},
	{overflowPattern, loop.FailureOverflow},
	{lazyregexp.New(`(?i)insufficient[ _]quota|quota exceeded|credit balance|check your plan`), loop.FailureQuota},
	{lazyregexp.New(`(?i)rate[ _-]?limit|usage limit|too many requests|resource_exhausted`), loop.FailureRateLimit},
	{lazyregexp.New(`(?i)unauthori[sz]ed|unauthenticated|authentication|api[ -]key|permission denied`), loop.FailureAuth},
	{
		lazyregexp.New(`(?i)overloaded|unavailable|server error|bad gateway|high demand|request failed|disconnected|econnre|socket hang up|fetch failed|terminated`),
		loop.FailureServer,
	},
}

// statusPattern matches an HTTP status in the text of an error.
var statusPattern = lazyregexp.New(`\b(400|401|402|403|404|413|422|429|500|502|503|504|529)\b`)

// failureOf reads an error that came as an answer.
func failureOf(raw json.RawMessage) *loop.Failure {
	var e struct {
		Code    int64           `json:"code"`
		Message text            `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(raw, &e) // Any content is an error.
	var data struct {
		Kind    text `json:"errorKind"`
		Name    text `json:"errorName"`
		Details text `json:"details"`
		Message text `json:"message"`
	}
	_ = json.Unmarshal(e.Data, &data) // It may be something other than an object.
	said := strings.TrimSpace(string(e.Message) + " " + string(cmp.Or(data.Details, data.Message)))
	f := &loop.Failure{Text: agent.OneLine(cmp.Or(said, string(raw)), 3*longDetail)}
	whole := string(e.Message) + " " + string(e.Data)
	if s := statusPattern.FindString(whole); s != "" {
		f.Status, _ = strconv.Atoi(s) // The pattern has digits only.
	}
	if class, ok := errorKinds[data.Kind]; ok {
		f.Class, f.Typed = class, true
		if class == loop.FailureRequest && overflowPattern.MatchString(whole) {
			f.Class = loop.FailureOverflow // It has no kind of its own.
		}
		return f
	}
	if class, ok := errorNames[data.Name]; ok {
		f.Class, f.Typed = class, true
		return f
	}
	if e.Code == codeAuth {
		f.Class, f.Typed = loop.FailureAuth, true
		return f
	}
	if f.Class = classOf(whole, f.Status, e.Code); f.Class == loop.FailureCrash && data.Name == apiError {
		f.Class = loop.FailureServer
	}
	return f
}

// noticeFailure returns the failure for an error that a program only mentioned in
// a message of its own.
func noticeFailure(notice string) *loop.Failure {
	f := &loop.Failure{Text: agent.OneLine(notice, 3*longDetail)}
	if s := statusPattern.FindString(notice); s != "" {
		f.Status, _ = strconv.Atoi(s) // The pattern has digits only.
	}
	if f.Class = classOf(notice, f.Status, 0); f.Class == loop.FailureCrash {
		f.Class = loop.FailureMalformed // The program is still running.
	}
	return f
}

// classOf classifies an error by its text and its status.
func classOf(said string, status int, code int64) loop.FailureClass {
	for _, s := range errorSigns {
		if s.sign.MatchString(said) {
			return s.class
		}
	}
	if status >= 400 || code == codeRequest {
		return loop.FailureOfStatus(status)
	}
	return loop.FailureCrash
}
