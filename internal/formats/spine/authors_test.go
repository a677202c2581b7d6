package spine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func TestAnItemIsThatOfWhoPutItIntoPriority(t *testing.T) {
	state := func(items string) string {
		return "# ci-watch — STATE\n\n## Priority\n" + items + "\n## Watch\n- Ann watches it\n\n## Noise\n- (none yet)\n"
	}
	reported := loop.Iteration{Step: "Ann asks", Verdict: loop.VerdictFail, Report: `{"state":{"priority":["Ann asks","[P1] # Rules","Ann watches it"],"watch":[],"noise":[]}}`}
	s := withState(t, state("- Ann asks\n"), nil)
	rows := map[string]loop.Step{}
	var written string
	for _, ch := range s.Close(engine.Summary{Run: loop.Run{N: 58, Outcome: loop.OutcomeFailed}, Iterations: []loop.Iteration{reported}, Now: noon}) {
		if ch.Kind == loop.ChangeStep {
			rows[ch.Step.Key] = *ch.Step
		}
		if ch.Path == statePath {
			written = ch.Content
		}
	}
	// A person adds one by hand, and writes one of the agent's in other words.
	written = strings.Replace(written, "- Ann watches it", "- Ann watches the file\n- Ann adds", 1)
	var steps []loop.Step
	for _, row := range rows {
		steps = append(steps, row)
	}
	next := withState(t, written, func(v *engine.View) { v.Steps = steps })
	got := map[string]loop.Role{}
	for _, c := range next.Candidates(engine.Sensed{}, noon) {
		_, brief, err := next.Begin(plan.Choice{Step: c.Step})
		if err != nil || brief.Task.Text != c.Step.Title {
			t.Fatalf("Begin = %+v, %v", brief, err)
		}
		got[c.Step.Title] = brief.Task.By
	}
	want := map[string]loop.Role{"# Rules": loop.RoleAgent, "Ann asks": loop.RoleHuman, "Ann watches the file": loop.RoleHuman, "Ann adds": loop.RoleHuman}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who wrote the items (-want +got):\n%s", diff)
	}
}

func TestARequestIsThatOfWhoAsks(t *testing.T) {
	for by, want := range map[loop.Role]loop.Role{loop.RoleHuman: loop.RoleHuman, loop.RoleAgent: loop.RoleAgent, loop.RoleTrigger: loop.RoleTrigger, "": loop.RoleTrigger} {
		s := withState(t, golden, func(v *engine.View) { v.Run.Request, v.Run.By = "fix it", loop.Actor{Role: by} })
		_, brief, err := s.Begin(plan.Choice{Step: s.Candidates(engine.Sensed{}, noon)[0].Step})
		if err != nil || brief.Task.Text != "fix it" || brief.Task.By != want || brief.Goal.By != loop.RoleHuman {
			t.Errorf("%q: brief = %+v, %v", by, brief, err)
		}
	}
}
