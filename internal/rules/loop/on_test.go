package loop_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAnItemOfOnIsOneOfTheTableOrSaysWhatIsWrong(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for text, want := range map[string]string{
		"file:src/**":                    "file:src/**",
		"file: docs/*.md":                "file:docs/*.md",
		"ref:refs/heads/main":            "ref:refs/heads/main",
		"ref:refs/tags/*":                "ref:refs/tags/*",
		"ref:refs/remotes/origin/main":   "ref:refs/remotes/origin/main",
		"webhook:deploy":                 "webhook:deploy",
		"loop:ci-watch=gave_up":          "loop:ci-watch=gave_up",
		"loop: ci-watch = gave_up":       "loop:ci-watch=gave_up",
		"cmd:gh pr list --json number:1": "cmd:gh pr list --json number:1",

		"":                        "error: not an event; write one of file:GLOB, ref:REF, webhook:NAME, loop:NAME=OUTCOME, cmd:COMMAND",
		"push":                    "error: not an event",
		"schedule:1h":             "error: not an event",
		"File:src/**":             "error: not an event",
		"file:":                   "error: nothing follows the colon; write file:GLOB",
		"cmd:  ":                  "error: nothing follows the colon; write cmd:COMMAND",
		"cmd:" + long:             "error: longer than 1024 bytes",
		"cmd:a\nb":                "error: contains a control character",
		"ref:main":                `error: "main" is not a full name; write it like refs/heads/main`,
		"ref:refs/":               "error: ",
		"ref:refs/heads/../x":     "error: ",
		"ref:refs/heads/*/x":      "error: ",
		"ref:refs/pawl/snapshots": "error: ",
		"webhook:Deploy":          `error: "Deploy" is not the name of a webhook`,
		"webhook:a/b":             "error: ",
		"loop:ci-watch":           `error: "" is not an outcome; write loop:NAME=OUTCOME with one of quiet, reported,`,
		"loop:ci-watch=green":     `error: "green" is not an outcome`,
		"loop:=landed":            `error: "" is not the name of a loop`,
	} {
		s, err := loop.ParseEventSource(text)
		got := s.String()
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && (err == nil || !strings.HasPrefix(want, "error: ") || !strings.HasPrefix(got, want)) {
			t.Errorf("%.40q is %s, want %s", text, got, want)
		}
	}
}

func FuzzEventSource(f *testing.F) {
	for _, seed := range []string{"file:src/**", "ref:refs/tags/*", "webhook:deploy", "loop:ci-watch=gave_up", "cmd:gh pr list", "push", "loop:a=b=c", "ref:refs/heads/ä"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := loop.ParseEventSource(text)
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is wrong because of %q", text, err)
			}
			return
		}
		again, err := loop.ParseEventSource(s.String())
		if err != nil || again != s {
			t.Errorf("%q is %+v, written and read again %+v, %v", text, s, again, err)
		}
	})
}
