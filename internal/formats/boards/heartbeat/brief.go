package heartbeat

import (
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// mostRemembered bounds the reflections that an agent is given.
const mostRemembered = 5

// Begin implements engine.Session: a task is claimed before the agent acts. If somebody else
// was first, nothing of it is written.
func (s *session) Begin(ch plan.Choice) ([]loop.Change, engine.Brief, error) {
	key := ch.Step.Key
	s.worked, s.claiming, s.heldMind = true, key, s.holdsMind
	if ch.Step.Kind == loop.StepReply {
		return []loop.Change{s.mindChange(board.Online)}, s.replyBrief(key), nil
	}
	t := s.tasks[key]
	s.mind.CurrentTaskID = key
	changes := []loop.Change{s.mindChange(board.Working)}
	claim := t.row
	claim.Hold, claim.Holds = true, s.held[key]
	t.Status, t.AssigneeID, t.ExecutionStatus = board.InProgress, s.handle, board.ExecutionRunning
	if !s.held[key] {
		t.ClaimedAt = board.At(s.v.Now)
		changes = append(changes,
			s.activity(t.Task, board.TaskClaimed, fmt.Sprintf("@%s has claimed %s", s.handle, t.Title)),
			s.logEntry(key, board.LogInfo, fmt.Sprintf("claimed by @%s in run #%d: %s", s.handle, s.v.Run.N, ch.Detail)))
		s.remark("claim", "%s on %s", key, s.winner.Slug)
	}
	claim.State, claim.Owner = string(t.Status), s.handle
	claim.Body = onlyFields(t.Task, "status", "assigneeId", "claimedAt", "executionStatus")
	if !s.held[key] {
		claim.Body = withFields(t.row.Body, t.Task, "status", "assigneeId", "claimedAt", "executionStatus")
	}
	s.held[key], s.tasks[key] = true, t
	return append([]loop.Change{{Kind: loop.ChangeRow, Row: &claim}}, changes...), s.workBrief(t.Task, ch), nil
}

// mindChange writes what the agent knows, which no other run does.
func (s *session) mindChange(status board.Presence) loop.Change {
	s.mind.Status, s.mind.LastHeartbeat = status, board.At(s.v.Now)
	row := s.mindRow
	row.State, row.Hold, row.Holds = string(status), true, s.holdsMind
	row.Body = onlyFields(s.mind, "status", "lastHeartbeat", "currentTaskId", "healthMetrics", "workingMemory", "coolUntil", "coolStep", "routedAt")
	s.holdsMind = true
	return loop.Change{Kind: loop.ChangeRow, Row: &row}
}

// role is who speaks to whom: company, department, board, role.
func (s *session) role(b board.Board) string {
	var text strings.Builder
	text.WriteString("Company: the agents of this workspace.\n")
	for _, of := range s.boards {
		if of.ID == s.me.LeadBoardID {
			fmt.Fprintf(&text, "Department: you lead the board %s.\n", of.Name)
		}
	}
	if b.ID != "" {
		fmt.Fprintf(&text, "Board: %s. %s\n", b.Name, b.Description)
	}
	fmt.Fprintf(&text, "You are @%s", s.handle)
	if s.me.Name != "" {
		fmt.Fprintf(&text, " (%s)", s.me.Name)
	}
	fmt.Fprintf(&text, ", %s, layer %s.", s.me.Role, s.me.Layer)
	if len(s.me.Skills) > 0 {
		fmt.Fprintf(&text, " Skills: %s.", strings.Join(s.me.Skills, ", "))
	}
	if s.me.Lead != "" {
		fmt.Fprintf(&text, " You report to @%s.", s.me.Lead)
	}
	return text.String()
}

// messageRules say how an agent speaks to others.
const messageRules = `To tell another agent something, add it to "messages" of the report: [{"to": "@handle", "kind": "order|report|question|suggestion", "content": "…"}]. Orders go down, reports go up. ` +
	`A question about the task blocks it until it is answered: ask, and report "blocked".`

// replyBrief is what the agent is told for an answer.
func (s *session) replyBrief(key string) engine.Brief {
	brief := engine.Brief{
		Goal:  envelope.Field{Text: s.v.Definition.Goal, By: s.v.Definition.GoalAuthor()},
		Rules: []string{"Answer. Your answer is the \"summary\" of the report. Change no files, and begin no other work.", messageRules},
	}
	var taskID string
	if m, is := s.mentions[key]; is {
		taskID = m.TaskID
		brief.Task = envelope.Plain(fmt.Sprintf("%s mentioned you in a comment on task %s. Answer it.", at(m.comment.AuthorID), m.TaskID))
		brief.Memory = append(brief.Memory, engine.Block{Label: "The comment of " + at(m.comment.AuthorID), Text: m.comment.Content}, engine.Block{Label: "The comments before and after it", Text: threadText(m.thread)})
	} else {
		m := s.inbox[key]
		taskID = m.TaskID
		brief.Task = envelope.Plain(fmt.Sprintf("%s sent you this %s. %s", at(m.FromAgentID), m.MessageType, whatToDo[m.MessageType]))
		if m.TaskID != "" {
			brief.Task.Text += " It is about task " + m.TaskID + "."
		}
		brief.Memory = append(brief.Memory, engine.Block{Label: fmt.Sprintf("The %s of %s", m.MessageType, at(m.FromAgentID)), Text: m.Content})
	}
	var of board.Board
	for _, b := range s.boards {
		if t, known := s.tasks[taskID]; known && b.ID == t.BoardID {
			of = b
			brief.Memory = append(brief.Memory, engine.Block{Label: "Task " + taskID, Text: taskText(t.Task)})
		}
	}
	brief.Role = s.role(of)
	brief.Memory = append(brief.Memory, s.memoryBlocks()...)
	return brief
}

var whatToDo = map[board.MessageType]string{
	board.Order:      "Say that you have understood it, or what keeps you from it; you do it afterwards.",
	board.Question:   "Answer it.",
	board.Report:     "Take note of it, and say what follows from it, if anything does.",
	board.Suggestion: "Say whether you take it up.",
}

// workBrief is what the agent is told for a task.
func (s *session) workBrief(t board.Task, ch plan.Choice) engine.Brief {
	goal := envelope.Field{Text: s.v.Definition.Goal, By: s.v.Definition.GoalAuthor()}
	brief := engine.Brief{Goal: goal, Role: s.role(s.winner), Task: envelope.Field{Text: taskText(t), By: t.Author()}, Rules: []string{
		messageRules,
		`What went well, what went wrong and what you have learned goes into "pitfalls" of the report; you are given it with the next tasks.`,
	}}
	brief.Scope = s.winner.Scope
	for _, m := range s.about {
		if m.TaskID != t.ID || m.MessageType == board.Answer {
			continue
		}
		text := m.Content
		if m.Response != "" {
			text += "\n\nAnswered by " + at(m.ToAgentID) + ": " + m.Response
		}
		brief.Memory = append(brief.Memory, engine.Block{Label: fmt.Sprintf("%s of %s to %s about this task", m.MessageType, at(m.FromAgentID), at(m.ToAgentID)), Text: text})
	}
	for _, r := range s.resources {
		brief.Memory = append(brief.Memory, engine.Block{Label: fmt.Sprintf("Resource of the board (%s): %s", r.Category, r.Title), Text: r.Content})
	}
	brief.Memory = append(brief.Memory, s.memoryBlocks()...)
	return brief
}

// memoryBlocks are what the agent remembers.
func (s *session) memoryBlocks() []engine.Block {
	m := s.mind.WorkingMemory
	var lines []string
	if m.LastContext != "" {
		lines = append(lines, "Last: "+m.LastContext)
	}
	lines = append(lines, m.Reflections[max(0, len(m.Reflections)-mostRemembered):]...)
	if len(lines) == 0 {
		return nil
	}
	return []engine.Block{{Label: "What you remember of your last heartbeats", Text: strings.Join(lines, "\n")}}
}

// taskText is a task in full.
func taskText(t board.Task) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s (priority %s)\n", t.ID, t.Title, t.Priority)
	for _, part := range []struct{ label, text string }{
		{"", t.Description}, {"Acceptance criteria: ", t.AcceptanceCriteria}, {"Required skills: ", strings.Join(t.RequiredSkills, ", ")}, {"Tags: ", strings.Join(t.Tags, ", ")},
	} {
		if part.text != "" {
			fmt.Fprintf(&text, "%s%s\n", part.label, part.text)
		}
	}
	if t.DueDate != 0 {
		fmt.Fprintf(&text, "Due: %s\n", t.DueDate.Time().Format("2006-01-02T15:04:05Z"))
	}
	return text.String()
}

func threadText(thread []board.Comment) string {
	var lines []string
	for _, c := range thread {
		lines = append(lines, at(c.AuthorID)+": "+c.Content)
	}
	return strings.Join(lines, "\n")
}
