package taskfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const baseTasks = "# dev\n\n## Active Tasks\n\n- **Step 1**: one\n  - Status: open\n  - Priority: high\n\n- **Step 2**: two\n  - Status: open\n\n## Task Format\n- **Step N**: x\n\n## Completed Tasks\n"

func tasksWith(t *testing.T, text string, change func(*Tasks)) string {
	t.Helper()
	tasks, _ := ParseTasks(text)
	change(tasks)
	return tasks.String()
}

func TestChangesOfACycleAreMadeAgainOnTheFileOfAPerson(t *testing.T) {
	done, blocked := StatusDone, StatusBlocked
	finish := func(tasks *Tasks) {
		result := "step 1 done"
		tasks.Set("step-1", StepFields{Status: &done, Result: &result})
	}
	swap := func(old, new string) string { return strings.Replace(baseTasks, old, new, 1) }
	for name, c := range map[string]struct {
		ours         func(*Tasks)
		theirs, want string
		left         []string
	}{
		"another line": {
			finish, swap("one\n", "one\n  - Due: Friday\n"),
			swap("one\n  - Status: open\n  - Priority: high\n", "one\n  - Due: Friday\n  - Status: done\n  - Priority: high\n  - Result: step 1 done\n"), nil,
		},
		"the same field": {
			finish, swap("Status: open", "Status: Blocked"), swap("Status: open\n  - Priority: high\n", "Status: Blocked\n  - Priority: high\n  - Result: step 1 done\n"),
			[]string{"step 1: Status stays blocked, as a person wrote it; the cycle had done"},
		},
		"the same value": {finish, swap("Status: open", "Status: DONE"), swap("Status: open\n  - Priority: high\n", "Status: DONE\n  - Priority: high\n  - Result: step 1 done\n"), nil},
		"the step is deleted": {
			finish, swap("- **Step 1**: one\n  - Status: open\n  - Priority: high\n\n", ""), swap("- **Step 1**: one\n  - Status: open\n  - Priority: high\n\n", ""),
			[]string{"step 1: it was deleted and stays so; the cycle had changed it (status done)"},
		},
		"the number of a new step is taken": {
			func(tasks *Tasks) {
				tasks.Add(NewStep{Title: "mine", From: "chief"})
				tasks.Add(NewStep{Title: "next", DependsOn: []string{"step-3"}})
				tasks.Set("step-3", StepFields{Status: &blocked})
			},
			swap("\n## Task", "- **Step 3**: theirs\n\n## Task"),
			swap("\n## Task", "- **Step 3**: theirs\n- **Step 5**: mine\n  - Status: blocked\n  - Priority: medium\n  - From: chief\n- **Step 4**: next\n  - Status: open\n  - Priority: medium\n  - Depends on: Step 5\n\n## Task"),
			[]string{"step-3 is now step-5: a person has added another step-3"},
		},
		"the step is there twice": {
			finish, swap("## Task", "- **Step 1**: again\n\n## Task"), swap("## Task", "- **Step 1**: again\n\n## Task"), []string{"step-1 is there more than once and stays as it is"},
		},
	} {
		ours := tasksWith(t, baseTasks, c.ours)
		got, left := MergeTasks(baseTasks, ours, c.theirs)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(c.left, left); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if again, _ := MergeTasks(baseTasks, ours, got); again != got {
			t.Errorf("%s: the second time it changes: %s", name, cmp.Diff(got, again))
		}
	}
}

// editByHand changes a file as people do: lines are added, removed, changed and moved,
// or the line ends change.
func editByHand(t *rapid.T, text string, words []string) string {
	lines := slices.Collect(strings.Lines(text))
	for range rapid.IntRange(0, 20).Draw(t, "hand edits") {
		at := rapid.IntRange(0, len(lines)).Draw(t, "at")
		word := rapid.SampledFrom(words).Draw(t, "word") + rapid.SampledFrom([]string{"\n", "\r\n", "  \n"}).Draw(t, "end")
		switch what := rapid.SampledFrom([]string{"add", "add", "remove", "change", "move", "cut"}).Draw(t, "what"); {
		case what == "add" || at == len(lines):
			if at > 0 && !strings.HasSuffix(lines[at-1], "\n") {
				lines[at-1] += "\n"
			}
			lines = slices.Insert(lines, at, word)
		case what == "remove":
			lines = slices.Delete(lines, at, at+1)
		case what == "change":
			lines[at] = word
		case what == "move":
			line := lines[at]
			lines = append(slices.Delete(lines, at, at+1), line)
		case what == "cut":
			lines[len(lines)-1] = strings.TrimRight(lines[len(lines)-1], "\r\n")
		}
	}
	return strings.Join(lines, "")
}

// isOwned reports whether a cycle may change a line of TASKS.md.
func isOwned(line string) bool {
	name, _, ok := cutField(line)
	return ok && slices.Contains([]string{"status", "result", "blockedreason", "retrycount"}, lookupField(name))
}

func TestNoHandEditOfTheTasksIsLost(t *testing.T) {
	words := []string{
		"", "  - Status: done", "  - Status: blocked", "- **Step 2**: again", "- **Step 3**: theirs", "  - Due: now", "a note", "<!-- c -->", "```", "## Completed Tasks", "  - Result: mine", "### task-001",
		"- title: y", "  - Retry count: 7", "---",
	}
	rapid.Check(t, func(t *rapid.T) {
		base := editByHand(t, baseTasks, words)
		tasks, _ := ParseTasks(base)
		var added []string
		for n := range rapid.IntRange(0, 3).Draw(t, "edits of the cycle") {
			steps := tasks.Steps()
			if len(steps) > 0 {
				status := rapid.SampledFrom(Statuses).Draw(t, "status")
				result, retries := fmt.Sprintf("result %d", n), n
				tasks.Set(rapid.SampledFrom(steps).Draw(t, "step").Key, StepFields{Status: &status, Result: &result, Retries: &retries})
			}
			if rapid.Bool().Draw(t, "a new step") {
				added = append(added, fmt.Sprintf("new  step %d", n))
				tasks.Add(NewStep{Title: added[len(added)-1], Text: "```\n- **Step 1**: x"})
			}
		}
		ours, theirs := tasks.String(), editByHand(t, base, words)
		merged, _ := MergeTasks(base, ours, theirs)
		var kept []string
		for _, line := range sortedLines(theirs) {
			if !isOwned(line) {
				kept = append(kept, line)
			}
		}
		if lost := without(kept, sortedLines(merged)); len(lost) > 0 {
			t.Fatalf("%q is lost\nbase %q\nours %q\ntheirs %q\nmerged %q", lost, base, ours, theirs, merged)
		}
		after, _ := ParseTasks(merged)
		for _, title := range added {
			n := 0
			for _, s := range after.Steps() {
				if s.Title == fold(title) {
					n++
				}
			}
			if n != 1 {
				t.Fatalf("%s is there %d times\nbase %q\nours %q\ntheirs %q\nmerged %q", title, n, base, ours, theirs, merged)
			}
		}
		if again, _ := MergeTasks(base, ours, merged); again != merged {
			t.Fatalf("the second time %q becomes %q", merged, again)
		}
	})
}

const baseInbox = "# dev\n\n## Pending\n\n### [2026-11-27T10:00:00Z] From: a\nOne\n\n### [2026-11-27T10:00:00Z] From: a\nOne\n\n### [2026-11-27T11:00:00Z] From: b\nTwo\nDelivery: d-1\n\n### [2026-11-27T11:30:00Z] From: c\nThree\n\n## Processed\n\n### [2026-11-01] From: c\nOld\n"

func TestAMovedEntryIsNeitherLostNorDoubled(t *testing.T) {
	b, _ := ParseInbox(baseInbox)
	p := b.Pending()
	b.Process(p[2].ID, noon, "Step 1") // d-1
	b.Process(p[3].ID, noon, "Step 2") // Three
	b.AddPending(NewEntry{At: noon, From: "d", Text: "Four", Delivery: "d-2"})
	ours := b.String()
	swap := func(old, new string) string { return strings.Replace(baseInbox, old, new, 1) }
	for name, c := range map[string]struct {
		theirs string
		texts  map[string]string // from: text of those below Processed
	}{
		"nothing of it was changed":       {swap("# dev", "# me"), map[string]string{"b": "Two", "c": "OldThree"}},
		"its text was changed":            {swap("Three", "Three and a half"), map[string]string{"b": "Two", "c": "OldThree and a half"}},
		"the text of a delivered one was": {swap("Two", "Two and a half"), map[string]string{"b": "Two and a half", "c": "OldThree"}},
		"it was deleted":                  {swap("### [2026-11-27T11:30:00Z] From: c\nThree\n\n", ""), map[string]string{"b": "Two", "c": "OldThree"}},
		"everything was deleted":          {"# empty", map[string]string{"b": "Two", "c": "Three"}},
	} {
		merged, _ := MergeInbox(baseInbox, ours, c.theirs)
		m, _ := ParseInbox(merged)
		got := map[string]string{}
		for _, e := range m.Processed() {
			got[e.From] += e.Text
		}
		if d := cmp.Diff(c.texts, got); d != "" {
			t.Errorf("%s: %s in %s", name, d, merged)
		}
		for _, e := range m.Pending() {
			if e.From != "a" && e.From != "d" {
				t.Errorf("%s: pending again: %+v", name, e)
			}
		}
		if again, _ := MergeInbox(baseInbox, ours, merged); again != merged || !m.Has("d-2") {
			t.Errorf("%s: the second time: %s", name, cmp.Diff(merged, again))
		}
	}
}

func TestNoEntryIsLostOrDoubledByHandEdits(t *testing.T) {
	words := []string{"", "a note", "### [2026-11-27T12:00:00Z] From: e", "Task-ID: 7", "## Notes", "```", "Tags: x", "<!-- c -->", "#### more"}
	rapid.Check(t, func(t *rapid.T) {
		b, _ := ParseInbox(baseInbox)
		var worked []string
		for _, e := range b.Pending() {
			if e.From != "a" && rapid.Bool().Draw(t, "processed") {
				b.Process(e.ID, noon, "Step 1")
				worked = append(worked, e.From)
			}
		}
		for n := range rapid.IntRange(0, 2).Draw(t, "new ones") {
			b.AddPending(NewEntry{At: noon, From: fmt.Sprintf("new%d", n), Text: "x", Delivery: fmt.Sprintf("n-%d", n)})
			worked = append(worked, fmt.Sprintf("new%d", n))
		}
		ours, theirs := b.String(), editByHand(t, baseInbox, words)
		merged, _ := MergeInbox(baseInbox, ours, theirs)
		unescaped := func(text string) []string { return sortedLines(strings.ReplaceAll(text, `\`, "")) }
		if lost := without(unescaped(theirs), unescaped(merged)); len(lost) > 0 {
			t.Fatalf("%q is lost\nours %q\ntheirs %q\nmerged %q", lost, ours, theirs, merged)
		}
		for _, from := range worked {
			if !strings.Contains(merged, "From: "+from) {
				t.Fatalf("the entry from %s is lost\nours %q\ntheirs %q\nmerged %q", from, ours, theirs, merged)
			}
		}
		m, _ := ParseInbox(merged)
		seen := map[string]bool{}
		for _, e := range m.entries {
			one := e.Delivery + " from " + e.From
			if e.Delivery != "" && seen[one] {
				t.Fatalf("%s is there twice\nours %q\ntheirs %q\nmerged %q", one, ours, theirs, merged)
			}
			seen[one] = true
		}
		if again, _ := MergeInbox(baseInbox, ours, merged); again != merged {
			t.Fatalf("the second time\n%q becomes\n%q\nours %q\ntheirs %q", merged, again, ours, theirs)
		}
	})
}

func TestNoHandEditOfTheLogIsLost(t *testing.T) {
	words := append([]string{"| 2026-11-27T10:00:00Z | step-1 | done | 1s | 0 | by hand |", "- State: paused", "a note"}, heartbeatLines...)
	rapid.Check(t, func(t *rapid.T) {
		base := editByHand(t, NewHeartbeat("dev", "15m", "10m"), words)
		h := ParseHeartbeat(base)
		h.SetStatus(Status{State: "working", LastCycle: noon, CyclesToday: 1})
		h.AddRow(Row{At: noon, Step: "step-77", Outcome: "completed", Tokens: 5, Notes: "fine"})
		h.SetTrends(Week{Year: 2026, Week: 48, Runs: 1})
		if rapid.Bool().Draw(t, "append") {
			h.Append("What I have seen:\n\nnothing")
		}
		ours, theirs := h.String(), editByHand(t, base, words)
		merged, _ := MergeHeartbeat(base, ours, theirs)
		kept := slices.DeleteFunc(sortedLines(theirs), func(line string) bool {
			name, _, ok := cutField(line)
			cells := splitCells(line)
			_, week := readWeek(line)
			return week || ok && statusName(name) != "" || len(cells) == 2 && statusName(cells[0].text) != ""
		})
		if lost := without(kept, sortedLines(merged)); len(lost) > 0 {
			t.Fatalf("%q is lost\nbase %q\nours %q\ntheirs %q\nmerged %q", lost, base, ours, theirs, merged)
		}
		if n := strings.Count(merged, "step-77"); n != 1 && !strings.Contains(theirs, "step-77") && slices.Contains(logColumnsOf(merged), "Step") {
			t.Fatalf("the row is there %d times\nbase %q\nours %q\ntheirs %q\nmerged %q", n, base, ours, theirs, merged)
		}
		if again, _ := MergeHeartbeat(base, ours, merged); again != merged {
			t.Fatalf("the second time\n%q becomes\n%q\nbase %q\nours %q", merged, again, base, ours)
		}
	})
}

func logColumnsOf(text string) []string {
	t, _ := ParseHeartbeat(text).findLog()
	return t.columns
}

func TestNoHandEditOfTheContextIsLost(t *testing.T) {
	words := []string{"", "a note", "## Known Pitfalls", "- 2026-11-01: no key", "- 2026-11-01: other (2 times, last 2026-11-02)", "```", "<!--", "-->", "# x"}
	rapid.Check(t, func(t *rapid.T) {
		base := editByHand(t, NewContext("dev"), words)
		c := ParseContext(base)
		c.AddPitfall(Pitfall{Date: noon, Cause: "no key", Advice: "ask"})
		c.AddPitfall(Pitfall{Date: noon.Add(48 * time.Hour), Cause: "late"})
		if rapid.Bool().Draw(t, "append") {
			c.Append("I learned:\n- nothing")
		}
		ours, theirs := c.String(), editByHand(t, base, words)
		merged, _ := MergeContext(base, ours, theirs)
		kept := slices.DeleteFunc(sortedLines(theirs), func(line string) bool { _, ok := readPitfall(line); return ok })
		if lost := without(kept, sortedLines(merged)); len(lost) > 0 {
			t.Fatalf("%q is lost\nbase %q\nours %q\ntheirs %q\nmerged %q", lost, base, ours, theirs, merged)
		}
		if again, _ := MergeContext(base, ours, merged); again != merged {
			t.Fatalf("the second time\n%q becomes\n%q\nbase %q\nours %q", merged, again, base, ours)
		}
	})
}

// An agent that prints files may change anything that is accepted, not only what a cycle
// owns. What it appends is not yet in the file: of two equal lines nobody could say whose
// is there.
func TestMergingAgainChangesNothingWhateverBothSidesDid(t *testing.T) {
	for name, c := range map[string]struct {
		base        string
		lines, ours []string
		merge       func(base, ours, theirs string) (string, []string)
	}{
		TasksFile: {baseTasks, taskLines, taskLines, MergeTasks},
		HeartbeatFile: {foundHeartbeat, heartbeatLines, []string{
			"- State: y", "- **Uptime**: 9h", "| 2026-11-27T11:00:00Z | step-9 | x |", "- 2026-W02: 1 runs, 0 completed, 0 blocked, 0 failed, 0 idle, 0 tokens", "our text", "### 2026-11-27T11:00:00Z Cycle Result",
		}, MergeHeartbeat},
		ContextFile: {NewContext("dev"), []string{"", "note", "- 2026-11-01: no key", "- 2026-11-01: no key (3 times, last 2026-11-02)", "## Known Pitfalls", "```", "<!--", "-->"}, []string{
			"our note", "- 2026-11-01: our cause", "- 2026-11-01: no key (4 times, last 2026-11-03)",
		}, MergeContext},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				base := editByHand(t, c.base, c.lines)
				ours, theirs := editByHand(t, base, c.ours), editByHand(t, base, c.lines)
				if name == TasksFile && AcceptTasks(base, ours) != nil {
					ours = base + rapid.SampledFrom(c.lines).Draw(t, "printed") + "\n"
				}
				merged, _ := c.merge(base, ours, theirs)
				if again, _ := c.merge(base, ours, merged); again != merged {
					t.Fatalf("the second time\n%q becomes\n%q\nbase %q\nours %q\ntheirs %q", merged, again, base, ours, theirs)
				}
			})
		})
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(baseTasks, strings.Replace(baseTasks, "open", "done", 1), strings.Replace(baseTasks, "one", "uno", 1))
	f.Add(baseInbox, strings.Replace(baseInbox, "One", "Uno", 1), "## Processed\n### From: x\n")
	f.Fuzz(func(t *testing.T, base, ours, theirs string) {
		merged, _ := MergeTasks(base, ours, theirs)
		kept := slices.DeleteFunc(sortedLines(theirs), func(line string) bool {
			_, _, ok := cutField(line)
			return ok
		})
		if lost := without(kept, sortedLines(merged)); len(lost) > 0 && theirs != base {
			t.Fatalf("%q is lost in %q", lost, merged)
		}
		merged, _ = MergeInbox(base, ours, theirs)
		unescaped := func(text string) (lines []string) {
			for _, line := range sortedLines(text) {
				lines = append(lines, withoutEscapes(line))
			}
			return lines
		}
		if lost := without(unescaped(theirs), unescaped(merged)); len(lost) > 0 && theirs != base {
			t.Fatalf("%q is lost in %q", lost, merged)
		}
		MergeHeartbeat(base, ours, theirs)
		MergeContext(base, ours, theirs)
	})
}
