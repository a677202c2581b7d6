package bootstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
)

// MostAttempts is how many sessions in a row may fail at a task. After that many it is
// blocked.
const MostAttempts = 3

// Attempt is a session that has begun a task and not finished it. Attempts are in the
// files of the memory, so that every clone counts the same.
type Attempt struct {
	Run   string // id
	Began time.Time
	Why   string // how it failed; empty: it has not ended
}

// fieldAttempts is the name under which the metadata of a task has its attempts.
const fieldAttempts = "attempts"

// Attempts returns the sessions in a row that have not finished a task, the oldest first.
func (m Memory) Attempts(task string) []Attempt {
	list, _ := readAttempts(m.Tasks.item(task))
	for _, v := range m.State.errorItems() {
		if a, id := readErrorAttempt(v); id == task {
			list = append(list, a)
		}
	}
	return list
}

// readAttempts reads what the metadata of a task has. It reports false if a person or
// another program has something else under the name, which stays.
func readAttempts(task *jsontree.Value) (list []Attempt, ours bool) {
	v := task.Get(fieldMetadata).Get(fieldAttempts)
	if v == nil {
		return nil, true
	}
	if v.Kind != jsontree.List {
		return nil, false
	}
	for _, item := range v.Items {
		a := Attempt{Run: item.GetText("run"), Began: timeOf(item, "began"), Why: item.GetText("failed")}
		if a.Run == "" {
			return nil, false
		}
		list = append(list, a)
	}
	return list, true
}

func timeOf(v *jsontree.Value, name string) time.Time {
	t, _ := draft07.ParseTime(v.GetText(name))
	return t
}

// SetAttempts replaces the attempts of a task: in its metadata or, if the schema of the
// boot repository does not allow that, in the errors of the state. It changes the memory,
// and reports false if the attempts fit nowhere; then none is recorded.
func (x Schemas) SetAttempts(m Memory, task string, list []Attempt, now time.Time) bool {
	if slices.Equal(m.Attempts(task), list) {
		return true
	}
	v := m.Tasks.item(task)
	if v == nil {
		return false
	}
	before, errorsBefore := *v.Clone(), m.State.tree.Get(fieldErrors).Clone()
	m.State.dropErrorAttempts(task, list)
	if _, ours := readAttempts(v); ours {
		writeAttempts(v, list)
		v.SetInOrder(fieldUpdatedAt, timeText(now), taskOrder)
		if len(list) == 0 || len(x.Set.Validate(x.TasksFile, m.Tasks.tree, nil)) == 0 {
			return true
		}
		*v = before
		writeAttempts(v, nil)
	}
	for _, a := range list {
		code, message := codeBegun, "the session has not ended"
		if a.Why != "" {
			code, message = codeFailed, a.Why
		}
		m.State.AddError(a.Began, message, code+"/"+task+"/"+a.Run, true)
	}
	if len(list) == 0 || len(x.Set.Validate(x.StateFile, m.State.tree, nil)) == 0 {
		return true
	}
	if errorsBefore == nil {
		m.State.tree.Remove(fieldErrors)
	} else {
		m.State.set(fieldErrors, errorsBefore)
	}
	return false
}

func writeAttempts(task *jsontree.Value, list []Attempt) {
	metadata := task.Get(fieldMetadata)
	if len(list) == 0 {
		if metadata.Get(fieldAttempts) != nil {
			if metadata.Remove(fieldAttempts); len(metadata.Members) == 0 {
				task.Remove(fieldMetadata)
			}
		}
		return
	}
	if metadata == nil {
		metadata = jsontree.NewObject()
		task.SetInOrder(fieldMetadata, metadata, taskOrder)
	}
	all := jsontree.NewList()
	for _, a := range list {
		item := jsontree.NewObject(
			jsontree.Member{Name: "run", Value: jsontree.NewText(a.Run)}, jsontree.Member{Name: "began", Value: timeText(a.Began)},
		)
		if a.Why != "" {
			item.Set("failed", jsontree.NewText(a.Why))
		}
		all.Items = append(all.Items, item)
	}
	metadata.Set(fieldAttempts, all)
}

// An attempt among the errors of a state has the code codeBegun/TASK/RUN or
// codeFailed/TASK/RUN for as long as it counts, and codeFailed alone afterwards.
const (
	codeBegun  = "attempt_begun"
	codeFailed = "attempt_failed"
)

// readErrorAttempt returns the attempt that an error is, and its task; an empty task: it is
// none.
func readErrorAttempt(v *jsontree.Value) (a Attempt, task string) {
	parts := strings.Split(v.GetText("code"), "/")
	if len(parts) != 3 || parts[0] != codeBegun && parts[0] != codeFailed {
		return a, ""
	}
	a = Attempt{Run: parts[2], Began: timeOf(v, "timestamp")}
	if parts[0] == codeFailed {
		a.Why = v.GetText("message")
	}
	return a, parts[1]
}

// errorItems are the errors that are recorded.
func (s State) errorItems() []*jsontree.Value {
	if list := s.tree.Get(fieldErrors); list != nil {
		return list.Items
	}
	return nil
}

// dropErrorAttempts makes the attempts of a task among the errors count no longer. One
// that was only begun is not an error, and goes; so does one that is written again.
func (s State) dropErrorAttempts(task string, again []Attempt) {
	list := s.tree.Get(fieldErrors)
	if list == nil {
		return
	}
	list.Items = slices.DeleteFunc(list.Items, func(v *jsontree.Value) bool {
		a, id := readErrorAttempt(v)
		if id != task {
			return false
		}
		v.Set("code", jsontree.NewText(codeFailed))
		return a.Why == "" || slices.ContainsFunc(again, func(b Attempt) bool { return a.Run == b.Run })
	})
}

// FailAttempt records that a session has failed at a task, after the attempts that were
// made before. After too many of them the task is blocked, and so it is if nothing can
// be counted: then the reason is returned.
func (x Schemas) FailAttempt(m Memory, task string, before []Attempt, a Attempt, now time.Time) (blocked string) {
	a.Why = shortened(oneLine(a.Why), 500)
	list := slices.Clone(before)
	if i := slices.IndexFunc(list, func(b Attempt) bool { return b.Run == a.Run }); i >= 0 {
		list[i] = a
	} else {
		list = append(list, a)
	}
	counted := x.SetAttempts(m, task, list, now)
	switch {
	case len(list) >= MostAttempts:
		blocked = fmt.Sprintf("%d sessions in a row failed at it; the last one: %s", len(list), a.Why)
	case !counted:
		blocked = "a session failed at it, and the schemas of the boot repository leave no room to count sessions: " + a.Why
	default:
		return ""
	}
	x.SetAttempts(m, task, nil, now) // Who opens it again wants it tried as often again.
	m.Tasks.SetStatus(task, StatusBlocked, blocked, now)
	return blocked
}

// Lost is an attempt of a session that never ended.
type Lost struct {
	Task    string
	Run     string
	Blocked string // why the task is blocked now; empty: it is not
}

// whyLost is what is recorded of a session that never ended.
const whyLost = "the session never ended: its process died"

// CloseLost records the attempts of sessions that have never ended as failed: all but
// those of the run that asks. It is called before anything is planned. A memory with such
// an attempt is returned as another one.
func (x Schemas) CloseLost(m Memory, run string, now time.Time) (Memory, []Lost) {
	var lost []Lost
	for _, task := range m.Tasks.Tasks() {
		if task.Status == StatusDone || task.Status == StatusBlocked {
			continue
		}
		list := m.Attempts(task.ID)
		for _, a := range list {
			if a.Why != "" || a.Run == run {
				continue
			}
			if len(lost) == 0 {
				m.State, m.Tasks = m.State.Clone(), m.Tasks.Clone()
			}
			one := Lost{Task: task.ID, Run: a.Run}
			a.Why = whyLost
			one.Blocked = x.FailAttempt(m, task.ID, m.Attempts(task.ID), a, now)
			if lost = append(lost, one); one.Blocked != "" {
				m.State.SetNextIntent(NextTask(m.Tasks))
				break
			}
			m.State.SetNextIntent(task.ID) // As the end of a session does that has not finished a task.
		}
	}
	return m, lost
}
