//go:build agents && linux

package agente2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// TestASessionOfTheBootProtocolIsWorkedByClaudeCode takes one task from the file to the
// remote.
func TestASessionOfTheBootProtocolIsWorkedByClaudeCode(t *testing.T) {
	claude := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == "claude" })]
	v := newFixture(t, claude, func(v *fixture) fakemodel.Script {
		return fakemodel.Script{Turns: []fakemodel.Turn{
			fakemodel.Write(filepath.Join(v.root, "outputs/answer.txt"), "two\n"),
			fakemodel.Say("The value is two now.\n\n```json\n{\"outcome\": \"done\", \"summary\": \"the answer is two\", \"handoff\": \"review\", \"confidence\": 0.9}\n```"),
		}}
	})
	must := func(args ...string) string {
		t.Helper()
		out, errOut, exit := v.pawl(args...)
		if exit != 0 {
			t.Fatalf("pawl %s: exit status %d\n%s\n%s\nthe model's log:\n%s", strings.Join(args, " "), exit, out, errOut, v.said())
		}
		return strings.TrimSpace(out)
	}
	must("agent", "create", "@maker", "--driver", claude.agent, "--model", claude.model, "--base-url", v.url+claude.base)
	must("boot", "init", "--new-boot", filepath.Join(t.TempDir(), "rules"), "--yes")
	v.write("agent/TODO.json", `{"version": "1.0.0", "tasks": [
		{"id": "answer", "title": "Write two into outputs/answer.txt", "status": "pending", "priority": "high"},
		{"id": "review", "title": "Review the answer", "status": "pending", "priority": "low"}]}`)
	v.git("add", "-A")
	v.git("commit", "-q", "-m", "Follow the boot protocol")
	remote := t.TempDir()
	gittest.Run(t, remote, "init", "-q", "--bare", "-b", "main")
	v.git("remote", "add", "origin", remote)
	v.git("push", "-q", "origin", "main")
	must("run", "boot", "--agent", "@maker")
	if got := gittest.Run(t, remote, "show", "main:outputs/answer.txt"); got != "two" {
		t.Errorf("the remote has %q", got)
	}
	if got := gittest.Run(t, remote, "log", "-1", "--format=%s", "main"); got != "agent: the answer is two" {
		t.Errorf("the commit is %q", got)
	}
	if status := must("boot", "status"); !strings.Contains(status, "review") {
		t.Errorf("the next session does not know what comes next:\n%s", status)
	}
	if log := must("boot", "log"); !strings.Contains(log, "the answer is two") {
		t.Errorf("sessions:\n%s", log)
	}
	if source := must("show", "boot#1", "--jq", ".tokens.source"); source != "metered" {
		t.Errorf("its tokens are %s", source)
	}
}
