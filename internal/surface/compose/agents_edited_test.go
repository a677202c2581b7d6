package compose_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Whatever a person writes into the files of an agent while it acts stays, byte for byte,
// but for the values that the cycle owns and the person did not change.
func TestNothingThatAPersonWritesDuringACycleIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acts, edited := filepath.Join(dir, "acts"), filepath.Join(dir, "edited")
	s := agentsFixture(t, "", map[string]string{
		"agents/boss/LOOP.md": agentLoop(idleAgent, "sandbox: none"),
		"agents/dev/LOOP.md": agentLoop("sandbox: none", fmt.Sprintf(
			`agent_command: 'touch %s; while [ ! -e %s ]; do sleep 0.005; done; rm %[2]s; echo "{\"outcome\":\"done\",\"no_change\":true}" > "$PAWL_REPORT"'`, acts, edited)),
		"agents/dev/TASKS.md": tasksText(),
	})
	w := openTeam(s)
	most := sample.Size(40, 1000)
	r := rand.New(rand.NewPCG(19, 1))
	if sample.All() {
		r = rand.New(rand.NewPCG(19, uint64(time.Now().UnixNano())))
	}
	edits := 0
	for n := 1; edits < most && !t.Failed(); n++ {
		if n%20 == 1 { // A cycle reads and writes all of a file.
			for name, text := range map[string]string{
				taskfile.TasksFile: tasksText(), taskfile.InboxFile: taskfile.NewInbox("dev"), taskfile.ContextFile: taskfile.NewContext("dev"), taskfile.HeartbeatFile: taskfile.NewHeartbeat("dev", "15m", "10m"),
			} {
				gittest.WriteFile(t, filepath.Join(s.root, "agents/dev", name), text)
			}
		}
		s.editAgent("dev", taskfile.TasksFile, func(text string) string {
			step := fmt.Sprintf("- **Step %d**: Do %d\n  - Status: open\n  - Priority: critical\n", 1000*n, n)
			return strings.Replace(text, "\n## Completed", "\n"+step+"## Completed", 1)
		})
		s.editAgent("dev", taskfile.InboxFile, func(text string) string {
			return strings.Replace(text, "## Pending\n", fmt.Sprintf("## Pending\n\n### [2026-01-02T03:04:05Z] From: Ada | Priority: low\n\nEntry %d\n", n), 1)
		})
		result := make(chan runs.View, 1)
		go func() { result <- w.cycle(runs.StartRequest{}) }()
		for {
			if _, err := os.Stat(acts); err == nil {
				break
			}
			select {
			case v := <-result:
				t.Fatalf("cycle %d ended before its agent acted: %s %s %q", n, v.Outcome, v.Reason, v.Detail)
			case <-time.After(time.Millisecond):
			}
		}
		must(t, os.Remove(acts))
		theirs := map[string]string{}
		status := ""
		for _, name := range []string{taskfile.TasksFile, taskfile.InboxFile, taskfile.ContextFile, taskfile.HeartbeatFile} {
			theirs[name] = s.editAgent("dev", name, func(text string) string {
				for range 1 + r.IntN(3) {
					text = insertLine(r, text, fmt.Sprintf("%s by hand %d", pick(r, "a note", "<!-- a comment -->", "  > indented,", "*", "| a | b |"), edits))
					edits++
				}
				mine := fmt.Sprintf("Do %d\n  - Status: in-progress", n)
				if name == taskfile.TasksFile && r.IntN(3) == 0 && strings.Contains(text, mine) {
					status = "cancelled"
					text = strings.Replace(text, mine, fmt.Sprintf("Do %d\n  - Status: cancelled", n), 1)
				}
				return text
			})
		}
		gittest.WriteFile(t, edited, "")
		v := <-result
		if v.Outcome != loop.OutcomeReported {
			t.Fatalf("cycle %d = %s %s %q", n, v.Outcome, v.Reason, v.Detail)
		}
		for name, text := range theirs {
			if lost := lostLine(name, text, s.agentFile("dev", name)); lost != "" {
				t.Errorf("cycle %d: %s lost the line %q:\n--- as a person wrote it\n%s\n--- now\n%s", n, name, lost, text, s.agentFile("dev", name))
			}
		}
		s.checkEdited(n, status)
	}
	t.Logf("%d hand edits", edits)
}

// checkEdited holds that each entry is there once, and that a status that a person wrote
// counts, which the heartbeat says.
func (s *fixture) checkEdited(n int, status string) {
	t := s.t
	t.Helper()
	inbox, _ := taskfile.ParseInbox(s.agentFile("dev", taskfile.InboxFile))
	seen := map[string]int{}
	for _, e := range append(inbox.Pending(), inbox.Processed()...) {
		first, _, _ := strings.Cut(e.Text, "\n")
		seen[first]++
	}
	for k := n - (n-1)%20; k <= n; k++ {
		text := strings.Count(s.agentFile("dev", taskfile.InboxFile), fmt.Sprintf("\nEntry %d\n", k))
		if text != 1 {
			t.Errorf("cycle %d: entry %d is there %d times", n, k, text)
		}
	}
	for what, times := range seen {
		if times > 1 {
			t.Errorf("cycle %d: %q is there %d times", n, what, times)
		}
	}
	if status == "" {
		return
	}
	if !strings.Contains(s.agentFile("dev", taskfile.TasksFile), fmt.Sprintf("Do %d\n", n)) {
		t.Errorf("cycle %d: the step is gone", n)
	}
	got := s.statusOf("dev")[fmt.Sprintf("step-%d", 1000*n)]
	rows := strings.Split(strings.TrimSpace(s.agentFile("dev", taskfile.HeartbeatFile)), "\n")
	said := slices.ContainsFunc(rows, func(row string) bool {
		return strings.Contains(row, fmt.Sprintf("step %d: Status stays %s, as a person wrote it", 1000*n, status))
	})
	if got != status || !said {
		t.Errorf("cycle %d: the step is %s, want %s; the heartbeat says so: %v", n, got, status, said)
	}
}

// editAgent changes a file of an agent as an editor does, and returns it.
func (s *fixture) editAgent(agent, name string, edit func(string) string) string {
	s.t.Helper()
	text := edit(s.agentFile(agent, name))
	gittest.WriteFile(s.t, filepath.Join(s.root, "agents", agent, name), text)
	return text
}

func pick(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

// insertLine puts a line somewhere between the others.
func insertLine(r *rand.Rand, text, line string) string {
	lines := slices.Collect(strings.Lines(text))
	return strings.Join(slices.Insert(lines, r.IntN(len(lines)+1), line+"\n"), "")
}

// lostLine is the first line of theirs that a file does not have any more, in its order;
// empty: all are there. Lines of values that the cycle owns do not count.
func lostLine(name, theirs, now string) string {
	rest := slices.Collect(strings.Lines(now))
	for line := range strings.Lines(theirs) {
		if ownedLine(name, line) {
			continue
		}
		at := slices.Index(rest, line)
		if at < 0 && !strings.HasSuffix(line, "\n") { // Something was added behind the last line.
			at = slices.Index(rest, line+"\n")
		}
		if at < 0 {
			return line
		}
		rest = slices.Delete(rest, at, at+1)
	}
	return ""
}

// ownedLine reports whether a cycle may change a line of a file.
func ownedLine(name, line string) bool {
	text := strings.TrimLeft(line, " -*")
	for _, own := range map[string][]string{
		taskfile.TasksFile:     {"Status: ", "Result: ", "Retry count: ", "Blocked reason: "},
		taskfile.HeartbeatFile: {"State**", "Last Cycle**", "Cycles Today**", "Steps ", "Uptime**", "| 2", "20"},
	}[name] {
		if strings.HasPrefix(text, own) {
			return true
		}
	}
	return false
}
