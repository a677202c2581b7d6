package policy_test

import (
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

func TestAPersonIsNotAskedAgainAboutExactlyTheseWords(t *testing.T) {
	g := policy.Guard{Rejected: []policy.Rejection{
		{Argv: []string{"rm", "-r", "old"}, By: "ann", Note: "keep it"},
		{Argv: []string{"/bin/sh", "-c", "git push origin main"}, By: "ben"},
		{Argv: []string{"ls"}, By: "ann"},
	}}
	for name, c := range map[string]struct {
		answer policy.Answer
		asks   bool
		allows bool
		says   string
	}{
		"a command with these words":            {g.JudgeCommand([]string{"rm", "-r", "old"}), false, false, "ann said no to it: keep it"},
		"a command with more words":             {g.JudgeCommand([]string{"rm", "-r", "old", "new"}), true, false, ""},
		"a command with words in another order": {g.JudgeCommand([]string{"rm", "old", "-r"}), true, false, ""},
		"a command that nobody is asked about":  {g.JudgeCommand([]string{"ls"}), false, true, ""},
		"a call with these words":               {g.Judge(policy.Call{Kind: policy.CallRun, Command: "git push origin main"}), false, false, "ben said no to it."},
		"a call with other words":               {g.Judge(policy.Call{Kind: policy.CallRun, Command: "git push origin next"}), true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.answer
			if a.Ask != c.asks || a.Allow != c.allows || !strings.Contains(a.Words, c.says) {
				t.Errorf("answer = %+v, want ask %v, allow %v, saying %q", a, c.asks, c.allows, c.says)
			}
			if refused := !a.Ask && !a.Allow; refused && a.Rule != policy.RuleRejected {
				t.Errorf("rule = %s, want %s", a.Rule, policy.RuleRejected)
			}
		})
	}
}
