package codex

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// limitNear is the used percentage of a limit from which on it is reported.
	limitNear, limitFull = 90, 100
)

// turnError is the program's report of why a turn failed.
type turnError struct {
	Message text            `json:"message"`
	Details text            `json:"additionalDetails"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

var classByInfo = map[string]loop.FailureClass{
	"contextWindowExceeded": loop.FailureOverflow, "usageLimitExceeded": loop.FailureRateLimit, "rateLimitExceeded": loop.FailureRateLimit,
	"sessionBudgetExceeded": loop.FailureTurns, "tooManyDenials": loop.FailureTurns,
	"serverOverloaded": loop.FailureServer, "internalServerError": loop.FailureServer, "flexUnavailable": loop.FailureServer,
	"policyCapacityUnavailable": loop.FailureServer, "unauthorized": loop.FailureAuth,
	"modelNotFound": loop.FailureRequest, "badRequest": loop.FailureRequest,
	"cyberPolicy": loop.FailureRefusal, "misalignmentPolicyViolation": loop.FailureRefusal, "inferenceHookDenied": loop.FailureRefusal,
	"sandboxError": loop.FailureCrash,
}

// toFailure uses the fields from the most specific to the message.
func (e turnError) toFailure(l limits) *loop.Failure {
	f := &loop.Failure{Text: agent.OneLine(string(e.Message), agent.LongText)}
	var name text
	_ = name.UnmarshalJSON(e.Info) // It may be an object instead.
	var kinds map[string]struct {
		Status loop.Count `json:"httpStatusCode"`
	}
	_ = json.Unmarshal(e.Info, &kinds) // It may be a string instead.
	f.Class = classByInfo[string(name)]
	for _, kind := range kinds {
		if f.Class == "" && kind.Status.N >= 100 && kind.Status.N <= 599 {
			f.Status = int(kind.Status.N)
			f.Class = loop.FailureOfStatus(f.Status)
		} else if f.Class == "" {
			f.Class = loop.FailureServer
		}
	}
	f.Typed = f.Class != ""
	if !f.Typed {
		f.Class, f.Status = classifyText(string(e.Message))
	}
	if f.Class == loop.FailureRateLimit && strings.HasPrefix(string(e.Message), "Quota exceeded") {
		f.Class = loop.FailureQuota // The program uses the same name for both.
	}
	if f.Class == loop.FailureRateLimit {
		f.Reset = l.resetTime()
	}
	return f
}

var (
	httpStatus   = lazyregexp.New(`^(?:unexpected status|exceeded retry limit, last status:) ([1-5][0-9][0-9])\b`)
	classByWords = []struct {
		words string
		class loop.FailureClass
	}{
		{"hit your usage limit", loop.FailureRateLimit},
		{"Quota exceeded", loop.FailureQuota},
		{"ran out of room in the model's context window", loop.FailureOverflow},
		{"reason: max_output_tokens", loop.FailureMaxTokens},
		{"reason: content_filter", loop.FailureRefusal},
		{"stream disconnected before completion", loop.FailureServer},
		{"experiencing high demand", loop.FailureServer},
		{"error sending request for url", loop.FailureServer},
	}
)

// classifyText classifies an error by its message only. Messages come only from
// the program's channel for errors.
func classifyText(message string) (loop.FailureClass, int) {
	if m := httpStatus.FindStringSubmatch(message); m != nil {
		status, _ := strconv.Atoi(m[1])
		return loop.FailureOfStatus(status), status
	}
	for _, one := range classByWords {
		if strings.Contains(message, one.words) {
			return one.class, 0
		}
	}
	if strings.HasPrefix(message, `{"error"`) {
		return loop.FailureRequest, 0 // The vendor's own response, unchanged.
	}
	return loop.FailureCrash, 0
}

// limits are the state of the account's limits.
type limits struct {
	Primary   *window `json:"primary"`
	Secondary *window `json:"secondary"`

	reported string
}

type window struct {
	Used    float64    `json:"usedPercent"`
	Resets  loop.Count `json:"resetsAt"` // Unix seconds
	Minutes loop.Count `json:"windowDurationMins"`
}

// takeUpdate takes the new state, and reports a limit that is near.
func (l *limits) takeUpdate(now limits) []agent.Event {
	now.reported = l.reported
	*l = now
	words := ""
	for _, w := range []*window{now.Primary, now.Secondary} {
		if w != nil && w.Used >= limitNear {
			words += fmt.Sprintf(" %.0f%% of the limit for %s", w.Used, time.Duration(w.Minutes.N)*time.Minute)
		}
	}
	if words = strings.TrimSpace(words); words == "" || words == l.reported {
		return nil
	}
	l.reported = words
	return []agent.Event{{Kind: agent.EventLimit, Text: words, Reset: l.resetTime()}}
}

// resetTime returns when the last reached limit is lifted; zero if none is
// reached.
func (l limits) resetTime() time.Time {
	var last time.Time
	for _, w := range []*window{l.Primary, l.Secondary} {
		if w != nil && w.Used >= limitFull && w.Resets.N > 0 {
			if at := time.Unix(w.Resets.N, 0).UTC(); at.After(last) {
				last = at
			}
		}
	}
	return last
}
