package taskfile

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func found(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/found/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// changedLines are the lines that one of two files has more often than the other.
func changedLines(before, after string) []string {
	old, fresh := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	var changes []string
	for _, line := range without(old, fresh) {
		changes = append(changes, "-"+line)
	}
	for _, line := range without(fresh, old) {
		changes = append(changes, "+"+line)
	}
	return changes
}

// TestOneCycleChangesOnlyItsOwnLines does what a cycle does, in files of the shapes that
// real trees have.
func TestOneCycleChangesOnlyItsOwnLines(t *testing.T) {
	tasks, problems := ParseTasks(found(t, "TASKS.md"))
	if len(problems) > 0 || tasks.String() != found(t, "TASKS.md") {
		t.Fatalf("problems: %v", problems)
	}
	inbox, problems := ParseInbox(found(t, "INBOX.md"))
	if len(problems) > 0 || len(inbox.Pending()) != 3 {
		t.Fatalf("%d entries wait, problems: %v", len(inbox.Pending()), problems)
	}
	var keys []string
	for _, e := range inbox.Pending() {
		title, rest, _ := strings.Cut(e.Text, "\n")
		key := tasks.Add(NewStep{Title: title, Text: rest, Priority: e.Priority, Tags: e.Tags, DependsOn: e.DependsOn, From: e.From})
		if !inbox.Process(e.ID, noon, key) {
			t.Fatalf("%s is not processed", e.ID)
		}
		keys = append(keys, key)
	}
	if d := cmp.Diff([]string{"task-003", "task-004", "task-005"}, keys); d != "" {
		t.Error(d)
	}
	status, why, retries := StatusBlocked, "the page is down", 1
	tasks.Set("task-001", StepFields{Status: &status, BlockedReason: &why, Retries: &retries})
	heartbeat := ParseHeartbeat(found(t, "HEARTBEAT.md"))
	heartbeat.SetStatus(Status{State: "idle", LastCycle: noon, CyclesToday: 1, Blocked: 1})
	heartbeat.AddRow(Row{At: noon, Step: "task-001", Outcome: "blocked", Duration: 90 * time.Second, Tokens: 1200, Notes: why})
	heartbeat.SetTrends(Week{Year: 2026, Week: 48, Runs: 1, Blocked: 1, Tokens: 1200})
	context := ParseContext(found(t, "CONTEXT.md"))
	context.AddPitfall(Pitfall{Date: noon, Step: "task-001", Cause: why, Advice: "try the archive"})
	bullets, problems := ParseTasks(found(t, "TASKS-bullets.md"))
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	done, result := StatusDone, "step 2 done"
	bullets.Set("step-2", StepFields{Status: &done, Result: &result})

	for name, c := range map[string]struct {
		after string
		want  []string
	}{
		"TASKS.md": {tasks.String(), []string{
			"+- status: blocked\n", "+- blocked_reason: the page is down\n", "+- retry_count: 1\n", "+\n",
			"+### task-003\n", "+- title: The board meets on Friday. Have the prices by then.\n", "+- status: open\n", "+- priority: critical\n", "+- from: chief\n", "+- tags: research, web\n",
			"+- depends_on: task-001\n", "+> | rival | page |\n", "+> |---|---|\n", "+> | A | a.example |\n", "+>\n", "+> Task-ID: T-77\n", "+\n",
			"+### task-004\n", "+- title: Your key expires.\n", "+- status: open\n", "+- priority: medium\n", "+- from: ops\n", "+> Thread: 12\n", "+\n",
			"+### task-005\n", "+- title: ```\n", "+- priority: low\n", "+- from: mara\n", "+> ### [2020-01-01] From: nobody\n", "+> ```\n",
		}},
		"TASKS-bullets.md": {bullets.String(), []string{"+    * Status: done\r\n", "+    * Result: step 2 done\r\n"}},
		"INBOX.md": {inbox.String(), []string{
			"+Processed: 2026-11-27T12:00:00Z → task-003\n", "+Processed: 2026-11-27T12:00:00Z → task-004\n", "+Processed: 2026-11-27T12:00:00Z → task-005\n",
		}},
		"HEARTBEAT.md": {heartbeat.String(), []string{
			"-- **State**: initialized\n", "-- **Last Cycle**: _none_\n", "-- **Cycles Today**: 0\n", "-- **Steps Blocked Today**: 0\n",
			"+- **State**: idle\n", "+- **Last Cycle**: 2026-11-27T12:00:00Z\n", "+- **Cycles Today**: 1\n", "+- **Steps Blocked Today**: 1\n",
			"+| 2026-11-27T12:00:00Z | task-001 | blocked | 1m30s | the page is down (1200 tokens) |\n", "+\n",
			"+- 2026-W48: 1 runs, 0 completed, 1 blocked, 0 failed, 0 idle, 1200 tokens\n",
		}},
		"CONTEXT.md": {context.String(), []string{"+\n", "+- 2026-11-27, task-001: the page is down — instead: try the archive\n"}},
	} {
		got := slices.DeleteFunc(changedLines(found(t, name), c.after), func(line string) bool { return strings.TrimSpace(line) == "+" })
		want := slices.DeleteFunc(c.want, func(line string) bool { return strings.TrimSpace(line) == "+" })
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s\n%s", name, d, c.after)
		}
	}
	if strings.HasSuffix(bullets.String(), "\n") {
		t.Error("the last line has an end now")
	}
}
