package compose_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/orgtree"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// A tree as people have it runs as it is. After one cycle of each of its eleven agents a diff
// shows only what cycles own: the steps that were made of the entries, the entries in
// Processed, a row, a status and a week.
func TestATreeOfElevenAgentsRunsAsItIsAndOnlyLinesOfCyclesChange(t *testing.T) {
	t.Parallel()
	found := orgtree.Files()
	const entry = "### [2026-05-04T10:00:00Z] From: jarvis | Priority: high\n\nLook at it.\nTask-ID: T-1\n"
	var agents []string
	for name, text := range found {
		if agent, is := strings.CutSuffix(strings.TrimPrefix(name, "agents/"), "/"+taskfile.InboxFile); is {
			agents = append(agents, agent)
			found[name] = strings.Replace(text, entry, entry+"\n"+strings.ReplaceAll(entry, "Look at it.", "Then at that.")+"\n"+strings.ReplaceAll(entry, "Look at it.", "And at this."), 1)
		}
		if strings.HasSuffix(name, "/MANIFEST.yaml") {
			found[name] = strings.Replace(text, "loop:\n", "loop:\n  agent: command\n  agent_command: 'printf \"{\\\"outcome\\\":\\\"done\\\",\\\"summary\\\":\\\"looked\\\"}\" > \"$PAWL_REPORT\"'\n  sandbox: none\n", 1)
		}
	}
	slices.Sort(agents)
	s := agentsFixture(t, "", nil)
	s.git("rm", "-q", "org.yaml")
	gittest.Write(t, s.root, found)
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "a tree")
	w := openTeam(s)
	if c, err := w.svc.Orgs.Check(t.Context()); err != nil || c.Passed != 77 || !c.Healthy {
		t.Fatalf("check: %d of %d, %+v, %v", c.Passed, c.Checks, c.Findings, err)
	}
	if len(agents) != orgtree.Agents {
		t.Fatalf("%d agents: %v", len(agents), agents)
	}
	for _, agent := range agents {
		v := w.cycle(runs.StartRequest{Loop: agent})
		if v.Outcome != loop.OutcomeReported || len(v.Iterations) != 1 || v.Iterations[0].Step != "Look at it." {
			t.Errorf("%s ended %s %s %q with %+v", agent, v.Outcome, v.Reason, v.Detail, v.Iterations)
		}
		inbox, _ := taskfile.ParseInbox(s.agentFile(agent, taskfile.InboxFile))
		if got := s.statusOf(agent); len(got) != 3 || got["step-1"] != "done" || got["step-2"] != "open" || len(inbox.Processed()) != 3 || len(inbox.Pending()) != 0 {
			t.Errorf("%s has the steps %v, and %d entries that are processed", agent, got, len(inbox.Processed()))
		}
	}
	for name := range strings.FieldsSeq(s.git("diff", "--name-only")) {
		added, removed := diffLines(s, name)
		var foreign []string
		for _, line := range removed {
			if !slices.ContainsFunc(added, func(a string) bool { return a == line }) { // A line that moved is there still.
				foreign = append(foreign, line)
			}
		}
		if len(foreign) > 0 {
			t.Errorf("%s lacks %q", name, foreign)
		}
		if base := filepath.Base(name); !slices.Contains([]string{taskfile.TasksFile, taskfile.InboxFile, taskfile.HeartbeatFile}, base) {
			t.Errorf("%s was changed", name)
		}
		for _, line := range added {
			if owned := isOwned(filepath.Base(name), line); !owned && !slices.Contains(removed, line) {
				t.Errorf("%s has the new line %q", name, line)
			}
		}
	}
}

// diffLines are the lines that a file of the checkout has and its commit has not, and the other
// way round.
func diffLines(s *fixture, name string) (added, removed []string) {
	for line := range strings.SplitSeq(s.git("diff", "--no-color", "-U0", "--", name), "\n") {
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added = append(added, strings.TrimRight(line[1:], "\r"))
		case strings.HasPrefix(line, "-"):
			removed = append(removed, strings.TrimRight(line[1:], "\r"))
		}
	}
	return added, removed
}

// isOwned reports whether a line is one that a cycle writes.
func isOwned(file, line string) bool {
	line = strings.TrimSpace(line)
	begins := map[string][]string{
		taskfile.TasksFile:     {"- **Step ", "- Status: ", "- Priority: ", "- From: ", "- Result: ", "> Task-ID: T-1"},
		taskfile.InboxFile:     {"Processed: "},
		taskfile.HeartbeatFile: {"| 20", "- **", "- 20", "## Current Status", "## Health Trends"},
	}
	return line == "" || slices.ContainsFunc(begins[file], func(b string) bool { return strings.HasPrefix(line, b) })
}
