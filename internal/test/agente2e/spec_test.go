//go:build agents && linux

package agente2e_test

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/spec/loopspec"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// TestALoopSpecIsWorkedByAnAgentReviewedByAnotherAndDoneOnlyAfterApproval lets Claude Code
// and Codex work and review in turn, in whole runs.
func TestALoopSpecIsWorkedByAnAgentReviewedByAnotherAndDoneOnlyAfterApproval(t *testing.T) {
	of := func(name string) subject {
		return subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })]
	}
	for _, pair := range [][2]subject{{of("claude"), of("codex")}, {of("codex"), of("claude")}} {
		maker, critic := pair[0], pair[1]
		t.Run(maker.name, func(t *testing.T) {
			t.Parallel()
			v := newFixture(t, maker, func(v *fixture) fakemodel.Script {
				return fakemodel.Script{Turns: []fakemodel.Turn{
					fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"),
					fakemodel.Say("The value is two now."),
				}}
			})
			reviews := httptest.NewServer(fakemodel.New(fakemodel.Script{Turns: []fakemodel.Turn{fakemodel.Say("PASS\n1. PASS: it says two.")}}))
			t.Cleanup(reviews.Close)
			must := func(args ...string) string {
				t.Helper()
				out, errOut, exit := v.pawl(args...)
				if exit != 0 {
					t.Fatalf("pawl %s: exit status %d\n%s\n%s\n%s\nthe model's log:\n%s", strings.Join(args, " "), exit, out, errOut, v.logsOf(args), v.said())
				}
				return strings.TrimSpace(out)
			}
			must("agent", "create", "@maker", "--driver", maker.agent, "--model", maker.model, "--base-url", v.url+maker.base)
			must("agent", "create", "@critic", "--driver", critic.agent, "--model", critic.model, "--base-url", reviews.URL+critic.base)
			spec := loopspec.Spec{
				AgentID: "@maker", Goal: "Make check.sh pass.", LoopType: loop.Deterministic, Trigger: loopspec.Trigger{Type: loopspec.TriggerManual}, StateSource: "test output",
				Gates: []loop.Gate{
					{Name: "tests_pass", Kind: loop.GateCommand, Check: "`sh check.sh`"},
					{Name: "readable", Kind: loop.GateReviewer, Check: "It says two.", Reviewer: loop.Reviewer{Agent: "@critic"}},
				},
				Guardrails: []string{"edits limited to /src"}, HumanGate: "land after approval",
			}.WithDefaults()
			v.write("spec.json", string(loopspec.Encode(spec)))
			id := must("spec", "create", "--file", "spec.json")
			if out, errOut, exit := v.pawl("spec", "step", id); exit != 13 {
				t.Fatalf("a step: exit status %d, want 13\n%s\n%s\nthe model's log:\n%s", exit, out, errOut, v.said())
			}
			var got specs.View
			if err := json.Unmarshal([]byte(must("spec", "get", id, "--json")), &got); err != nil {
				t.Fatal(err)
			}
			if got.Status != loopspec.StatusWaitingHuman || len(got.Iterations) != 1 || got.Iterations[0].Verdict != loop.VerdictPass || got.TokensUsed == 0 {
				t.Fatalf("%s with %+v, want a pass that waits", got.Status, got.Iterations)
			}
			if trace := must("trace", id); !strings.Contains(trace, "reviewed") || !strings.Contains(trace, "critic") {
				t.Errorf("the trace does not say who reviewed:\n%s", trace)
			}
			must("approve", id, "--yes")
			if status := must("spec", "get", id, "--jq", ".status"); status != "done" {
				t.Errorf("after approval it is %s", status)
			}
			if landed := v.git("show", "main:src/answer.txt"); landed != "two" {
				t.Errorf("main has %q", landed)
			}
			t.Logf("%s made and %s reviewed: %d tokens", maker.name, critic.name, got.TokensUsed)
		})
	}
}

// logsOf is what happened in the newest run of the spec that a command names.
func (v *fixture) logsOf(args []string) string {
	out, _, _ := v.pawl("logs", args[len(args)-1])
	return out
}
