package api

import (
	"context"

	"github.com/pawl-run/pawl/internal/formats/boards/board"
	"github.com/pawl-run/pawl/internal/formats/boards/boards"
)

// BoardRef names a board by its slug or its id, with how much of it is asked for.
type BoardRef struct {
	Board string `json:"board"`
	Limit int    `json:"limit"` // tasks of each column
}

// BoardCreation is a board to create.
type BoardCreation struct {
	Name string `json:"name"`
	boards.BoardChange
}

// BoardSetting is a change of a board. What is the board's name in the change is its new one.
type BoardSetting struct {
	Board  string             `json:"board"`
	Change boards.BoardChange `json:"change"`
}

// The verbs for heartbeat boards.
var (
	CreateBoard = write("boards.create", "create a heartbeat board", func(ctx context.Context, ws *Workspace, c Call, r BoardCreation) (boards.BoardView, error) {
		return ws.Boards.Once(c.claim).CreateBoard(ctx, c.By, r.Name, r.BoardChange)
	})
	SetBoard = write("boards.set", "change a board, and how its agents work", func(ctx context.Context, ws *Workspace, c Call, r BoardSetting) (boards.BoardView, error) {
		return ws.Boards.Once(c.claim).SetBoard(ctx, c.By, r.Board, r.Change)
	})
	ListBoards = read("boards.list", "list the boards of the workspace", func(ctx context.Context, ws *Workspace, _ Call, _ None) ([]boards.BoardRow, error) {
		return ws.Boards.ListBoards(ctx)
	})
	ShowBoard = read("boards.show", "show a board with its columns and its agents", func(ctx context.Context, ws *Workspace, _ Call, r BoardRef) (boards.Shown, error) {
		return ws.Boards.ShowBoard(ctx, r.Board, r.Limit)
	})
	ListActivity = read("boards.activity", "list what happened on a board, the newest first", func(ctx context.Context, ws *Workspace, _ Call, q boards.Page) ([]board.Activity, error) {
		return ws.Boards.Activity(ctx, q)
	})
	ListErrors = read("boards.errors", "list what went wrong in heartbeats, the newest first", func(ctx context.Context, ws *Workspace, _ Call, q boards.Page) ([]board.Error, error) {
		return ws.Boards.Errors(ctx, q)
	})
	ExportBoards = read("boards.export", "hand out boards with all that belongs to them", func(ctx context.Context, ws *Workspace, _ Call, q boards.ExportQuery) (board.Document, error) {
		return ws.Boards.Export(ctx, q)
	})
	PlanBoardImport = read("boards.plan-import", "say what of a document would be taken over, and write nothing", func(ctx context.Context, ws *Workspace, _ Call, r boards.ImportRequest) (boards.Imported, error) {
		return ws.Boards.PlanImport(ctx, r)
	})
	ImportBoards = write("boards.import", "take over boards, agents, tasks and all that belongs to them", func(ctx context.Context, ws *Workspace, c Call, r boards.ImportRequest) (boards.Imported, error) {
		return ws.Boards.Once(c.claim).Import(ctx, c.By, r)
	})
)

// TaskRef names a task of a board.
type TaskRef struct {
	Task string `json:"task"`
}

// TaskSetting is a change of a task.
type TaskSetting struct {
	Task string `json:"task"`
	boards.TaskChange
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

// The verbs for the tasks of boards.
var (
	CreateTask = write("tasks.create", "create a task of a board", func(ctx context.Context, ws *Workspace, c Call, r boards.CreateTaskRequest) (boards.TaskView, error) {
		return ws.Boards.Once(c.claim).CreateTask(ctx, c.By, r)
	})
	SetTask = write("tasks.set", "change what a task says", func(ctx context.Context, ws *Workspace, c Call, r TaskSetting) (boards.TaskView, error) {
		return ws.Boards.Once(c.claim).SetTask(ctx, c.By, r.Task, r.TaskChange)
	})
	ListTasks = read("tasks.list", "list tasks of boards, the newest first", func(ctx context.Context, ws *Workspace, _ Call, q boards.TaskQuery) ([]boards.TaskRow, error) {
		return ws.Boards.ListTasks(ctx, q)
	})
	ShowTask = read("tasks.show", "show a task with its comments and its log", func(ctx context.Context, ws *Workspace, _ Call, r TaskRef) (boards.TaskView, error) {
		return ws.Boards.ShowTask(ctx, r.Task)
	})
	CommentTask = write("tasks.comment", "write a comment below a task", func(ctx context.Context, ws *Workspace, c Call, r boards.CommentRequest) (boards.Commented, error) {
		return ws.Boards.Once(c.claim).Comment(ctx, c.By, r)
	})
	MoveTask = write("tasks.move", "move a task to another column", func(ctx context.Context, ws *Workspace, c Call, r TaskMove) (boards.TaskView, error) {
		return ws.Boards.Once(c.claim).MoveTask(ctx, c.By, r.Task, r.Column)
	})
	AssignTask = write("tasks.assign", "give a task to an agent, or to nobody", func(ctx context.Context, ws *Workspace, c Call, r TaskAssignment) (boards.TaskView, error) {
		return ws.Boards.Once(c.claim).AssignTask(ctx, c.By, r.Task, r.Agent)
	})
	ClaimTask = write("tasks.claim", "take a task for an agent, unless another one has it", func(ctx context.Context, ws *Workspace, c Call, r TaskAssignment) (boards.TaskView, error) {
		return ws.Boards.Once(c.claim).ClaimTask(ctx, c.By, r.Task, r.Agent)
	})
	ExplainTask = read("tasks.why", "say who would take a task next, and why nobody else does", func(ctx context.Context, ws *Workspace, _ Call, r TaskRef) (boards.TaskWhy, error) {
		return ws.Boards.WhyTask(ctx, r.Task)
	})
)

// MemberChange is an agent of boards to create or change.
type MemberChange struct {
	Agent string `json:"agent"`
	boards.AgentChange
}

// The verbs for the agents of boards.
var (
	CreateMember = write("members.create", "make an agent of boards, and the loop that is its heartbeat", func(ctx context.Context, ws *Workspace, c Call, r MemberChange) (boards.AgentView, error) {
		return ws.Boards.Once(c.claim).CreateAgent(ctx, c.By, r.Agent, r.AgentChange)
	})
	SetMember = write("members.set", "change an agent of boards", func(ctx context.Context, ws *Workspace, c Call, r MemberChange) (boards.AgentView, error) {
		return ws.Boards.Once(c.claim).SetAgent(ctx, c.By, r.Agent, r.AgentChange)
	})
	ListMembers = read("members.list", "list the agents of boards", func(ctx context.Context, ws *Workspace, _ Call, _ None) ([]boards.AgentView, error) {
		return ws.Boards.ListAgents(ctx)
	})
	ShowMember = read("members.show", "show an agent of boards", func(ctx context.Context, ws *Workspace, _ Call, r AgentRef) (boards.AgentView, error) {
		return ws.Boards.ShowAgent(ctx, r.Agent)
	})
)

// MessageRef names a message.
type MessageRef struct {
	Message string `json:"message"`
}

// The verbs for messages between agents.
var (
	SendMessage = write("messages.send", "send a message to an agent", func(ctx context.Context, ws *Workspace, c Call, r boards.SendRequest) (boards.MessageView, error) {
		return ws.Boards.Once(c.claim).Send(ctx, c.By, r)
	})
	ListMessages = read("messages.list", "list messages of agents of boards, the newest first", func(ctx context.Context, ws *Workspace, _ Call, q boards.MessageQuery) ([]boards.MessageView, error) {
		return ws.Boards.ListMessages(ctx, q)
	})
	ShowMessage = read("messages.show", "show a message and its response", func(ctx context.Context, ws *Workspace, _ Call, r MessageRef) (boards.MessageView, error) {
		return ws.Boards.ShowMessage(ctx, r.Message)
	})
)

// ResourceRef names a resource.
type ResourceRef struct {
	Resource string `json:"resource"`
}

// ResourceSetting is a change of a resource.
type ResourceSetting struct {
	Resource string `json:"resource"`
	boards.ResourceChange
}

// The verbs for what agents of a board are to know.
var (
	CreateResource = write("resources.create", "create a resource of a board", func(ctx context.Context, ws *Workspace, c Call, r boards.CreateResourceRequest) (boards.ResourceView, error) {
		return ws.Boards.Once(c.claim).CreateResource(ctx, c.By, r)
	})
	SetResource = write("resources.set", "change a resource", func(ctx context.Context, ws *Workspace, c Call, r ResourceSetting) (boards.ResourceView, error) {
		return ws.Boards.Once(c.claim).SetResource(ctx, c.By, r.Resource, r.ResourceChange)
	})
	ListResources = read("resources.list", "list resources of boards", func(ctx context.Context, ws *Workspace, _ Call, q boards.ResourceQuery) ([]boards.ResourceRow, error) {
		return ws.Boards.ListResources(ctx, q)
	})
	ShowResource = read("resources.show", "show a resource", func(ctx context.Context, ws *Workspace, _ Call, r ResourceRef) (boards.ResourceView, error) {
		return ws.Boards.ShowResource(ctx, r.Resource)
	})
)
