package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// apiError is the error in a message that stands for a failed call.
type apiError struct {
	Class  text       `json:"error"`
	Status loop.Count `json:"api_error_status"`
}

// limitInfo is the state of the account's limits.
type limitInfo struct {
	Status text       `json:"status"`
	Resets loop.Count `json:"resetsAt"` // Unix seconds
	Window text       `json:"rateLimitType"`
}

func (l limitInfo) resetTime() time.Time {
	if l.Resets.N == 0 {
		return time.Time{}
	}
	return time.Unix(l.Resets.N, 0).UTC()
}

// limitEvents reports a limit that is near or reached.
func (d *decoder) limitEvents(line []byte) []agent.Event {
	var m struct {
		Info limitInfo `json:"rate_limit_info"`
	}
	if json.Unmarshal(line, &m) != nil {
		return nil
	}
	d.limit = m.Info
	if m.Info.Status != "allowed_warning" && m.Info.Status != "rejected" {
		return nil
	}
	words := strings.TrimSpace(fmt.Sprintf("%s %s", m.Info.Window, m.Info.Status))
	return []agent.Event{{Kind: agent.EventLimit, Reset: m.Info.resetTime(), Text: words}}
}

// result is the program's report at the end of a turn.
type result struct {
	Subtype  text                `json:"subtype"`
	Bad      bool                `json:"is_error"`
	Terminal text                `json:"terminal_reason"`
	Status   loop.Count          `json:"api_error_status"`
	Stop     text                `json:"stop_reason"`
	Turns    loop.Count          `json:"num_turns"`
	Text     text                `json:"result"`
	Errors   []text              `json:"errors"`
	Models   map[string]counters `json:"modelUsage"`
	Usage    tokens              `json:"usage"` // of this turn
}

// takeResult reads the end of the turn. A line that cannot be read does not end
// it.
func (d *decoder) takeResult(line []byte) []agent.Event {
	var res result
	if json.Unmarshal(line, &res) != nil {
		return nil
	}
	if d.isSessionGone(res) {
		d.lost = true
		return []agent.Event{{Kind: agent.EventRetry, Text: "the conversation " + d.before.ID + " is gone, a fresh one begins"}}
	}
	events := d.counts.takeResult(res.Models, res.Usage)
	d.ended++
	f := d.failureOf(res)
	d.failed = f != nil
	if f != nil {
		events = append(events, agent.Event{Kind: agent.EventError, Failure: f})
	} else {
		d.finalText = strings.TrimSpace(string(res.Text))
	}
	return append(events, agent.Event{Kind: agent.EventEnd})
}

// isSessionGone reports whether the conversation to continue does not exist.
// Nothing was done then.
func (d *decoder) isSessionGone(res result) bool {
	return d.before != nil && res.Subtype == "error_during_execution" && res.Turns.N == 0 && len(res.Errors) > 0 &&
		strings.Contains(string(res.Errors[0]), "No conversation found")
}

// failureOf returns why the turn failed; nil if it did not.
func (d *decoder) failureOf(res result) *loop.Failure {
	f := &loop.Failure{Status: int(cmp.Or(res.Status.N, d.apiError.Status.N)), Typed: true}
	if f.Status < 100 || f.Status > 599 {
		f.Status = 0
	}
	words := string(res.Text)
	if len(res.Errors) > 0 {
		words = string(cmp.Or(res.Errors[0], res.Text))
	}
	f.Text = agent.OneLine(cmp.Or(words, string(res.Terminal), string(res.Subtype)), agent.LongText)
	if strings.HasPrefix(string(res.Terminal), "aborted_") {
		f.Text = "it was interrupted"
	}
	bad := res.Bad || res.Subtype != "success" || classByTerminal[res.Terminal] == loop.FailureOverflow || d.synthetic && agent.LimitClass(words) != ""
	switch {
	case bad:
		f.Class, f.Typed = d.classify(res, f.Status)
	case d.counts.bad:
		f.Class, f.Text = loop.FailureMalformed, "it reports an invalid usage"
	case res.Turns.Set && res.Turns.N == 0:
		f.Class, f.Text = loop.FailureMalformed, "it answered without its model: "+f.Text
	default:
		return nil
	}
	if f.Class == loop.FailureRateLimit && d.limit.Status == "rejected" {
		f.Reset = d.limit.resetTime()
	}
	return f
}

// classify uses the fields from the most specific to the least. Typed means that
// the class is from a field with this meaning. Only the text of errors counts,
// never that of a model.
func (d *decoder) classify(res result, status int) (class loop.FailureClass, typed bool) {
	words := agent.LimitClass(string(res.Text))
	switch {
	case res.Stop == "refusal":
		return loop.FailureRefusal, true
	case classByTerminal[res.Terminal] == loop.FailureOverflow:
		return loop.FailureOverflow, true
	case classByError[d.apiError.Class] != "":
		return classByError[d.apiError.Class], true
	case words != "":
		return words, false
	case classByTerminal[res.Terminal] != "":
		return classByTerminal[res.Terminal], true
	case classBySubtype[res.Subtype] != "":
		return classBySubtype[res.Subtype], true
	case status != 0:
		return loop.FailureOfStatus(status), true
	case res.Terminal == "api_error":
		return loop.FailureServer, true // The API did not answer.
	}
	return loop.FailureCrash, true
}

var classByError = map[text]loop.FailureClass{
	"authentication_failed": loop.FailureAuth, "oauth_org_not_allowed": loop.FailureAuth, "account_on_hold": loop.FailureAuth,
	"verification_required": loop.FailureAuth, "cloud_credential_error": loop.FailureAuth,
	"billing_error": loop.FailureQuota, "rate_limit": loop.FailureRateLimit,
	"overloaded": loop.FailureServer, "server_error": loop.FailureServer,
	"invalid_request": loop.FailureRequest, "model_not_found": loop.FailureRequest,
	"max_output_tokens": loop.FailureMaxTokens,
}

var classByTerminal = map[text]loop.FailureClass{
	"prompt_too_long": loop.FailureOverflow, "blocking_limit": loop.FailureOverflow, "rapid_refill_breaker": loop.FailureOverflow,
	"max_turns": loop.FailureTurns, "budget_exhausted": loop.FailureTurns,
	"malformed_tool_use_exhausted": loop.FailureMalformed, "structured_output_retry_exhausted": loop.FailureMalformed,
	"image_error": loop.FailureRequest, "aborted_streaming": loop.FailureKilled, "aborted_tools": loop.FailureKilled,
}

var classBySubtype = map[text]loop.FailureClass{
	"error_max_turns": loop.FailureTurns, "error_max_budget_usd": loop.FailureTurns,
	"error_max_structured_output_retries": loop.FailureMalformed,
}
