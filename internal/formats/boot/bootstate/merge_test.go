package bootstate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// memoryAt makes a memory that was updated so many minutes after now.
func memoryAt(minutes int, tasks Todo) Memory {
	s := NewState("shop", now.Add(time.Duration(minutes)*time.Minute))
	s.SetNextIntent(fmt.Sprint("written at ", minutes))
	return Memory{s, tasks, fmt.Sprintf("# Changelog\n\n## 2026-01-31\n\n- at %d\n", minutes)}
}

func TestTheNewerStateWinsAndTasksAreUnited(t *testing.T) {
	base := todoOf(t, "T-1 pending low", "T-2 pending low")
	ours, theirs := base.Clone(), base.Clone()
	ours.SetStatus("T-1", StatusDone, "", now.Add(5*time.Minute))
	ours.Add(Task{ID: "ours", Title: "x", Status: StatusPending, Priority: PriorityLow}, now)
	theirs.SetStatus("T-1", StatusBlocked, "no key", now.Add(4*time.Minute))
	theirs.SetStatus("T-2", StatusInProgress, "", now.Add(time.Minute))
	theirs.Add(Task{ID: "theirs", Title: "y", Status: StatusPending, Priority: PriorityLow}, now)
	m, findings := FormatSchemas().Merge(memoryAt(1, ours), memoryAt(2, theirs))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	var got []string
	for _, task := range m.Tasks.Tasks() {
		got = append(got, task.ID+" "+string(task.Status))
	}
	if diff := cmp.Diff([]string{"T-1 done", "T-2 in-progress", "ours pending", "theirs pending"}, got); diff != "" {
		t.Error(diff)
	}
	if m.State.NextIntent() != "written at 2" {
		t.Errorf("the state is %s", m.State.Encode())
	}
	if want := "# Changelog\n\n## 2026-01-31\n\n- at 2\n- at 1\n"; m.Changelog != want {
		t.Errorf("the changelog is %q", m.Changelog)
	}
}

func TestNotesAboutTasksAreUnited(t *testing.T) {
	ours, theirs := todoOf(t, "T-1 pending low"), todoOf(t, "T-1 pending low")
	theirs.setNote("theirs")
	m, _ := FormatSchemas().Merge(memoryAt(2, ours), memoryAt(1, theirs))
	if m.Tasks.Note() != "theirs" {
		t.Errorf("the note is %q", m.Tasks.Note())
	}
	ours.setNote("ours")
	if m, _ := FormatSchemas().Merge(memoryAt(2, ours), memoryAt(1, theirs)); m.Tasks.Note() != "ours" {
		t.Errorf("the note is %q", m.Tasks.Note())
	}
}

func TestWhatOnlyOneSideHasChangedIsAsItIsThereWhateverTheClocksSay(t *testing.T) {
	base := memoryAt(60, todoOf(t, "T-1 pending low", "T-2 pending low"))
	ours, theirs := base, base // The clock of ours is behind by an hour.
	ours.State, ours.Tasks = base.State.Clone(), base.Tasks.Clone()
	ours.Tasks.SetStatus("T-1", StatusDone, "", now.Add(-time.Hour))
	ours.State.SetLastUpdated(now.Add(-time.Hour))
	ours.State.SetNextIntent("T-2")
	theirs.Tasks = base.Tasks.Clone()
	theirs.Tasks.SetStatus("T-2", StatusInProgress, "", now.Add(2*time.Hour))
	for name, sides := range map[string][2]Memory{"ours first": {ours, theirs}, "theirs first": {theirs, ours}} {
		m, findings := FormatSchemas().MergeFrom(base, sides[0], sides[1])
		one, _ := m.Tasks.Task("T-1")
		two, _ := m.Tasks.Task("T-2")
		if len(findings) > 0 || one.Status != StatusDone || two.Status != StatusInProgress || m.State.NextIntent() != "T-2" {
			t.Errorf("%s: T-1 is %s, T-2 %s, next %q, %v", name, one.Status, two.Status, m.State.NextIntent(), findings)
		}
	}
}

func TestAMergeThatIsNotValidSaysSo(t *testing.T) {
	ours := todoOf(t, "T-1 pending low T-2", "T-2 pending low")
	theirs := todoOf(t, "T-1 pending low", "T-2 pending low T-1")
	theirs.SetStatus("T-2", StatusInProgress, "", now.Add(time.Minute))
	ours.SetStatus("T-1", StatusInProgress, "", now.Add(time.Minute))
	_, findings := FormatSchemas().Merge(memoryAt(1, ours), memoryAt(2, theirs))
	if len(findings) != 1 || findings[0].Reason != loop.ReasonTodoCycle {
		t.Errorf("findings = %v", findings)
	}
}

// drawMemory draws one of two sessions that may have begun from the same memory.
func drawMemory(t *rapid.T, name string) Memory {
	todo := emptyTodo()
	for _, id := range rapid.Permutation([]string{"a", "b", "c", "d", "e"}).Draw(t, name+" order")[:rapid.IntRange(0, 5).Draw(t, name+" count")] {
		v := Task{ID: id, Title: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "title"), Priority: PriorityLow, Status: rapid.SampledFrom(statuses).Draw(t, "status")}
		todo.Add(v, now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "updated"))*time.Second))
		if rapid.Bool().Draw(t, "no time") {
			todo.item(id).Remove(fieldUpdatedAt)
		}
	}
	if rapid.Bool().Draw(t, "noted") {
		todo.setNote(name)
	}
	m := memoryAt(rapid.IntRange(0, 2).Draw(t, name+" minutes"), todo)
	if rapid.Bool().Draw(t, "intent") {
		m.State.SetNextIntent(name)
	}
	return m
}

func textOf(m Memory) string {
	return string(m.State.Encode()) + string(m.Tasks.Encode()) + m.Changelog
}

func TestAMergeLosesNoTaskAndHasNoSides(t *testing.T) {
	x := FormatSchemas()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMemory(t, "a"), drawMemory(t, "b")
		before := textOf(a) + textOf(b)
		m, findings := x.Merge(a, b)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		if textOf(a)+textOf(b) != before {
			t.Fatal("the merge changed what it was given")
		}
		if other, _ := x.Merge(b, a); textOf(other) != textOf(m) {
			t.Fatalf("the other way round: %s", cmp.Diff(textOf(m), textOf(other)))
		}
		if same, _ := x.Merge(m, m); textOf(same) != textOf(m) {
			t.Fatal("with itself it is another one")
		}
		for _, side := range []Memory{a, b} {
			if again, _ := x.Merge(m, side); string(again.Tasks.Encode()) != string(m.Tasks.Encode()) && len(again.Tasks.Tasks()) != len(m.Tasks.Tasks()) {
				t.Fatal("a second merge adds tasks")
			}
			for _, task := range side.Tasks.Tasks() {
				merged, there := m.Tasks.Task(task.ID)
				if !there || merged.UpdatedAt.Before(task.UpdatedAt) {
					t.Fatalf("the task %s is lost or older", task.ID)
				}
			}
			_, entries := entriesOf(side.Changelog)
			_, all := entriesOf(m.Changelog)
			for day, list := range entries {
				for _, entry := range list {
					if !slices.Contains(all[day], entry) {
						t.Fatalf("the entry %q is lost", entry)
					}
				}
			}
		}
	})
}
