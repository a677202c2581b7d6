package boards

import (
	"context"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Verbs lists the verbs for heartbeat boards.
func Verbs() []verb.Info {
	return []verb.Info{
		CreateBoard.Info, SetBoard.Info, ListBoards.Info, ShowBoard.Info, ListActivity.Info, ListErrors.Info, ExportBoards.Info, PlanBoardImport.Info,
		ImportBoards.Info, CreateTask.Info, SetTask.Info, ListTasks.Info, ShowTask.Info, CommentTask.Info, MoveTask.Info, AssignTask.Info, ClaimTask.Info,
		ExplainTask.Info, CreateMember.Info, SetMember.Info, ListMembers.Info, ShowMember.Info, SendMessage.Info, ListMessages.Info, ShowMessage.Info,
		CreateResource.Info, SetResource.Info, ListResources.Info, ShowResource.Info,
	}
}

// Workspace is a workspace with boards.
type Workspace interface {
	verb.Workspace
	BoardService() *Service
}

// BoardRef names a board by its slug or its id, with how much of it is asked for.
type BoardRef struct {
	Board string `json:"board"`
	Limit int    `json:"limit"` // tasks of each column
}

// BoardCreation is a board to create.
type BoardCreation struct {
	Name string `json:"name"`
	BoardChange
}

// BoardSetting is a change of a board. What is the board's name in the change is its new one.
type BoardSetting struct {
	Board  string      `json:"board"`
	Change BoardChange `json:"change"`
}

// BoardChoice names a board.
type BoardChoice struct {
	Board string `json:"board" jsonschema:"slug or id"`
}

func (c BoardChoice) page() Page { return Page{Board: c.Board, Limit: mostRows} }

const (
	mostRows  = 500 // of a list, of which a tool hands out pages
	mostTasks = 5   // of each column that a tool shows
)

// The verbs for heartbeat boards.
var (
	CreateBoard = verb.Write("boards.create", "create a heartbeat board", "board create", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r BoardCreation) (BoardView, error) {
		return s.CreateBoard(ctx, by, r.Name, r.BoardChange)
	}))
	SetBoard = verb.Write("boards.set", "change a board, and how its agents work", "board set", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r BoardSetting) (BoardView, error) {
		return s.SetBoard(ctx, by, r.Board, r.Change)
	}))
	ListBoards = verb.Read("boards.list", "list the boards of the workspace", on(func(s *Service, ctx context.Context, _ verb.None) ([]BoardRow, error) {
		return s.ListBoards(ctx)
	})).Seen().Tool(verb.Tool{Name: "board_list", Schema: "pawl.boards/v1", Group: verb.ToolsAll, Command: "board list", Does: "List the boards of the workspace."})
	ShowBoard = verb.Read("boards.show", "show a board with its columns and its agents", on(func(s *Service, ctx context.Context, r BoardRef) (Shown, error) {
		return s.ShowBoard(ctx, r.Board, r.Limit)
	})).Seen().ToolFrom(verb.Tool{Name: "board_show", Group: verb.ToolsAll, Command: "board show", Does: "Show a board with its columns and its agents."}, verb.From(func(r BoardChoice) BoardRef { return BoardRef{r.Board, mostTasks} }))
	ListActivity = verb.Read("boards.activity", "list what happened on a board, the newest first", on((*Service).Activity)).
			Seen().ToolFrom(verb.Tool{Name: "board_activity", Schema: "pawl.activity/v1", Group: verb.ToolsAll, Command: "board activity", Does: "List what happened on a board, the newest first."}, verb.From(BoardChoice.page))
	ListErrors = verb.Read("boards.errors", "list what went wrong in heartbeats, the newest first", on((*Service).Errors)).
			Seen().ToolFrom(verb.Tool{Name: "board_errors", Schema: "pawl.errors/v1", Group: verb.ToolsAll, Command: "board errors", Does: "List what went wrong in heartbeats, the newest first."}, verb.From(BoardChoice.page))
	ExportBoards = verb.Read("boards.export", "hand out boards with all that belongs to them", on((*Service).Export)).
			NoTool("a document of everything is for people who move it; board_show and task_list have its parts")
	PlanBoardImport = verb.Read("boards.plan-import", "say what of a document would be taken over, and write nothing", on((*Service).PlanImport)).
			Hide("it reads files of the machine by their paths, and says what is in them", "").NoTool("it is the first half of boards.import, which a person does")
	ImportBoards = verb.Write("boards.import", "take over boards, agents, tasks and all that belongs to them", "board import", verb.InOneTransaction, change((*Service).Import))
)

// AgentRef names an agent of boards.
type AgentRef struct {
	Agent string `json:"agent"`
}

// MemberChange is an agent of boards to create or change.
type MemberChange struct {
	Agent string `json:"agent"`
	AgentChange
}

// The verbs for the agents of boards.
var (
	CreateMember = verb.Write("members.create", "make an agent of boards, and the loop that is its heartbeat", "agent create", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r MemberChange) (AgentView, error) {
		return s.CreateAgent(ctx, by, r.Agent, r.AgentChange)
	}))
	SetMember = verb.Write("members.set", "change an agent of boards", "agent set", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r MemberChange) (AgentView, error) {
		return s.SetAgent(ctx, by, r.Agent, r.AgentChange)
	}))
	ListMembers = verb.Read("members.list", "list the agents of boards", on(func(s *Service, ctx context.Context, _ verb.None) ([]AgentView, error) {
		return s.ListAgents(ctx)
	})).Seen().Tool(verb.Tool{Name: "member_list", Schema: "pawl.members/v1", Group: verb.ToolsAll, Command: "agent list", Does: "List the agents of boards."})
	ShowMember = verb.Read("members.show", "show an agent of boards", on(func(s *Service, ctx context.Context, r AgentRef) (AgentView, error) {
		return s.ShowAgent(ctx, r.Agent)
	})).Seen().Tool(verb.Tool{Name: "member_show", Group: verb.ToolsAll, Command: "agent show", Does: "Show an agent of boards."})
)

// ResourceRef names a resource.
type ResourceRef struct {
	Resource string `json:"resource"`
}

// ResourceSetting is a change of a resource.
type ResourceSetting struct {
	Resource string `json:"resource"`
	ResourceChange
}

// The verbs for what agents of a board are to know.
var (
	CreateResource = verb.Write("resources.create", "create a resource of a board", "resource create", verb.InOneTransaction, change((*Service).CreateResource))
	SetResource    = verb.Write("resources.set", "change a resource", "resource set", verb.InOneTransaction, change(func(s *Service, ctx context.Context, by loop.Actor, r ResourceSetting) (ResourceView, error) {
		return s.SetResource(ctx, by, r.Resource, r.ResourceChange)
	}))
	ListResources = verb.Read("resources.list", "list resources of boards", on((*Service).ListResources)).
			Seen().ToolFrom(verb.Tool{Name: "resource_list", Schema: "pawl.resources/v1", Group: verb.ToolsAll, Command: "resource list", Does: "List what agents of boards are to know."}, verb.From(func(r TaskChoice) ResourceQuery { return ResourceQuery{Board: r.Board, Limit: mostRows} }))
	ShowResource = verb.Read("resources.show", "show a resource", on(func(s *Service, ctx context.Context, r ResourceRef) (ResourceView, error) {
		return s.ShowResource(ctx, r.Resource)
	})).Seen().Tool(verb.Tool{Name: "resource_show", Group: verb.ToolsAll, Command: "resource show", Does: "Show what agents of a board are to know."})
)

// on asks the service of a workspace.
func on[In, Out any](do func(*Service, context.Context, In) (Out, error)) func(context.Context, Workspace, verb.Call, In) (Out, error) {
	return func(ctx context.Context, w Workspace, _ verb.Call, in In) (Out, error) {
		return do(w.BoardService(), ctx, in)
	}
}

// change changes boards in the transaction in which the call is answered.
func change[In, Out any](do func(*Service, context.Context, loop.Actor, In) (Out, error)) func(context.Context, Workspace, verb.Call, In) (Out, error) {
	return func(ctx context.Context, w Workspace, c verb.Call, in In) (Out, error) {
		return do(w.BoardService().Once(c.Claim), ctx, c.By, in)
	}
}
