package tasks

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// The optional interfaces that the format implements.
var (
	_ engine.FileMergers    = Protocol{}
	_ engine.MemoryNotes    = (*session)(nil)
	_ engine.DiscardedFiles = (*session)(nil)
)

// Format is that of the agents in agents/, by a clock that tells how old their files are.
func Format(now func() time.Time) format.Format {
	return format.Format{
		Name: loop.ProtocolTasks, Protocol: Protocol{}, Files: &agentFiles{now: now},
		Memory: func(string) []string { return []string{orgdef.AgentsDir} },
		Inbox:  &format.Inbox{File: func(id string) string { return orgdef.AgentFile(id, taskfile.InboxFile) }, Urgent: criticalEntries},
		Tasks:  &format.TaskFile{Name: taskfile.TasksFile, Dir: orgdef.AgentsDir, Parse: listTasks},
	}
}

// agentFiles are the definitions in agents/. What all agents of a workspace share is read once, as
// long as it stays as it is.
type agentFiles struct {
	now  func() time.Time
	mu   sync.Mutex
	orgs map[string]organisation // by the root of the workspace
}

type organisation struct {
	infos format.Infos // of orgdef.SharedFiles
	orgdef.Organisation
}

// own is how many infos of a source are of the agent's own files.
const own = 2

// Place implements format.Files.
func (*agentFiles) Place() format.Place {
	return format.Place{Marks: []string{orgdef.OrgFile}, Elsewhere: "only the agents in " + orgdef.AgentsDir + "/ have"}
}

// Find implements format.Files.
func (f *agentFiles) Find(root string) (found []format.Source, err error) {
	entries, err := os.ReadDir(filepath.Join(root, orgdef.AgentsDir))
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err := format.Unlistable("list agents", err); err != nil {
		return nil, err
	}
	var shared format.Infos
	for _, e := range entries {
		if s, ok := source(root, e.Name()); ok {
			if shared == nil {
				shared = format.Lstat(root, orgdef.SharedFiles...)
			}
			s.Infos = append(s.Infos, shared...)
			found = append(found, s)
		}
	}
	return found, nil
}

// FindNamed implements format.Files.
func (f *agentFiles) FindNamed(root, name string) (format.Source, bool, error) {
	s, ok := source(root, name)
	if ok {
		s.Infos = append(s.Infos, format.Lstat(root, orgdef.SharedFiles...)...)
	}
	return s, ok, nil
}

// source finds the definition of an agent, without the infos of what it shares.
func source(root, id string) (format.Source, bool) {
	loopFile, manifest := orgdef.AgentFile(id, orgdef.LoopFile), orgdef.AgentFile(id, orgdef.Manifest)
	s := format.Source{Name: id, Format: loop.ProtocolTasks, File: filepath.FromSlash(loopFile), Infos: format.Lstat(root, loopFile, manifest)}
	if s.Infos[0] == nil {
		s.File = filepath.FromSlash(manifest)
	}
	return s, s.Infos.Exist()
}

// Read implements format.Files.
func (f *agentFiles) Read(root string, s format.Source) (format.Text, error) {
	org := f.organisation(root, s.Infos[own:])
	agent, err := orgdef.ReadAgent(root, s.Name)
	digest := agent.Digest()
	return format.Text{
		File: agent.File, Body: agent.Text, Rest: append(digest[:], org.Digest[:]...),
		Document: func(string, []byte) (*definition.Document, error) { return agent.Document(org) },
	}, err
}

func (f *agentFiles) organisation(root string, infos format.Infos) orgdef.Organisation {
	f.mu.Lock()
	defer f.mu.Unlock()
	if kept, known := f.orgs[root]; known && kept.infos.Same(infos) {
		return kept.Organisation
	}
	org := orgdef.ReadOrganisation(root)
	delete(f.orgs, root)
	if infos.Settled(f.now()) {
		if f.orgs == nil {
			f.orgs = map[string]organisation{}
		}
		f.orgs[root] = organisation{infos, org}
	}
	return org
}

// Missing implements format.Files.
func (*agentFiles) Missing(_, name string) *loop.Fault { return orgdef.MissingFault(name) }

// criticalEntries lists the pending critical entries of an INBOX.md, one a line.
func criticalEntries(content string) (lines []string) {
	inbox, _ := taskfile.ParseInbox(content)
	for _, e := range inbox.Pending() {
		if e.Priority == taskfile.PriorityCritical {
			lines = append(lines, e.From+": "+readiness.FirstLine(e.Text))
		}
	}
	return lines
}

// listTasks lists the steps of a TASKS.md.
func listTasks(text string) (list []loop.ListedTask, findings []readiness.Finding) {
	parsed, wrong := taskfile.ParseTasks(text)
	for _, p := range wrong {
		findings = append(findings, readiness.Finding{Line: p.Line, Column: p.Column, Message: p.Message})
	}
	for _, s := range parsed.Steps() {
		t := loop.ListedTask{
			Key: s.Key, Line: s.Line, Title: s.Title, Text: s.Text, State: stateOf[s.Status], Status: s.Status, Priority: s.Priority, Tags: s.Tags, Number: s.Number,
			From: s.From, DependsOn: s.DependsOn, BlockedReason: s.BlockedReason, Result: s.Result,
		}
		if s.Malformed {
			t.State = ""
		}
		list = append(list, t)
	}
	return list, findings
}

var stateOf = map[string]loop.StepState{
	taskfile.StatusOpen: loop.StepOpen, taskfile.StatusInProgress: loop.StepClaimed, taskfile.StatusBlocked: loop.StepBlocked,
	taskfile.StatusDone: loop.StepDone, taskfile.StatusFailed: loop.StepFailed,
}
