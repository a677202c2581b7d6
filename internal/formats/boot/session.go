package boot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/report"
	"github.com/pawl-run/pawl/internal/rules/stopline"
)

// session is one run of the boot protocol.
type session struct {
	v         engine.View
	link      bootlink.Link
	contract  bootrepo.Contract
	branch    string // short name
	elsewhere bool   // another branch is checked out: the files of the checkout are not the memory

	found    bootstate.Memory   // the memory as it was valid when the run began
	memory   bootstate.Memory   // as it is now
	repairs  []bootstate.Repair // of what was found
	texts    map[string]string  // what the files of the checkout hold, by path
	present  map[string]bool    // whether there was a file when the run began
	notes    []string           // for people
	entries  []string           // for the changelog, beside the results of tasks
	changed  bool               // there is something to commit, whatever the outcome of the run
	keeps    bool               // the checkout has something of the memory that is in no commit
	behind   bool               // the remote has commits that are not here
	owed     bool               // commits of earlier sessions are not at the remote
	question *engine.Question   // nil: none
	tried    bootstate.Memory   // the memory whose attempts this run adds its own to
	lost     []string           // what was noted of sessions that never ended
	kept     map[string]string  // broken files that are committed beside the memory, by path

	counters stopline.Counters
	audit    []string // lines of this run; End makes them

	again   string    // id of the task that is tried again; empty: none is
	begun   int       // iterations
	unbegun *snapshot // before the last Begin; nil: nothing has begun
}

// snapshot is what Begin changes.
type snapshot struct {
	memory  bootstate.Memory
	texts   map[string]string
	changed bool
}

// takeBackBegin takes back the last Begin if the engine could not begin the iteration, for
// want of money or of an agent: nothing of it was written.
func (s *session) takeBackBegin(iterations int) {
	if s.begun > iterations {
		s.memory, s.texts, s.changed = s.unbegun.memory, s.unbegun.texts, s.unbegun.changed
	}
}

// say adds an entry to the changelog.
func (s *session) say(format string, args ...any) {
	s.entries = append(s.entries, fmt.Sprintf(format, args...))
}

// Notes implements the optional method of engine.Session.
func (s *session) Notes() []string { return s.notes }

// Discards implements the optional method of engine.Session: the memory is written by the
// runtime, whatever the agent writes there, and scratch/ never travels.
func (s *session) Discards() []string {
	files := []string{s.link.State, s.link.Tasks, s.link.Changelog, bootlink.Scratch}
	if name := s.auditFile(); name != "" {
		files = append(files, name)
	}
	return files
}

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair {
	if len(s.repairs)+len(s.lost) == 0 {
		return nil
	}
	s.changed = true
	var list []engine.Repair
	for _, r := range s.repairs {
		repair := engine.Repair{Note: strings.TrimPrefix(r.Note, "recovered ") + " (" + string(r.Reason) + ")"}
		if r.Aside && !s.elsewhere && s.present[r.Path] {
			// A name that people recognise, in the one directory that git does not see.
			aside := fmt.Sprintf("%s%s.broken-%s", bootlink.Scratch, strings.ReplaceAll(r.Path, "/", "-"), s.v.Now.UTC().Format("20060102-150405"))
			repair.Changes = append(repair.Changes, loop.Change{Kind: loop.ChangeAside, Path: r.Path, Content: aside})
			repair.Note += "; it is kept as " + aside
			s.texts[r.Path] = ""
		}
		if r.Keep != nil {
			s.keep(r.Keep.Path, r.Keep.Content)
		}
		list = append(list, repair)
	}
	for _, line := range s.lost {
		list = append(list, engine.Repair{Note: line})
	}
	list[len(list)-1].Changes = append(list[len(list)-1].Changes, s.write()...)
	return list
}

// write returns the changes that bring the files of the checkout to the memory as it is now.
func (s *session) write() (changes []loop.Change) {
	files := s.files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := files[name]; !s.elsewhere && s.texts[name] != text {
			changes = append(changes, loop.Change{Kind: loop.ChangeEdit, Path: name, Before: s.texts[name], Content: text})
			s.texts[name] = text
		}
	}
	return changes
}

// files are those of the memory, by path.
func (s *session) files() map[string]string {
	files := map[string]string{
		s.link.State: string(s.memory.State.Encode()), s.link.Tasks: string(s.memory.Tasks.Encode()), s.link.Changelog: s.memory.Changelog,
	}
	maps.Copy(files, s.kept)
	return files
}

// keep adds a broken file to what is committed.
func (s *session) keep(name, text string) {
	if s.kept == nil {
		s.kept = map[string]string{}
	}
	s.kept[name] = text
}

// findKept finds a broken file that a session has put beside the tasks and that is in no
// commit yet, because the session died.
func (s *session) findKept(ctx context.Context) error {
	name := s.memory.Tasks.KeptPath(s.link.Tasks)
	if name == "" || s.elsewhere {
		return nil
	}
	if _, err := s.v.History.Show(ctx, "", name); !errors.Is(err, loop.ErrNotFound) {
		return err
	}
	file, err := s.readFile(ctx, name)
	if err == nil && file.Exists && file.Problem == "" {
		s.keep(name, string(file.Content))
		s.texts[name], s.changed = string(file.Content), true
	}
	return err
}

// decide plans what is worked on next.
func (s *session) decide(now time.Time) (bootstate.Decision, bootstate.Todo) {
	request := s.v.Run.Request
	if s.counters.Iterations > 0 {
		request = s.again // It has had its turn.
	}
	return bootstate.Plan(s.memory.State, s.memory.Tasks, request, s.v.Answers, now)
}

// Question implements the optional method of engine.Session: a conflict of the plan, or
// rules that have changed.
func (s *session) Question() *engine.Question {
	if s.question != nil {
		return s.question
	}
	d, _ := s.decide(s.v.Now)
	if d.Question == nil {
		return nil
	}
	text := d.Question.Text
	if len(d.Question.Answers) > 0 {
		text += "\nA yes answers it, with one of these as its note: " + strings.Join(d.Question.Answers, ", ")
	} else {
		text += "\nA yes answers it, with the request as its note."
	}
	attended := s.v.Run.By.Role == loop.RoleHuman
	return &engine.Question{Key: d.Question.Key, Text: text, Reason: d.Reason, Idle: d.Reason == loop.ReasonPlanNothing && !attended}
}

// Sources implements engine.Session. What the workspace says of itself is in the memory.
func (s *session) Sources() []engine.Source { return nil }

// Candidates implements engine.Session: what the plan chooses comes first, then the other
// tasks that could be worked on.
func (s *session) Candidates(_ engine.Sensed, now time.Time) []plan.Candidate {
	d, tasks := s.decide(now)
	if !sameTasks(tasks, s.memory.Tasks) {
		s.memory.Tasks, s.changed = tasks, true
	}
	halted := s.halted(now)
	var list []plan.Candidate
	add := func(id string, drop loop.Reason, detail string) {
		task, there := s.memory.Tasks.Task(id)
		if !there {
			return
		}
		step := s.stepOf(task)
		if drop == loop.ReasonOutranked && step.State == loop.StepWaiting {
			drop = "" // It waits for a person, whatever comes before it.
		}
		c := plan.Candidate{Step: step, Drop: drop, Detail: detail, Memory: task.Title + "\x00" + task.Description}
		if drop == "" && halted != nil {
			c.Drop, c.Detail, c.Ends = loop.ReasonStopLine, halted.String(), loop.OutcomeGaveUp
		}
		list = append(list, c)
	}
	if d.Task != "" {
		add(d.Task, "", d.Reason.Explain(d.Detail))
	}
	passed := slices.Clone(d.Passed)
	slices.SortStableFunc(passed, func(a, b bootstate.Passed) int { return cmp.Compare(s.rank(a.Task), s.rank(b.Task)) })
	waits := len(list) > 0 && list[0].Step.State == loop.StepWaiting
	for _, p := range passed {
		drop := p.Reason
		if drop == loop.ReasonOutranked && waits {
			drop = "" // It is next in line until a person has answered about the first.
		}
		add(p.Task, drop, p.Detail)
	}
	return list
}

func (s *session) rank(id string) int {
	task, _ := s.memory.Tasks.Task(id)
	return task.Priority.Rank()
}

func sameTasks(a, b bootstate.Todo) bool { return string(a.Encode()) == string(b.Encode()) }

// stepOf is the row of a task, or a new one. What the row has of earlier sessions is told to
// the next attempt; whether the task is worked on, only the files say: a clone of the same
// commit, whose store has no rows, works on the same.
func (s *session) stepOf(task bootstate.Task) loop.Step {
	for _, row := range s.v.Steps {
		if row.Key != task.ID {
			continue
		}
		row.Title = task.Title
		switch row.State {
		case loop.StepDone, loop.StepBlocked, loop.StepEscalated:
			return row.AsNew()
		case loop.StepWaiting:
			return row
		case loop.StepOpen, loop.StepClaimed, loop.StepFailed, loop.StepDropped:
		}
		row.State, row.RunID, row.WaitsFor, row.BlockedAt = loop.StepOpen, "", "", 0
		return row
	}
	row := loop.Step{Key: task.ID, Kind: loop.StepWork, Title: task.Title, State: loop.StepOpen}
	switch task.ID {
	case bootstate.RequestID(s.v.Run.Request):
		return row.WrittenBy(s.v.Run.Requester())
	case bootstate.RequestID(s.memory.State.NextIntent()):
		return row.WrittenBy(loop.RoleAgent)
	case bootstate.RequestID(cmp.Or(task.Description, task.Title)):
		return row.WrittenBy("") // An earlier run made it, of a request or of what a session left to do.
	}
	return row
}

// halted is the stop line that the run has come to; nil: none.
func (s *session) halted(now time.Time) *stopline.Crossing {
	s.counters.Minutes = now.Sub(s.v.Now).Minutes() // Its beginning is recorded without what a clock that is set does not change.
	for _, c := range stopline.Judge(s.contract.StopLines, s.counters) {
		if c.Critical {
			return &c
		}
		if text := "stop line: " + c.String(); !slices.ContainsFunc(s.entries, func(e string) bool { return strings.HasPrefix(e, "stop line: "+string(c.Metric)) }) {
			s.say("%s", text)
		}
	}
	return nil
}

// mostRules bounds the rules of the boot repository in a prompt, in bytes.
const mostRules = 48 << 10

// Begin implements engine.Session.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	id := ch.Step.Key
	s.begun++
	s.unbegun = &snapshot{s.memory, maps.Clone(s.texts), s.changed}
	s.memory.State, s.memory.Tasks = bootstate.Begin(s.memory.State, s.memory.Tasks, id, s.v.Now)
	s.beginAttempt(id)
	s.changed = true
	task, _ := s.memory.Tasks.Task(id)
	rules := s.contract.Rules
	if len(rules) > mostRules {
		rules = strings.ToValidUTF8(rules[:mostRules], "") + "\n[cut here]"
	}
	brief := engine.Brief{
		Goal: envelope.Field{Text: s.v.Definition.Goal, By: s.v.Definition.GoalAuthor()},
		Role: fmt.Sprintf("You work on %s by the rules of the boot repository %s (version %s):\n\n%s", s.memory.State.Project(), s.contract.Repository, s.contract.Version.Version, strings.TrimSpace(rules)),
		Rules: []string{
			"The runtime writes " + strings.Join([]string{s.link.State, s.link.Tasks, s.link.Changelog}, ", ") + ", commits and pushes: what you write there is dropped, whatever the rules above say.",
			`Add to your report "handoff": what should come next, or the id of a task, and "confidence": from 0 to 1.`,
			"The run halts at these stop lines: " + stopText(s.contract.StopLines),
		},
		Task: envelope.Field{Text: taskText(task, s.memory.State.Plan()), By: ch.Step.Author()},
	}
	if recent := lastLines(s.memory.Changelog, 40); recent != "" {
		brief.Memory = append(brief.Memory, engine.Block{Label: "The end of " + s.link.Changelog, Text: recent})
	}
	if intent := s.memory.State.NextIntent(); intent != "" {
		brief.Memory = append(brief.Memory, engine.Block{Label: "What the last session left to do", Text: intent})
	}
	return s.write(), brief, nil
}

func taskText(t bootstate.Task, items []bootstate.PlanItem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (task %s, priority %s)", t.Title, t.ID, t.Priority)
	if t.Description != "" {
		b.WriteString("\n" + t.Description)
	}
	for _, item := range items {
		if item.Task != t.ID || len(item.Steps) < 2 {
			continue
		}
		b.WriteString("\nThe plan:")
		for n, step := range item.Steps {
			fmt.Fprintf(&b, "\n%d. %s", n+1, step)
		}
	}
	return b.String()
}

func stopText(lines []stopline.Line) string {
	var parts []string
	for _, l := range lines {
		if l.Critical != nil {
			parts = append(parts, fmt.Sprintf("%s %g", l.Metric, *l.Critical))
		}
	}
	return strings.Join(parts, ", ")
}

// lastLines are the last lines of a text.
func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// Record implements engine.Session. The account of the run is written at its end, where a
// run that was taken over has it too.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	s.counters.Add(r.Iteration)
	if s.again = ""; r.Settlement.Step.State == loop.StepClaimed {
		s.again = r.Settlement.Step.Key
	}
	if r.Iteration.Verdict == loop.VerdictPass {
		s.memory.Tasks = s.memory.Tasks.Clone()
		s.memory.Tasks.SetStatus(r.Settlement.Step.Key, bootstate.StatusDone, "", s.v.Now)
		s.memory.State = s.memory.State.Clone()
		s.memory.State.SetNextIntent(reportOf(r.Iteration).Handoff)
	}
	return nil, nil
}

// reportOf is what the agent reported; the zero report if it cannot be read.
func reportOf(it loop.Iteration) report.Report {
	r, err := report.Parse([]byte(it.Report))
	if err != nil {
		return report.Report{}
	}
	return r
}

// pushesItself reports whether the definition leaves it to sessions to push. Where it says
// who lands, nothing goes to the remote before a person said yes.
func (s *session) pushesItself() bool { return s.v.Definition.LandVia == "" }

// asksToPush reports whether a person is asked to push: of any other word than these, whoever
// it names does it.
func (s *session) asksToPush() bool {
	return s.v.Definition.LandVia == "human" || s.v.Definition.LandVia == "pr"
}

// Owed implements the optional method of engine.Session. What is in no commit yet is
// committed first: what comes from the remote would replace it.
func (s *session) Owed() []loop.EffectRequest {
	if s.keeps {
		return nil
	}
	var list []loop.EffectRequest
	if s.behind {
		list = append(list, s.remoteRequest(effect.KindMemoryPull, s.v.Run.ID+"/pull", s.v.Now))
	}
	if s.owed && s.pushesItself() {
		list = append(list, s.remoteRequest(effect.KindMemoryPush, s.v.Run.ID+"/owed", s.v.Now))
	}
	return list
}

// note adds a line to the audit trail of the run.
func (s *session) note(at time.Time, format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	s.audit = append(s.audit, "- "+at.UTC().Format(time.TimeOnly)+"Z "+text+"\n")
}

// auditFile is the file of the audit trail of this day; empty: the link lists no directory
// for it.
func (s *session) auditFile() string {
	const audits = "audits/"
	if !slices.Contains(s.link.Directories, audits) {
		return ""
	}
	return audits + s.v.Now.UTC().Format(time.DateOnly) + ".md"
}

// readAudit reads what the audit trail of this day has already.
func (s *session) readAudit(ctx context.Context) error {
	name := s.auditFile()
	if name == "" {
		return nil
	}
	file, err := s.readFile(ctx, name)
	s.texts[name] = string(file.Content)
	return err
}
