package tasks

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgdef"
	"github.com/pawl-run/pawl/internal/formats/tasks/taskfile"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// mostShown bounds each file in a prompt, in bytes.
const mostShown = 24 << 10

// Begin implements engine.Session: the step is in progress, and what came in are steps,
// before the agent acts.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	key := ch.Step.Key
	s.left[key] = ch.Step
	s.changed = slices.DeleteFunc(s.changed, func(c loop.Change) bool { return c.Step.Key == key }) // The claim has it.
	s.tasks.Set(key, taskfile.StepFields{Status: new(taskfile.StatusInProgress)})
	d := s.v.Definition
	brief := engine.Brief{Goal: envelope.Field{Text: d.Goal, By: d.GoalAuthor()}, Role: s.me.Role, Rules: s.rules(), Task: envelope.Field{Text: s.taskText(key), By: s.authorOf(key)}, Prints: s.prints()}
	if st, _ := s.tasks.Step(key); st.Retries > 0 && st.BlockedReason != "" {
		brief.Memory = append(brief.Memory, engine.Block{Label: fmt.Sprintf("It was blocked before (%d times), the last time because", st.Retries), Text: st.BlockedReason})
	}
	if e, fresh := s.entries[key]; fresh {
		brief.Memory = append(brief.Memory, engine.Block{Label: "The entry of " + taskfile.InboxFile + " that the step was made from", Text: fmt.Sprintf("From: %s, priority %s\n%s", orUnknown(e.From), e.Priority, e.Text)})
	}
	for _, name := range s.me.Reads {
		text, err := s.readable(name)
		if err != nil {
			return nil, brief, err
		}
		if text != "" {
			brief.Memory = append(brief.Memory, engine.Block{Label: name, Text: text})
		}
	}
	return s.write(), brief, nil
}

// rules are those of an agent with task files.
func (s *session) rules() []string {
	rules := []string{
		"Work on this one step. The runtime writes " + strings.Join([]string{taskfile.TasksFile, taskfile.InboxFile, taskfile.HeartbeatFile, taskfile.ContextFile}, ", ") + " from your report; what you write there is dropped.",
		`If the step waits for something, report "blocked" with the specific reason. If it is not your job, report "escalate" with the reason: it goes to ` + s.superior() + ".",
		`What went wrong and what to do differently goes into "pitfalls" of the report: ["cause; do this instead"].`,
	}
	if len(s.me.Reports) > 0 {
		rules = append(rules, `You lead `+strings.Join(s.me.Reports, ", ")+`. Give them work by "messages" of the report: [{"to": "`+s.me.Reports[0]+`", "kind": "task", "content": "…"}]; a line "Priority: high" or "Tags: …" in it counts.`)
	}
	if d := s.v.Definition; d.Escalation != "" {
		rules = append(rules, "Hand over instead of doing: "+d.Escalation)
	}
	if s.prints() {
		rules = append(rules, "If you can write no files, print those of yours that change, between these marks; "+taskfile.HeartbeatFile+" and "+taskfile.ContextFile+" get what you print added at their end:\n"+taskfile.UpdateForm(s.nonce()))
	}
	return rules
}

// prints reports whether the agent is a program that may be able to print only.
func (s *session) prints() bool {
	d := s.v.Definition
	return d.AgentCommand != "" && (d.Agent == "" || d.Agent == "command")
}

// nonce tells what this run's agent prints from marks in what it has read.
func (s *session) nonce() string {
	sum := sha256.Sum256([]byte("files " + s.v.Run.ID))
	return hex.EncodeToString(sum[:6])
}

// taskText is a step in full.
func (s *session) taskText(key string) string {
	st, there := s.tasks.Step(key)
	if !there {
		return stepName(key)
	}
	text := fmt.Sprintf("%s: %s (priority %s)", stepName(key), st.Title, st.Priority)
	if st.Text != "" {
		text += "\n" + st.Text
	}
	if len(st.DependsOn) > 0 {
		names := make([]string, len(st.DependsOn))
		for i, dep := range st.DependsOn {
			names[i] = stepName(dep)
		}
		text += "\nIt builds on what is done: " + strings.Join(names, ", ")
	}
	return text
}

// fromUser is who a step is from that the user of a run asks for, fromAgent that of an agent's
// request.
const fromUser, fromAgent = "user", "agent"

// authorOf is the role of who wrote a step: a person, if the file says so or names nobody.
func (s *session) authorOf(key string) loop.Role {
	st, _ := s.tasks.Step(key)
	switch st.From {
	case "", fromUser, s.owner():
		return loop.RoleHuman
	}
	return loop.RoleAgent
}

// readable is a file that the agent is given: one of its folder, or of the workspace if its
// path says so. What is too long is cut.
func (s *session) readable(name string) (string, error) {
	switch name {
	case taskfile.TasksFile:
		return s.openSteps(), nil
	case taskfile.HeartbeatFile:
		return lastPart(s.heartbeat.String()), nil
	case taskfile.ContextFile:
		return firstPart(s.context.String()), nil
	case taskfile.InboxFile:
		return lastPart(s.inbox.String()), nil
	}
	at := s.filePath(name)
	if strings.HasPrefix(name, "agents/") {
		at = path.Clean(name)
	}
	file, err := s.v.Files.Read(at)
	if err != nil {
		return "", fmt.Errorf("read %s, which %s is given: %w", at, s.v.Loop.Name, err)
	}
	return firstPart(file.Content), nil
}

// openSteps is TASKS.md as the agent sees it. Of a long one, the lines of steps that are not
// finished are what counts.
func (s *session) openSteps() string {
	text := s.tasks.String()
	if len(text) <= mostShown {
		return text
	}
	var b strings.Builder
	b.WriteString("[only steps that are not finished, without their fields]\n")
	for _, w := range s.work {
		fmt.Fprintf(&b, "- %s: %s (%s, %s)\n", stepName(w.Key), w.Title, w.Status, w.Priority)
	}
	return firstPart(b.String())
}

func firstPart(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return strings.ToValidUTF8(text[:mostShown], "") + "\n[cut here]"
}

func lastPart(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return "[cut here]\n" + strings.ToValidUTF8(text[len(text)-mostShown:], "")
}

// Record implements engine.Session. What the report says to others is delivered with the
// verdict.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	key := r.Settlement.Step.Key
	s.left[key] = r.Settlement.Step
	s.halted = s.halted || r.Settlement.Halt
	said := reportOf(r.Iteration)
	for n, m := range said.Messages {
		s.sendMessage(m, fmt.Sprintf("%s/%d/%d", s.v.Run.ID, r.Iteration.N, n+1))
	}
	if r.Iteration.Reason == loop.ReasonAgentEscalated && s.superior() != s.owner() {
		s.sendMessage(report.Message{To: s.superior(), Kind: "task", Content: s.taskText(key) + "\n" + s.v.Loop.Name + " hands it over: " + r.Iteration.Feedback}, s.v.Run.ID+"/handover")
	}
	s.adoptPrinted(r.Said, said)
	changes := s.outgoing
	s.outgoing = nil
	if r.Proposal == nil {
		return changes, nil
	}
	return changes, []loop.EffectRequest{*r.Proposal}
}

// reportOf is what the agent reported; the zero report if it cannot be read.
func reportOf(it loop.Iteration) report.Report {
	r, err := report.Parse([]byte(it.Report))
	if err != nil {
		return report.Report{}
	}
	return r
}

// sendMessage sends what a report says to another agent. Orders go down, and everything else
// where it is addressed to; what cannot go there goes to the superior.
func (s *session) sendMessage(m report.Message, key string) {
	d := loop.Delivery{To: strings.TrimPrefix(strings.TrimSpace(m.To), "@"), Key: key, Kind: cmp.Or(m.Kind, "message")}
	var lines []string
	for line := range strings.SplitSeq(m.Content, "\n") {
		name, value, is := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case is && strings.EqualFold(strings.TrimSpace(name), "priority") && slices.Contains(taskfile.Priorities, strings.ToLower(value)):
			d.Priority = strings.ToLower(value)
		case is && strings.EqualFold(strings.TrimSpace(name), "tags"):
			d.Tags = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		default:
			lines = append(lines, line)
		}
	}
	d.Text = strings.TrimSpace(strings.Join(lines, "\n"))
	if d.Text == "" {
		return
	}
	me, superior := s.v.Loop.Name, s.superior()
	order := d.Kind == "task" || d.Kind == "order"
	switch {
	case d.To == "":
		d.To = cmp.Or(s.routedTo(d.Tags), s.me.Chief, superior)
	case strings.EqualFold(d.To, "reports_to") || strings.EqualFold(d.To, "superior"):
		d.To = superior
	}
	why := ""
	switch {
	case d.To == me || d.To == superior || d.To == s.owner():
	case !s.isAgent(d.To):
		why = "there is no agent " + d.To
	case order && !s.leads(d.To) && s.routedTo(d.Tags) != d.To:
		why = d.To + " does not report to " + me
	}
	if why != "" {
		s.remarks = append(s.remarks, fmt.Sprintf("the message for %s went to %s: %s", d.To, superior, why))
		d.Text, d.To = fmt.Sprintf("For %s: %s", d.To, d.Text), superior
	}
	s.send(d)
}

// leads reports whether orders go to an agent: it reports to this one, or this one is the chief.
func (s *session) leads(name string) bool {
	if slices.Contains(s.me.Reports, name) || s.me.Chief == s.v.Loop.Name {
		return true
	}
	a, err := orgdef.ReadAgent(s.v.Root, name) // Its own file may say it.
	return err == nil && a.Person.ReportsTo == s.v.Loop.Name
}

// isAgent reports whether an agent has a folder.
func (s *session) isAgent(name string) bool {
	if name == "" || path.Base(name) != name {
		return false
	}
	for _, file := range []string{orgdef.LoopFile, orgdef.Manifest} {
		if found, err := s.v.Files.Read(orgdef.AgentFile(name, file)); err == nil && found.Exists {
			return true
		}
	}
	return false
}

// adoptPrinted takes over the files that the agent printed, if it printed any.
func (s *session) adoptPrinted(words string, said report.Report) {
	if !s.prints() || !strings.Contains(words, s.nonce()) && (said.Outcome != "" || !strings.Contains(words, "FILE_UPDATE")) {
		return // It reported, and printed no files.
	}
	updates, warnings, err := taskfile.ParseUpdates(words, s.nonce())
	s.remarks = append(s.remarks, warnings...)
	if err != nil {
		s.printed = err
		return
	}
	for _, u := range updates {
		err := s.adopt(u)
		if err != nil {
			s.printed = errors.Join(s.printed, fmt.Errorf("%s: %w", u.Name, err))
		}
	}
}

// adopt takes over one file.
func (s *session) adopt(u taskfile.Update) error {
	if u.Keep {
		return nil
	}
	switch u.Name {
	case taskfile.TasksFile:
		if err := taskfile.AcceptTasks(s.tasks.String(), u.Content); err != nil {
			return err
		}
		before := s.tasks
		s.tasks, _ = taskfile.ParseTasks(u.Content)
		s.signSteps(before)
	case taskfile.InboxFile:
		if err := taskfile.AcceptInbox(s.inbox.String(), u.Content); err != nil {
			return err
		}
		s.inbox, _ = taskfile.ParseInbox(u.Content)
	case taskfile.HeartbeatFile:
		s.heartbeat.Append(u.Content)
	case taskfile.ContextFile:
		s.context.Append(u.Content)
	}
	return nil
}

// signSteps writes the agent's name into the steps that it has added or changed.
func (s *session) signSteps(before *taskfile.Tasks) {
	for _, st := range s.tasks.Steps() {
		if was, there := before.Step(st.Key); !there || was.Title != st.Title || was.Text != st.Text || was.From != st.From {
			s.tasks.Set(st.Key, taskfile.StepFields{From: new(s.v.Loop.Name)})
		}
	}
}

// proposedBy is the effect that put the result of an iteration on a branch; the zero Effect:
// none did.
func proposedBy(effects []loop.Effect, it loop.Iteration) loop.Effect {
	for _, e := range effects {
		if e.Kind == effect.KindPropose && e.State == loop.EffectDone && e.Args[effect.ArgTree] == it.Tree {
			return e
		}
	}
	return loop.Effect{}
}
