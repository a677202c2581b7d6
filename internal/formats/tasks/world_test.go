package tasks_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgsim"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var morning = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

// world is an organisation in memory, with what tests want to know of it.
type world struct {
	*orgsim.World

	t      testing.TB
	fired  map[string]bool           // by an urgent message
	during func(agent string)        // while an agent acts; may be nil
	notes  []string                  // of all cycles
	asked  engine.Brief              // the last one
	stacks map[string][]loop.Lower   // what the steps started from, by agent and key
	ended  map[string]map[string]int // how often each step was done, by agent and key
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{World: orgsim.NewWorld(morning), t: tb, fired: map[string]bool{}, stacks: map[string][]loop.Lower{}, ended: map[string]map[string]int{}}
	w.Delivered = func(d loop.Delivery) {
		if w.Agents[d.To] == nil {
			tb.Fatalf("%s sends a message to %q, who is nobody", d.From, d.To)
		}
		if d.Priority == loop.Urgent {
			w.fired[d.To] = true
		}
	}
	return w
}

// add adds an agent. Its files are made by its first cycle.
func (w *world) add(name string, change func(*loop.Definition)) *orgsim.Agent {
	d := loop.Definition{
		Name: name, Protocol: loop.ProtocolTasks, Tier: loop.TierAssisted, Goal: "work", Scope: []string{"src/**"}, Cadence: "15m",
		Tasks: &loop.TaskLoop{
			Enabled: true, Reads: []string{taskfile.TasksFile, taskfile.ContextFile, taskfile.HeartbeatFile}, Writes: []string{taskfile.TasksFile, taskfile.HeartbeatFile},
			CycleLog: true, Tier: 2, ReportsTo: "lead", Chief: "chief", MaxRetries: loop.DefaultMaxRetries,
		},
	}
	if change != nil {
		change(&d)
	}
	w.Write(name, "LOOP.md", "---\nprimitive: loop-config\n---\n")
	return w.Add(d)
}

// cycle is one run of an agent, whose attempt at the chosen step is what act says. It returns
// the run and the key of the step; empty: none was chosen.
func (w *world) cycle(name string, act func(step loop.Step) orgsim.Attempt) (run loop.Run, key string) {
	w.t.Helper()
	c, err := w.Open(w.t.Context(), name, w.nextRun(name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.notes = append(w.notes, c.Notes...)
	if c.Choice != nil {
		key = c.Choice.Step.Key
		w.work(name, c, act)
	}
	if err := c.Close(); err != nil {
		w.t.Fatal(err)
	}
	return c.Run, key
}

func (w *world) nextRun(name string) loop.Run {
	n := len(w.Agents[name].Runs) + 1
	return loop.Run{ID: fmt.Sprintf("run_%s_%d", name, n), N: int64(n), Trigger: "schedule", Started: w.Now}
}

// work works on the chosen step once.
func (w *world) work(name string, c *orgsim.Cycle, act func(loop.Step) orgsim.Attempt) {
	w.t.Helper()
	if err := c.Begin(); err != nil {
		w.t.Fatal(err)
	}
	w.asked, w.stacks[name+"/"+c.Step.Key] = c.Brief, c.Choice.Stack
	if w.during != nil {
		w.during(name)
	}
	if err := c.Record(act(c.Step)); err != nil {
		w.t.Fatal(err)
	}
	if c.Step.State == loop.StepDone {
		if w.ended[name] == nil {
			w.ended[name] = map[string]int{}
		}
		w.ended[name][c.Step.Key]++
	}
}

// refuse lets a file of an agent be one that cannot be read.
func (w *world) refuse(agent, file, why string) {
	at := path.Join(tasks.Dir(agent), file)
	w.Files[at] = orgsim.File{Err: fmt.Errorf("%s %s: %w", at, why, fs.ErrPermission)}
}

// step is a step as the file has it.
func (w *world) step(agent, key string) taskfile.Step {
	w.t.Helper()
	for _, st := range w.Steps(agent) {
		if st.Key == key {
			return st
		}
	}
	w.t.Fatalf("%s has no %s:\n%s", agent, key, w.Text(agent, taskfile.TasksFile))
	return taskfile.Step{}
}

// rows are the cycles of a heartbeat, as "STEP OUTCOME".
func (w *world) rows(agent string) (list []string) {
	for _, r := range taskfile.ParseHeartbeat(w.Text(agent, taskfile.HeartbeatFile)).Rows() {
		list = append(list, r.Step+" "+r.Outcome)
	}
	return list
}

// steps is a TASKS.md with steps, each "title" with further lines of fields.
func stepsOf(list ...string) string {
	var b strings.Builder
	b.WriteString("# Tasks\n\n## Active Tasks\n\n")
	for i, text := range list {
		title, fields, _ := strings.Cut(text, "\n")
		fmt.Fprintf(&b, "- **Step %d**: %s\n", i+1, title)
		for f := range strings.SplitSeq(fields, "\n") {
			if f != "" {
				b.WriteString("  - " + f + "\n")
			}
		}
	}
	b.WriteString("\n## Task Format\n\n- **Step 99**: an example\n  - Status: open\n\n## Completed Tasks\n")
	return b.String()
}
