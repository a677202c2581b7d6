//go:build agents && linux

package agente2e_test

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// TestATeamOfThreeProgramsEmptiesABoard lets Claude Code, Codex and a program that speaks ACP
// claim a task each of one board, and lands what they make.
func TestATeamOfThreeProgramsEmptiesABoard(t *testing.T) {
	of := func(name string) subject {
		return subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })]
	}
	v := newFixture(t, of("claude"), func(*fixture) fakemodel.Script { return fakemodel.Script{} })
	must := func(args ...string) string {
		t.Helper()
		out, errOut, exit := v.pawl(args...)
		if exit != 0 {
			t.Fatalf("pawl %s: exit status %d\n%s\n%s\n%s", strings.Join(args, " "), exit, out, errOut, v.logsOf(args))
		}
		return strings.TrimSpace(out)
	}
	must("board", "create", "Core", "--scope", "src/**", "--verify", "test -e src/readme.txt")
	must("resource", "create", "--board", "core", "--title", "How", "--category", "sop", "--content", "Small steps.")
	team := []struct {
		handle string
		subject
		more []string
	}{
		{"ada", of("claude"), nil}, {"ben", of("codex"), nil}, {"cleo", of("acp opencode"), []string{"--agent-command", "opencode acp", "--provider", "openai"}},
	}
	for _, a := range team {
		file := filepath.Join(v.root, "src", a.handle+".txt")
		model := httptest.NewServer(fakemodel.New(fakemodel.Script{Turns: []fakemodel.Turn{
			fakemodel.Write(file, "of "+a.handle+"\n"),
			fakemodel.Say("It is there now.\n\n```json\n" + `{"outcome": "done", "summary": "wrote ` + a.handle + `"}` + "\n```"),
		}}))
		t.Cleanup(model.Close)
		must(append([]string{"agent", "create", "@" + a.handle, "--driver", a.agent, "--model", a.model, "--base-url", model.URL + a.base, "--role", "developer", "--board", "core"}, a.more...)...)
		must("task", "create", "--board", "core", "--title", "Write "+a.handle+".txt", "--description", "It says whose it is.")
	}
	for _, a := range team {
		must("run", "@"+a.handle)
		if got := v.git("show", "pawl/@"+a.handle+"/1:src/"+a.handle+".txt"); got != "of "+a.handle {
			t.Errorf("the branch of @%s has %q", a.handle, got)
		}
		if source := must("show", "@"+a.handle+"#1", "--jq", ".tokens.source"); source != "metered" {
			t.Errorf("the tokens of @%s are %s", a.handle, source)
		}
	}
	for _, a := range team {
		const made = 13 // Main has moved: it is made again on what has landed, and asked again.
		if _, errOut, exit := v.pawl("approve", "@"+a.handle, "--yes"); exit == made {
			must("approve", "@"+a.handle, "--yes")
		} else if exit != 0 {
			t.Fatalf("approve @%s: exit status %d\n%s", a.handle, exit, errOut)
		}
	}
	for _, a := range team {
		if got := v.git("show", "main:src/"+a.handle+".txt"); got != "of "+a.handle {
			t.Errorf("after all have landed main has %q of @%s", got, a.handle)
		}
		must("run", "@"+a.handle) // It finds out that its task is done.
	}
	if list := must("task", "list", "--board", "core"); strings.Count(list, " done ") != len(team) {
		t.Errorf("not all tasks are done:\n%s", list)
	}
}
