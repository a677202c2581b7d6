package goose

import (
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Messages of the program itself, which have no ID.
const (
	ranInto    = "Ran into this error: "
	pleaseWait = "Please retry if you think this is a transient or recoverable error."
	tooMany    = "I've reached the maximum number of actions I can do without user input."
	tooLong    = "Unable to continue: Context limit still exceeded after compaction."
)

// errorKinds are the beginnings of the program's error messages, with their class
// and status.
var errorKinds = []struct {
	begins string
	class  loop.FailureClass
	status int
}{
	{"Authentication error: ", loop.FailureAuth, 0},
	{"Credits exhausted: ", loop.FailureQuota, 0},
	{"Context length exceeded: ", loop.FailureOverflow, 0},
	{"Rate limit exceeded: ", loop.FailureRateLimit, 429},
	{"Server error: ", loop.FailureServer, 0},
	{"Network error: ", loop.FailureServer, 0},
	{"Endpoint not found (404): ", loop.FailureRequest, 404},
	{"Request failed: Bad request (400): ", loop.FailureRequest, 400},
	{"Request failed: Resource not found (404): ", loop.FailureRequest, 404},
	{"Request failed: ", loop.FailureServer, 0},
}

// isNotice reports whether a text has the form of a message of the program
// itself.
func isNotice(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, ranInto) && strings.HasSuffix(text, pleaseWait) ||
		strings.HasPrefix(text, tooMany) || strings.HasPrefix(text, tooLong)
}

// noticeFailure returns what a notice means. It is never typed, since the program
// has no fields for errors.
func noticeFailure(notice string) loop.Failure {
	text := agent.OneLine(strings.TrimSuffix(strings.TrimSpace(notice), pleaseWait), agent.LongText)
	out := loop.Failure{Class: loop.FailureCrash, Text: strings.TrimPrefix(text, ranInto)}
	switch {
	case strings.HasPrefix(text, tooMany):
		out.Class = loop.FailureTurns
	case strings.HasPrefix(text, tooLong):
		out.Class = loop.FailureOverflow
	}
	for _, k := range errorKinds {
		if strings.HasPrefix(text, ranInto) && strings.HasPrefix(out.Text, k.begins) {
			out.Class, out.Status = k.class, k.status
			break
		}
	}
	return out
}
