package api

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

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

// BoardChoice names a board.
type BoardChoice struct {
	Board string `json:"board" jsonschema:"slug or id"`
}

// mostRows is how many rows of boards a list reads.
const mostRows = 500

// boardTools are the tools for boards, their tasks and their agents.
func boardTools() []Tool {
	return []Tool{
		with(CreateTask.Info, Tool{
			Name: "task_create", Group: ToolsCore, Command: "task create", Verbs: []Info{ListBoards.Info}, Does: "Create a task of a board for an agent.",
		}, func(ctx context.Context, c Caller, r TaskCreation) (boards.TaskView, error) {
			where, err := onlyBoard(ctx, c, r.Board)
			if err != nil {
				return boards.TaskView{}, err
			}
			change := boards.TaskChange{Title: &r.Goal}
			if r.Text != "" {
				change.Description = &r.Text
			}
			if r.Criteria != "" {
				change.Criteria = &r.Criteria
			}
			return CreateTask.Call(ctx, c, boards.CreateTaskRequest{Board: where, Assignee: r.Assignee, By: cmp.Or(r.By, r.Assignee), TaskChange: change})
		}),
		withList(ListTasks.Info, "pawl.tasks/v1", Tool{
			Name: "task_list", Group: ToolsCore, Command: "task list", Does: "List tasks of boards, the newest first.",
		}, func(ctx context.Context, c Caller, r TaskChoice) ([]boards.TaskRow, error) {
			return ListTasks.Call(ctx, c, boards.TaskQuery{Board: r.Board, Status: r.Status, Assignee: r.Assignee, Limit: mostRows})
		}),
		with(ClaimTask.Info, Tool{
			Name: "task_claim", Group: ToolsCore, Command: "task assign", Idempotent: true, Does: "Take a task: it is yours and in progress. One that another agent has is refused.",
		}, func(ctx context.Context, c Caller, r TaskClaim) (boards.TaskView, error) {
			return ClaimTask.Call(ctx, c, TaskAssignment{r.ID, r.Agent})
		}),
		with(SetTask.Info, Tool{
			Name: "task_update", Group: ToolsCore, Command: "task set", Also: []string{"task move"}, Idempotent: true, Verbs: []Info{MoveTask.Info, ShowTask.Info}, Does: "Change what a task says, or its column.",
		}, updateTask),
		with(SendMessage.Info, Tool{
			Name: "agent_message_post", Group: ToolsCore, Command: "msg send", Does: "Send a message to an agent, or to a person.",
		}, func(ctx context.Context, c Caller, r MessagePost) (boards.MessageView, error) {
			return SendMessage.Call(ctx, c, boards.SendRequest{From: r.From, To: r.To, Kind: r.Kind, Content: r.Content, Task: r.Task})
		}),
		with(ShowTask.Info, Tool{Name: "task_get", Group: ToolsAll, Command: "task show", Does: "Show a task with its comments."}, func(ctx context.Context, c Caller, r TaskID) (boards.TaskView, error) {
			return ShowTask.Call(ctx, c, TaskRef{r.ID})
		}),
		with(CommentTask.Info, Tool{
			Name: "task_observe", Group: ToolsAll, Command: "task comment", Does: "Note something below a task, in the name of an agent.",
		}, func(ctx context.Context, c Caller, r TaskObservation) (boards.Commented, error) {
			return CommentTask.Call(ctx, c, boards.CommentRequest{Task: r.ID, By: "@" + strings.TrimPrefix(r.Agent, "@"), Text: r.Text})
		}),
		with(AssignTask.Info, Tool{
			Name: "task_handoff", Group: ToolsAll, Command: "task assign", Idempotent: true, Does: "Give a task to another agent.",
		}, func(ctx context.Context, c Caller, r TaskHandoff) (boards.TaskView, error) {
			return AssignTask.Call(ctx, c, TaskAssignment{r.ID, r.To})
		}),
		with(MoveTask.Info, Tool{
			Name: "task_complete", Group: ToolsAll, Command: "task move TASK done", Idempotent: true, Does: "Move a task to the column done.",
		}, func(ctx context.Context, c Caller, r TaskID) (boards.TaskView, error) {
			return MoveTask.Call(ctx, c, TaskMove{r.ID, string(board.Done)})
		}),
		with(ExplainTask.Info, Tool{
			Name: "task_why", Group: ToolsAll, Command: "task why", Does: "Say who would take a task next, and why nobody else does.",
		}, func(ctx context.Context, c Caller, r TaskID) (boards.TaskWhy, error) {
			return ExplainTask.Call(ctx, c, TaskRef{r.ID})
		}),
		withList(ListMessages.Info, "pawl.messages/v1", Tool{
			Name: "agent_message_list", Group: ToolsAll, Command: "msg list", Does: "List messages of agents, the newest first.",
		}, func(ctx context.Context, c Caller, r MessageChoice) (list []boards.MessageView, err error) {
			all, err := ListMessages.Call(ctx, c, boards.MessageQuery{To: r.To, From: r.From, Limit: mostRows})
			for _, m := range all {
				if r.Task == "" || m.TaskID == r.Task {
					list = append(list, m)
				}
			}
			return list, err
		}),
		as(ShowMessage, Tool{Name: "agent_message_get", Group: ToolsAll, Command: "msg show", Does: "Show a message and its response."}),
		asList(ListMembers, "pawl.members/v1", Tool{Name: "member_list", Group: ToolsAll, Command: "agent list", Does: "List the agents of boards."}),
		as(ShowMember, Tool{Name: "member_show", Group: ToolsAll, Command: "agent show", Does: "Show an agent of boards."}),
		asList(ListBoards, "pawl.boards/v1", Tool{Name: "board_list", Group: ToolsAll, Command: "board list", Does: "List the boards of the workspace."}),
		with(ShowBoard.Info, Tool{Name: "board_show", Group: ToolsAll, Command: "board show", Does: "Show a board with its columns and its agents."}, func(ctx context.Context, c Caller, r BoardChoice) (boards.Shown, error) {
			return ShowBoard.Call(ctx, c, BoardRef{r.Board, mostFirings})
		}),
		withList(ListActivity.Info, "pawl.activity/v1", Tool{
			Name: "board_activity", Group: ToolsAll, Command: "board activity", Does: "List what happened on a board, the newest first.",
		}, func(ctx context.Context, c Caller, r BoardChoice) ([]board.Activity, error) {
			return ListActivity.Call(ctx, c, boards.Page{Board: r.Board, Limit: mostRows})
		}),
		withList(ListErrors.Info, "pawl.errors/v1", Tool{
			Name: "board_errors", Group: ToolsAll, Command: "board errors", Does: "List what went wrong in heartbeats, the newest first.",
		}, func(ctx context.Context, c Caller, r BoardChoice) ([]board.Error, error) {
			return ListErrors.Call(ctx, c, boards.Page{Board: r.Board, Limit: mostRows})
		}),
		withList(ListResources.Info, "pawl.resources/v1", Tool{
			Name: "resource_list", Group: ToolsAll, Command: "resource list", Does: "List what agents of boards are to know.",
		}, func(ctx context.Context, c Caller, r TaskChoice) ([]boards.ResourceRow, error) {
			return ListResources.Call(ctx, c, boards.ResourceQuery{Board: r.Board, Limit: mostRows})
		}),
		as(ShowResource, Tool{Name: "resource_show", Group: ToolsAll, Command: "resource show", Does: "Show what agents of a board are to know."}),
	}
}

// onlyBoard is the board that is meant if none is named.
func onlyBoard(ctx context.Context, c Caller, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	all, err := ListBoards.Call(ctx, c, None{})
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
func updateTask(ctx context.Context, c Caller, r TaskUpdate) (t boards.TaskView, err error) {
	change := boards.TaskChange{Title: r.Title, Description: r.Text, Criteria: r.Criteria, Priority: r.Priority}
	if r.Title == nil && r.Text == nil && r.Criteria == nil && r.Priority == nil {
		t, err = ShowTask.Call(ctx, c, TaskRef{r.ID})
	} else {
		t, err = SetTask.Call(ctx, c, TaskSetting{r.ID, change})
	}
	if err != nil || r.Status == "" {
		return t, err
	}
	return MoveTask.Call(ctx, c, TaskMove{r.ID, r.Status})
}
