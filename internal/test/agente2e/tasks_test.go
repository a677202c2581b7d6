//go:build agents && linux

package agente2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/fakemodel"
)

// TestAnOrganisationOfThreePrograms lets a chief, which is a shell command, give work to two
// members, which are Claude Code and Codex. Both report to it.
func TestAnOrganisationOfThreePrograms(t *testing.T) {
	of := func(name string) subject {
		return subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.name == name })]
	}
	v := newFixture(t, of("claude"), func(v *fixture) fakemodel.Script {
		return fakemodel.Script{Turns: []fakemodel.Turn{
			fakemodel.Write(filepath.Join(v.root, "src/answer.txt"), "two\n"),
			fakemodel.Say("The value is two now.\n\n```json\n" +
				`{"outcome": "done", "summary": "the answer is two", "messages": [{"to": "boss", "kind": "report", "content": "I wrote two"}], "pitfalls": ["the file was not there; make it"]}` + "\n```"),
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
	v.write("org.yaml", "owner: Ada\nchief: boss\ndepartments:\n  engineering:\n    lead: boss\n    members: [dev, ops]\n")
	v.write("boss.sh", `case "$PAWL_STEP" in
*"Share the work") cat > "$PAWL_REPORT" <<END
{"outcome": "done", "no_change": true, "summary": "both have work", "messages": [
  {"to": "dev", "kind": "task", "content": "Write two into src/answer.txt\nPriority: high"}, {"to": "ops", "kind": "task", "content": "Write two into src/answer.txt"}]}
END
;;
*) echo '{"outcome": "done", "no_change": true, "summary": "read"}' > "$PAWL_REPORT" ;;
esac
`)
	const begin = "---\nprimitive: loop-config\nenabled: true\ninterval: 15m\nsandbox: full\nsetup: none\n"
	v.write("agents/boss/LOOP.md", begin+"agent: command\nagent_command: sh boss.sh\n---\nYou share the work.\n")
	v.write("agents/boss/TASKS.md", "# boss — TASKS\n\n## Active Tasks\n\n- **Step 1**: Share the work\n  - Status: open\n\n## Completed Tasks\n")
	for agent, s := range map[string]subject{"dev": of("claude"), "ops": of("codex")} {
		v.write("agents/"+agent+"/LOOP.md", begin+"scope: [\"src/**\"]\nverify: sh check.sh\nagent: "+s.agent+"\nmodel: "+s.model+"\nbase_url: "+v.url+s.base+"\n---\nYou write.\n")
	}
	v.git("add", "-A")
	v.git("commit", "-q", "-m", "An organisation")
	must("run", "boss")
	for _, agent := range []string{"dev", "ops"} {
		must("run", agent)
		if got := v.git("show", "pawl/"+agent+"/1:src/answer.txt"); got != "two" {
			t.Errorf("the branch of %s has %q", agent, got)
		}
		if source := must("show", agent+"#1", "--jq", ".tokens.source"); source != "metered" {
			t.Errorf("the tokens of %s are %s", agent, source)
		}
	}
	must("run", "boss")
	file := func(agent, name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(v.root, "agents", agent, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s of %s:\n%s", name, agent, text)
		return string(text)
	}
	for _, agent := range []string{"dev", "ops"} {
		tasks := file(agent, "TASKS.md")
		for _, want := range []string{"**Step 1**: Write two into src/answer.txt", "Status: done", "From: boss", "Result: the answer is two (on branch pawl/" + agent + "/1)"} {
			if strings.Count(tasks, want) != 1 {
				t.Errorf("TASKS.md of %s lacks %q", agent, want)
			}
		}
		if beat := file(agent, "HEARTBEAT.md"); strings.Count(beat, "| Step 1 | completed |") != 1 {
			t.Errorf("HEARTBEAT.md of %s has no row of its cycle", agent)
		}
		if inbox := file(agent, "INBOX.md"); !strings.Contains(inbox[strings.Index(inbox, "## Processed"):], "From: boss") {
			t.Errorf("the entry of boss is not processed by %s", agent)
		}
		if context := file(agent, "CONTEXT.md"); strings.Count(context, "the file was not there") != 1 {
			t.Errorf("CONTEXT.md of %s lacks the pitfall", agent)
		}
	}
	inbox := file("boss", "INBOX.md")
	for _, agent := range []string{"dev", "ops"} {
		if strings.Count(inbox, "From: "+agent) != 2 || !strings.Contains(inbox, agent+" has done all of its steps") {
			t.Errorf("boss was not told by %s twice: of its step, and that all are done", agent)
		}
	}
	if strings.Count(inbox, "I wrote two") != 2 {
		t.Error("the reports of the members are not in the inbox of boss, each once")
	}
}
