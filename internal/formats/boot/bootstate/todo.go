package bootstate

import (
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
)

// Status is where a task stands.
type Status string

// The statuses.
const (
	StatusPending    Status = "pending"
	StatusInProgress Status = "in-progress"
	StatusBlocked    Status = "blocked"
	StatusDone       Status = "done"
)

var statuses = []Status{StatusPending, StatusInProgress, StatusBlocked, StatusDone}

// Priority ranks tasks.
type Priority string

// The priorities.
const (
	PriorityCritical Priority = "critical"
	PriorityHigh     Priority = "high"
	PriorityMedium   Priority = "medium"
	PriorityLow      Priority = "low"
)

var priorities = []Priority{PriorityCritical, PriorityHigh, PriorityMedium, PriorityLow}

// Rank is 0 for the highest priority.
func (p Priority) Rank() int { return slices.Index(priorities, p) }

// Task is a task as a TODO.json has it.
type Task struct {
	ID            string
	Title         string
	Description   string
	Status        Status
	Priority      Priority
	Dependencies  []string
	BlockedReason string
	UpdatedAt     time.Time // zero if it is not written
}

// Fields of a TODO.json and of a task, in their order.
const (
	fieldTasks        = "tasks"
	fieldID           = "id"
	fieldTitle        = "title"
	fieldDescription  = "description"
	fieldStatus       = "status"
	fieldPriority     = "priority"
	fieldDependencies = "dependencies"
	fieldCreatedAt    = "createdAt"
	fieldUpdatedAt    = "updatedAt"
	fieldCompletedAt  = "completedAt"
	fieldBlocked      = "blockedReason"
)

var (
	todoOrder = []string{fieldVersion, fieldTasks, fieldMetadata}
	taskOrder = []string{
		fieldID, fieldTitle, fieldDescription, fieldStatus, fieldPriority, fieldDependencies,
		fieldCreatedAt, fieldUpdatedAt, fieldCompletedAt, fieldBlocked, fieldMetadata,
	}
)

// Todo is a TODO.json that is valid. It is a reference: Clone makes another one. What a
// reader does not know is kept as it is.
type Todo struct{ tree *jsontree.Value }

// NewTodo returns the tasks that a workspace begins with: one, which shows the form and
// is done.
func NewTodo(now time.Time) Todo {
	t := emptyTodo()
	t.Add(Task{
		ID: "example", Title: "An example: replace it", Status: StatusDone, Priority: PriorityLow,
		Description: "A task has an id, a title, a status (pending, in-progress, blocked or done) and a priority (critical, high, medium or low).",
	}, now)
	return t
}

func emptyTodo() Todo {
	return Todo{jsontree.NewObject(
		jsontree.Member{Name: fieldVersion, Value: jsontree.NewText(formatVersion)},
		jsontree.Member{Name: fieldTasks, Value: jsontree.NewList()},
	)}
}

// IsZero reports whether there are no tasks, not even an empty list.
func (t Todo) IsZero() bool { return t.tree == nil }

// Clone returns tasks that share nothing with t.
func (t Todo) Clone() Todo { return Todo{t.tree.Clone()} }

// Encode writes the tasks in their one form.
func (t Todo) Encode() []byte { return jsontree.Encode(t.tree) }

func (t Todo) items() []*jsontree.Value {
	if list := t.tree.Get(fieldTasks); list != nil {
		return list.Items
	}
	return nil
}

func (t Todo) item(id string) *jsontree.Value {
	items := t.items()
	if i := slices.IndexFunc(items, func(v *jsontree.Value) bool { return v.GetText(fieldID) == id }); i >= 0 {
		return items[i]
	}
	return nil
}

// Tasks returns all tasks in the order of the file.
func (t Todo) Tasks() []Task {
	var all []Task
	for _, v := range t.items() {
		all = append(all, readTask(v))
	}
	return all
}

// Task returns a task by its id.
func (t Todo) Task(id string) (Task, bool) {
	v := t.item(id)
	if v == nil {
		return Task{}, false
	}
	return readTask(v), true
}

func readTask(v *jsontree.Value) Task {
	task := Task{
		ID: v.GetText(fieldID), Title: v.GetText(fieldTitle), Description: v.GetText(fieldDescription),
		Status: Status(v.GetText(fieldStatus)), Priority: Priority(v.GetText(fieldPriority)), BlockedReason: v.GetText(fieldBlocked),
	}
	if list := v.Get(fieldDependencies); list != nil {
		for _, d := range list.Items {
			task.Dependencies = append(task.Dependencies, d.Text)
		}
	}
	task.UpdatedAt, _ = draft07.ParseTime(v.GetText(fieldUpdatedAt))
	return task
}

// Add adds a task at the end, unless there is one with its id.
func (t Todo) Add(task Task, now time.Time) {
	if t.item(task.ID) != nil {
		return
	}
	v := jsontree.NewObject()
	text := func(name, text string) {
		if text != "" {
			v.Set(name, jsontree.NewText(text))
		}
	}
	text(fieldID, task.ID)
	text(fieldTitle, task.Title)
	text(fieldDescription, task.Description)
	text(fieldStatus, string(task.Status))
	text(fieldPriority, string(task.Priority))
	if len(task.Dependencies) > 0 {
		list := jsontree.NewList()
		for _, id := range task.Dependencies {
			list.Items = append(list.Items, jsontree.NewText(id))
		}
		v.Set(fieldDependencies, list)
	}
	v.Set(fieldCreatedAt, timeText(now))
	v.Set(fieldUpdatedAt, timeText(now))
	if task.Status == StatusDone {
		v.Set(fieldCompletedAt, timeText(now))
	}
	text(fieldBlocked, task.BlockedReason)
	list := t.tree.Get(fieldTasks)
	list.Items = append(list.Items, v)
}

// SetStatus moves a task to another status, and sets what depends on it. The reason is
// why the task is blocked, and is ignored for other statuses. A task that has the status
// already is not changed.
func (t Todo) SetStatus(id string, to Status, reason string, now time.Time) {
	if v := t.item(id); v != nil {
		setStatus(v, to, reason, now)
	}
}

func setStatus(v *jsontree.Value, to Status, reason string, now time.Time) {
	if v.GetText(fieldStatus) == string(to) && (to != StatusBlocked || v.GetText(fieldBlocked) == reason) {
		return
	}
	set := func(name string, value *jsontree.Value) { v.SetInOrder(name, value, taskOrder) }
	set(fieldStatus, jsontree.NewText(string(to)))
	set(fieldUpdatedAt, timeText(now))
	switch {
	case to == StatusDone:
		set(fieldCompletedAt, timeText(now))
	case v.Get(fieldCompletedAt) != nil:
		set(fieldCompletedAt, jsontree.NewNull())
	}
	v.Remove(fieldBlocked)
	if to == StatusBlocked && reason != "" {
		set(fieldBlocked, jsontree.NewText(reason))
	}
}

// Note returns the note that a repair has left; often empty.
func (t Todo) Note() string { return t.tree.Get(fieldMetadata).GetText("note") }

// fieldKept is the name under which the metadata has the path of a kept file.
const fieldKept = "kept"

func (t Todo) setNote(text string) {
	if m := t.tree.Get(fieldMetadata); m == nil || m.Kind != jsontree.Object {
		t.tree.SetInOrder(fieldMetadata, jsontree.NewObject(), todoOrder)
	}
	t.tree.Get(fieldMetadata).Set("note", jsontree.NewText(text))
}
