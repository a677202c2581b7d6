package boards

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// TaskRef names a task of a board.
type TaskRef struct {
	Task string `json:"task"`
}

// TaskSetting is a change of a task.
type TaskSetting struct {
	Task string `json:"task"`
	TaskChange
}

// TaskMove says to which column a task is moved.
type TaskMove struct {
	Task   string `json:"task"`
	Column string `json:"column"`
}

// TaskAssignment says who is to do a task.
type TaskAssignment struct {
	Task  string `json:"task"`
	Agent string `json:"agent"` // handle; empty: nobody
}

// TaskCreation is the task that task_create makes.
type TaskCreation struct {
	Goal     string `json:"goal" jsonschema:"what is to be done, in a line"`
	Assignee string `json:"assignTo" jsonschema:"agent that is to do it"`
	By       string `json:"createdBy,omitempty" jsonschema:"agent that you are; left out: assignTo"`
	Board    string `json:"board,omitempty" jsonschema:"slug; left out: the only board"`
	Text     string `json:"description,omitempty"`
	Criteria string `json:"acceptance_criteria,omitempty"`
}

// TaskID names a task of the tools.
type TaskID struct {
	ID string `json:"taskId" jsonschema:"id of a task of task_list"`
}

// TaskClaim is who takes a task.
type TaskClaim struct {
	ID    string `json:"taskId"`
	Agent string `json:"agentId" jsonschema:"agent that takes it"`
}

// TaskUpdate is what of a task is changed.
type TaskUpdate struct {
	ID       string  `json:"taskId"`
	Status   string  `json:"status,omitempty" jsonschema:"column that it is moved to"`
	Title    *string `json:"title,omitempty"`
	Text     *string `json:"description,omitempty"`
	Criteria *string `json:"acceptance_criteria,omitempty"`
	Priority *string `json:"priority,omitempty"`
}

// TaskObservation is what an agent notes of a task.
type TaskObservation struct {
	ID    string `json:"taskId"`
	Agent string `json:"agentId" jsonschema:"agent that you are"`
	Text  string `json:"text"`
}

// TaskHandoff is who gets a task.
type TaskHandoff struct {
	ID string `json:"taskId"`
	To string `json:"toAgentId"`
}

// TaskChoice selects tasks.
type TaskChoice struct {
	Board    string `json:"board,omitempty" jsonschema:"slug; left out: all"`
	Status   string `json:"status,omitempty" jsonschema:"column; left out: all"`
	Assignee string `json:"assignTo,omitempty" jsonschema:"only those of this agent"`
}

// The verbs for the tasks of boards.
var (
	CreateTask = verb.Write("tasks.create", "create a task of a board", "task create", verb.InOneTransaction, change((*Service).CreateTask)).
			ForAgentsUnless(func(r CreateTaskRequest) string { return asPerson(r.By) }).
			Post("in its own name", notInOwnName(func(r CreateTaskRequest) string { return r.By })).
			ToolBy(verb.With(verb.Tool{Name: "task_create", Group: verb.ToolsCore, Verbs: []verb.Info{ListBoards.Info}, Does: "Create a task of a board for an agent."}, createTask))
	SetTask = verb.Write("tasks.set", "change what a task says", "task set", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r TaskSetting) (TaskView, error) {
		return s.SetTask(ctx, by, r.Task, r.TaskChange)
	})).ForAgents().Post("tasks that it has or made", func(ctx context.Context, w Workspace, of *loop.Inside, r TaskSetting) (string, error) {
		return notOwnTask(ctx, w, of, r.Task, true)
	}).ToolBy(verb.With(verb.Tool{
		Name: "task_update", Group: verb.ToolsCore, Also: []string{"task move"}, Idempotent: true, Verbs: []verb.Info{MoveTask.Info, ShowTask.Info}, Does: "Change what a task says, or its column.",
	}, updateTask))
	ListTasks = verb.Read("tasks.list", "list tasks of boards, the newest first", on((*Service).ListTasks)).
			Seen().ToolFrom(verb.Tool{Name: "task_list", Schema: "pawl.tasks/v1", Group: verb.ToolsCore, Command: "task list", Does: "List tasks of boards, the newest first."}, verb.From(func(r TaskChoice) TaskQuery {
		return TaskQuery{Board: r.Board, Status: r.Status, Assignee: r.Assignee, Limit: mostRows}
	}))
	ShowTask = verb.Read("tasks.show", "show a task with its comments and its log", on(func(s *Service, ctx context.Context, r TaskRef) (TaskView, error) {
		return s.ShowTask(ctx, r.Task)
	})).Seen().ToolFrom(verb.Tool{Name: "task_get", Group: verb.ToolsAll, Command: "task show", Does: "Show a task with its comments."}, verb.From(func(r TaskID) TaskRef { return TaskRef{r.ID} }))
	CommentTask = verb.Write("tasks.comment", "write a comment below a task", "task comment", verb.InOneTransaction, change((*Service).Comment)).
			ForAgentsUnless(func(r CommentRequest) string { return asPerson(r.By) }).
			Post("in its own name", notInOwnName(func(r CommentRequest) string { return r.By })).
			ToolFrom(verb.Tool{Name: "task_observe", Group: verb.ToolsAll, Does: "Note something below a task, in the name of an agent."}, verb.From(func(r TaskObservation) CommentRequest {
			return CommentRequest{Task: r.ID, By: "@" + strings.TrimPrefix(r.Agent, "@"), Text: r.Text}
		}))
	MoveTask = verb.Write("tasks.move", "move a task to another column", "task move", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r TaskMove) (TaskView, error) {
		return s.MoveTask(ctx, by, r.Task, r.Column)
	})).ForAgents().Post("tasks that it has", func(ctx context.Context, w Workspace, of *loop.Inside, r TaskMove) (string, error) {
		return notOwnTask(ctx, w, of, r.Task, false)
	}).ToolFrom(verb.Tool{Name: "task_complete", Group: verb.ToolsAll, Command: "task move TASK done", Idempotent: true, Does: "Move a task to the column done."}, verb.From(func(r TaskID) TaskMove { return TaskMove{r.ID, string(board.Done)} }))
	AssignTask = verb.Write("tasks.assign", "give a task to an agent, or to nobody", "task assign", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r TaskAssignment) (TaskView, error) {
		return s.AssignTask(ctx, by, r.Task, r.Agent)
	})).ForAgents().Post("to itself, or a task that it has or made", notOwnAssignment).
		ToolFrom(verb.Tool{Name: "task_handoff", Group: verb.ToolsAll, Idempotent: true, Does: "Give a task to another agent."}, verb.From(func(r TaskHandoff) TaskAssignment { return TaskAssignment{r.ID, r.To} }))
	ClaimTask = verb.Write("tasks.claim", "take a task for an agent, unless another one has it", "task assign", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r TaskAssignment) (TaskView, error) {
		return s.ClaimTask(ctx, by, r.Task, r.Agent)
	})).ForAgents().Post("for itself", notInOwnName(func(r TaskAssignment) string { return r.Agent })).
		ToolFrom(verb.Tool{Name: "task_claim", Group: verb.ToolsCore, Idempotent: true, Does: "Take a task: it is yours and in progress. One that another agent has is refused."}, verb.From(func(r TaskClaim) TaskAssignment { return TaskAssignment{r.ID, r.Agent} }))
	ExplainTask = verb.Read("tasks.why", "say who would take a task next, and why nobody else does", on(func(s *Service, ctx context.Context, r TaskRef) (TaskWhy, error) {
		return s.WhyTask(ctx, r.Task)
	})).Seen().ToolFrom(verb.Tool{Name: "task_why", Group: verb.ToolsAll, Command: "task why", Does: "Say who would take a task next, and why nobody else does."}, verb.From(func(r TaskID) TaskRef { return TaskRef{r.ID} }))
)

// MessageRef names a message.
type MessageRef struct {
	Message string `json:"message"`
}

// MessagePost is a message that agent_message_post sends.
type MessagePost struct {
	From    string `json:"from" jsonschema:"agent that you are"`
	To      string `json:"to" jsonschema:"agent, or human"`
	Kind    string `json:"kind" jsonschema:"order, question, report, suggestion or answer"`
	Content string `json:"content"`
	Task    string `json:"taskId,omitempty"`
}

// MessageChoice selects messages.
type MessageChoice struct {
	To   string `json:"to,omitempty"`
	From string `json:"from,omitempty"`
	Task string `json:"taskId,omitempty"`
}

// The verbs for messages between agents.
var (
	SendMessage = verb.Write("messages.send", "send a message to an agent", "msg send", verb.InOneTransaction, change((*Service).Send)).
			ForAgentsUnless(func(r SendRequest) string { return asPerson(r.From) }).
			Post("in its own name", notInOwnName(func(r SendRequest) string { return r.From })).
			ToolFrom(verb.Tool{Name: "agent_message_post", Group: verb.ToolsCore, Does: "Send a message to an agent, or to a person."}, verb.From(func(r MessagePost) SendRequest {
			return SendRequest{From: r.From, To: r.To, Kind: r.Kind, Content: r.Content, Task: r.Task}
		}))
	ListMessages = verb.Read("messages.list", "list messages of agents of boards, the newest first", on((*Service).ListMessages)).
			Seen().ToolBy(verb.With(verb.Tool{Name: "agent_message_list", Schema: "pawl.messages/v1", Group: verb.ToolsAll, Command: "msg list", Does: "List messages of agents, the newest first."},
		func(ctx context.Context, c verb.Caller, messages verb.Ask[MessageQuery, []MessageView], r MessageChoice) (list []MessageView, err error) {
			all, err := messages(ctx, c, MessageQuery{To: r.To, From: r.From, Limit: mostRows})
			for _, m := range all {
				if r.Task == "" || m.TaskID == r.Task {
					list = append(list, m)
				}
			}
			return list, err
		}))
	ShowMessage = verb.Read("messages.show", "show a message and its response", on(func(s *Service, ctx context.Context, r MessageRef) (MessageView, error) {
		return s.ShowMessage(ctx, r.Message)
	})).Seen().Tool(verb.Tool{Name: "agent_message_get", Group: verb.ToolsAll, Command: "msg show", Does: "Show a message and its response."})
)

// asPerson refuses an agent to write in the name of a person.
func asPerson(handle string) string {
	if h := strings.TrimPrefix(handle, "@"); h == "" || h == board.Human || h == "owner" {
		return "an agent writes in the name of an agent, and not in a person's"
	}
	return ""
}

// notInOwnName refuses to let the agent of a run write in the name of somebody else.
func notInOwnName[In any](handle func(In) string) func(context.Context, Workspace, *loop.Inside, In) (string, error) {
	return func(_ context.Context, _ Workspace, of *loop.Inside, in In) (string, error) {
		if strings.TrimPrefix(handle(in), "@") != of.Handle {
			return "it writes in its own name only: @" + of.Handle, nil
		}
		return "", nil
	}
}

// notOwnTask refuses a change of a task that is not the agent's: one that it has, or if made that
// it made.
func notOwnTask(ctx context.Context, w Workspace, of *loop.Inside, id string, made bool) (string, error) {
	t, err := w.BoardService().ShowTask(ctx, id)
	if err != nil || t.AssigneeID == of.Handle || made && t.CreatedBy == of.Handle {
		return "", err
	}
	return "the task is not one of @" + of.Handle, nil
}

// notOwnAssignment refuses the agent of a run to take what another agent has, and to give away what is
// not its own.
func notOwnAssignment(ctx context.Context, w Workspace, of *loop.Inside, r TaskAssignment) (string, error) {
	if strings.TrimPrefix(r.Agent, "@") != of.Handle {
		return notOwnTask(ctx, w, of, r.Task, true)
	}
	t, err := w.BoardService().ShowTask(ctx, r.Task)
	if err == nil && t.AssigneeID != "" && t.AssigneeID != of.Handle {
		return "the task is @" + t.AssigneeID + "'s", nil
	}
	return "", err
}

// createTask creates a task of the only board, if none is named.
func createTask(ctx context.Context, c verb.Caller, create verb.Ask[CreateTaskRequest, TaskView], r TaskCreation) (t TaskView, err error) {
	if r.Board == "" {
		if r.Board, err = onlyBoard(ctx, c); err != nil {
			return t, err
		}
	}
	change := TaskChange{Title: &r.Goal}
	if r.Text != "" {
		change.Description = &r.Text
	}
	if r.Criteria != "" {
		change.Criteria = &r.Criteria
	}
	return create(ctx, c, CreateTaskRequest{Board: r.Board, Assignee: r.Assignee, By: cmp.Or(r.By, r.Assignee), TaskChange: change})
}

// onlyBoard is the board that is meant if none is named.
func onlyBoard(ctx context.Context, c verb.Caller) (string, error) {
	all, err := ListBoards.Call(ctx, c, verb.None{})
	if err != nil {
		return "", err
	}
	var slugs []string
	for _, b := range all {
		slugs = append(slugs, b.Slug)
	}
	if len(slugs) == 1 {
		return slugs[0], nil
	}
	f := &loop.Fault{Exit: loop.ExitUsage, What: "which board?", Why: fmt.Sprintf("there are %d: %s", len(slugs), strings.Join(slugs, ", ")), Fix: "pass board"}
	if len(slugs) == 0 {
		f.Exit, f.What, f.Why = loop.ExitNotFound, "there is no board", ""
		return "", f.WithAdvice(loop.Advise("a person makes one: {1}", loop.PawlCommand("board create", "NAME").WithBlanks("NAME")))
	}
	return "", f
}

// updateTask changes what a task says, and then its column.
func updateTask(ctx context.Context, c verb.Caller, set verb.Ask[TaskSetting, TaskView], r TaskUpdate) (t TaskView, err error) {
	change := TaskChange{Title: r.Title, Description: r.Text, Criteria: r.Criteria, Priority: r.Priority}
	if r.Title == nil && r.Text == nil && r.Criteria == nil && r.Priority == nil {
		t, err = ShowTask.Call(ctx, c, TaskRef{r.ID})
	} else {
		t, err = set(ctx, c, TaskSetting{r.ID, change})
	}
	if err != nil || r.Status == "" {
		return t, err
	}
	return MoveTask.Call(ctx, c, TaskMove{r.ID, r.Status})
}
