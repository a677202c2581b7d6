package qwen

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// apiErrorPattern matches the program's message for an error response of the API,
// with its HTTP status unless there was no response.
var apiErrorPattern = lazyregexp.New(`^\[API Error: (?:(\d{3}) )?`)

// failureOf returns why a turn failed, from the error of its result.
func failureOf(l line) *loop.Failure {
	text := strings.Join(strings.Fields(cmp.Or(l.Error.Message, l.Subtype, "it ended with an error that it did not name")), " ")
	f := &loop.Failure{Class: loop.FailureCrash, Text: agent.OneLine(text, agent.LongText)}
	m := apiErrorPattern.FindStringSubmatch(text)
	switch {
	case l.Subtype == "error_max_turns":
		f.Class, f.Typed = loop.FailureTurns, true
	case strings.HasPrefix(text, "Missing API key"):
		f.Class = loop.FailureAuth
	case classByType[l.Error.Type] != "":
		f.Class, f.Typed = classByType[l.Error.Type], true
	case m != nil && m[1] == "" && agent.LimitClass(text) != "":
		f.Class = agent.LimitClass(text)
	case m != nil && m[1] == "" && classifyName(text) != "":
		f.Class = classifyName(text)
	case m != nil && m[1] == "":
		f.Class = loop.FailureServer // The connection broke.
	case m != nil:
		f.Status, _ = strconv.Atoi(m[1])
		f.Class = classifyStatus(f.Status, text)
	}
	return f
}

// classByType has the vendors' names of errors.
var classByType = map[string]loop.FailureClass{
	"authentication_error": loop.FailureAuth, "permission_error": loop.FailureAuth, "invalid_api_key": loop.FailureAuth,
	"insufficient_quota": loop.FailureQuota, "billing_error": loop.FailureQuota, "rate_limit_error": loop.FailureRateLimit,
	"context_length_exceeded": loop.FailureOverflow, "overloaded_error": loop.FailureServer, "api_error": loop.FailureServer,
}

// errorTypePattern matches the kind of an error in a vendor's response, which the
// program repeats verbatim.
var errorTypePattern = lazyregexp.New(`"(?:type|code)": ?"([a-z_]+)"|^\[API Error: ([a-z_]+):`)

// classifyName returns the class of the first known name of an error in a text.
func classifyName(text string) loop.FailureClass {
	for _, m := range errorTypePattern.FindAllStringSubmatch(text, -1) {
		if class := classByType[m[1]+m[2]]; class != "" {
			return class
		}
	}
	return ""
}

// overflowWords are messages of vendors that have no status for a conversation
// that is too long.
var overflowWords = []string{"context window", "maximum context length", "context_length_exceeded", "input length"}

// classifyStatus classifies an HTTP status.
func classifyStatus(status int, words string) loop.FailureClass {
	if status == 429 && strings.Contains(words, "insufficient_quota") {
		return loop.FailureQuota
	}
	for _, o := range overflowWords {
		if status == 400 && strings.Contains(words, o) {
			return loop.FailureOverflow
		}
	}
	return loop.FailureOfStatus(status)
}
