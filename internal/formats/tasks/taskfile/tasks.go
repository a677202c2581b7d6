package taskfile

import (
	"iter"
	"slices"
	"strings"
)

// The words of Step.Status and Step.Priority.
const (
	StatusOpen       = "open"
	StatusInProgress = "in-progress"
	StatusBlocked    = "blocked"
	StatusDone       = "done"
	StatusFailed     = "failed"
	StatusCancelled  = "cancelled"

	PriorityCritical = "critical"
	PriorityHigh     = "high"
	PriorityMedium   = "medium"
	PriorityLow      = "low"
)

// Statuses and Priorities are the words of the two enums, in the order in which
// messages name them.
var (
	Statuses   = []string{StatusOpen, StatusInProgress, StatusBlocked, StatusDone, StatusFailed, StatusCancelled}
	Priorities = []string{PriorityCritical, PriorityHigh, PriorityMedium, PriorityLow}
)

// Step is one step of a TASKS.md.
type Step struct {
	Key           string // "step-3" or "task-001", as DependsOn has it
	Number        int
	Title         string
	Status        string // one of Statuses; empty if the word is not
	Priority      string // one of Priorities; empty if the word is not
	BlockedReason string
	Result        string
	Retries       int
	DependsOn     []string // keys, or words that name no step of the file
	Tags          []string
	From          string  // also of "Assigned by"
	Text          string  // the lines below the step that are not fields
	Fields        []Field // others, as found
	Line          int     // from 1
	Completed     bool    // it is below "## Completed Tasks"
	Malformed     bool    // a Problem names it; it is not to be worked on
}

// Field is a field of a step or an entry that has no meaning of its own.
type Field struct {
	Name, Value string
}

// Tasks is a TASKS.md.
type Tasks struct {
	document
	steps  []step
	fields []taskField
}

// step is a Step with its place.
type step struct {
	Step
	start, end  int // lines; end is behind the last line with text
	fields      [2]int
	indent      int // columns before the bullet; -1 for a heading
	fieldIndent int // columns before the first field; -1 without one
	active      bool
}

// taskField is a field of a step. Its name is one of the known fields, or empty.
type taskField struct {
	name string
	line int
}

// knownFields are the fields with a meaning.
var knownFields = map[string]string{
	"status": "status", "priority": "priority", "blockedreason": "blockedreason", "retrycount": "retrycount",
	"dependson": "dependson", "result": "result", "title": "title", "tags": "tags", "from": "from", "assignedby": "from",
}

// ParseTasks reads a TASKS.md. Every text is one: what cannot be used is a problem, and
// the other steps go on.
//
// A step is a bullet "- **Step 3**: title" or a heading "### task-003", with bullets
// "- Field: value" below it. What is below "## Task Format", in comments and in code
// blocks is an example and never a step.
func ParseTasks(text string) (*Tasks, []Problem) {
	t := &Tasks{document: newDocument(text)}
	t.steps = make([]step, 0, strings.Count(text, "**Step")+strings.Count(text, "# task-"))
	t.fields = make([]taskField, 0, len(t.lines)-min(len(t.lines), cap(t.steps)))
	p := taskParser{Tasks: t}
	for i, line := range t.lines {
		p.takeLine(i, line)
	}
	p.closeStep()
	p.checkNumbers()
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return a.Line - b.Line })
	return t, p.problems
}

// String returns the whole file.
func (t *Tasks) String() string { return t.document.String() }

// Steps lists the steps that have a number, in file order. Two steps with one key are
// both listed, as malformed. What the steps hold must not be changed.
func (t *Tasks) Steps() []Step { return slices.AppendSeq(make([]Step, 0, len(t.steps)), t.All()) }

// All is what Steps lists, one by one.
func (t *Tasks) All() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for i := range t.steps {
			if t.steps[i].Key != "" && !yield(t.steps[i].Step) {
				return
			}
		}
	}
}

// Step returns the first step with a key.
func (t *Tasks) Step(key string) (Step, bool) {
	for i := range t.steps {
		if key != "" && t.steps[i].Key == key {
			return t.steps[i].Step, true
		}
	}
	return Step{}, false
}
