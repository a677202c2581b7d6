package bootstate

import (
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

var now = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)

const (
	goodState = `{
  "version": "1.0.0",
  "lastUpdated": "2026-01-30T09:00:00Z",
  "activeProject": "shop",
  "currentPhase": "testing",
  "lastCommitSha": null,
  "nextIntent": "T-2",
  "errors": [{"timestamp": "2026-01-30T08:00:00Z", "message": "x"}],
  "metadata": {"kept": [1.50, {"b": 1, "a": 2}]}
}
`
	goodTodo = `{
  "version": "1.0.0",
  "tasks": [
    {"id": "T-1", "title": "One", "status": "done", "priority": "high", "metadata": {"kept": 1e3}},
    {"id": "T-2", "title": "Two", "status": "pending", "priority": "high", "dependencies": ["T-1"]},
    {"id": "T-3", "title": "Three", "status": "blocked", "priority": "low", "blockedReason": "waits"}
  ]
}
`
)

func file(path, content string) File { return File{Path: path, Content: []byte(content), Exists: true} }

func versions(all ...Version) iter.Seq[Version] { return slices.Values(all) }

// found is a memory of which all is well, and that was committed once.
func found() Found {
	return Found{
		State: file("agent/STATE.json", goodState), Tasks: file("agent/TODO.json", goodTodo), Changelog: file("CHANGELOG.md", "# Changelog\n"),
		StateHistory: versions(Version{"1a2b3c4", []byte(goodState)}), TasksHistory: versions(Version{"1a2b3c4", []byte(goodTodo)}),
		Project: "shop", Now: now,
	}
}

// replaced is a text with one part replaced, which must be there.
func replaced(t *testing.T, text, part, by string) string {
	t.Helper()
	if strings.Count(text, part) != 1 {
		t.Fatalf("%q is not in the text once", part)
	}
	return strings.Replace(text, part, by, 1)
}

type recoveryCase struct {
	found   func(t *testing.T, f *Found)
	reasons []loop.Reason
	notes   []string
	stop    loop.Reason
	check   func(t *testing.T, m Memory)
	aside   bool
}

func checkRecovery(t *testing.T, c recoveryCase) {
	t.Helper()
	f := found()
	c.found(t, &f)
	m, repairs, stop := FormatSchemas().Recover(f)
	if stop != nil {
		if stop.Reason != c.stop || len(repairs) > 0 || stop.Reason.Sentence() == "" || stop.Path == "" || stop.Message == "" {
			t.Fatalf("stop = %s %v %v with %d repairs, want %q", stop.Reason, stop, stop.Findings, len(repairs), c.stop)
		}
		for _, one := range stop.Findings {
			if one.Line < 1 || one.Reason.Sentence() == "" {
				t.Errorf("finding %+v", one)
			}
		}
		return
	}
	if c.stop != "" {
		t.Fatalf("repaired with %v, want it to stop: %s", repairs, c.stop)
	}
	var reasons []loop.Reason
	var notes []string
	for _, r := range repairs {
		reasons, notes = append(reasons, r.Reason), append(notes, r.Note)
		if r.Aside != c.aside || r.Path == "" {
			t.Errorf("repair %+v: put aside %v, want %v", r, r.Aside, c.aside)
		}
		if !strings.Contains(m.Changelog, "- "+r.Note+"\n") {
			t.Errorf("the changelog does not say %q:\n%s", r.Note, m.Changelog)
		}
	}
	if diff := cmp.Diff(c.reasons, reasons); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(c.notes, notes); diff != "" {
		t.Error(diff)
	}
	if _, wrong := FormatSchemas().ReadState(m.State.Encode()); len(wrong) > 0 {
		t.Errorf("the state is invalid: %v", wrong)
	}
	if _, wrong := FormatSchemas().ReadTodo(m.Tasks.Encode()); len(wrong) > 0 {
		t.Errorf("the tasks are invalid: %v", wrong)
	}
	if c.check != nil {
		c.check(t, m)
	}
	// From what it has become nothing is repaired again.
	f.State, f.Tasks = file(f.State.Path, string(m.State.Encode())), file(f.Tasks.Path, string(m.Tasks.Encode()))
	f.Changelog = file(f.Changelog.Path, m.Changelog)
	again, repairs, stop := FormatSchemas().Recover(f)
	if stop != nil || len(repairs) > 0 || string(again.State.Encode()) != string(m.State.Encode()) || string(again.Tasks.Encode()) != string(m.Tasks.Encode()) {
		t.Errorf("the second recovery: %v %v", repairs, stop)
	}
}

func TestEachRowOfTheStateDecisions(t *testing.T) {
	broken := func(content string) func(*testing.T, *Found) {
		return func(_ *testing.T, f *Found) { f.State.Content = []byte(content) }
	}
	swapped := func(part, by string) func(*testing.T, *Found) {
		return func(t *testing.T, f *Found) { f.State.Content = []byte(replaced(t, goodState, part, by)) }
	}
	same := func(t *testing.T, m Memory) {
		t.Helper()
		if want, _ := FormatSchemas().ReadState([]byte(goodState)); !m.State.EqualButCommit(want) {
			t.Errorf("the state is\n%s", m.State.Encode())
		}
	}
	fresh := func(t *testing.T, m Memory) {
		t.Helper()
		if m.State.Phase() != PhaseIdle || m.State.Project() != "shop" || !m.State.LastUpdated().Equal(now) || m.State.NextIntent() != "" {
			t.Errorf("the state is\n%s", m.State.Encode())
		}
	}
	for name, c := range map[string]recoveryCase{
		"present and valid": {found: func(*testing.T, *Found) {}, check: same},
		"missing, first run": {
			found:   func(_ *testing.T, f *Found) { f.State, f.StateHistory = File{Path: "agent/STATE.json"}, nil },
			reasons: []loop.Reason{loop.ReasonStateFirstRun}, notes: []string{"initialised agent/STATE.json from the template: first run"}, check: fresh,
		},
		"missing, not the first run": {found: func(_ *testing.T, f *Found) { f.State.Exists = false }, stop: loop.ReasonStateLost},
		"missing, and a commit removed it": {
			found: func(_ *testing.T, f *Found) {
				f.State.Exists, f.StateHistory = false, versions(Version{"1a2b3c4", nil})
			}, stop: loop.ReasonStateLost,
		},
		"invalid JSON: last valid commit": {
			found: broken(goodState[:100]), reasons: []loop.Reason{loop.ReasonStateCommit},
			notes: []string{"recovered agent/STATE.json from 1a2b3c4: invalid JSON"}, check: same, aside: true,
		},
		"invalid JSON: the newest commit that also validates": {
			found: func(_ *testing.T, f *Found) {
				f.State.Content = nil
				f.StateHistory = versions(Version{"aaaaaaa", []byte("{")}, Version{"bbbbbbb", []byte(`{"version": "1.0.0"}`)}, Version{"ccccccc", nil}, Version{"ddddddd", []byte(goodState)}, Version{"eeeeeee", []byte(`{}`)})
			},
			reasons: []loop.Reason{loop.ReasonStateCommit}, notes: []string{"recovered agent/STATE.json from ddddddd: invalid JSON"}, check: same, aside: true,
		},
		"invalid JSON: stash": {
			found: func(_ *testing.T, f *Found) {
				f.State.Content, f.StateHistory, f.StateStashes = []byte("NaN"), versions(Version{"1a2b3c4", []byte("{")}), versions(Version{"stash@{0}", []byte(goodState)})
			},
			reasons: []loop.Reason{loop.ReasonStateStash}, notes: []string{"recovered agent/STATE.json from stash@{0}: invalid JSON"}, check: same, aside: true,
		},
		"invalid JSON: rebuild from the changelog": {
			found: func(_ *testing.T, f *Found) {
				f.State.Content, f.StateHistory = []byte("{} {}"), nil
				f.Changelog = file("CHANGELOG.md", "# Changelog\n\n## 2026-01-29\n\n- old\n\n## 2026-01-30\n\n- made the cart\n- next: the till\n")
			},
			reasons: []loop.Reason{loop.ReasonStateChangelog}, notes: []string{"recovered agent/STATE.json from CHANGELOG.md: invalid JSON"}, aside: true,
			check: func(t *testing.T, m Memory) {
				fresh(t, m)
				if entries := m.State.Metadata("rebuilt").Get("entries"); entries == nil || len(entries.Items) != 2 || entries.Items[1].Text != "next: the till" || m.State.Metadata("rebuilt").GetText("day") != "2026-01-30" {
					t.Errorf("the state is\n%s", m.State.Encode())
				}
			},
		},
		"invalid JSON: template, the last resort": {
			found:   func(_ *testing.T, f *Found) { f.State.Content, f.StateHistory = []byte("\xff"), nil },
			reasons: []loop.Reason{loop.ReasonStateTemplate}, notes: []string{"recovered agent/STATE.json from the template: invalid JSON"}, check: fresh, aside: true,
		},
		"invalid JSON: a duplicate key": {
			found: swapped(`"activeProject"`, `"nextIntent": "x", "activeProject"`), reasons: []loop.Reason{loop.ReasonStateCommit},
			notes: []string{"recovered agent/STATE.json from 1a2b3c4: invalid JSON"}, check: same, aside: true,
		},
		"invalid JSON: 10 MiB": {
			found:   func(_ *testing.T, f *Found) { f.State.Content = append([]byte(goodState), make([]byte, MaxBytes)...) },
			reasons: []loop.Reason{loop.ReasonStateCommit}, notes: []string{"recovered agent/STATE.json from 1a2b3c4: invalid JSON"}, check: same, aside: true,
		},
		"it cannot be read": {
			found:   func(_ *testing.T, f *Found) { f.State.Content, f.State.Problem = nil, "permission denied" },
			reasons: []loop.Reason{loop.ReasonStateCommit}, notes: []string{"recovered agent/STATE.json from 1a2b3c4: permission denied"}, check: same, aside: true,
		},
		"schema: required field missing": {
			found: swapped(`  "currentPhase": "testing",`+"\n", ""), reasons: []loop.Reason{loop.ReasonStateDefault},
			notes: []string{"recovered agent/STATE.json: added the default of /currentPhase"}, aside: true,
			check: func(t *testing.T, m Memory) {
				want := replaced(t, goodState, `"testing"`, `"idle"`)
				if s, _ := FormatSchemas().ReadState([]byte(want)); string(s.Encode()) != string(m.State.Encode()) {
					t.Errorf("more was changed than the field: %s", cmp.Diff(string(s.Encode()), string(m.State.Encode())))
				}
			},
		},
		"schema: several required fields missing": {
			found: broken(`{"errors": [{"code": "E1"}], "metadata": {"kept": true}}`), reasons: []loop.Reason{loop.ReasonStateDefault}, aside: true,
			notes: []string{"recovered agent/STATE.json: added the default of /activeProject, /currentPhase, /lastUpdated, /version, /errors/0/message, /errors/0/timestamp"},
			check: func(t *testing.T, m Memory) {
				if m.State.Metadata("kept") == nil || m.State.ErrorCount() != 1 {
					t.Errorf("the state is\n%s", m.State.Encode())
				}
			},
		},
		"schema: wrong type":         {found: swapped(`"nextIntent": "T-2"`, `"nextIntent": 2`), stop: loop.ReasonStateManual},
		"schema: unknown enum value": {found: swapped(`"testing"`, `"dreaming"`), stop: loop.ReasonStateManual},
		"schema: unknown field":      {found: swapped(`"metadata"`, `"extra": 1, "metadata"`), stop: loop.ReasonStateManual},
		"schema: not an object":      {found: broken(`[]`), stop: loop.ReasonStateManual},
		"schema: missing and wrong":  {found: broken(`{"version": 1}`), stop: loop.ReasonStateManual},
		"version 0.9":                {found: broken(`{"version": "0.9.0", "phase": "testing", "lastUpdated": "2026-01-30T09:00:00Z", "activeProject": "shop"}`), stop: loop.ReasonStateOlder},
		"other field names":          {found: swapped(`"currentPhase"`, `"current_phase"`), stop: loop.ReasonStateOlder},
		"CHANGELOG missing": {
			found:   func(_ *testing.T, f *Found) { f.Changelog = File{Path: "CHANGELOG.md"} },
			reasons: []loop.Reason{loop.ReasonChangelogNew}, notes: []string{"recovered CHANGELOG.md: it was missing"},
			check: func(t *testing.T, m Memory) {
				if want := "# Changelog\n\n## 2026-01-31\n\n- recovered CHANGELOG.md: it was missing\n"; m.Changelog != want {
					t.Errorf("the changelog is %q", m.Changelog)
				}
			},
		},
		"CHANGELOG unreadable": {
			found:   func(_ *testing.T, f *Found) { f.Changelog.Content = []byte("# \xff") },
			reasons: []loop.Reason{loop.ReasonChangelogUnread}, notes: []string{"recovered CHANGELOG.md: not UTF-8"}, aside: true,
			check: func(t *testing.T, m Memory) {
				if !strings.HasPrefix(m.Changelog, "# Changelog\n") {
					t.Errorf("the changelog is %q", m.Changelog)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) { checkRecovery(t, c) })
	}
}

func TestEachRowOfTheTaskDecisions(t *testing.T) {
	broken := func(content string) func(*testing.T, *Found) {
		return func(_ *testing.T, f *Found) { f.Tasks.Content = []byte(content) }
	}
	swapped := func(part, by string) func(*testing.T, *Found) {
		return func(t *testing.T, f *Found) { f.Tasks.Content = []byte(replaced(t, goodTodo, part, by)) }
	}
	alone := func(inner func(*testing.T, *Found)) func(*testing.T, *Found) {
		return func(t *testing.T, f *Found) {
			f.TasksHistory = nil
			inner(t, f)
		}
	}
	only := func(part, by string) func(*testing.T, Memory) {
		return func(t *testing.T, m Memory) {
			t.Helper()
			want, _ := FormatSchemas().ReadTodo([]byte(replaced(t, goodTodo, part, by)))
			if diff := cmp.Diff(string(want.Encode()), string(m.Tasks.Encode())); diff != "" {
				t.Errorf("more was changed than what was broken: %s", diff)
			}
		}
	}
	ids := func(want ...string) func(*testing.T, Memory) {
		return func(t *testing.T, m Memory) {
			t.Helper()
			var got []string
			for _, task := range m.Tasks.Tasks() {
				got = append(got, task.ID+" "+string(task.Status))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	for name, c := range map[string]recoveryCase{
		"present and valid": {found: func(*testing.T, *Found) {}, check: ids("T-1 done", "T-2 pending", "T-3 blocked")},
		"missing, first run": {
			found:   func(_ *testing.T, f *Found) { f.Tasks, f.TasksHistory = File{Path: "agent/TODO.json"}, nil },
			reasons: []loop.Reason{loop.ReasonTodoTemplate}, notes: []string{"initialised agent/TODO.json from the template: it was missing"}, check: ids("example done"),
		},
		"missing, not the first run": {
			found:   func(_ *testing.T, f *Found) { f.Tasks = File{Path: "agent/TODO.json"} },
			reasons: []loop.Reason{loop.ReasonTodoTemplate}, notes: []string{"recovered agent/TODO.json from the template: it was missing"}, check: ids("example done"),
		},
		"invalid JSON: minimal valid file": {
			found: alone(broken("{")), reasons: []loop.Reason{loop.ReasonTodoMinimal}, aside: true,
			notes: []string{"recovered agent/TODO.json from what can be read of it: invalid JSON; the old file is agent/TODO.json.broken-20260131-100000"},
			check: func(t *testing.T, m Memory) {
				want := "{\n  \"version\": \"1.0.0\",\n  \"tasks\": [],\n  \"metadata\": {\n    \"note\": \"recovered agent/TODO.json from what can be read of it: invalid JSON; the old file is agent/TODO.json.broken-20260131-100000\",\n    \"kept\": \"agent/TODO.json.broken-20260131-100000\"\n  }\n}\n"
				if got := string(m.Tasks.Encode()); got != want {
					t.Errorf("the tasks are %s", got)
				}
			},
		},
		"invalid JSON: tasks of the last commit are kept": {
			found: broken("NaN"), reasons: []loop.Reason{loop.ReasonTodoMinimal}, aside: true,
			notes: []string{"recovered agent/TODO.json from what can be read of it and 1a2b3c4: invalid JSON; the old file is agent/TODO.json.broken-20260131-100000"}, check: ids("T-1 done", "T-2 pending", "T-3 blocked"),
		},
		"invalid JSON: tasks that can be read are kept": {
			found: alone(func(t *testing.T, f *Found) {
				f.Tasks.Content = []byte(replaced(t, goodTodo, `"title": "Three"`, `"title": "Thr`))
			}),
			reasons: []loop.Reason{loop.ReasonTodoMinimal}, aside: true,
			notes: []string{"recovered agent/TODO.json from what can be read of it: invalid JSON; the old file is agent/TODO.json.broken-20260131-100000"}, check: ids("T-1 done", "T-2 pending"),
		},
		"invalid JSON: what can be read is newer than the last commit": {
			found: func(t *testing.T, f *Found) {
				newer := replaced(t, goodTodo, `"status": "pending"`, `"status": "in-progress"`)
				f.Tasks.Content = []byte(replaced(t, newer, `"title": "Three", "status"`, `"title": "Three" "status"`))
			},
			reasons: []loop.Reason{loop.ReasonTodoMinimal}, aside: true,
			notes: []string{"recovered agent/TODO.json from what can be read of it and 1a2b3c4: invalid JSON; the old file is agent/TODO.json.broken-20260131-100000"}, check: ids("T-1 done", "T-2 in-progress", "T-3 blocked"),
		},
		"invalid JSON: a task whose dependency is lost is blocked": {
			found: alone(func(t *testing.T, f *Found) {
				f.Tasks.Content = []byte(replaced(t, goodTodo, `"title": "One"`, `"title" "One"`))
			}),
			reasons: []loop.Reason{loop.ReasonTodoMinimal}, aside: true,
			notes: []string{"recovered agent/TODO.json from what can be read of it: invalid JSON; blocked, because a dependency is lost: T-2; the old file is agent/TODO.json.broken-20260131-100000"}, check: ids("T-2 blocked", "T-3 blocked"),
		},
		"invalid JSON that is committed: it is in that commit": {
			found: func(_ *testing.T, f *Found) {
				f.Tasks.Content = []byte("{")
				f.TasksHistory = versions(Version{"2b3c4d5", []byte("{")}, Version{"1a2b3c4", []byte(goodTodo)})
			},
			reasons: []loop.Reason{loop.ReasonTodoMinimal}, aside: true,
			notes: []string{"recovered agent/TODO.json from what can be read of it and 1a2b3c4: invalid JSON; the old file is in the commit 2b3c4d5"}, check: ids("T-1 done", "T-2 pending", "T-3 blocked"),
		},
		"schema: missing priority": {
			found: swapped(`"status": "pending", "priority": "high"`, `"status": "pending"`), reasons: []loop.Reason{loop.ReasonTodoPriority}, aside: true,
			notes: []string{"recovered agent/TODO.json: added the priority medium to T-2"}, check: only(`"status": "pending", "priority": "high"`, `"status": "pending", "priority": "medium"`),
		},
		"schema: the status wip": {
			found: swapped(`"status": "pending"`, `"status": "wip"`), reasons: []loop.Reason{loop.ReasonTodoStatus}, aside: true,
			notes: []string{"recovered agent/TODO.json: replaced the status of T-2 wip → in-progress"}, check: only(`"status": "pending"`, `"status": "in-progress"`),
		},
		"schema: the status complete": {
			found: swapped(`"status": "done"`, `"status": "complete"`), reasons: []loop.Reason{loop.ReasonTodoStatus}, aside: true,
			notes: []string{"recovered agent/TODO.json: replaced the status of T-1 complete → done"}, check: ids("T-1 done", "T-2 pending", "T-3 blocked"),
		},
		"schema: tasks by their ids": {
			found: alone(broken(`{"version": "1.0.0", "tasks": {}}`)), reasons: []loop.Reason{loop.ReasonTodoStructural}, aside: true,
			notes: []string{"recovered agent/TODO.json: it was taken over from another shape: made a list of the tasks, which were written by their ids"}, check: ids(),
		},
		"schema: an unknown status": {found: swapped(`"status": "blocked"`, `"status": "asleep"`), stop: loop.ReasonStateManual},
		"it cannot be read":         {found: func(_ *testing.T, f *Found) { f.Tasks.Problem = "permission denied" }, stop: loop.ReasonStateManual},
		"a task written twice alike": {
			found:   swapped(`"blockedReason": "waits"}`, `"blockedReason": "waits"}, {"title": "Three", "id": "T-3", "status": "blocked", "priority": "low", "blockedReason": "waits"}`),
			reasons: []loop.Reason{loop.ReasonTodoDuplicate}, aside: true,
			notes: []string{"recovered agent/TODO.json: dropped a copy of the task T-3"}, check: ids("T-1 done", "T-2 pending", "T-3 blocked"),
		},
		"two tasks with one id":          {found: swapped(`"id": "T-3"`, `"id": "T-2"`), stop: loop.ReasonTodoDuplicate},
		"an orphan":                      {found: swapped(`["T-1"]`, `["T-9"]`), stop: loop.ReasonTodoOrphan},
		"a task that depends on itself":  {found: swapped(`["T-1"]`, `["T-2"]`), stop: loop.ReasonTodoCycle},
		"other field names":              {found: swapped(`"title": "One"`, `"name": "One"`), stop: loop.ReasonTodoOlder},
		"parts that do not fit together": {found: broken(`{"id": "T-1", "title": "One", "status": "pending", "priority": "low", "dependencies": ["T-2"]} x`), stop: loop.ReasonTodoMinimal},
	} {
		t.Run(name, func(t *testing.T) { checkRecovery(t, c) })
	}
}

func TestAllErrorsOfAStateAreNamed(t *testing.T) {
	f := found()
	f.State.Content = []byte("{\"version\": \"1\", \"lastUpdated\": \"now\",\n \"activeProject\": 7, \"currentPhase\": \"idle\"}")
	_, _, stop := FormatSchemas().Recover(f)
	var got []string
	for _, one := range stop.Findings {
		got = append(got, one.String())
	}
	want := []string{
		`1:13: /version: "1" does not match ^\d+\.\d+\.\d+$`, `1:33: /lastUpdated: "now" is not a date-time`, `2:19: /activeProject: is number, not string`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEachFaultOfReferencesIsNamed(t *testing.T) {
	task := func(id string, dependencies string) string {
		return `{"id": "` + id + `", "title": "x", "status": "pending", "priority": "low", "dependencies": [` + dependencies + "]}"
	}
	src := `{"version": "1.0.0", "tasks": [` + strings.Join([]string{
		task("a", `"b"`), task("b", `"c"`), task("c", `"b", "z"`), task("a", ""), task("d", `"d"`), task("e", `"a"`),
	}, ",\n") + "]}"
	_, findings := FormatSchemas().ReadTodo([]byte(src))
	var got []string
	for _, one := range findings {
		got = append(got, string(one.Reason)+" "+one.String())
	}
	want := []string{
		`todo_duplicate 4:8: /tasks/3/id: "a" is the id of /tasks/0 too; give each task its own`,
		`todo_orphan 3:89: /tasks/2/dependencies/1: there is no task "z"; remove the dependency or add the task`,
		`todo_cycle 3:84: /tasks/2/dependencies/0: closes the circle b → c → b; remove a dependency`,
		`todo_cycle 5:84: /tasks/4/dependencies/0: depends on itself; remove a dependency`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBothVersionsOfAStateAndOtherNamesAreMigrated(t *testing.T) {
	x := FormatSchemas()
	for name, c := range map[string]struct {
		src, want string
		notes     []string
	}{
		"0.9": {
			`{"version": "0.9.2", "lastUpdated": "2026-01-30T09:00:00Z", "activeProject": "shop", "phase": "testing"}`,
			`{"version": "1.0.0", "lastUpdated": "2026-01-30T09:00:00Z", "activeProject": "shop", "currentPhase": "testing", "errors": []}`,
			[]string{"renamed /phase to currentPhase", "set version to 1.0.0", "set errors to its default"},
		},
		"0.9 without a phase": {
			`{"version": "0.9.0", "lastUpdated": "2026-01-30T09:00:00Z", "activeProject": "shop"}`,
			`{"version": "1.0.0", "lastUpdated": "2026-01-30T09:00:00Z", "activeProject": "shop", "currentPhase": "idle", "errors": []}`,
			[]string{"set version to 1.0.0", "set currentPhase to its default", "set errors to its default"},
		},
		"other names, and a template that nobody has filled in": {
			`{"_comment": "x", "version": "1.0.0", "last_updated": "{{NOW}}", "project": "{{P}}", "current_phase": "Implementing", "sessionId": 7, "nextIntent": "", "errors": []}`,
			`{"version": "1.0.0", "lastUpdated": "2026-01-31T10:00:00.000Z", "activeProject": "shop", "currentPhase": "implementing", "nextIntent": "", "errors": [], "metadata": {"sessionId": 7}}`,
			[]string{
				"removed /_comment", "renamed /last_updated to lastUpdated", "renamed /project to activeProject", "renamed /current_phase to currentPhase",
				"moved /sessionId to metadata", "set lastUpdated to its default", "set activeProject to its default", "replaced /currentPhase Implementing by implementing",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes, findings := x.MigrateState([]byte(c.src), "shop", now)
			want, wrong := x.ReadState([]byte(c.want))
			if len(wrong)+len(findings) > 0 {
				t.Fatal(wrong, findings)
			}
			if diff := cmp.Diff(string(want.Encode()), string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
			if again, notes, _ := x.MigrateState(got, "shop", now); string(again) != string(got) || len(notes) > 0 {
				t.Errorf("the second migration: %v", notes)
			}
		})
	}
	if got, notes, _ := x.MigrateState([]byte(goodState), "shop", now); string(got) != goodState || len(notes) > 0 {
		t.Errorf("a valid state is changed: %v", notes)
	}
	if got, notes, _ := x.MigrateTodo([]byte(goodTodo), now); string(got) != goodTodo || len(notes) > 0 {
		t.Errorf("valid tasks are changed: %v", notes)
	}
	for _, src := range []string{"{", "[]"} {
		got, notes, findings := x.MigrateState([]byte(src), "shop", now)
		if string(got) != src || len(notes) > 0 || len(findings) == 0 {
			t.Errorf("%s is migrated to %s: %v %v", src, got, notes, findings)
		}
		if got, _, findings := x.MigrateTodo([]byte(src), now); string(got) != src || len(findings) == 0 {
			t.Errorf("%s is migrated to %s: %v", src, got, findings)
		}
	}
	for name, field := range map[string]string{"commitSha": "lastCommitSha", "last_commit": "lastCommitSha", "next-action": "nextIntent", "updatedAt": "lastUpdated", "Errors": "errors"} {
		if got := fieldOf(name, stateOrder, otherNames); got != field {
			t.Errorf("%s means %q, want %s", name, got, field)
		}
	}
	got, notes, findings := x.MigrateTodo([]byte(`{"_instructions": 1, "todos": [
		{"id": "a", "name": "A", "state": "in_progress", "deps": ["b"], "points": 3},
		{"id": "b", "title": "B", "status": "Completed", "priority": "P1", "_comment": "x", "createdAt": "{{NOW}}"}]}`), now)
	want, wrong := x.ReadTodo([]byte(`{"version": "1.0.0", "tasks": [
		{"id": "a", "title": "A", "status": "in-progress", "priority": "medium", "dependencies": ["b"], "metadata": {"points": 3}},
		{"id": "b", "title": "B", "status": "done", "priority": "high", "createdAt": "2026-01-31T10:00:00.000Z"}]}`))
	if diff := cmp.Diff(string(want.Encode()), string(got)); diff != "" || len(wrong)+len(findings) > 0 {
		t.Error(wrong, findings, diff)
	}
	if len(notes) != 13 {
		t.Errorf("%d notes: %q", len(notes), notes)
	}
	if _, _, findings := x.MigrateState([]byte(`{"version": "0.9.0", "phase": 7, "activeProject": "x"}`), "shop", now); len(findings) != 2 || findings[0].Pointer != "/currentPhase" || findings[1].Pointer != "/currentPhase" {
		t.Errorf("what cannot be migrated has the findings %v", findings)
	}
}
