package compose_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// agentLoop is the LOOP.md of an agent with its own keys.
func agentLoop(keys ...string) string {
	return "---\nprimitive: loop-config\nenabled: true\ninterval: 15m\nagent: command\n" + strings.Join(keys, "\n") + "\n---\nYou work here.\n"
}

// tasksText is a TASKS.md with steps, which are given as they are written.
func tasksText(steps ...string) string {
	return "# TASKS\n\n## Active Tasks\n\n" + strings.Join(steps, "\n") + "\n\n## Completed Tasks\n"
}

// taskStep is a step that is open; after is the step that it depends on, or 0.
func taskStep(n int, title, priority string, after int) string {
	text := fmt.Sprintf("- **Step %d**: %s\n  - Status: open\n  - Priority: %s\n", n, title, priority)
	if after > 0 {
		text += fmt.Sprintf("  - Depends on: Step %d\n", after)
	}
	return text
}

// agentsFixture is a workspace of agents with task files: dev, who reports to boss.
func agentsFixture(t *testing.T, database string, files map[string]string) *fixture {
	t.Helper()
	s := &fixture{t: t, root: t.TempDir(), home: newHome(t), database: database, loop: "dev"}
	gittest.Write(t, s.root, map[string]string{
		"org.yaml": "owner: Ada\nchief: boss\ndepartments:\n  engineering:\n    lead: boss\n    members: [dev]\n", "src/all.txt": "", "README.md": "hello\n",
	})
	gittest.Write(t, s.root, files)
	s.git("init", "-q", "-b", "main")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	s.noteClaims()
	return s
}

// agentFile is a file of an agent, as it is in the checkout; empty if it was not made yet.
func (s *fixture) agentFile(agent, name string) string {
	s.t.Helper()
	path := filepath.Join(s.root, "agents", agent, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return readFile(s.t, path)
}

// statusOf is the status of each step of an agent by its key.
func (s *fixture) statusOf(agent string) map[string]string {
	s.t.Helper()
	tasks, problems := taskfile.ParseTasks(s.agentFile(agent, taskfile.TasksFile))
	if len(problems) > 0 {
		s.t.Errorf("TASKS.md of %s: %v", agent, problems)
	}
	found := map[string]string{}
	for _, st := range tasks.Steps() {
		found[st.Key] = st.Status
	}
	return found
}

// team is a workspace of agents on the program's own composition.
type team struct{ *victim }

func openTeam(s *fixture) team {
	s.t.Helper()
	w := team{&victim{fixture: s, main: s.git("rev-parse", "main")}}
	w.open(os.Environ())
	return w
}

// cycle carries out one run of an agent.
func (w team) cycle(r runs.StartRequest) runs.View {
	w.t.Helper()
	if r.Loop == "" {
		r.Loop = w.loop
	}
	plan, err := w.svc.Runs.Prepare(w.t.Context(), r)
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := w.svc.Runs.Start(w.t.Context(), plan)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// approve says yes to what a run proposed.
func (w team) approve(ref string) (runs.View, error) {
	return w.svc.Approvals.Approve(w.t.Context(), ref, loop.Answer{By: "ann", From: "test"})
}

// stateOf is how the question of a run stands, and why.
func (w team) stateOf(ref string) (loop.ApprovalState, string) {
	w.t.Helper()
	v, err := w.svc.Approvals.Find(w.t.Context(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.State, v.Note
}

// wantState holds how the question of a run stands, and what is said of it.
func (w team) wantState(ref string, state loop.ApprovalState, words string) {
	w.t.Helper()
	if is, why := w.stateOf(ref); is != state || !strings.Contains(why, words) {
		w.t.Errorf("the question of %s is %s %q, want %s with %q", ref, is, why, state, words)
	}
}
