// Package heartbeat lets an agent of boards wake, answer, choose a task, claim it, work and
// sleep. Its memory is rows that the agents of a workspace share; what each of them may take,
// and why, package board decides.
//
// Each run is one heartbeat of one agent. A task belongs to nobody until a run claims it, and
// is free again when that run is over without a word.
package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/people"
)

// Bounds of what one heartbeat looks at.
const (
	mostInbox    = 100  // mentions, and messages, the oldest first
	mostTasks    = 1000 // of each board that are not done
	mostMembers  = 2000
	mostDone     = 20 // tasks of the agent that say what it is good at
	mostThread   = 50 // comments of a task
	mostResource = 200
)

// Protocol opens the memory of agents of boards.
type Protocol struct{}

// Open implements engine.Protocol.
func (Protocol) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s := &session{
		v: v, handle: strings.TrimPrefix(v.Loop.Name, "@"), steps: map[string]loop.Step{}, tasks: map[string]taskRow{}, held: map[string]bool{},
		mentions: map[string]mention{}, inbox: map[string]board.Message{}, proposed: map[string]string{},
	}
	s.roster = sync.OnceValues(func() (roster, error) { return s.readRoster(context.WithoutCancel(ctx)) })
	for _, row := range v.Steps {
		s.steps[row.Key] = row
	}
	if err := s.wake(ctx); err != nil {
		return nil, err
	}
	if v.Ending {
		return s, s.readHeld(ctx)
	}
	if err := s.readInbox(ctx); err != nil {
		return nil, err
	}
	if err := s.takeBack(ctx); err != nil {
		return nil, err
	}
	asked := v.Run.Trigger == loop.TriggerApproval || v.Run.By.Role == loop.RoleHuman
	if standby, why := s.mind.StandsBy(len(s.replies)+len(s.back), v.Now); standby && !asked {
		s.note("route", "not scanned: %s", why)
		return s, nil
	}
	return s, s.Refresh(ctx)
}

// taskRow is a task with its row.
type taskRow struct {
	board.Task

	row loop.Row
}

// mention is a comment that the agent has to answer.
type mention struct {
	board.Subscription

	row     loop.Row
	comment board.Comment
	thread  []board.Comment // of the same task, the oldest first
}

// session is one heartbeat.
type session struct {
	v      engine.View
	handle string
	steps  map[string]loop.Step // by key

	me        board.Member
	mind      board.Mind
	mindRow   loop.Row
	holdsMind bool // this run has written it
	heldMind  bool // it had before the last step was begun
	boards    []board.Board
	roster    func() (roster, error) // reads it when it is asked first

	mentions map[string]mention       // by key of the step
	inbox    map[string]board.Message // messages that ask for an answer, by key of the step
	replies  []string                 // the keys of both, in the order in which they are answered
	repairs  []engine.Repair

	back       []string           // ids of tasks that were proposed, and are to do again
	winner     board.Board        // the board of this heartbeat
	tasks      map[string]taskRow // of all boards, by id
	candidates []board.Candidate  // of the winner
	resources  []board.Resource   // of the winner
	about      []board.Message    // about tasks of the winner

	held     map[string]bool   // tasks that this run has claimed and not settled
	losses   int               // claims that others made first
	claiming string            // key of the step that was begun and has no result yet
	proposed map[string]string // tasks whose change is proposed when the run ends, with a summary
	said     int               // ids that were given in this run
	dropped  int               // answers and messages that were not sent
	worked   bool              // it did more than look
	notes    []string
	remarks  []string
	outgoing []loop.Change // written when the run ends
}

// note says what a phase found, with the phase as its label.
func (s *session) note(phase, format string, args ...any) {
	s.notes = append(s.notes, phase+": "+fmt.Sprintf(format, args...))
}

// remark is note for what comes after the memory was opened.
func (s *session) remark(phase, format string, args ...any) {
	s.remarks = append(s.remarks, phase+": "+fmt.Sprintf(format, args...))
}

// wake reads who the agent is, what it remembers, and its boards.
func (s *session) wake(ctx context.Context) error {
	found, err := readRows[board.Member](ctx, s, loop.RowQuery{Set: board.SetMembers, Keys: []string{s.handle}})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &engine.OpenError{Outcome: loop.OutcomeFailed, Reason: loop.ReasonAgentMissing, Detail: fmt.Sprintf("@%s is not an agent of a board of this workspace; %s makes it one", s.handle, loop.PawlCommand("agent create", "@"+s.handle).WithFlag("board", "BOARD").WithBlanks("BOARD"))}
	}
	s.me = found[0].value
	minds, err := readRows[board.Mind](ctx, s, loop.RowQuery{Set: board.SetMinds, Keys: []string{s.handle}})
	if err != nil {
		return err
	}
	s.mindRow = loop.Row{Set: board.SetMinds, Key: s.handle}
	if len(minds) > 0 {
		s.mind, s.mindRow = minds[0].value, minds[0].row
	}
	if s.v.Ending {
		return nil
	}
	if s.me.Dormant {
		return &engine.OpenError{Outcome: loop.OutcomePaused, Reason: loop.ReasonDormant, Detail: "@" + s.handle + " has no heartbeats until it is set to --dormant=false"}
	}
	s.mind.CurrentTaskID = "" // The run that had it is over.
	boards, err := readRows[board.Board](ctx, s, loop.RowQuery{Set: board.SetBoards, Keys: s.me.BoardIDs})
	if err != nil {
		return err
	}
	for _, b := range boards {
		s.boards = append(s.boards, b.value)
	}
	slices.SortFunc(s.boards, func(a, b board.Board) int { return strings.Compare(a.Slug, b.Slug) })
	if s.mind.LastHeartbeat == 0 {
		s.note("wake", "online for the first time; %s", count(len(s.boards), "board"))
	} else {
		s.note("wake", "online; %s; last heartbeat %s; %s in a row", count(len(s.boards), "board"), s.mind.LastHeartbeat.Time().Format("2006-01-02T15:04:05Z"), count(s.mind.WorkingMemory.ErrorCount, "error"))
	}
	return nil
}

// stored is a value with its row.
type stored[T any] struct {
	value T
	row   loop.Row
}

func readRows[T any](ctx context.Context, s *session, q loop.RowQuery) ([]stored[T], error) {
	if q.Keys != nil && len(q.Keys) == 0 {
		return nil, nil
	}
	rows, err := s.v.Rows.List(ctx, q)
	if err != nil {
		return nil, err
	}
	list := make([]stored[T], len(rows))
	for i, row := range rows {
		list[i].row = row
		if list[i].value, err = board.FromRow[T](row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// readInbox reads what the agent has to answer. Answers to its own messages need none: they
// are in its memory from now on.
func (s *session) readInbox(ctx context.Context) error {
	subs, err := readRows[board.Subscription](ctx, s, loop.RowQuery{Set: board.SetSubscriptions, Owner: s.handle, States: []string{board.SubscriptionWaits}, Limit: mostInbox})
	if err != nil {
		return err
	}
	threads := map[string][]board.Comment{} // by task
	for _, sub := range subs {
		m := mention{Subscription: sub.value, row: sub.row}
		thread, read := threads[m.TaskID]
		if !read {
			newest, err := readRows[board.Comment](ctx, s, loop.RowQuery{Set: board.SetComments, Scope: m.TaskID, Newest: true, Limit: mostThread})
			if err != nil {
				return err
			}
			for _, c := range slices.Backward(newest) {
				thread = append(thread, c.value)
			}
			threads[m.TaskID] = thread
		}
		m.thread = thread
		if at := slices.IndexFunc(thread, func(c board.Comment) bool { return c.ID == m.CommentID }); at >= 0 {
			m.comment = thread[at]
		}
		if m.comment.ID == "" { // It is older than the thread that is read, or gone.
			older, err := readRows[board.Comment](ctx, s, loop.RowQuery{Set: board.SetComments, Keys: []string{m.CommentID}})
			if err != nil {
				return err
			}
			if len(older) > 0 {
				m.comment = older[0].value
				m.thread = append([]board.Comment{m.comment}, thread...) // Who wrote it decides whether an answer may be given.
			}
		}
		if why := s.endsThread(m); why != "" {
			s.note("mentions", "%s is acknowledged without an answer: %s", m.CommentID, why)
			s.repairs = append(s.repairs, engine.Repair{Changes: []loop.Change{acknowledged(m)}, Note: "mention " + m.CommentID + " ends here: " + why})
			continue
		}
		key := "mention/" + m.ID
		s.mentions[key] = m
		s.replies = append(s.replies, key)
	}
	s.note("mentions", "%s to answer", count(len(s.mentions), "mention"))
	waiting, err := s.v.Mail.Waiting(ctx)
	if err != nil {
		return err
	}
	var list []board.Message
	for _, d := range waiting[:min(len(waiting), mostInbox)] {
		m := board.FromDelivery(d)
		if m.MessageType == board.Answer {
			s.repairs = append(s.repairs, engine.Repair{Changes: []loop.Change{{Kind: loop.ChangeReceive, Delivery: &d}}, Note: fmt.Sprintf("%s answered %s", at(m.FromAgentID), m.Answers)})
			continue
		}
		list = append(list, m)
	}
	var all roster
	if len(list) > 0 {
		if all, err = s.roster(); err != nil {
			return err
		}
	}
	for _, m := range board.SortMessages(all.team, list) {
		key := "message/" + m.ID
		s.inbox[key] = m
		s.replies = append(s.replies, key)
	}
	s.note("messages", "%s to answer", count(len(s.inbox), "message"))
	return nil
}

// endsThread says why a mention gets no answer; empty: it gets one.
func (s *session) endsThread(m mention) string {
	switch {
	case m.comment.ID == "":
		return "its comment is not there any more"
	case m.comment.AuthorType == board.ByHuman:
		return ""
	}
	// Words that nobody has said, because what will be said is not known yet.
	next := board.Comment{TaskID: m.TaskID, ParentID: m.CommentID, AuthorType: board.ByAgent, AuthorID: s.handle, Content: "something new: " + m.ID}
	_, why := board.MayComment(m.thread, next, s.v.Now)
	return why
}

func acknowledged(m mention) loop.Change {
	m.Acknowledged = true
	row := m.Row()
	row.Version = m.row.Version
	return loop.Change{Kind: loop.ChangeRow, Row: &row}
}

// roster is who works on the boards of the workspace, and who reports to whom.
type roster struct {
	members []board.Member
	team    people.Team
}

// readRoster reads it. There may be thousands, of whom most heartbeats need to know nobody.
func (s *session) readRoster(ctx context.Context) (r roster, err error) {
	all, err := readRows[board.Member](ctx, s, loop.RowQuery{Set: board.SetMembers, Limit: mostMembers})
	for _, m := range all {
		r.members = append(r.members, m.value)
	}
	r.team = board.Team(r.members)
	return r, err
}

// takeBack finds out what became of what the agent has proposed: a task whose change has
// landed is done, and one whose change a person rejected is to do again.
func (s *session) takeBack(ctx context.Context) error {
	if s.v.Run.Trigger == loop.TriggerApproval {
		return nil // What it answers may be made again by this run.
	}
	waits, err := readRows[board.Task](ctx, s, loop.RowQuery{Set: board.SetTasks, Owner: s.handle, States: []string{string(board.Review)}})
	if err != nil || len(waits) == 0 {
		return err
	}
	ids := make([]string, len(waits))
	for i, t := range waits {
		ids[i] = engine.StepID(s.v.Loop.ID, t.row.Key)
	}
	results, err := s.v.Results.Of(ctx, ids...)
	if err != nil {
		return err
	}
	for i, t := range waits {
		res, step := results[ids[i]], s.steps[t.row.Key]
		task, row := t.value, t.row
		branch := res.Approval.Action.Branch
		var changes []loop.Change
		var note string
		switch res.State {
		case engine.ResultLanded:
			task.Status, note = board.Done, fmt.Sprintf("%s has landed: %s is done", branch, task.ID)
		case engine.ResultRejected, engine.ResultVoid:
			task.Status, task.ExecutionStatus = board.Todo, board.ExecutionPending
			said := fmt.Sprintf("%s can land no more: %s", branch, res.Approval.Note)
			if res.State == engine.ResultRejected {
				said = fmt.Sprintf("%s rejected %s: %s", res.Approval.By, branch, res.Approval.Note)
			}
			note = said + "; it is to do again"
			fresh := step.AsNew()
			fresh.Feedback = said
			s.steps[fresh.Key] = fresh
			changes = append(changes, loop.Change{Kind: loop.ChangeStep, Step: &fresh}, s.logEntry(task.ID, board.LogInfo, said))
			s.back = append(s.back, row.Key)
		case engine.ResultWaits, "":
			continue
		}
		row.State, row.Body = string(task.Status), withFields(row.Body, task, "status", "executionStatus")
		written := row
		written.Version++
		s.tasks[row.Key] = taskRow{task, written}
		changes = append(changes, loop.Change{Kind: loop.ChangeRow, Row: &row}, s.activity(task, board.TaskMoved, fmt.Sprintf("%s is in %s: %s", task.Title, task.Status, note)))
		s.repairs = append(s.repairs, engine.Repair{Changes: changes, Note: note})
	}
	return nil
}

// readHeld finds the tasks that a run had claimed whose process died.
func (s *session) readHeld(ctx context.Context) error {
	mine, err := readRows[board.Task](ctx, s, loop.RowQuery{Set: board.SetTasks, Owner: s.handle, States: []string{string(board.InProgress)}})
	for _, t := range mine {
		if t.row.RunID == s.v.Run.ID {
			s.tasks[t.row.Key] = taskRow{t.value, t.row}
			s.held[t.row.Key] = true
		}
	}
	s.holdsMind = s.mindRow.RunID == s.v.Run.ID
	return err
}

// Recovered implements engine.Session.
func (s *session) Recovered() []engine.Repair { return s.repairs }

// Notes says what the phases found before anything was chosen.
func (s *session) Notes() []string { return s.notes }

// Remarks says what they found since it was called last.
func (s *session) Remarks() []string {
	said := s.remarks
	s.remarks = nil
	return said
}

// Sources implements engine.Session: everything is in the rows.
func (s *session) Sources() []engine.Source { return nil }

func encode(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil {
		panic("heartbeat: " + err.Error()) // Nothing of it can fail.
	}
	return body
}

// withFields is a stored object in which some fields are those of a value: what other
// versions have written beside them stays.
func withFields(body json.RawMessage, value any, names ...string) json.RawMessage {
	var all, now map[string]json.RawMessage
	if json.Unmarshal(body, &all) != nil || json.Unmarshal(encode(value), &now) != nil {
		return encode(value)
	}
	for _, name := range names {
		if field, there := now[name]; there {
			all[name] = field
		} else {
			delete(all, name)
		}
	}
	return encode(all)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func at(who string) string {
	if who == board.Human {
		return "a person"
	}
	return "@" + who
}
