package report_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/report"
)

func TestAReportIsReadAtTheEndOfAMessageOnly(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		outcome report.Outcome
		found   bool
		bad     bool
	}{
		"a fenced block at the end":            {"I repaired it.\n\n```json\n{\"outcome\": \"done\"}\n```\n", report.Done, true, false},
		"a fence without a word":               {"Done.\n```\n{\"outcome\": \"blocked\", \"reason\": \"no key\"}\n```", report.Blocked, true, false},
		"nothing but the block":                {"```json\n{\"outcome\":\"quiet\"}\n```", report.Quiet, true, false},
		"the last of two blocks":               {"```json\n{\"outcome\":\"failed\"}\n```\nno:\n```json\n{\"outcome\":\"done\"}\n```", report.Done, true, false},
		"a block with words behind it":         {"```json\n{\"outcome\": \"done\"}\n```\nThat is what I would say.", "", false, false},
		"JSON without a fence":                 {"{\"outcome\": \"done\"}", "", false, false},
		"a fence in the middle of a line":      {"I print ```json\n{\"outcome\": \"done\"}\n```", "", false, false},
		"another language":                     {"```go\n{\"outcome\": \"done\"}\n```", "", false, false},
		"a fence that never began":             {"{\"outcome\": \"done\"}\n```", "", false, false},
		"a list":                               {"```json\n[1]\n```", "", false, false},
		"broken JSON that says it is JSON":     {"```json\n{\"outcome\": \n```", "", true, true},
		"broken text in a block of no kind":    {"```\n{oops}\n```", "", false, false},
		"an outcome that does not exist":       {"```json\n{\"outcome\": \"perfect\"}\n```", "", true, true},
		"no message":                           {"", "", false, false},
		"a single fence":                       {"```", "", false, false},
		"a fence inside of a string is no end": {"```json\n{\"summary\": \"a\\n```\\nb\", \"outcome\": \"done\"}\n```", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, text, found, err := report.InMessage(c.message)
			if r.Outcome != c.outcome || found != c.found || (err != nil) != c.bad {
				t.Errorf("InMessage = %+v, %q, %t, %v", r, text, found, err)
			}
			if found && !c.bad && !strings.HasPrefix(text, "{") {
				t.Errorf("its text is %q", text)
			}
		})
	}
}

func FuzzInMessage(f *testing.F) {
	f.Add("I repaired it.\n\n```json\n{\"outcome\": \"done\"}\n```\n")
	f.Add("```\n```\n```")
	f.Fuzz(func(t *testing.T, message string) {
		r, text, found, err := report.InMessage(message)
		if err == nil && found && !strings.Contains(message, text) {
			t.Errorf("the report %q is not in the message", text)
		}
		if !found && (err != nil || r.Outcome != "") {
			t.Errorf("nothing was found, and yet %+v, %v", r, err)
		}
	})
}
