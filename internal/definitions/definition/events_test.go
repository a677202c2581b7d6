package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyEventsOfTheTableFireALoop(t *testing.T) {
	for text, want := range map[string][]string{
		"on: file:src/**": {"file:src/**"},
		`on: ["ref:refs/heads/main", "webhook:deploy"]`:              {"ref:refs/heads/main", "webhook:deploy"},
		"on:\n  - \"loop:ci-watch=gave_up\"\n  - \"cmd:gh pr list\"": {"loop:ci-watch=gave_up", "cmd:gh pr list"},
		"on: [file:a, file:a]":                                       {"file:a"},
		"on: none":                                                   nil,
		"on: []":                                                     nil,
	} {
		def, findings, _ := convert(t, configA+text+"\n")
		if !cmp.Equal(def.On, want) || len(findings) > 0 {
			t.Errorf("%q is %q with %+v, want %q", text, def.On, findings, want)
		}
	}
	many := make([]string, 21)
	for i := range many {
		many[i] = fmt.Sprintf("file:%d/**", i)
	}
	for text, want := range map[string]struct {
		line, column int
		message      string
	}{
		"on: push":                               {12, 5, "on: 'push': not an event; write one of file:GLOB, ref:REF, webhook:NAME, loop:NAME=OUTCOME, cmd:COMMAND"},
		"on:\n  - file:src/**\n  - schedule:1h":  {14, 5, "on: 'schedule:1h': not an event; write one of"},
		`on: ["file:../x"]`:                      {12, 6, "on: 'file:../x': leaves the tree"},
		`on: ["file:[a"]`:                        {12, 6, "on: 'file:[a': not a valid glob"},
		`on: ["ref:main"]`:                       {12, 6, `on: 'ref:main': "main" is not a full name`},
		`on: ["loop:keep-green=landed"]`:         {12, 6, "on: 'loop:keep-green=landed': a loop cannot be fired by its own end"},
		"on: [" + strings.Join(many, ", ") + "]": {12, 0, "on: 21 events, at most 20"},
	} {
		def, findings, short := convert(t, configA+text+"\n")
		switch {
		case !cmp.Equal(short, []string{"error on"}):
			t.Errorf("%q gives %+v", text, findings)
		case findings[0].Line != want.line || want.column > 0 && findings[0].Column != want.column || !strings.HasPrefix(findings[0].Message, want.message):
			t.Errorf("%q gives %+v, want %+v", text, findings[0], want)
		case strings.Contains(text, "src/**") && !cmp.Equal(def.On, []string{"file:src/**"}):
			t.Errorf("%q leaves %q", text, def.On)
		}
	}
}
