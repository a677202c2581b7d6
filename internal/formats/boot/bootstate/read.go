package bootstate

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/ground/jsontree"
	"github.com/pawl-run/pawl/internal/rules/draft07"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Bounds of a file.
const (
	MaxBytes  = 10 << 20
	maxDepth  = 100
	maxValues = 1_000_000 // a tree takes up to 100 bytes for each
)

// Finding is one fault of a file.
type Finding struct {
	Reason  loop.Reason
	Pointer string // JSON pointer of the value that is meant
	Message string // one line
	Line    int    // from 1
	Column  int    // characters from 1
}

// String is the finding with its place.
func (f Finding) String() string {
	text := f.Message
	if f.Pointer != "" {
		text = f.Pointer + ": " + text
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
}

// Schemas are those that a memory is held against, and how they are called in the set.
type Schemas struct {
	Set       *draft07.Set
	StateFile string
	TasksFile string
}

//go:embed schemas/state-schema.json
var stateSchema []byte

//go:embed schemas/todo-schema.json
var todoSchema []byte

// FormatSchemas returns the schemas of the format itself. A boot repository has its own.
var FormatSchemas = sync.OnceValue(func() Schemas {
	s := Schemas{StateFile: "state-schema.json", TasksFile: "todo-schema.json"}
	var problems []draft07.Problem
	s.Set, problems = draft07.Compile(map[string][]byte{s.StateFile: stateSchema, s.TasksFile: todoSchema})
	if len(problems) > 0 {
		panic("bootstate: a schema of the format is invalid: " + problems[0].String())
	}
	return s
})

// SchemaFiles returns the texts of the schemas of the format, for a new boot repository.
func SchemaFiles() (state, tasks []byte) { return stateSchema, todoSchema }

// parse reads the tree of a memory file.
func parse(src []byte) (*jsontree.Value, *jsontree.Problem) {
	return jsontree.Parse(src, jsontree.Bounds{Bytes: MaxBytes, Depth: maxDepth, Values: maxValues})
}

// ReadState reads a STATE.json and returns everything that is wrong. The state must not
// be used if there is a finding.
func (x Schemas) ReadState(src []byte) (State, []Finding) {
	tree, problem := parse(src)
	if problem != nil {
		return State{}, []Finding{syntaxFinding(loop.ReasonStateCommit, problem)}
	}
	return State{tree}, findingsOf(loop.ReasonStateManual, x.Set.Validate(x.StateFile, tree, src))
}

// ReadTodo reads a TODO.json and returns everything that is wrong. The tasks must not be
// used if there is a finding.
func (x Schemas) ReadTodo(src []byte) (Todo, []Finding) {
	tree, problem := parse(src)
	if problem != nil {
		return Todo{}, []Finding{syntaxFinding(loop.ReasonTodoMinimal, problem)}
	}
	t := Todo{tree}
	if wrong := x.Set.Validate(x.TasksFile, tree, src); len(wrong) > 0 {
		return t, findingsOf(loop.ReasonTodoStructural, wrong)
	}
	return t, locate(t.referenceFaults(), src)
}

func syntaxFinding(reason loop.Reason, p *jsontree.Problem) Finding {
	return Finding{reason, printable(p.Path.Pointer()), printable(p.Message), p.Line, p.Column}
}

func findingsOf(reason loop.Reason, wrong []draft07.Finding) []Finding {
	var all []Finding
	for _, f := range wrong {
		all = append(all, Finding{reason, printable(f.Pointer), printable(f.Message), f.Line, f.Column})
	}
	return all
}

func printable(text string) string { return strings.ReplaceAll(readiness.Printable(text), "\t", " ") }

// fault is a finding about a value whose place is not looked up yet.
type fault struct {
	reason  loop.Reason
	pointer string
	message string
	at      int
}

func locate(faults []fault, src []byte) []Finding {
	if len(faults) == 0 {
		return nil
	}
	lines := jsontree.NewLines(src)
	var all []Finding
	for _, f := range faults {
		finding := Finding{Reason: f.reason, Pointer: f.pointer, Message: f.message}
		finding.Line, finding.Column = lines.Place(f.at)
		all = append(all, finding)
	}
	return all
}

// referenceFaults returns where ids and dependencies do not fit together.
func (t Todo) referenceFaults() []fault {
	var faults []fault
	items := t.items()
	first := map[string]int{}
	for i, v := range items {
		id := v.GetText(fieldID)
		if before, twice := first[id]; twice {
			faults = append(faults, fault{
				loop.ReasonTodoDuplicate, fmt.Sprintf("/tasks/%d/id", i), fmt.Sprintf("%q is the id of /tasks/%d too; give each task its own", id, before),
				v.Get(fieldID).At,
			})
			continue
		}
		first[id] = i
	}
	for i, v := range items {
		list := v.Get(fieldDependencies)
		if list == nil {
			continue
		}
		for n, d := range list.Items {
			if _, there := first[d.Text]; !there {
				faults = append(faults, fault{
					loop.ReasonTodoOrphan, fmt.Sprintf("/tasks/%d/dependencies/%d", i, n), fmt.Sprintf("there is no task %q; remove the dependency or add the task", d.Text), d.At,
				})
			}
		}
	}
	return append(faults, t.cycleFaults(first)...)
}

// cycleFaults returns one fault for each dependency that closes a circle.
func (t Todo) cycleFaults(index map[string]int) []fault {
	const open, closed = 1, 2
	var faults []fault
	items := t.items()
	marks := make([]int, len(items))
	type frame struct{ task, next int }
	for start := range items {
		if marks[start] != 0 {
			continue
		}
		// A stack of its own: a chain may be as long as the file.
		stack := []frame{{start, 0}}
		marks[start] = open
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			list := items[top.task].Get(fieldDependencies)
			if list == nil || top.next == len(list.Items) {
				marks[top.task] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			d := list.Items[top.next]
			top.next++
			to, there := index[d.Text]
			switch {
			case !there:
			case marks[to] == open:
				var names []string
				for _, f := range stack {
					names = append(names, items[f.task].GetText(fieldID))
				}
				for names[0] != d.Text {
					names = names[1:]
				}
				message := "depends on itself"
				if len(names) > 1 {
					message = "closes the circle " + shortened(strings.Join(append(names, d.Text), " → "), 200)
				}
				faults = append(faults, fault{
					loop.ReasonTodoCycle, fmt.Sprintf("/tasks/%d/dependencies/%d", top.task, top.next-1), message + "; remove a dependency", d.At,
				})
			case marks[to] == 0:
				marks[to] = open
				stack = append(stack, frame{to, 0})
			}
		}
	}
	return faults
}
