package qwen

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/lazyregexp"
	"github.com/pawl-run/pawl/internal/loop"
)

type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// apiError is how the program words what its model's interface answered: with
// the status of HTTP, unless there was no answer.
var apiError = lazyregexp.New(`^\[API Error: (?:(\d{3}) )?`)

// classify says why a turn failed, by the error of its result.
func classify(l line) *loop.Failure {
	text := strings.Join(strings.Fields(cmp.Or(l.Error.Message, l.Subtype, "it ended with an error that it did not name")), " ")
	f := &loop.Failure{Class: loop.FailureCrash, Text: agent.OneLine(text, agent.LongText)}
	m := apiError.FindStringSubmatch(text)
	switch {
	case l.Subtype == "error_max_turns":
		f.Class, f.Typed = loop.FailureTurns, true
	case strings.HasPrefix(text, "Missing API key"):
		f.Class = loop.FailureAuth
	case byType[l.Error.Type] != "":
		f.Class, f.Typed = byType[l.Error.Type], true
	case m != nil && m[1] == "" && agent.LimitClass(text) != "":
		f.Class = agent.LimitClass(text)
	case m != nil && m[1] == "" && wordOf(text) != "":
		f.Class = wordOf(text)
	case m != nil && m[1] == "":
		f.Class = loop.FailureServer // The connection broke.
	case m != nil:
		f.Status, _ = strconv.Atoi(m[1])
		f.Class = byStatus(f.Status, text)
	}
	return f
}

// byType are the vendors' own names of errors.
var byType = map[string]loop.FailureClass{
	"authentication_error": loop.FailureAuth, "permission_error": loop.FailureAuth, "invalid_api_key": loop.FailureAuth,
	"insufficient_quota": loop.FailureQuota, "billing_error": loop.FailureQuota, "rate_limit_error": loop.FailureRateLimit,
	"context_length_exceeded": loop.FailureOverflow, "overloaded_error": loop.FailureServer, "api_error": loop.FailureServer,
}

// errorType is where a vendor's answer, which the program repeats as it came,
// names the kind of its error.
var errorType = lazyregexp.New(`"(?:type|code)": ?"([a-z_]+)"|^\[API Error: ([a-z_]+):`)

// wordOf is the class of the first name of an error that is known in a text.
func wordOf(text string) loop.FailureClass {
	for _, m := range errorType.FindAllStringSubmatch(text, -1) {
		if class := byType[m[1]+m[2]]; class != "" {
			return class
		}
	}
	return ""
}

// overflows are words of vendors that have no status for a conversation that no
// longer fits.
var overflows = []string{"context window", "maximum context length", "context_length_exceeded", "input length"}

// byStatus is what a status of HTTP means.
func byStatus(status int, words string) loop.FailureClass {
	if status == 429 && strings.Contains(words, "insufficient_quota") {
		return loop.FailureQuota
	}
	for _, o := range overflows {
		if status == 400 && strings.Contains(words, o) {
			return loop.FailureOverflow
		}
	}
	return loop.FailureOfStatus(status)
}
