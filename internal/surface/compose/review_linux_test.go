package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// A program whose model one key pays for does the work, and another agent with a key and a
// model of its own reviews it. Neither knows a key or sees what the other one may.
func TestInFullWhatOneModelDidAnotherOneReviews(t *testing.T) {
	t.Parallel()
	const makersKey, criticsKey = "sk-canary-5Hn3KcUe92BdJs4g", "sk-canary-8Wq1ZxTn47VrLp2m"
	const lists = `post "$ANTHROPIC_BASE_URL" /v1/messages "x-api-key: $ANTHROPIC_API_KEY" '{"model":"claude-opus-4-8","max_tokens":100,"messages":[{"role":"user","content":"judge"}]}' >"$HOME/answer" 2>&1`
	for name, c := range map[string]struct {
		critic  loop.Agent
		says    string // of the critic's model
		outcome loop.Outcome
		review  string // of the gate
	}{
		"the built-in agent passes it": {loop.Agent{Driver: "api"}, "PASS\n1: it is met.", loop.OutcomeProposed, "PASS\n1: it is met."},
		"the built-in agent objects":   {loop.Agent{Driver: "api"}, "FAIL\n1: src/answers is not explained.", loop.OutcomeFailed, "FAIL\n1: src/answers is not explained."},
		"a program passes it": {
			loop.Agent{Driver: "command", Command: strings.SplitN(caller, "for turn", 2)[0] + lists + `; echo "PASS by a program"; echo "it sees $(ls -A | grep -vxc .git) files and $(env | grep -c MAKER) variables"`},
			"whatever", loop.OutcomeProposed, "PASS by a program\nit sees 0 files and 0 variables",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, url := gateway(t)
			model.Set("critic", fakemodel.Script{Bare: c.critic.Driver == "command", Turns: []fakemodel.Turn{{Say: c.says, Usage: &fakemodel.Usage{Input: 300, Output: 20}}}})
			v := cagedIn(t, keyless("ANTHROPIC_BASE_URL="+url, "ANTHROPIC_API_KEY="+makersKey, "PAWL_API_KEY="+criticsKey, "MAKER=1"), strings.ReplaceAll(caller, "MODEL", "claude-haiku-4-5"), nil,
				"provider", "anthropic", "model", "claude-haiku-4-5", "env", "[MAKER]", "max_iterations", "1", "reviewer", "Every new file is explained.", "reviewer_agent", "critic")
			c.critic.ID, c.critic.Handle, c.critic.Model, c.critic.Provider, c.critic.BaseURL = "ag_critic", "critic", "claude-opus-4-8", "anthropic", url+"/s/critic"
			must(t, v.d.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.SaveAgent(t.Context(), c.critic) }))
			run := v.runs()
			if run.Outcome != c.outcome {
				t.Fatalf("run = %s %s %q, want %s\n%s", run.Outcome, run.Reason, run.Detail, c.outcome, v.toldOf(run))
			}
			var turns []string
			for _, row := range run.Turns {
				turns = append(turns, fmt.Sprintf("%s %s %d+%d %s", row.Purpose, row.Agent, row.Tokens.Input, row.Tokens.Output, row.Tokens.Source))
			}
			if diff := cmp.Diff([]string{"act command 2000+100 metered", "review critic 300+20 metered"}, turns); diff != "" || run.Tokens.Input != 2300 || run.Tokens.Output != 120 {
				t.Errorf("the run used %+v, turns (-want +got):\n%s", run.Tokens, diff)
			}
			gates := run.Iterations[0].Gates
			if g := gates[len(gates)-1]; g.Name != "reviewer" || g.Evidence != c.review || g.Pass != (c.outcome == loop.OutcomeProposed) {
				t.Errorf("gate = %+v, want %q", g, c.review)
			}
			var reviews int
			for _, e := range model.Log() {
				keys := fmt.Sprint(e.Auth)
				if critic := strings.HasPrefix(e.Path, "/s/critic"); critic {
					reviews++
					if !strings.Contains(keys, criticsKey) {
						t.Errorf("the critic's model was asked with %s", keys)
					}
				} else if !strings.Contains(keys, makersKey) {
					t.Errorf("the maker's model was asked with %s", keys)
				}
			}
			told := v.told(run)
			if reviews == 0 || !strings.Contains(told, "asking @critic for a review") || strings.Contains(told, criticsKey) || strings.Contains(told, makersKey) {
				t.Errorf("after %d reviews the run tells\n%s", reviews, told)
			}
		})
	}
}
