package heartbeat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// Record implements engine.Session: an answer is durable and acknowledged with the verdict,
// and a task moves to where its result puts it.
func (s *session) Record(r engine.Result) ([]loop.Change, []loop.EffectRequest) {
	step := r.Settlement.Step
	s.claiming = ""
	s.passTo(r.Iteration.Ended)
	said, err := report.Parse([]byte(r.Iteration.Report))
	if err != nil {
		said = report.Report{}
	}
	var changes []loop.Change
	if step.Kind == loop.StepReply {
		changes = s.recordReply(step, r, said)
	} else {
		changes = s.recordWork(step, r, said)
	}
	changes = append(changes, s.sendMessages(said.Messages, step, r.Iteration.N)...)
	if why, is := errorOf(r.Iteration); is {
		changes = append(changes, s.recordError(phaseOf(step), why, step))
	} else if r.Iteration.Verdict != loop.VerdictFail {
		s.mind = s.mind.Succeeded(s.v.Now)
	}
	if r.Proposal == nil || step.Kind == loop.StepReply {
		return changes, nil
	}
	return changes, []loop.EffectRequest{*r.Proposal}
}

// passTo notes that it is later than when the heartbeat began.
func (s *session) passTo(now time.Time) {
	if now.After(s.v.Now) {
		s.v.Now = now
	}
}

func phaseOf(step loop.Step) string {
	if kind, _, is := strings.Cut(step.Key, "/"); is {
		return kind + "s"
	}
	return "execute"
}

// programErrors are the reasons for which an agent's program or its model fails. A gate that
// fails is not one: the work is not good enough yet.
var programErrors = []loop.Reason{
	loop.ReasonAgentExit, loop.ReasonAgentTimeout, loop.ReasonAgentMissing, loop.ReasonReportMalformed, loop.ReasonLimit, loop.ReasonDisk, loop.ReasonInternal, loop.ReasonSetupFailed,
}

// errorOf says what went wrong with an agent's program or its model.
func errorOf(it loop.Iteration) (why string, is bool) {
	is = slices.Contains(programErrors, it.Reason) || it.Reason.IsExternal() && it.Reason != loop.ReasonBudget && it.Reason != loop.ReasonPriceUnknown
	return it.Reason.Explain(firstLine(it.Feedback)), is && it.Verdict == loop.VerdictFail
}

func (s *session) recordError(phase, why string, step loop.Step) loop.Change {
	s.mind = s.mind.Erred(s.v.Now)
	if cools, until := s.mind.Cools(s.v.Now); cools {
		s.remark("sleep", "cools off: %s", until)
	}
	e := board.Error{ID: s.newID(board.PrefixError), AgentID: s.handle, Phase: phase, Message: why, Timestamp: board.At(s.v.Now)}
	if _, is := s.tasks[step.Key]; is {
		e.TaskID = step.Key
	}
	return rowChange(e.Row())
}

// recordReply records an answer. One that could not be given is tried again.
func (s *session) recordReply(step loop.Step, r engine.Result, said report.Report) []loop.Change {
	if r.Iteration.Verdict != loop.VerdictPass {
		return nil
	}
	given := step
	given.State = loop.StepDropped // It needs no row any more.
	changes := []loop.Change{{Kind: loop.ChangeStep, Step: &given}}
	text := cut(cmp.Or(strings.TrimSpace(said.Summary), strings.TrimSpace(r.Said), "(no words)"), board.MostContent)
	if m, is := s.mentions[step.Key]; is {
		return append(append(changes, s.comment(m, text)...), acknowledged(m))
	}
	m := s.inbox[step.Key]
	if m.FromAgentID != board.Human {
		changes = append(changes, s.deliver(board.Message{ID: "answer/" + m.ID, ToAgentID: m.FromAgentID, MessageType: board.Answer, TaskID: m.TaskID, Answers: m.ID, Content: text}))
	}
	m.Response = text
	taken := m.Delivery()
	changes = append(changes, loop.Change{Kind: loop.ChangeReceive, Delivery: &taken})
	if m.MessageType == board.Order && m.TaskID == "" {
		changes = append(changes, s.delegated(m)...)
	}
	return changes
}

// delegated makes a task of an order that is about none: else nobody would work on it.
func (s *session) delegated(m board.Message) []loop.Change {
	if len(s.boards) == 0 {
		return nil
	}
	on := s.boards[0]
	for _, b := range s.boards {
		if b.ID == s.me.LeadBoardID || s.me.LeadBoardID == "" && len(s.me.BoardIDs) > 0 && b.ID == s.me.BoardIDs[0] {
			on = b
		}
	}
	t := board.Task{
		ID: board.PrefixTask + "_" + digestOf("order", m.ID), BoardID: on.ID, Title: firstLine(m.Content), Description: cut(m.Content, board.MostText), Status: board.Todo, Priority: board.High,
		AssigneeID: s.handle, CreatedBy: m.FromAgentID, CreatedAt: board.At(s.v.Now),
	}
	return []loop.Change{
		rowChange(t.Row()), s.activity(t, board.TaskCreated, fmt.Sprintf("%s is made from the order of %s", t.Title, at(m.FromAgentID))),
	}
}

// comment is an answer to a mention, and what it mentions. One that says what the last one of
// this agent said is dropped.
func (s *session) comment(m mention, text string) []loop.Change {
	c := board.Comment{
		ID: s.newID(board.PrefixComment), TaskID: m.TaskID, ParentID: m.CommentID, AuthorType: board.ByAgent, AuthorID: s.handle, Content: text,
		Mentions: board.Mentions(text), CreatedAt: board.At(s.v.Now),
	}
	if reason, why := board.MayComment(m.thread, c, s.v.Now); reason != "" {
		s.dropped++
		s.remark("mentions", "the answer to %s is dropped: %s", m.CommentID, why)
		return nil
	}
	task := board.Task{ID: m.TaskID, BoardID: s.tasks[m.TaskID].BoardID}
	changes := []loop.Change{rowChange(c.Row()), s.activity(task, board.CommentAdded, fmt.Sprintf("@%s has answered %s on %s", s.handle, at(m.comment.AuthorID), m.TaskID))}
	for _, who := range c.Mentions {
		if who == s.handle {
			continue
		}
		sub := board.Subscription{ID: s.newID(board.PrefixSubscription), AgentID: who, TaskID: c.TaskID, CommentID: c.ID, MentionedAt: c.CreatedAt}
		changes = append(changes, rowChange(sub.Row()))
	}
	return changes
}

// sendMessages sends what a report says to others. What may not be said is noted.
func (s *session) sendMessages(list []report.Message, step loop.Step, iteration int) (changes []loop.Change) {
	for n, said := range list {
		m := board.Message{
			ID: fmt.Sprintf("%s/%s/%d/%d", s.v.Run.ID, step.Key, iteration, n+1), FromAgentID: s.handle, ToAgentID: strings.ToLower(strings.TrimPrefix(strings.TrimSpace(said.To), "@")),
			MessageType: board.MessageType(strings.ToLower(strings.TrimSpace(said.Kind))), Content: cut(said.Content, board.MostContent), SentAt: board.At(s.v.Now),
		}
		if m.MessageType == "" {
			m.MessageType = board.Suggestion
		}
		switch from, is := s.inbox[step.Key]; {
		case is:
			m.TaskID, m.Answers = from.TaskID, from.ID
		case step.Kind != loop.StepReply:
			m.TaskID = step.Key
		default:
			m.TaskID = s.mentions[step.Key].TaskID
		}
		if m.ToAgentID == "owner" || m.ToAgentID == "user" {
			m.ToAgentID = board.Human
		}
		why := s.mayNotSend(m)
		if why != "" {
			s.dropped++
			s.remark("messages", "the %s to %s is not sent: %s", m.MessageType, at(m.ToAgentID), why)
			continue
		}
		changes = append(changes, s.deliver(m))
	}
	return changes
}

// mayNotSend says why a message is not sent; empty: it is.
func (s *session) mayNotSend(m board.Message) string {
	if strings.TrimSpace(m.Content) == "" {
		return "it has no words"
	}
	all, err := s.roster()
	if err != nil {
		return err.Error()
	}
	if _, why := board.MaySend(all.team, m); why != "" {
		return why
	}
	_, why := board.MaySay(s.about, m, s.v.Now)
	return why
}

// recordWork moves a task to where the result of an attempt puts it.
func (s *session) recordWork(step loop.Step, r engine.Result, said report.Report) []loop.Change {
	if !s.held[step.Key] {
		return nil // It is in review, and was made again on a base that has moved.
	}
	t, now := s.tasks[step.Key], s.v.Now
	it := r.Iteration
	why := firstLine(cmp.Or(it.Feedback, it.Reason.Sentence()))
	entry, words := board.LogInfo, ""
	switch passed := it.Verdict == loop.VerdictPass || it.Verdict == loop.VerdictPending; {
	case step.State == loop.StepClaimed: // Tried once more by this run.
		return []loop.Change{s.logEntry(step.Key, board.LogError, "attempt failed, and is tried again: "+why)}
	case step.State == loop.StepWaiting:
		t.ExecutionStatus, words = board.ExecutionApproval, "waits for a person: "+cmp.Or(why, step.WaitsFor)
	case passed && r.Proposal != nil: // Close knows whether it could be kept.
		s.proposed[step.Key] = cmp.Or(said.Summary, why)
		s.mind = s.mind.Completed(step.Key, now.Sub(t.ClaimedAt.Time()), now)
	case passed:
		t.Status, t.ExecutionStatus, t.CompletedAt, words = board.Done, board.ExecutionCompleted, board.At(now), cmp.Or(said.Summary, why)
		s.mind = s.mind.Completed(step.Key, now.Sub(t.ClaimedAt.Time()), now)
	case it.Reason == loop.ReasonAgentQuiet:
		t.Status, t.ExecutionStatus, t.AssigneeID, words = board.Todo, board.ExecutionPending, "", "the agent found nothing to do"
	case step.State == loop.StepEscalated && it.Reason == loop.ReasonAgentEscalated:
		return s.handOver(step, t, why)
	case step.State == loop.StepEscalated:
		t.Status, t.ExecutionStatus, t.CompletedAt, words, entry = board.Failed, board.ExecutionFailed, board.At(now), "failed: "+why, board.LogError
		s.mind = s.mind.Failed(step.Key, now)
	case step.State == loop.StepBlocked:
		t.Status, t.ExecutionStatus, words, entry = board.Todo, board.ExecutionPending, "blocked: "+why, board.LogError
	default: // Another heartbeat tries it again.
		t.Status, t.ExecutionStatus, words, entry = board.Todo, board.ExecutionPending, "failed, and is tried again: "+why, board.LogError
	}
	for _, p := range said.Pitfalls {
		s.mind = s.mind.Reflect(cut(p, board.MostContent), now)
	}
	s.mind.WorkingMemory.LastContext = firstLine(fmt.Sprintf("%s (%s): %s", t.Title, step.Key, cmp.Or(words, s.proposed[step.Key])))
	if s.proposed[step.Key] != "" {
		return nil
	}
	changes := []loop.Change{s.settle(t), s.logEntry(step.Key, entry, words)}
	if t.Status == board.InProgress {
		return changes
	}
	action := board.TaskMoved
	if t.CompletedAt != 0 && t.Status != board.Failed {
		action = board.TaskCompleted
	}
	return append(changes, s.activity(t.Task, action, fmt.Sprintf("%s is in %s: %s", t.Title, t.Status, words)))
}

// settle writes a task that this run has claimed, and lets go of it.
func (s *session) settle(t taskRow) loop.Change {
	delete(s.held, t.row.Key)
	s.mind.CurrentTaskID = ""
	s.tasks[t.row.Key] = t
	body := onlyFields(t.Task, "status", "assigneeId", "claimedAt", "completedAt", "executionStatus")
	return loop.Change{Kind: loop.ChangeRow, Row: &loop.Row{
		Set: board.SetTasks, Key: t.row.Key, Scope: t.BoardID, State: string(t.Status), Owner: t.AssigneeID, Holds: true, Body: body,
	}}
}

// handOver asks whoever is above about a task that the agent hands over: it waits for the
// answer.
func (s *session) handOver(step loop.Step, t taskRow, why string) []loop.Change {
	open := step
	open.State, open.Feedback = loop.StepOpen, why
	t.Status, t.ExecutionStatus = board.Todo, board.ExecutionPending
	to := board.Human
	if all, err := s.roster(); err == nil {
		to = board.Escalate(all.team, s.handle, board.MatterBlocked)[0]
	}
	s.remark("execute", "%s is handed over to %s: %s", step.Key, at(to), why)
	return []loop.Change{
		{Kind: loop.ChangeStep, Step: &open},
		s.settle(t), s.logEntry(step.Key, board.LogError, "handed over to "+at(to)+": "+why),
		s.deliver(board.Message{
			ID: s.v.Run.ID + "/handover", ToAgentID: to, MessageType: board.Question, TaskID: step.Key, Content: fmt.Sprintf("@%s hands over %s (%s): %s", s.handle, t.Title, step.Key, why),
		}),
	}
}

// Close implements engine.Session: what was claimed and not settled is free again, and the
// agent sleeps with what it has learned.
func (s *session) Close(sum engine.Summary) []loop.Change {
	s.passTo(sum.Now)
	changes := s.outgoing
	s.outgoing = nil
	for _, key := range slices.Sorted(maps.Keys(s.held)) {
		t := s.tasks[key]
		words, proposed := s.proposed[key]
		if proposed && isKept(sum) {
			t.Status, t.ExecutionStatus, t.CompletedAt = board.Review, board.ExecutionCompleted, board.At(sum.Now)
			words = cmp.Or(words, "done") + "; its change is proposed"
			changes = append(changes, s.settle(t), s.logEntry(key, board.LogInfo, words), s.activity(t.Task, board.TaskCompleted, fmt.Sprintf("%s is in %s: %s", t.Title, t.Status, words)))
			continue
		}
		t.Status, t.ExecutionStatus, t.AssigneeID, t.ClaimedAt = board.Todo, board.ExecutionPending, "", 0
		words = sum.Run.Reason.Explain(firstLine(sum.Run.Detail))
		changes = append(changes, s.settle(t), s.logEntry(key, board.LogError, "the run ended before the task did: "+words), s.activity(t.Task, board.TaskMoved, fmt.Sprintf("%s is in todo: the run of @%s ended before it did", t.Title, s.handle)))
	}
	if s.me.Handle == "" {
		return changes
	}
	if len(sum.Iterations) == 0 && sum.Run.Outcome == loop.OutcomeFailed {
		changes = append(changes, s.recordError("wake", sum.Run.Reason.Explain(firstLine(sum.Run.Detail)), loop.Step{}))
	}
	status := board.Idle
	if cools, _ := s.mind.Cools(sum.Now); cools {
		status = board.Sleeping
	}
	s.mind.CurrentTaskID = ""
	change := s.mindChange(status)
	change.Row.Hold = false
	changes = append(changes, change)
	if s.worked {
		s.remark("sleep", "%s", status)
		a := board.Activity{
			ID: s.newID(board.PrefixActivity), BoardID: s.winner.ID, ActorType: board.ByAgent, ActorID: s.handle, ActionType: board.AgentHeartbeat, CreatedAt: board.At(sum.Now),
			Message: fmt.Sprintf("@%s: %s in run #%d%s", s.handle, sum.Run.Outcome, sum.Run.N, droppedWords(s.dropped)),
		}
		changes = append(changes, rowChange(a.Row()))
	}
	return changes
}

// isKept reports whether the results of a run are on their branches.
func isKept(sum engine.Summary) bool {
	return !slices.ContainsFunc(sum.Effects, func(e loop.Effect) bool { return e.Kind == effect.KindPropose && e.State != loop.EffectDone })
}

func droppedWords(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s that said nothing new or went nowhere", count(n, "message"))
}

// newID is an id that no other run gives. Those of one run are in the order in which they
// were given: rows that are made at one time are listed by their ids.
func (s *session) newID(prefix string) string {
	s.said++
	return fmt.Sprintf("%s_%s%04d", prefix, digestOf(s.v.Run.ID, fmt.Sprint(s.v.Ending)), s.said)
}

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// rowChange writes a row that is new.
func rowChange(row loop.Row) loop.Change { return loop.Change{Kind: loop.ChangeRow, Row: &row} }

// activity is a line of what happened on a board.
func (s *session) activity(t board.Task, kind board.ActionType, words string) loop.Change {
	a := board.Activity{
		ID: s.newID(board.PrefixActivity), BoardID: t.BoardID, ActorType: board.ByAgent, ActorID: s.handle, ActionType: kind, Message: cut(words, board.MostContent), TaskID: t.ID, CreatedAt: board.At(s.v.Now),
	}
	return rowChange(a.Row())
}

// logEntry is an entry of a task's execution log.
func (s *session) logEntry(taskID string, kind board.LogType, content string) loop.Change {
	e := board.LogEntry{Timestamp: board.At(s.v.Now), Type: kind, Content: cut(content, board.MostContent)}
	s.said++
	return rowChange(e.Row(fmt.Sprintf("%s/%s/%04d", taskID, s.v.Run.ID, s.said), taskID, s.handle))
}

// onlyFields is an object with some fields of a value; those that are empty are removed.
func onlyFields(value any, names ...string) json.RawMessage {
	var now map[string]json.RawMessage
	if err := json.Unmarshal(encode(value), &now); err != nil {
		panic("heartbeat: " + err.Error())
	}
	fields := map[string]json.RawMessage{}
	for _, name := range names {
		if fields[name] = now[name]; fields[name] == nil {
			fields[name] = json.RawMessage("null")
		}
	}
	return encode(fields)
}

// cut is a text of at most so many bytes.
func cut(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len(mark)], "") + mark
}

// Planned writes the execution plan of the agent into the log of the task, before the first
// command of it runs.
func (s *session) Planned(list []loop.PlannedCommand) (changes []loop.Change) {
	for n, c := range list {
		line := fmt.Sprintf("plan %d of %d (%s): %s", n+1, len(list), c.Answer, commandLine(c.Argv))
		changes = append(changes, s.logEntry(s.claiming, board.LogCommand, nonEmptyLines(line, c.Why, c.Words)))
	}
	return changes
}

// Ran writes what the commands came to.
func (s *session) Ran(list []loop.CommandResult) (changes []loop.Change) {
	for _, c := range list {
		kind := board.LogOutput
		if c.State == loop.CommandUnmet || c.State == loop.CommandRefused {
			kind = board.LogError
		}
		changes = append(changes, s.logEntry(s.claiming, kind, nonEmptyLines(fmt.Sprintf("%s: %s", c.State, commandLine(c.Argv)), c.Detail, c.Output)))
	}
	return changes
}

func commandLine(argv []string) string { return loop.HostCommand(argv[0], argv[1:]...).String() }

func nonEmptyLines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}
