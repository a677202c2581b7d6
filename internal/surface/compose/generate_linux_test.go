package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// A model writes the document of a spec: its turn is metered, its key never leaves pawl, and
// what it made up is not used.
func TestInFullAModelWritesASpecInARunOfItsOwn(t *testing.T) {
	t.Parallel()
	const key = "sk-canary-4Tb8MwXe61FkQz9r"
	spec := func(command string) string {
		s := loopspec.Spec{
			AgentID: "@nobody", Goal: "make tests pass", LoopType: loop.Deterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual}, StateSource: "test output",
			Gates: []loop.Gate{{Name: "tests", Kind: loop.GateCommand, Check: "`" + command + "`"}}, Guardrails: []string{"edits limited to /src"},
		}.WithDefaults()
		return string(loopspec.Encode(s))
	}
	for name, c := range map[string]struct {
		says, reason, goal, gate string
	}{
		"a spec":              {"```json\n" + spec("make test") + "```", "", "make tests pass", "Makefile:2"},
		"a made-up command":   {spec("touch src/owned"), loopspec.SchemaFailed, "Keep them green", "template skeleton"},
		"what it has to show": {"my key is " + key, loopspec.ParseFailed, "Keep them green", "template skeleton"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, url := gateway(t)
			model.Set("writer", fakemodel.Script{Turns: []fakemodel.Turn{{Say: c.says, Usage: &fakemodel.Usage{Input: 300, Output: 400}}}})
			v := cagedIn(t, keyless("PAWL_API_KEY="+key), "true", map[string]string{"Makefile": ".PHONY: test\ntest:\n\ttest -d src\n", "src/x.txt": "x\n"})
			writer := loop.Agent{ID: "ag_writer", Handle: "writer", Driver: "api", Model: "claude-opus-4-8", Provider: "anthropic", BaseURL: url + "/s/writer"}
			must(t, v.d.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.SaveAgent(t.Context(), writer) }))
			g, err := v.svc.Specs.Generate(t.Context(), loop.Actor{Who: "Ann", Role: loop.RoleHuman}, specs.GenerateRequest{Task: "Keep them green", By: "@writer", Fill: specs.Fill{Agent: "@writer"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if g.Reason != c.reason || g.Spec.Goal != c.goal || g.Sources["gates[0].check"] != c.gate || g.Spec.AgentID != "@writer" {
				t.Errorf("generated %+v", g)
			}
			run, err := v.svc.Runs.Show(t.Context(), g.Run)
			if err != nil {
				t.Fatal(err)
			}
			var turns []string
			for _, row := range run.Turns {
				turns = append(turns, fmt.Sprintf("%s %s %d+%d %s", row.Purpose, row.Agent, row.Tokens.Input, row.Tokens.Output, row.Tokens.Source))
			}
			if diff := cmp.Diff([]string{"generate writer 300+400 metered"}, turns); diff != "" || run.Outcome != loop.OutcomeReported {
				t.Errorf("run = %s %s %q, turns (-want +got):\n%s", run.Outcome, run.Reason, run.Detail, diff)
			}
			events, _, err := v.svc.Runs.Events(t.Context(), run.ID, 0, 10_000)
			if told := fmt.Sprint(events, run, g); err != nil || strings.Contains(told, key) || !strings.Contains(told, "How to write a LoopSpec") {
				t.Errorf("%v, the run tells\n%s", err, told)
			}
			log := model.Log()
			if len(log) != 1 || !strings.Contains(fmt.Sprint(log[0].Auth), key) {
				t.Errorf("the model was asked %d times: %v", len(log), log)
			}
		})
	}
}
