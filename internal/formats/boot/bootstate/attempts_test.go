package bootstate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
)

// schemasWith are those of the format with parts replaced.
func schemasWith(t *testing.T, state, tasks [2]string) Schemas {
	t.Helper()
	change := func(src []byte, c [2]string) []byte {
		if c[0] == "" {
			return src
		}
		return []byte(replaced(t, string(src), c[0], c[1]))
	}
	x := FormatSchemas()
	var problems []draft07.Problem
	x.Set, problems = draft07.Compile(map[string][]byte{x.StateFile: change(stateSchema, state), x.TasksFile: change(todoSchema, tasks)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return x
}

var (
	noTaskMetadata = [2]string{`"blockedReason": {"type": "string"},` + "\n        \"metadata\": {\"type\": \"object\"}", `"blockedReason": {"type": "string"}`}
	shortCodes     = [2]string{`"code": {"type": "string"}`, `"code": {"type": "string", "maxLength": 3}`}
)

func TestAttemptsAreWhereTheSchemasAllowThem(t *testing.T) {
	for name, c := range map[string]struct {
		state, tasks [2]string
		metadata     string // of the task; empty: none
		place        string // what has the attempts: metadata, errors or nothing
	}{
		"in the metadata of the task":                        {place: "metadata"},
		"beside what a person has there":                     {metadata: `{"owner": "ann"}`, place: "metadata"},
		"in the errors: the schema forbids metadata":         {tasks: noTaskMetadata, place: "errors"},
		"in the errors: a person has something of that name": {metadata: `{"attempts": "see the wiki"}`, place: "errors"},
		"nowhere": {state: shortCodes, tasks: noTaskMetadata, place: "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			x := schemasWith(t, c.state, c.tasks)
			src := `{"version":"1.0.0","tasks":[{"id":"a","title":"A","status":"in-progress","priority":"high"},{"id":"b","title":"B","status":"pending","priority":"low"}]}`
			if c.metadata != "" {
				src = replaced(t, src, `"high"}`, `"high","metadata":`+c.metadata+`}`)
			}
			todo, wrong := x.ReadTodo([]byte(src))
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			m := Memory{State: stateWith("a"), Tasks: todo}
			m.State.AddError(now, "by hand", "x", true)
			blocked := ""
			for i, run := range []string{"run_1", "run_2", "run_3"} {
				began := now.Add(time.Duration(i) * time.Hour)
				counted := x.SetAttempts(m, "a", append(m.Attempts("a"), Attempt{Run: run, Began: began}), began)
				if counted != (c.place != "nothing") {
					t.Fatalf("counted = %v", counted)
				}
				if blocked = x.FailAttempt(m, "a", m.Attempts("a"), Attempt{run, began, "no idea"}, began); blocked != "" {
					break
				}
				if got := m.Attempts("a"); len(got) != i+1 || got[i] != (Attempt{run, began, "no idea"}) || len(m.Attempts("b")) > 0 {
					t.Fatalf("after %d sessions: %+v", i+1, got)
				}
				if inErrors := m.State.ErrorCount() > 1; inErrors != (c.place == "errors") || strings.Contains(string(m.Tasks.Encode()), `"failed"`) != (c.place == "metadata") {
					t.Fatalf("the attempts are not in %s:\n%s%s", c.place, m.State.Encode(), m.Tasks.Encode())
				}
				// Who reads the files counts the same.
				again, wrong := x.ReadTodo(m.Tasks.Encode())
				state, alsoWrong := x.ReadState(m.State.Encode())
				if len(wrong)+len(alsoWrong) > 0 {
					t.Fatal(wrong, alsoWrong)
				}
				if diff := cmp.Diff(m.Attempts("a"), (Memory{State: state, Tasks: again}).Attempts("a")); diff != "" {
					t.Error(diff)
				}
			}
			want := "3 sessions in a row failed at it; the last one: no idea"
			if c.place == "nothing" {
				want = "a session failed at it, and the schemas of the boot repository leave no room to count sessions: no idea"
			}
			if task, _ := m.Tasks.Task("a"); task.Status != StatusBlocked || task.BlockedReason != want || blocked != want {
				t.Errorf("the task is %s: %q, want it blocked: %q", task.Status, task.BlockedReason, want)
			}
			// A person who opens it again wants it tried as often again; what was there stays.
			if got := m.Attempts("a"); len(got) > 0 {
				t.Errorf("a blocked task has the attempts %+v", got)
			}
			if v := m.Tasks.item("a"); c.metadata != "" && strings.Join(strings.Fields(string(jsontree.Encode(v.Get(fieldMetadata)))), " ") != "{ "+strings.Trim(c.metadata, "{}")+" }" {
				t.Errorf("the metadata is %s", jsontree.Encode(v.Get(fieldMetadata)))
			}
			if m.State.errorItems()[0].GetText("message") != "by hand" {
				t.Errorf("errors: %s", m.State.Encode())
			}
		})
	}
}

func TestASessionThatNeverEndedIsAnAttemptBeforeAnythingIsPlanned(t *testing.T) {
	for name, tasks := range map[string][2]string{"metadata": {}, "errors": noTaskMetadata} {
		t.Run(name, func(t *testing.T) {
			x := schemasWith(t, [2]string{}, tasks)
			m := Memory{State: stateWith("T-2"), Tasks: todoOf(t, "T-1 in-progress critical", "T-2 pending low")}
			begin := func(run string) {
				if !x.SetAttempts(m, "T-1", append(m.Attempts("T-1"), Attempt{Run: run, Began: now}), now) {
					t.Fatal("not counted")
				}
			}
			begin("run_1")
			if _, lost := x.CloseLost(m, "run_1", now); len(lost) > 0 {
				t.Errorf("the run that asks is lost: %v", lost)
			}
			for i, run := range []string{"run_2", "run_3", "run_4"} {
				before := string(m.Tasks.Encode()) + string(m.State.Encode())
				closed, lost := x.CloseLost(m, run, now)
				if string(m.Tasks.Encode())+string(m.State.Encode()) != before {
					t.Error("CloseLost changed what it was given")
				}
				if again, more := x.CloseLost(closed, run, now); len(more) > 0 || string(again.Tasks.Encode()) != string(closed.Tasks.Encode()) {
					t.Errorf("it is counted again: %v", more)
				}
				d, _ := Plan(closed.State, closed.Tasks, "", nil, now)
				wantBlocked, wantTask := i == 2, "T-1"
				if wantBlocked {
					wantTask = "T-2"
				}
				if len(lost) != 1 || (lost[0].Blocked != "") != wantBlocked || d.Task != wantTask {
					t.Fatalf("after %d sessions: %+v, then %+v; want %s to be next", i+1, lost, d, wantTask)
				}
				m = closed
				if !wantBlocked {
					begin(run)
				}
			}
		})
	}
}

// Whatever ends the sessions have, the task is blocked after as many failures in a row as
// may be, and not before; what other tasks have does not change.
func TestATaskIsBlockedAfterSoManyFailuresInARow(t *testing.T) {
	noErrors := schemasWith(t, [2]string{}, noTaskMetadata)
	rapid.Check(t, func(rt *rapid.T) {
		x := rapid.SampledFrom([]Schemas{FormatSchemas(), noErrors}).Draw(rt, "schemas")
		m := Memory{State: NewState("shop", now), Tasks: emptyTodo()}
		ids := []string{"a", "b", "c"}
		failed := map[string]int{}
		for _, id := range ids {
			m.Tasks.Add(Task{ID: id, Title: id, Status: StatusPending, Priority: PriorityLow}, now)
		}
		for n := range rapid.IntRange(1, 20).Draw(rt, "sessions") {
			id, run := rapid.SampledFrom(ids).Draw(rt, "task"), "run_"+string(rune('a'+n))
			if task, _ := m.Tasks.Task(id); task.Status == StatusBlocked {
				m.Tasks.SetStatus(id, StatusPending, "", now) // by a person
			}
			m.State, m.Tasks = Begin(m.State, m.Tasks, id, now)
			before := m.Attempts(id)
			x.SetAttempts(m, id, append(before, Attempt{Run: run, Began: now}), now)
			blocked := ""
			switch rapid.SampledFrom([]string{"fails", "is killed", "passes", "continues"}).Draw(rt, "end") {
			case "fails":
				blocked = x.FailAttempt(m, id, m.Attempts(id), Attempt{run, now, "no"}, now)
				failed[id]++
			case "is killed":
				var lost []Lost
				if m, lost = x.CloseLost(m, "run_next", now); len(lost) != 1 {
					rt.Fatalf("lost = %v", lost)
				}
				blocked = lost[0].Blocked
				failed[id]++
			case "passes":
				m.Tasks.SetStatus(id, StatusDone, "", now)
				x.SetAttempts(m, id, nil, now)
				failed[id] = 0
			case "continues":
				x.SetAttempts(m, id, before, now)
			}
			if (blocked != "") != (failed[id] == MostAttempts) {
				rt.Fatalf("after %d failures in a row %s is blocked: %q", failed[id], id, blocked)
			}
			if blocked != "" {
				failed[id] = 0
			}
			for _, other := range ids {
				if got := len(m.Attempts(other)); got != failed[other] {
					rt.Fatalf("%s has %d attempts, want %d", other, got, failed[other])
				}
			}
		}
	})
}
