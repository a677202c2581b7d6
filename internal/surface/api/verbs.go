package api

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/formats/boot/boots"
	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/formats/tasks/orgs"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/setup"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// Workspace is what can be done in one workspace.
type Workspace struct {
	verb.Place

	Runs      *runs.Service
	Snapshots *runs.Snapshots
	Loops     *loops.Service
	Approvals *approvals.Service
	Audit     *audit.Service
	Budgets   *budgets.Service
	Memories  *memories.Service
	Setup     *setup.Service
	Specs     *specs.Service
	Boots     *boots.Service
	Orgs      *orgs.Service
	Boards    *boards.Service
	Doctor    setup.Doctor
}

// BoardService returns the verbs of heartbeat boards.
func (w *Workspace) BoardService() *boards.Service { return w.Boards }

// BootService returns the verbs of the boot protocol.
func (w *Workspace) BootService() *boots.Service { return w.Boots }

// OrgService returns the verbs of organisations.
func (w *Workspace) OrgService() *orgs.Service { return w.Orgs }

// SpecService returns the verbs of LoopSpecs.
func (w *Workspace) SpecService() *specs.Service { return w.Specs }

// LoopService returns the verbs of loops.
func (w *Workspace) LoopService() *loops.Service { return w.Loops }

var _ interface {
	boards.Workspace
	boots.Workspace
	orgs.Workspace
	specs.Workspace
} = (*Workspace)(nil)

// Store is what can be done with a whole store, for which no repository is needed.
type Store struct {
	Roster     roster.Roster
	Nodes      *nodes.Service
	Notices    *notices.Service
	Everywhere loops.Everywhere
	Gone       func(context.Context) ([]runs.GoneRepository, error)

	verb.Claims
}

// Verbs lists all verbs. Those that look at the caller's own machine and files (doctor
// --live, new, agent login, the proof of an audit chain) are not among them.
func Verbs() []verb.Info {
	return slices.Concat([]verb.Info{
		ListRuns.Info, ShowRun.Info, ExplainRun.Info, DiffRun.Info, ListEvents.Info, FindFeedHead.Info, AwaitRun.Info, FindLive.Info, PlanRun.Info, StartRun.Info, RerunRun.Info, FireRun.Info,
		verb.RecoverRuns.Info, StopRun.Info, ListLoops.Info, ShowLoop.Info, PlanLoop.Info, PlanLoops.Info, RegisterLoops.Info, AcceptLoops.Info, RegisterWorkspace.Info, PauseLoops.Info,
		ResumeLoops.Info, KillLoops.Info, ForgetLoop.Info, PauseEverywhere.Info, ResumeEverywhere.Info, CheckLoops.Info, DiagnoseLoops.Info, EstimateLoop.Info, TryGate.Info,
	}, specs.Verbs(), boots.Verbs(), orgs.Verbs(), boards.Verbs(), []verb.Info{
		ListApprovals.Info, ShowApproval.Info, Approve.Info, Reject.Info, ShowLanding.Info, Land.Info, ListSnapshots.Info, DiffSnapshot.Info, RestoreSnapshot.Info, PruneSnapshots.Info, ListGone.Info,
		ShowBudgets.Info, SetBudget.Info, ShowRunLog.Info, RewriteRunLog.Info, ListMemories.Info, ExplainMemory.Info, AddMemory.Info, ApproveMemory.Info, ForgetMemory.Info, ListNodes.Info,
		SetNode.Info, ShowForgotten.Info, ForgetNode.Info, ListAsked.Info, AcceptAsked.Info, ListChannels.Info, AddChannel.Info, RemoveChannel.Info, ListNotices.Info, ListAgents.Info, ShowAgent.Info,
		CreateAgent.Info, SetAgent.Info,
	})
}

// Tools lists the tools of the verbs, those of the seed first.
func Tools() (tools []verb.Tool) {
	for _, v := range []verb.Info{
		specs.CreateSpec.Info, specs.ListSpecs.Info, specs.GetSpec.Info, specs.QueueStep.Info, specs.StopSpec.Info, FireRun.Info, specs.FlagSpec.Info, PauseLoops.Info, ResumeLoops.Info, StopRun.Info, ExplainRun.Info, ShowRun.Info,
		DiffRun.Info, PlanLoop.Info, EstimateLoop.Info, CheckLoops.Info, DiagnoseLoops.Info, ListLoops.Info, ListApprovals.Info, ShowBudgets.Info, ListAgents.Info, ShowLoop.Info, PlanLoops.Info,
		ListRuns.Info, ListEvents.Info, PlanRun.Info, ShowApproval.Info, ListSnapshots.Info, DiffSnapshot.Info, ListGone.Info, ShowRunLog.Info, ListMemories.Info, ExplainMemory.Info,
		specs.ExportSpec.Info, boots.CheckBoot.Info, boots.BootStatus.Info, boots.ListSessions.Info, orgs.CheckOrg.Info, orgs.ShowOrg.Info, ListNodes.Info, ListNotices.Info, ShowAgent.Info, boards.CreateTask.Info, boards.ListTasks.Info,
		boards.ClaimTask.Info, boards.SetTask.Info, boards.SendMessage.Info, boards.ShowTask.Info, boards.CommentTask.Info, boards.AssignTask.Info, boards.MoveTask.Info, boards.ExplainTask.Info, boards.ListMessages.Info, boards.ShowMessage.Info, boards.ListMembers.Info,
		boards.ShowMember.Info, boards.ListBoards.Info, boards.ShowBoard.Info, boards.ListActivity.Info, boards.ListErrors.Info, boards.ListResources.Info, boards.ShowResource.Info,
	} {
		tools = append(tools, *v.AsTool())
	}
	return tools
}
