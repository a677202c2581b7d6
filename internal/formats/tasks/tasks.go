// Package tasks keeps the memory of an agent in four files of its folder that people read
// and edit: TASKS.md, INBOX.md, HEARTBEAT.md and CONTEXT.md.
//
// Each run is one cycle: what came in becomes steps, exactly one step is worked on, and what
// it came to is written back, so that the failure of one run is context of the next. What
// others are to know goes to them as messages; no cycle writes into the files of another
// agent.
package tasks

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// files are those of an agent, in the order in which they are written.
var files = []string{taskfile.InboxFile, taskfile.TasksFile, taskfile.ContextFile, taskfile.HeartbeatFile}

// Files are the names of the files that a cycle changes.
func Files() []string { return slices.Clone(files) }

// Dir is the folder of an agent, relative to the workspace.
func Dir(agent string) string { return path.Join(orgdef.AgentsDir, agent) }

// mergers unite an edit of each file with what a person has written meanwhile.
var mergers = map[string]projection.Merger{
	taskfile.TasksFile: taskfile.MergeTasks, taskfile.InboxFile: taskfile.MergeInbox, taskfile.HeartbeatFile: taskfile.MergeHeartbeat, taskfile.ContextFile: taskfile.MergeContext,
}

// Protocol opens the memory of agents that have task files.
type Protocol struct{}

// Mergers is the optional method of engine.Protocol.
func (Protocol) Mergers() map[string]projection.Merger { return mergers }

// Open implements engine.Protocol.
func (Protocol) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s := &session{
		v: v, me: v.Definition.Tasks, dir: Dir(v.Loop.Name), rows: map[string]loop.Step{}, ids: map[string]string{}, before: map[string]string{},
		left: map[string]loop.Step{}, results: map[string]engine.StepResult{},
	}
	if s.me == nil {
		return nil, fmt.Errorf("the definition of %s is not one of an agent with task files", v.Loop.Name)
	}
	if v.Definition.NeverFires() && !v.Ending {
		return nil, &engine.OpenError{
			Outcome: loop.OutcomePaused, Reason: loop.ReasonDisabled, Detail: fmt.Sprintf("%s has enabled: false; set it to true to let it work", s.dir),
		}
	}
	for _, row := range v.Steps {
		s.rows[row.Key] = row
		s.ids[row.ID] = row.Key
	}
	if err := s.readFiles(); err != nil {
		return nil, err
	}
	sent, err := v.Mail.Sent(ctx)
	if err != nil {
		return nil, err
	}
	s.sent = sent
	if v.Ending {
		return s, nil
	}
	if err := s.takeBack(ctx); err != nil {
		return nil, err
	}
	if err := s.takeIn(ctx); err != nil {
		return nil, err
	}
	s.planSteps()
	return s, s.readResults(ctx)
}

// session is one cycle.
type session struct {
	v    engine.View
	me   *loop.TaskLoop
	dir  string
	rows map[string]loop.Step // by key
	ids  map[string]string    // keys by id of the row

	before    map[string]string // the files as they were read, or as this run last wrote them
	tasks     *taskfile.Tasks
	inbox     *taskfile.Inbox
	heartbeat *taskfile.Heartbeat
	context   *taskfile.Context
	repairs   []engine.Repair
	notes     []string

	work     []*workStep                  // steps that are not finished, in the order in which they are worked on
	results  map[string]engine.StepResult // of steps on which others depend, by key
	sent     []loop.Delivery              // by this agent, about any topic, the newest first
	outgoing []loop.Change                // messages that are sent, and taken, with the next write
	changed  []loop.Change                // rows that a person has changed by way of the file
	entries  map[string]taskfile.Entry    // of the inbox that became steps in this cycle, by key of the step

	left    map[string]loop.Step // the steps that this run worked on, as it leaves them
	halted  bool                 // the loop is paused when the run ends
	printed error                // files that the agent printed cannot be used
	remarks []string             // for the heartbeat
}

func (s *session) filePath(name string) string { return path.Join(s.dir, name) }

// readFiles reads the four files. One that is missing is made from its template; one that
// cannot be read is put aside and made anew.
func (s *session) readFiles() error {
	texts := map[string]string{}
	for _, name := range files {
		at := s.filePath(name)
		file, err := s.v.Files.Read(at)
		if err != nil {
			return fmt.Errorf("read %s: %w", at, err)
		}
		if marks := definition.ConflictLines(file.Content, true); marks != nil {
			return &loop.Fault{
				Exit: loop.ExitUnreadable, What: at + " cannot be read", Why: definition.ConflictWords(marks),
				Fix: "resolve the conflict, and remove the markers",
			}
		}
		unreadable := taskfile.Check(file.Content)
		switch {
		case !file.Exists:
			texts[name] = s.template(name)
			s.repairs = append(s.repairs, engine.Repair{Changes: []loop.Change{s.edit(name, "", texts[name])}, Note: at + " was missing; it is made from the template"})
		case file.TooBig, unreadable != nil:
			why := fmt.Sprintf("it has more than %d bytes", projection.MaxFile)
			if !file.TooBig {
				why = unreadable.Error()
			}
			texts[name] = s.template(name)
			s.putAside(name, file.Content, texts[name], why)
		default:
			texts[name] = file.Content
		}
		s.before[name] = texts[name]
	}
	var problems, more []taskfile.Problem
	s.tasks, problems = taskfile.ParseTasks(texts[taskfile.TasksFile])
	s.inbox, more = taskfile.ParseInbox(texts[taskfile.InboxFile])
	for _, p := range problems {
		s.notes = append(s.notes, s.filePath(taskfile.TasksFile)+":"+p.String())
	}
	for _, p := range more {
		s.notes = append(s.notes, s.filePath(taskfile.InboxFile)+":"+p.String())
	}
	s.heartbeat, s.context = taskfile.ParseHeartbeat(texts[taskfile.HeartbeatFile]), taskfile.ParseContext(texts[taskfile.ContextFile])
	return nil
}

func (s *session) template(name string) string {
	agent := s.v.Loop.Name
	switch name {
	case taskfile.TasksFile:
		return taskfile.NewTasks(agent)
	case taskfile.InboxFile:
		return taskfile.NewInbox(agent)
	case taskfile.HeartbeatFile:
		return taskfile.NewHeartbeat(agent, s.v.Definition.Cadence, loop.FormatDuration(s.v.Definition.MaxStepTimeout))
	}
	return taskfile.NewContext(agent)
}

// putAside renames a file that cannot be read, and makes it anew. Where work may be in it, a
// person has to look first.
func (s *session) putAside(name, was, is, why string) {
	aside := name + ".broken-" + s.v.Now.UTC().Format("20060102T150405Z")
	r := engine.Repair{
		Changes: []loop.Change{{Kind: loop.ChangeAside, Path: s.filePath(name), Before: was, Content: aside}, s.edit(name, "", is)},
		Note:    fmt.Sprintf("%s was put aside as %s: %s", s.filePath(name), aside, why),
	}
	if name == taskfile.TasksFile || name == taskfile.InboxFile {
		r.Escalate = r.Note + "; move what counts into " + name
	}
	s.repairs = append(s.repairs, r)
}

// edit is the change of a file from one text to another.
func (s *session) edit(name, from, to string) loop.Change {
	return loop.Change{Kind: loop.ChangeEdit, Path: s.filePath(name), Before: from, Content: to, Merge: name}
}

// texts are the files as this run has them.
func (s *session) texts() map[string]string {
	return map[string]string{
		taskfile.TasksFile: s.tasks.String(), taskfile.InboxFile: s.inbox.String(), taskfile.HeartbeatFile: s.heartbeat.String(), taskfile.ContextFile: s.context.String(),
	}
}

// write are the changes that were made since the last write.
func (s *session) write() []loop.Change {
	changes := append(s.changed, s.outgoing...)
	s.changed, s.outgoing = nil, nil
	texts := s.texts()
	for _, name := range files {
		if texts[name] != s.before[name] {
			changes = append(changes, s.edit(name, s.before[name], texts[name]))
			s.before[name] = texts[name]
		}
	}
	return changes
}

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair { return s.repairs }

// Notes says what of the files cannot be used.
func (s *session) Notes() []string { return s.notes }

// Discards are the files that only the runtime writes.
func (s *session) Discards() []string {
	names := make([]string, len(files))
	for i, name := range files {
		names[i] = s.filePath(name)
	}
	return names
}

// Sources implements engine.Session.
func (s *session) Sources() []engine.Source {
	if command := s.v.Definition.SenseCommand(); command != "" {
		return []engine.Source{{Name: "sense", Command: command}}
	}
	return nil
}

// owner is the person who answers for all agents.
func (s *session) owner() string {
	if s.me.Owner != "" {
		return s.me.Owner
	}
	return "owner"
}

// send records a message for an agent, or for a person.
func (s *session) send(d loop.Delivery) {
	d.Person = d.To == s.owner()
	s.outgoing = append(s.outgoing, loop.Change{Kind: loop.ChangeDeliver, Delivery: &d})
	if d.Topic != "" {
		s.sent = slices.Insert(s.sent, 0, d)
	}
}

// superior is whom the agent reports to: an agent, or the owner.
func (s *session) superior() string {
	if s.me.ReportsTo != "" && s.me.ReportsTo != s.v.Loop.Name {
		return s.me.ReportsTo
	}
	return s.owner()
}
