package qwen

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/internal/loop"
)

type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// apiError is how the program words what its model's interface answered: with
// the status of HTTP, unless there was no answer.
var apiError = regexp.MustCompile(`^\[API Error: (?:(\d{3}) )?`)

// classify says why a turn failed, by the error of its result.
func classify(l line) *loop.Failure {
	text := strings.Join(strings.Fields(cmp.Or(l.Error.Message, l.Subtype, "it ended with an error that it did not name")), " ")
	f := &loop.Failure{Class: loop.FailureCrash, Text: text}
	m := apiError.FindStringSubmatch(text)
	switch {
	case l.Subtype == "error_max_turns":
		f.Class, f.Typed = loop.FailureTurns, true
	case strings.HasPrefix(text, "Missing API key"):
		f.Class = loop.FailureAuth
	case m != nil && m[1] == "":
		f.Class = loop.FailureServer // The connection broke.
	case m != nil:
		f.Status, _ = strconv.Atoi(m[1])
		f.Class = byStatus(f.Status, text)
	}
	return f
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
