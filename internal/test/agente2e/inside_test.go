//go:build agents && linux

package agente2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// TestAnAgentMakesALoopInsideOfItsRunStepsItAndSendsAMessage has each program that takes servers use pawl's
// own tools from inside of its sandbox.
func TestAnAgentMakesALoopInsideOfItsRunStepsItAndSendsAMessage(t *testing.T) {
	for _, name := range []string{"claude", "codex", "opencode", "goose"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			makesALoopInside(t, subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })])
		})
	}
}

func makesALoopInside(t *testing.T, s subject) {
	t.Helper()
	driver := s.agent
	s.agent, s.base = `"@maker"`, "/s/inside"+s.base
	v := newFixture(t, s, func(*fixture) fakemodel.Script { return fakemodel.Script{} }, "pawl_tools: post")
	must := func(args ...string) string {
		t.Helper()
		out, errOut, exit := v.pawl(args...)
		if exit != 0 {
			t.Fatalf("pawl %s: exit status %d\n%s\n%s", strings.Join(args, " "), exit, out, errOut)
		}
		return strings.TrimSpace(out)
	}
	must("board", "create", "Core", "--scope", "src/**")
	must("agent", "create", "@maker", "--driver", driver, "--board", "core")
	must("agent", "create", "@fixer", "--driver", "command", "--agent-command", "echo two >src/answer.txt")
	acts := func(turns ...fakemodel.Turn) {
		t.Helper()
		v.model.Reset()
		v.model.Set("inside", fakemodel.Script{Turns: append(turns, fakemodel.Say("Done."))})
		v.run()
		if logs := v.logs(); !strings.Contains(logs, "loop_") && !strings.Contains(logs, "agent_") {
			t.Fatalf("the log tells of no call:\n%s\n%s", logs, v.said())
		}
	}

	acts(use("loop_create", map[string]any{"goal": "The value is two.", "agentId": "fixer"}))
	child := must("spec", "list", "--json", "--jq", ".data[].id")
	var got specs.View
	if err := json.Unmarshal([]byte(must("spec", "get", child, "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Parent != "fix" || got.Depth != 1 || got.MadeBy == "" {
		t.Errorf("its parent is %q, its depth %d and its run %q, want fix, 1 and a run", got.Parent, got.Depth, got.MadeBy)
	}

	acts(
		use("loop_run_step", map[string]any{"loopId": child}),
		use("agent_message_post", map[string]any{"from": "maker", "to": "human", "kind": "question", "content": "a loop is at work"}),
		use("loop_resume", map[string]any{"loop": "fix"}),
	)
	logs := v.logs()
	for _, want := range []string{"loop_run_step: ok", "agent_message_post: ok"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the log does not say %q:\n%s\n%s", want, logs, v.said())
		}
	}
	if runs := must("runs", child, "--json", "--jq", ".data[].outcome"); runs != string(loop.OutcomeProposed) && runs != "waiting_human" {
		t.Errorf("the run of the child ended %q\n%s", runs, v.said())
	}
	if said := must("msg", "list", "--json", "--jq", ".data[].content"); said != "a loop is at work" {
		t.Errorf("the messages are %q", said)
	}
	if strings.Contains(v.logs()+v.said(), "__pawl-tools") {
		t.Error("the way to the tools is in the transcript")
	}
}
