package tasks_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/projection"
	"github.com/pawl-run/pawl/internal/protocol/tasks"
	"github.com/pawl-run/pawl/internal/taskfile"
)

var morning = time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)

// world is an organisation in memory: its files, rows and messages, and a cycle that does with
// a session what the engine does, without git and a database.
type world struct {
	t        testing.TB
	now      time.Time
	files    map[string]string // by path
	agents   map[string]*member
	messages []message
	told     []loop.Delivery // to people
	results  map[string]engine.StepResult
	fired    map[string]bool           // by an urgent message
	during   func(agent string)        // while an agent acts; may be nil
	notes    []string                  // of all cycles
	asked    engine.Brief              // the last one
	stacks   map[string][]loop.Lower   // what the steps started from, by agent and key
	ended    map[string]map[string]int // how often each step was done, by agent and key
}

// member is an agent with what the store knows of it.
type member struct {
	def    loop.Definition
	steps  map[string]loop.Step
	runs   []loop.Run // newest first
	paused bool
}

type message struct {
	loop.Delivery
	taken bool
}

// attempt is what an agent does with a step.
type attempt struct {
	verdict loop.Verdict
	reason  loop.Reason
	words   string
	report  string
	said    string // printed
	branch  bool   // it changes files: a proposal
}

func done(words string) attempt {
	return attempt{verdict: loop.VerdictPass, reason: loop.ReasonGatesPass, report: `{"outcome":"done","summary":"` + words + `"}`, branch: true}
}

func blocked(words string) attempt {
	return attempt{verdict: loop.VerdictFail, reason: loop.ReasonAgentBlocked, words: words, report: `{"outcome":"blocked","reason":"` + words + `"}`}
}

func failed(words string) attempt {
	return attempt{verdict: loop.VerdictFail, reason: loop.ReasonAgentFailed, words: words, report: `{"outcome":"failed","reason":"` + words + `"}`}
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	return &world{
		t: tb, now: morning, files: map[string]string{}, agents: map[string]*member{}, results: map[string]engine.StepResult{}, fired: map[string]bool{},
		stacks: map[string][]loop.Lower{}, ended: map[string]map[string]int{},
	}
}

// add adds an agent. Its files are made by its first cycle.
func (w *world) add(name string, change func(*loop.Definition)) *member {
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
	m := &member{def: d.WithDefaults(), steps: map[string]loop.Step{}}
	w.agents[name] = m
	w.files[path.Join(tasks.Dir(name), "LOOP.md")] = "---\nprimitive: loop-config\n---\n"
	return m
}

// Read implements engine.Files.
func (w *world) Read(name string) (projection.File, error) {
	text, exists := w.files[name]
	if strings.HasPrefix(text, "LINK") {
		return projection.File{}, fmt.Errorf("%s is a link: %w", name, fs.ErrPermission)
	}
	return projection.File{Exists: exists, Content: text}, nil
}

// mailbox implements engine.Mail and engine.Results for an agent.
type mailbox struct {
	w    *world
	name string
}

func (m mailbox) Waiting(context.Context) (list []loop.Delivery, err error) {
	for _, d := range m.w.messages {
		if d.To == m.name && !d.taken {
			list = append(list, d.Delivery)
		}
	}
	return list, nil
}

func (m mailbox) Sent(context.Context) (list []loop.Delivery, err error) {
	for _, d := range slices.Backward(m.w.messages) {
		if d.From == m.name && d.Topic != "" {
			list = append(list, d.Delivery)
		}
	}
	for _, d := range slices.Backward(m.w.told) {
		if d.From == m.name && d.Topic != "" {
			list = append(list, d)
		}
	}
	return list, nil
}

func (m mailbox) Of(_ context.Context, ids ...string) (map[string]engine.StepResult, error) {
	found := map[string]engine.StepResult{}
	for _, id := range ids {
		if res, is := m.w.results[id]; is {
			found[id] = res
		}
	}
	return found, nil
}

func (m mailbox) Refused(context.Context) (ids []string, err error) {
	for id, res := range m.w.results {
		if res.State == engine.ResultRejected || res.State == engine.ResultVoid {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// view is what a session of the agent sees.
func (w *world) view(name string) engine.View {
	m := w.agents[name]
	v := engine.View{
		Loop: loop.Loop{ID: "lp_" + name, Name: name, Protocol: loop.ProtocolTasks}, Definition: m.def, Files: w, Mail: mailbox{w, name}, Results: mailbox{w, name}, Now: w.now,
		Run: loop.Run{ID: fmt.Sprintf("run_%s_%d", name, len(m.runs)+1), N: int64(len(m.runs) + 1), Trigger: "schedule", Started: w.now},
	}
	v.Recent = m.runs[:min(len(m.runs), 5)]
	for _, key := range slices.Sorted(maps.Keys(m.steps)) {
		v.Steps = append(v.Steps, m.steps[key])
	}
	return v
}

// cycle is one run of an agent, whose attempt at the chosen step is what act says. It returns
// the run and the key of the step; empty: none was chosen.
func (w *world) cycle(name string, act func(step loop.Step) attempt) (run loop.Run, key string) {
	w.t.Helper()
	m := w.agents[name]
	v := w.view(name)
	run = v.Run
	if m.paused {
		run.Outcome = loop.OutcomePaused
		m.runs = slices.Insert(m.runs, 0, run)
		return run, ""
	}
	opened, err := tasks.Protocol{}.Open(w.t.Context(), v)
	if stop, is := errors.AsType[*engine.OpenError](err); is {
		run.Outcome, run.Reason, run.Detail = stop.Outcome, stop.Reason, stop.Detail
		m.runs = slices.Insert(m.runs, 0, run)
		return run, ""
	}
	if err != nil {
		run.Outcome, run.Reason, run.Detail = loop.OutcomeFailed, loop.ReasonMemory, err.Error()
		m.runs = slices.Insert(m.runs, 0, run)
		return run, ""
	}
	w.notes = append(w.notes, opened.(interface{ Notes() []string }).Notes()...)
	for _, r := range opened.Recovered() {
		w.apply(name, r.Changes)
		w.notes = append(w.notes, r.Note)
		if r.Escalate != "" {
			run.Outcome, run.Reason, run.Detail = loop.OutcomeEscalated, loop.ReasonMemory, r.Escalate
		}
	}
	sum := engine.Summary{Now: w.now}
	if run.Outcome == "" {
		run, sum.Iterations, sum.Effects, key = w.work(name, opened, run, act)
	}
	sum.Run = run
	w.apply(name, opened.Close(sum))
	m.runs = slices.Insert(m.runs, 0, run)
	return run, key
}

// work decides, and works on the chosen step once.
func (w *world) work(name string, session engine.Session, run loop.Run, act func(loop.Step) attempt) (_ loop.Run, its []loop.Iteration, effects []loop.Effect, key string) {
	m := w.agents[name]
	candidates := session.Candidates(engine.Sensed{}, w.now)
	for i := range candidates {
		if row, known := m.steps[candidates[i].Step.Key]; known {
			for _, r := range m.runs {
				if row.State == loop.StepBlocked && r.N > row.BlockedAt && !r.IsCycle() {
					candidates[i].NoCycles++
				}
			}
		}
	}
	rules := plan.DefinitionRules(m.def)
	d := plan.Next(plan.Snapshot{Candidates: candidates, Rules: rules, Run: run.N, RunID: run.ID, Started: w.now}, w.now)
	if d.Choice == nil {
		run.Outcome, run.Reason, run.Detail = loop.OutcomeQuiet, d.Reason, d.Detail
		return run, nil, nil, ""
	}
	step := d.Choice.Step
	key = step.Key
	changes, brief, err := session.Begin(*d.Choice)
	if err != nil {
		w.t.Fatal(err)
	}
	w.asked = brief
	w.stacks[name+"/"+key] = d.Choice.Stack
	step.ID, step.LoopID, step.State, step.RunID = engine.StepID("lp_"+name, key), "lp_"+name, loop.StepClaimed, run.ID
	if step.Begun.IsZero() {
		step.Begun = w.now
	}
	m.steps[key] = step
	w.apply(name, changes)
	if w.during != nil {
		w.during(name)
	}
	a := act(step)
	s := plan.Settle(step, plan.Attempt{Verdict: a.verdict, Reason: a.reason, Words: a.words, Gate: plan.AgentGate, Ended: w.now}, run.N, rules)
	s.Step.RunID = ""
	it := loop.Iteration{RunID: run.ID, N: 1, StepID: step.ID, Step: step.Title, Verdict: a.verdict, Reason: a.reason, Feedback: a.words, Report: a.report}
	if a.branch && a.verdict == loop.VerdictPass {
		it.Tree = "tree of " + run.ID
		effects = []loop.Effect{{Kind: "propose", State: loop.EffectDone, Args: map[string]string{"branch": fmt.Sprintf("pawl/%s/%d", name, run.N), "tree": it.Tree}}}
	}
	recorded, _ := session.Record(engine.Result{Run: run, Iteration: it, Settlement: s, Said: a.said})
	m.steps[key] = s.Step
	w.apply(name, recorded)
	m.paused = m.paused || s.Halt
	run.Outcome, run.Reason, run.Detail = cmp.Or(s.Outcome, loop.OutcomeProposed), s.Reason, s.Detail
	if s.Step.State == loop.StepDone {
		if w.ended[name] == nil {
			w.ended[name] = map[string]int{}
		}
		w.ended[name][key]++
	}
	return run, []loop.Iteration{it}, effects, key
}

// apply does what the engine does with changes.
func (w *world) apply(name string, changes []loop.Change) {
	w.t.Helper()
	if err := loop.CheckChanges(changes); err != nil {
		w.t.Fatal(err)
	}
	for _, ch := range changes {
		switch ch.Kind {
		case loop.ChangeEdit:
			w.edit(ch)
		case loop.ChangeAside:
			w.files[path.Join(path.Dir(ch.Path), ch.Content)] = w.files[ch.Path]
			delete(w.files, ch.Path)
		case loop.ChangeStep:
			w.agents[name].steps[ch.Step.Key] = *ch.Step
		case loop.ChangeDeliver:
			w.deliver(name, *ch.Delivery)
		case loop.ChangeReceive:
			for i := range w.messages {
				if w.messages[i].To == ch.Delivery.To && w.messages[i].Key == ch.Delivery.Key {
					w.messages[i].taken = true
				}
			}
		case loop.ChangeAppend, loop.ChangeRow, loop.ChangeCommit, loop.ChangePush:
			w.t.Fatalf("%s changes %s", name, ch.Kind)
		}
	}
}

func (w *world) edit(ch loop.Change) {
	w.t.Helper()
	theirs, exists := w.files[ch.Path]
	if exists && theirs != ch.Before {
		ch.Content, _ = tasks.Protocol{}.Mergers()[ch.Merge](ch.Before, ch.Content, theirs)
	}
	w.files[ch.Path] = ch.Content
}

func (w *world) deliver(from string, d loop.Delivery) {
	w.t.Helper()
	d.From, d.Sent = from, w.now
	if slices.ContainsFunc(w.messages, func(m message) bool { return m.To == d.To && m.Key == d.Key }) {
		return
	}
	if d.Person {
		w.told = append(w.told, d)
		return
	}
	if w.agents[d.To] == nil {
		w.t.Fatalf("%s sends a message to %q, who is nobody", from, d.To)
	}
	w.messages = append(w.messages, message{Delivery: d})
	if d.Priority == loop.Urgent {
		w.fired[d.To] = true
	}
}

func (w *world) read(agent, file string) string { return w.files[path.Join(tasks.Dir(agent), file)] }

func (w *world) write(agent, file, text string) { w.files[path.Join(tasks.Dir(agent), file)] = text }

// step is a step as the file has it.
func (w *world) step(agent, key string) taskfile.Step {
	w.t.Helper()
	all, _ := taskfile.ParseTasks(w.read(agent, taskfile.TasksFile))
	for _, st := range all.Steps() {
		if st.Key == key {
			return st
		}
	}
	w.t.Fatalf("%s has no %s:\n%s", agent, key, w.read(agent, taskfile.TasksFile))
	return taskfile.Step{}
}

// rows are the cycles of a heartbeat, as "STEP OUTCOME".
func (w *world) rows(agent string) (list []string) {
	for _, r := range taskfile.ParseHeartbeat(w.read(agent, taskfile.HeartbeatFile)).Rows() {
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
