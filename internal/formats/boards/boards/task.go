package boards

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// TaskChange is what is set of a task. A nil field is left as it is.
type TaskChange struct {
	Title       *string  `json:"title,omitempty"`
	Description *string  `json:"description,omitempty"`
	Criteria    *string  `json:"acceptance_criteria,omitempty"`
	Priority    *string  `json:"priority,omitempty"`
	Parent      *string  `json:"parent,omitempty"` // id of the task that has to be done before; empty: none
	Due         *string  `json:"due,omitempty"`    // a day or a time; empty: none
	Order       *int     `json:"order,omitempty"`
	Skills      []string `json:"skills,omitzero"`
	Tags        []string `json:"tags,omitzero"`
}

// CreateTaskRequest is a task to create.
type CreateTaskRequest struct {
	Board    string `json:"board"`              // slug or id
	Status   string `json:"status,omitempty"`   // empty: backlog
	Assignee string `json:"assignee,omitempty"` // handle
	By       string `json:"by,omitempty"`       // handle of the agent that it is made for; empty: a person
	TaskChange
}

// TaskView is one task, schema pawl.task/v1.
type TaskView struct {
	Schema string `json:"schema"`
	board.Task

	Slug     string          `json:"board"` // of its board
	RunID    string          `json:"run,omitempty"`
	Comments []board.Comment `json:"comments"`
}

func (c TaskChange) apply(t *board.Task, by loop.Actor) error {
	if writes := c.Title != nil || c.Description != nil || c.Criteria != nil || c.Skills != nil || c.Tags != nil; writes && by.Role != loop.RoleHuman {
		t.TextBy = by.Role.Recorded()
	}
	set(&t.Title, c.Title)
	set(&t.Description, c.Description)
	set(&t.AcceptanceCriteria, c.Criteria)
	set((*string)(&t.Priority), c.Priority)
	set(&t.ParentTaskID, c.Parent)
	set(&t.Order, c.Order)
	if c.Skills != nil {
		t.RequiredSkills = c.Skills
	}
	if c.Tags != nil {
		t.Tags = c.Tags
	}
	if c.Due != nil {
		due, err := parseTime(*c.Due)
		if err != nil {
			return err
		}
		t.DueDate = due
	}
	return nil
}

// CreateTask creates a task.
func (s *Service) CreateTask(ctx context.Context, by loop.Actor, r CreateTaskRequest) (v TaskView, err error) {
	id := s.NewID(board.PrefixTask)
	err = s.update(ctx, func(tx *store.Tx) error {
		b, err := s.findBoard(ctx, &tx.Reader, r.Board)
		if err != nil {
			return err
		}
		counts, err := tx.CountRows(ctx, s.ws.ID, board.SetTasks)
		if err != nil {
			return err
		}
		t := board.Task{
			ID: id, BoardID: b.value.ID, Status: board.Status(cmp.Or(r.Status, string(board.Backlog))), Priority: board.Medium, AssigneeID: handleOf(r.Assignee),
			CreatedBy: cmp.Or(handleOf(r.By), board.Human), CreatedAt: board.At(tx.Now()),
		}
		for _, n := range counts[t.BoardID] {
			t.Order += n
		}
		if err := r.apply(&t, by); err != nil {
			return err
		}
		settle(&t, "", board.At(tx.Now()))
		if err := s.checkTask(ctx, &tx.Reader, t); err != nil {
			return err
		}
		if err := s.checkColumn(b.value, t.Status, counts); err != nil {
			return err
		}
		if err := s.write(ctx, tx, t.Row(), 0); err != nil {
			return err
		}
		if err := s.note(ctx, tx, board.Activity{BoardID: t.BoardID, ActorType: board.AuthorOf(t.CreatedBy), ActorID: t.CreatedBy, ActionType: board.TaskCreated, TaskID: t.ID, Message: t.Title}); err != nil {
			return err
		}
		if err := s.link(ctx, tx, by, "task create", t.ID, plain(t)); err != nil {
			return err
		}
		v, err = s.answerTask(ctx, tx, id)
		return err
	})
	return v, err
}

// answerTask shows a task as the transaction leaves it, and keeps that as the answer of the call.
func (s *Service) answerTask(ctx context.Context, tx *store.Tx, id string) (TaskView, error) {
	v, err := s.taskView(ctx, &tx.Reader, id)
	if err != nil {
		return TaskView{}, err
	}
	return v, tx.AnswerCall(ctx, s.claim, v)
}

// checkTask is the error for a task that cannot be stored.
func (s *Service) checkTask(ctx context.Context, r *store.Reader, t board.Task) error {
	what := fmt.Sprintf("task %q", agent.OneLine(t.Title, longestTitle))
	if err := invalid(what, t.Check()); err != nil {
		return err
	}
	if err := s.checkSecrets(what, map[string]string{"title": t.Title, "description": t.Description, "acceptanceCriteria": t.AcceptanceCriteria}); err != nil {
		return err
	}
	if t.AssigneeID != "" {
		m, err := read[board.Member](ctx, r, s.ws.ID, board.SetMembers, t.AssigneeID)
		if err != nil {
			return absent(err, "agent", "@"+t.AssigneeID, loop.PawlCommand("agent list"))
		}
		if !m.value.On(t.BoardID) {
			return &loop.Fault{
				Exit: loop.ExitUsage, What: what + " is refused", Why: "@" + t.AssigneeID + " does not work on this board", Fix: "name an agent that does, or let it: {1}",
				Actions: []loop.Command{loop.PawlCommand("agent set", "@"+t.AssigneeID).WithFlag("board", t.BoardID)},
			}
		}
	}
	for at, seen := t.ParentTaskID, 0; at != ""; seen++ {
		p, err := read[board.Task](ctx, r, s.ws.ID, board.SetTasks, at)
		if err != nil {
			return absent(err, "task", at, loop.PawlCommand("task list"))
		}
		if p.value.BoardID != t.BoardID || p.value.ID == t.ID || seen > mostListed {
			why := "the parent is a task of another board"
			if p.value.BoardID == t.BoardID {
				why = "the task would have to be done before itself"
			}
			return &loop.Fault{Exit: loop.ExitUsage, What: what + " is refused", Why: "parentTaskId: " + why, Fix: "name a task of the same board that does not wait for this one"}
		}
		at = p.value.ParentTaskID
	}
	return nil
}

// longestTitle is how many characters of a title stand in a message.
const longestTitle = 60

// checkColumn is the error for one more task in a column that is full.
func (s *Service) checkColumn(b board.Board, status board.Status, counts map[string]map[string]int) error {
	most, limited := b.WIP[status]
	if n := counts[b.ID][string(status)]; limited && n >= most {
		return &loop.Fault{
			Exit: loop.ExitRefused, What: fmt.Sprintf("the column %s of %s is full", status, b.Slug), Why: fmt.Sprintf("it has %d tasks, and %d may be in it", n, most),
			Fix: "finish one first, or change the limit: {1}", Actions: []loop.Command{loop.PawlCommand("board set", b.Slug).WithFlag("wip", fmt.Sprintf("%s=%d", status, n+1))},
		}
	}
	return nil
}

// settle makes the fields of a task fit the column to which a person moves it from another
// one.
func settle(t *board.Task, from board.Status, now board.Millis) {
	if t.Status == from {
		return
	}
	switch t.Status {
	case board.Backlog, board.Todo:
		if t.ClaimedAt != 0 {
			t.AssigneeID = "" // It had the task by its claim, which is over.
		}
		t.ClaimedAt, t.CompletedAt, t.ExecutionStatus = 0, 0, ""
	case board.InProgress:
		t.CompletedAt, t.ExecutionStatus = 0, board.ExecutionPending
	case board.Review:
		t.CompletedAt = 0
	case board.Done:
		t.CompletedAt, t.ExecutionStatus = now, board.ExecutionCompleted
	case board.Failed:
		t.CompletedAt, t.ExecutionStatus = now, board.ExecutionFailed
	}
}

// ShowTask shows a task with its comments and the newest entries of its log.
func (s *Service) ShowTask(ctx context.Context, id string) (v TaskView, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		v, err = s.taskView(ctx, r, id)
		return err
	})
	return v, absent(err, "task", id, loop.PawlCommand("task list"))
}

func (s *Service) taskView(ctx context.Context, r *store.Reader, id string) (TaskView, error) {
	v := TaskView{Schema: "pawl.task/v1"}
	t, err := read[board.Task](ctx, r, s.ws.ID, board.SetTasks, id)
	if err != nil {
		return v, err
	}
	v.Task, v.RunID = t.value, t.from.RunID
	if v.ExecutionLog, err = s.log(ctx, r, id); err != nil {
		return v, err
	}
	if v.Comments, err = list[board.Comment](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetComments, Scope: id}); err != nil {
		return v, err
	}
	v.Comments = shape.List(v.Comments)
	b, err := s.findBoard(ctx, r, t.value.BoardID)
	v.Slug = b.value.Slug
	return v, err
}

// log reads the newest entries of a task's log, the oldest first.
func (s *Service) log(ctx context.Context, r *store.Reader, taskID string) ([]board.LogEntry, error) {
	entries, err := list[board.LogEntry](ctx, r, s.ws.ID, loop.RowQuery{Set: board.SetLog, Scope: taskID, Newest: true, Limit: board.MostLog})
	slices.Reverse(entries)
	return entries, err
}

// TaskQuery selects tasks.
type TaskQuery struct {
	Board    string `json:"board,omitempty"`    // slug or id; empty: of all
	Status   string `json:"status,omitempty"`   // column; empty: all
	Assignee string `json:"assignee,omitempty"` // handle; empty: of all
	Limit    int    `json:"limit"`
}

// TaskRow is a task in a list.
type TaskRow struct {
	board.Task
	Slug string `json:"board"`
}

// ListTasks lists tasks, the newest first.
func (s *Service) ListTasks(ctx context.Context, q TaskQuery) (all []TaskRow, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	query := loop.RowQuery{Set: board.SetTasks, Owner: handleOf(q.Assignee), Newest: true, Limit: q.Limit}
	if q.Status != "" {
		if !slices.Contains(board.Statuses(), board.Status(q.Status)) {
			return nil, invalid("the list", board.Task{ID: "t", BoardID: "b", Title: "t", Status: board.Status(q.Status), Priority: board.Low}.Check())
		}
		query.States = []string{q.Status}
	}
	err = s.view(ctx, func(r *store.Reader) error {
		if query.Scope = ""; q.Board != "" {
			b, err := s.findBoard(ctx, r, q.Board)
			if err != nil {
				return err
			}
			query.Scope = b.value.ID
		}
		tasks, err := list[board.Task](ctx, r, s.ws.ID, query)
		if err != nil {
			return err
		}
		slugs, err := s.slugs(ctx, r)
		all = nil
		for _, t := range tasks {
			all = append(all, TaskRow{t, slugs[t.BoardID]})
		}
		return err
	})
	return shape.List(all), err
}

// changeTask changes a task that no run holds.
func (s *Service) changeTask(ctx context.Context, by loop.Actor, id, verb string, change func(*store.Tx, *board.Task) error) (v TaskView, err error) {
	err = s.update(ctx, func(tx *store.Tx) error {
		t, err := read[board.Task](ctx, &tx.Reader, s.ws.ID, board.SetTasks, id)
		if err != nil {
			return absent(err, "task", id, loop.PawlCommand("task list"))
		}
		if err := s.rewriteTask(ctx, tx, by, t, verb, change); err != nil {
			return err
		}
		v, err = s.answerTask(ctx, tx, id)
		return err
	})
	return v, err
}

// rewriteTask writes a task as change leaves it, unless a run holds it.
func (s *Service) rewriteTask(ctx context.Context, tx *store.Tx, by loop.Actor, t row[board.Task], verb string, change func(*store.Tx, *board.Task) error) error {
	id := t.value.ID
	if t.from.RunID != "" {
		return &loop.Fault{
			Exit: loop.ExitHeld, What: fmt.Sprintf("task %s cannot be changed now", id), Why: fmt.Sprintf("%s works on it, in run %s", board.LoopName(t.value.AssigneeID), t.from.RunID),
			Fix: "wait until it has ended, or end it: {1}", Actions: []loop.Command{loop.PawlCommand("stop", t.from.RunID)},
		}
	}
	if err := change(tx, &t.value); err != nil {
		return err
	}
	if err := s.checkTask(ctx, &tx.Reader, t.value); err != nil {
		return err
	}
	if err := s.write(ctx, tx, t.value.Row(), t.from.Version); err != nil {
		return err
	}
	return s.link(ctx, tx, by, verb, id, plain(t.value))
}

// SetTask changes what a task says.
func (s *Service) SetTask(ctx context.Context, by loop.Actor, id string, c TaskChange) (TaskView, error) {
	return s.changeTask(ctx, by, id, "task set", func(_ *store.Tx, t *board.Task) error { return c.apply(t, by) })
}

// MoveTask moves a task to a column.
func (s *Service) MoveTask(ctx context.Context, by loop.Actor, id, column string) (TaskView, error) {
	return s.changeTask(ctx, by, id, "task move", func(tx *store.Tx, t *board.Task) error {
		from := t.Status
		if err := s.enterColumn(ctx, tx, t, board.Status(column)); err != nil || t.Status == from {
			return err
		}
		return s.note(ctx, tx, board.Activity{
			BoardID: t.BoardID, ActorType: board.ByHuman, ActorID: board.Human, ActionType: board.TaskMoved, TaskID: id, Message: fmt.Sprintf("%s: %s → %s", t.Title, from, t.Status),
		})
	})
}

// enterColumn puts a task into a column that has room for it.
func (s *Service) enterColumn(ctx context.Context, tx *store.Tx, t *board.Task, column board.Status) error {
	from := t.Status
	t.Status = column
	if column == from || !slices.Contains(board.Statuses(), column) {
		return nil // Of an unknown column, the check of the task says so.
	}
	b, err := s.findBoard(ctx, &tx.Reader, t.BoardID)
	if err != nil {
		return err
	}
	counts, err := tx.CountRows(ctx, s.ws.ID, board.SetTasks)
	if err != nil {
		return err
	}
	settle(t, from, board.At(tx.Now()))
	return s.checkColumn(b.value, t.Status, counts)
}

// ClaimTask gives a task to an agent and moves it to what is in progress, in one transaction.
// It is refused if another agent has the task, assigned or begun, or if it is past that. A
// second claim of the same agent changes nothing.
func (s *Service) ClaimTask(ctx context.Context, by loop.Actor, id, handle string) (v TaskView, err error) {
	handle = handleOf(handle)
	others := loop.PawlCommand("task list")
	refused := func(exit int, why, fix string, actions ...loop.Command) error {
		return &loop.Fault{Exit: exit, What: fmt.Sprintf("task %s is not claimed", id), Why: why, Fix: fix, Actions: actions}
	}
	if handle == "" {
		return TaskView{}, refused(loop.ExitUsage, "no agent is named", "name the agent that takes it: {1}", loop.PawlCommand("agent list"))
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		t, err := read[board.Task](ctx, &tx.Reader, s.ws.ID, board.SetTasks, id)
		if err != nil {
			return absent(err, "task", id, loop.PawlCommand("task list"))
		}
		begun := t.value.Status == board.InProgress
		switch has := t.value.AssigneeID; {
		case begun && has == handle:
			v, err = s.answerTask(ctx, tx, id)
			return err
		case begun && has != "":
			return refused(loop.ExitHeld, "@"+has+" has claimed it", "take another one: {1}", others)
		case has != "" && has != handle:
			return refused(loop.ExitHeld, "it is assigned to @"+has, "take another one: {1}", others)
		case !begun && !t.value.Status.Waits():
			return refused(loop.ExitHeld, "it is in "+string(t.value.Status), "take another one: {1}; or open this one again: {2}", others, loop.PawlCommand("task move", id, string(board.Todo)))
		}
		err = s.rewriteTask(ctx, tx, by, t, "task claim", func(tx *store.Tx, t *board.Task) error {
			t.AssigneeID = handle
			if err := s.enterColumn(ctx, tx, t, board.InProgress); err != nil {
				return err
			}
			return s.note(ctx, tx, board.Activity{
				BoardID: t.BoardID, ActorType: board.ByAgent, ActorID: handle, ActionType: board.TaskClaimed, TaskID: id, Message: fmt.Sprintf("@%s has claimed %s", handle, t.Title),
			})
		})
		if err == nil {
			v, err = s.answerTask(ctx, tx, id)
		}
		return err
	})
	return v, err
}

// AssignTask gives a task to an agent, or to nobody if the handle is empty.
func (s *Service) AssignTask(ctx context.Context, by loop.Actor, id, handle string) (TaskView, error) {
	return s.changeTask(ctx, by, id, "task assign", func(_ *store.Tx, t *board.Task) error {
		if t.Status == board.InProgress && t.AssigneeID != "" {
			return &loop.Fault{
				Exit: loop.ExitHeld, What: fmt.Sprintf("task %s cannot be assigned now", id), Why: "@" + t.AssigneeID + " has claimed it", Fix: "take it back first: {1}",
				Actions: []loop.Command{loop.PawlCommand("task move", id, string(board.Todo))},
			}
		}
		t.AssigneeID = handleOf(handle)
		return nil
	})
}

// CommentRequest is a comment below a task.
type CommentRequest struct {
	Task   string `json:"task"`
	By     string `json:"by,omitempty"` // @handle of an agent, or a person's name; empty: whoever asks
	Text   string `json:"text"`
	Parent string `json:"parent,omitempty"` // id of the comment that it answers
}

// Commented is a comment that was made, schema pawl.comment/v1.
type Commented struct {
	Schema string `json:"schema"`
	board.Comment

	Unknown []string `json:"unknown,omitempty"` // handles that it mentions and that no agent has
}

// Comment adds a comment. Agents that it mentions answer it in their next heartbeat.
func (s *Service) Comment(ctx context.Context, by loop.Actor, r CommentRequest) (Commented, error) {
	id := s.NewID(board.PrefixComment)
	var made Commented
	err := s.update(ctx, func(tx *store.Tx) error {
		made = Commented{Schema: "pawl.comment/v1"}
		t, err := read[board.Task](ctx, &tx.Reader, s.ws.ID, board.SetTasks, r.Task)
		if err != nil {
			return absent(err, "task", r.Task, loop.PawlCommand("task list"))
		}
		members, err := s.members(ctx, &tx.Reader)
		if err != nil {
			return err
		}
		isMember := func(handle string) bool {
			return slices.ContainsFunc(members, func(m board.Member) bool { return m.Handle == handle })
		}
		c := board.Comment{ID: id, TaskID: r.Task, ParentID: r.Parent, AuthorType: board.ByHuman, AuthorID: cmp.Or(strings.TrimSpace(r.By), by.Who, board.Human), Content: r.Text, CreatedAt: board.At(tx.Now())}
		if handle, agent := strings.CutPrefix(c.AuthorID, "@"); agent {
			c.AuthorType, c.AuthorID = board.ByAgent, handle
			if !isMember(handle) {
				return absent(loop.ErrNotFound, "agent", "@"+handle, loop.PawlCommand("agent list"))
			}
		}
		for _, handle := range board.Mentions(c.Content) {
			if isMember(handle) {
				c.Mentions = append(c.Mentions, handle)
			} else {
				made.Unknown = append(made.Unknown, handle)
			}
		}
		what := "the comment"
		if err := invalid(what, c.Check()); err != nil {
			return err
		}
		if err := s.checkSecrets(what, map[string]string{"content": c.Content}); err != nil {
			return err
		}
		thread, err := list[board.Comment](ctx, &tx.Reader, s.ws.ID, loop.RowQuery{Set: board.SetComments, Scope: r.Task})
		if err != nil {
			return err
		}
		if c.ParentID != "" && !slices.ContainsFunc(thread, func(o board.Comment) bool { return o.ID == c.ParentID }) {
			return absent(loop.ErrNotFound, "comment below the task", c.ParentID, loop.PawlCommand("task list"))
		}
		if reason, words := board.MayComment(thread, c, tx.Now()); reason != "" {
			return &loop.Fault{Exit: loop.ExitRefused, What: what + " is not made", Why: words, Fix: "write something new"}
		}
		made.Comment = c
		if err := s.addComment(ctx, tx, by, t.value, c); err != nil {
			return err
		}
		return tx.AnswerCall(ctx, s.claim, made)
	})
	return made, err
}

// addComment writes a comment, with the mentions that agents have to answer.
func (s *Service) addComment(ctx context.Context, tx *store.Tx, by loop.Actor, t board.Task, c board.Comment) error {
	if err := s.write(ctx, tx, c.Row(), 0); err != nil {
		return err
	}
	actor := board.Activity{BoardID: t.BoardID, ActorType: c.AuthorType, ActorID: c.AuthorID, TaskID: t.ID}
	said := actor
	said.ActionType, said.Message = board.CommentAdded, agent.OneLine(c.Content, longestTitle)
	if err := s.note(ctx, tx, said); err != nil {
		return err
	}
	for _, handle := range c.Mentions {
		if handle == c.AuthorID && c.AuthorType == board.ByAgent {
			continue // Nobody has to answer themselves.
		}
		sub := board.Subscription{ID: s.NewID(board.PrefixSubscription), AgentID: handle, TaskID: t.ID, CommentID: c.ID, MentionedAt: c.CreatedAt}
		mentioned := actor
		mentioned.ActionType, mentioned.Message = board.AgentMentioned, "@"+handle
		if err := s.write(ctx, tx, sub.Row(), 0); err != nil {
			return err
		}
		if err := s.note(ctx, tx, mentioned); err != nil {
			return err
		}
	}
	return s.link(ctx, tx, by, "task comment", c.ID, plain(c))
}
