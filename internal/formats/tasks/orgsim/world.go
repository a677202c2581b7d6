// Package orgsim lets an organisation of agents with task files work in memory: each cycle is
// one of the real session of protocol/tasks, on copies of the agents' files, and what is made
// of its changes is what the engine makes of them. What an attempt at a step comes to is said
// by the caller, or drawn by a simulation.
//
// It starts no process, and writes neither files nor rows.
package orgsim

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/sim"
	"github.com/pawl-run/pawl/internal/formats/tasks"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// recentRuns is how many earlier runs a session sees, as in the engine.
const recentRuns = 5

// World is an organisation: its agents, their files and their messages. NewWorld makes one.
type World struct {
	Now    time.Time
	Root   string // of the checkout, from which definitions of agents are read; may be empty
	Agents map[string]*Agent
	Files  map[string]File // by path, relative to the workspace
	Others engine.Files    // files that are not in Files; nil: there are none
	sim.Post
	Results map[string]engine.StepResult
	// Delivered is called with each new message between agents. It may be nil.
	Delivered func(loop.Delivery)
}

// Agent is an agent with what the store knows of it.
type Agent struct {
	Definition loop.Definition // defaults filled in
	Steps      map[string]loop.Step
	Runs       []loop.Run // that have ended, the oldest first
	Paused     bool
}

// File is a file, or why it cannot be read.
type File struct {
	projection.File

	Err error
}

// NewWorld is an organisation without agents.
func NewWorld(now time.Time) *World {
	return &World{Now: now, Agents: map[string]*Agent{}, Files: map[string]File{}, Results: map[string]engine.StepResult{}}
}

// Add adds an agent. Files that it does not have are made by its first cycle.
func (w *World) Add(d loop.Definition) *Agent {
	a := &Agent{Definition: d.WithDefaults(), Steps: map[string]loop.Step{}}
	w.Agents[d.Name] = a
	return a
}

// Load copies the files of an agent that its cycles change.
func (w *World) Load(agent string, from engine.Files) {
	for _, name := range tasks.Files() {
		at := path.Join(tasks.Dir(agent), name)
		file, err := from.Read(at)
		w.Files[at] = File{file, err}
	}
}

// Text is a file of an agent; empty if the file is missing.
func (w *World) Text(agent, name string) string {
	return w.Files[path.Join(tasks.Dir(agent), name)].Content
}

// Write replaces a file of an agent.
func (w *World) Write(agent, name, text string) { w.write(path.Join(tasks.Dir(agent), name), text) }

func (w *World) write(at, text string) {
	w.Files[at] = File{File: projection.File{Exists: true, Content: text}}
}

// Steps are those that TASKS.md of an agent has.
func (w *World) Steps(agent string) []taskfile.Step {
	all, _ := taskfile.ParseTasks(w.Text(agent, taskfile.TasksFile))
	return all.Steps()
}

// Read implements engine.Files.
func (w *World) Read(name string) (projection.File, error) {
	if f, there := w.Files[name]; there || w.Others == nil {
		return f.File, f.Err
	}
	return w.Others.Read(name)
}

// loopID is that of an agent's loop, by which its steps are named.
func loopID(agent string) string { return "lp_" + agent }

// View is what a session of the agent sees that begins now. The run has a number.
func (w *World) View(agent string, run loop.Run) engine.View {
	a := w.Agents[agent]
	v := engine.View{
		Loop: loop.Loop{ID: loopID(agent), Name: agent, Protocol: loop.ProtocolTasks}, Root: w.Root, Definition: a.Definition, Run: run,
		Files: w, Mail: w.Mailbox(agent), Results: results{w}, Now: w.Now,
	}
	for _, run := range slices.Backward(a.Runs[max(0, len(a.Runs)-recentRuns):]) {
		v.Recent = append(v.Recent, run)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Steps)) {
		v.Steps = append(v.Steps, a.Steps[key])
	}
	return v
}

// results implements engine.Results.
type results struct{ w *World }

// Of implements engine.Results.
func (m results) Of(_ context.Context, ids ...string) (map[string]engine.StepResult, error) {
	found := map[string]engine.StepResult{}
	for _, id := range ids {
		if res, is := m.w.Results[id]; is {
			found[id] = res
		}
	}
	return found, nil
}

// Refused implements engine.Results.
func (m results) Refused(context.Context) (ids []string, err error) {
	for id, res := range m.w.Results {
		if res.State == engine.ResultRejected || res.State == engine.ResultVoid {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// apply does what the engine does with the changes of an agent's session.
func (w *World) apply(agent string, changes []loop.Change) error {
	if err := loop.CheckChanges(changes); err != nil {
		return err
	}
	for _, ch := range changes {
		switch ch.Kind {
		case loop.ChangeEdit:
			if theirs := w.Files[ch.Path]; theirs.Exists && theirs.Content != ch.Before {
				ch.Content, _ = tasks.Protocol{}.Mergers()[ch.Merge](ch.Before, ch.Content, theirs.Content)
			}
			w.write(ch.Path, ch.Content)
		case loop.ChangeAside:
			w.Files[path.Join(path.Dir(ch.Path), ch.Content)] = w.Files[ch.Path]
			w.Files[ch.Path] = File{}
		case loop.ChangeStep:
			steps := w.Agents[agent].Steps
			if had := steps[ch.Step.Key].State; had != ch.Step.State && !loop.StepMayBecome(had, ch.Step.State) { // The store refuses it too.
				return fmt.Errorf("step %s of %s: %q may not become %q", ch.Step.Key, agent, had, ch.Step.State)
			}
			steps[ch.Step.Key] = *ch.Step
		case loop.ChangeDeliver:
			w.Deliver(agent, *ch.Delivery)
		case loop.ChangeReceive:
			w.Take(*ch.Delivery)
		case loop.ChangeAppend, loop.ChangeRow, loop.ChangeCommit, loop.ChangePush:
			return fmt.Errorf("%s changes %s", agent, ch.Kind)
		}
	}
	return nil
}

// Deliver sends a message, once for each key and recipient.
func (w *World) Deliver(from string, d loop.Delivery) {
	d.From, d.Sent = from, w.Now
	if w.Send(d) && !d.Person && w.Delivered != nil {
		w.Delivered(d)
	}
}
