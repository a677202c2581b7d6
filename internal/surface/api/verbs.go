package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/notices"
	"github.com/pawl-run/pawl/internal/verbs/roster"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Verbs lists all verbs. Those that look at the caller's own machine and files (doctor
// --live, new, agent login, the proof of an audit chain) are not among them.
func Verbs() []Info {
	return []Info{
		ListRuns.Info, ShowRun.Info, ExplainRun.Info, DiffRun.Info, ListEvents.Info, FindFeedHead.Info, AwaitRun.Info, FindLive.Info,
		PlanRun.Info, StartRun.Info, RerunRun.Info, FireRun.Info, RecoverRuns.Info, StopRun.Info,
		ListLoops.Info, ShowLoop.Info, PlanLoop.Info, PlanLoops.Info, RegisterLoops.Info, AcceptLoops.Info, RegisterWorkspace.Info, PauseLoops.Info, ResumeLoops.Info, KillLoops.Info, ForgetLoop.Info,
		PauseEverywhere.Info, ResumeEverywhere.Info, CheckLoops.Info, DiagnoseLoops.Info, EstimateLoop.Info,
		TryGate.Info, CreateSpec.Info, GenerateSpec.Info, ListSpecs.Info, GetSpec.Info, EditSpec.Info, FlagSpec.Info, SpawnSpec.Info, DeleteSpec.Info, ExportSpec.Info, StepSpec.Info, QueueStep.Info, StopSpec.Info,
		PlanBoot.Info, InitBoot.Info, CheckBoot.Info, BootStatus.Info, FindOutdated.Info, MigrateBoot.Info, ListSessions.Info,
		PlanOrg.Info, InitOrg.Info, CheckOrg.Info, ShowOrg.Info, PlanImport.Info, ImportOrg.Info,
		CreateBoard.Info, SetBoard.Info, ListBoards.Info, ShowBoard.Info, ListActivity.Info, ListErrors.Info, ExportBoards.Info, PlanBoardImport.Info, ImportBoards.Info,
		CreateTask.Info, SetTask.Info, ListTasks.Info, ShowTask.Info, CommentTask.Info, MoveTask.Info, AssignTask.Info, ClaimTask.Info, ExplainTask.Info,
		CreateMember.Info, SetMember.Info, ListMembers.Info, ShowMember.Info, SendMessage.Info, ListMessages.Info, ShowMessage.Info,
		CreateResource.Info, SetResource.Info, ListResources.Info, ShowResource.Info,
		ListApprovals.Info, ShowApproval.Info, Approve.Info, Reject.Info, ShowLanding.Info, Land.Info,
		ListSnapshots.Info, DiffSnapshot.Info, RestoreSnapshot.Info, PruneSnapshots.Info, ListGone.Info,
		ShowBudgets.Info, SetBudget.Info, ShowRunLog.Info, RewriteRunLog.Info,
		ListMemories.Info, ExplainMemory.Info, AddMemory.Info, ApproveMemory.Info, ForgetMemory.Info,
		ListNodes.Info, SetNode.Info, ShowForgotten.Info, ForgetNode.Info, ListAsked.Info, AcceptAsked.Info,
		ListChannels.Info, AddChannel.Info, RemoveChannel.Info, ListNotices.Info,
		ListAgents.Info, ShowAgent.Info, CreateAgent.Info, SetAgent.Info,
	}
}

// LoopRef names a loop.
type LoopRef struct {
	Loop string `json:"loop" jsonschema:"name of a loop, or id of one of loop_list"`
}

// LoopQuery selects a part of the loops, which are in the order of their names and protocols. The
// zero LoopQuery selects all.
type LoopQuery struct {
	AfterName     string `json:"after_name,omitempty"` // of the last loop of the part before
	AfterProtocol string `json:"after_protocol,omitempty"`
	Limit         int    `json:"limit,omitempty"` // 0: all
}

// RunRef names a run: its id, LOOP#N, or LOOP for its newest.
type RunRef struct {
	Run string `json:"run" jsonschema:"run id, LOOP#N, or LOOP for its newest run"`
}

// RunQuery selects runs.
type RunQuery struct {
	Loop  string `json:"loop,omitempty"` // empty: of all loops
	Limit int    `json:"limit"`
}

// checkLimit judges how many entries of a list are asked for. A list that is read page by page
// would never end with pages of none.
func checkLimit(limit int) error {
	if limit < 1 {
		return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid limit %d", limit), Fix: "write a limit of 1 or more"}
	}
	return nil
}

// EventQuery selects events of a run.
type EventQuery struct {
	ID    string `json:"id"`              // of the run
	After int64  `json:"after,omitempty"` // number of the event after which they begin
	Limit int    `json:"limit"`
}

// EventPage is some events of a run, oldest first.
type EventPage struct {
	Events []loop.Event `json:"events"`
	More   bool         `json:"more"` // others may follow
}

// FeedPlace is a place in the store's feed of changes.
type FeedPlace struct {
	Cursor loop.Cursor `json:"cursor"`
}

// RunWait is for whom to wait.
type RunWait struct {
	ID    string      `json:"id"`
	After loop.Cursor `json:"after"`
}

// Liveness says whether a run of the workspace has a holder, dead or alive.
type Liveness struct {
	Live bool `json:"live"`
}

// StopRequest says which run to stop.
type StopRequest struct {
	Run string `json:"run" jsonschema:"run id, LOOP#N, or LOOP for its newest run"`
	Why string `json:"why,omitempty" jsonschema:"for the record"`
}

// RerunRequest says which run to do again.
type RerunRequest struct {
	Run  string `json:"run"`
	Hint string `json:"hint,omitempty"` // what the agent is told
}

// Fired is a run that was queued.
type Fired struct {
	Schema string `json:"schema"`
	ID     string `json:"id"`
	Loop   string `json:"loop"`
	N      int64  `json:"n"`
}

// The verbs for runs.
var (
	ListRuns = read("runs.list", "list the newest runs of a loop, or of all", func(ctx context.Context, ws *Workspace, _ Call, q RunQuery) ([]runs.View, error) {
		if err := checkLimit(q.Limit); err != nil {
			return nil, err
		}
		return ws.Runs.List(ctx, q.Loop, q.Limit)
	})
	ShowRun = read("runs.show", "show a run with its iterations and turns", func(ctx context.Context, ws *Workspace, _ Call, r RunRef) (runs.View, error) {
		return ws.Runs.Show(ctx, r.Run)
	})
	ExplainRun = read("runs.why", "explain how a run ended and why each step was picked or not", func(ctx context.Context, ws *Workspace, _ Call, r RunRef) (runs.Why, error) {
		return ws.Runs.Why(ctx, r.Run)
	})
	DiffRun = read("runs.diff", "show what a run changed, as a patch", func(ctx context.Context, ws *Workspace, _ Call, r RunRef) (runs.Patch, error) {
		return ws.Runs.Diff(ctx, r.Run)
	})
	ListEvents = read("runs.events", "list what happened in a run", func(ctx context.Context, ws *Workspace, _ Call, q EventQuery) (p EventPage, err error) {
		if err := checkLimit(q.Limit); err != nil {
			return p, err
		}
		p.Events, p.More, err = ws.Runs.Events(ctx, q.ID, q.After, q.Limit)
		return p, err
	})
	FindFeedHead = read("runs.head", "tell the newest place in the store's feed of changes", func(ctx context.Context, ws *Workspace, _ Call, _ None) (p FeedPlace, err error) {
		p.Cursor, err = ws.Runs.FeedHead(ctx)
		return p, err
	})
	AwaitRun = read("runs.await", "wait for a change of a run, for two seconds at most", func(ctx context.Context, ws *Workspace, _ Call, w RunWait) (p FeedPlace, err error) {
		p.Cursor, err = ws.Runs.WaitForRun(ctx, w.ID, w.After)
		return p, err
	})
	FindLive = read("runs.live", "tell whether a run of the workspace has a holder, dead or alive", func(ctx context.Context, ws *Workspace, _ Call, _ None) (l Liveness, err error) {
		l.Live, err = ws.Runs.Live(ctx)
		return l, err
	})
	PlanRun = read("runs.plan", "say what would run, and start nothing", func(ctx context.Context, ws *Workspace, _ Call, r runs.StartRequest) (p runs.Plan, err error) {
		prepared, err := ws.Runs.Prepare(ctx, r)
		if err != nil {
			return p, err
		}
		return ws.Runs.Plan(ctx, prepared)
	})
	RerunRun = write("runs.rerun", "work the last step of a run again, from the same base", func(ctx context.Context, ws *Workspace, c Call, r RerunRequest) (runs.View, error) {
		if v, ok, err := ws.keyedRun(ctx, c); ok || err != nil {
			return v, err
		}
		start, err := ws.Runs.Again(ctx, r.Run, r.Hint)
		if err != nil {
			return runs.View{}, err
		}
		return ws.startRun(ctx, c, start)
	})
	StartRun = write("runs.start", "carry out one run and return how it ended", func(ctx context.Context, ws *Workspace, c Call, r runs.StartRequest) (runs.View, error) {
		if v, ok, err := ws.keyedRun(ctx, c); ok || err != nil {
			return v, err
		}
		return ws.startRun(ctx, c, r)
	})
	FireRun = onDaemon(queued, write("runs.fire", "queue one run for the daemon, and do not wait for it", func(ctx context.Context, ws *Workspace, c Call, r runs.StartRequest) (Fired, error) {
		if f, ok, err := ws.keyedFired(ctx, c); ok || err != nil {
			return f, err
		}
		return ws.fireRun(ctx, c, r)
	}))
	RecoverRuns = write("runs.recover", "conclude runs whose process is gone", func(context.Context, *Workspace, Call, None) (None, error) {
		return None{}, nil // As every verb that writes, it began with that.
	})
	StopRun = write("runs.stop", "end a run, and keep its work", func(ctx context.Context, ws *Workspace, c Call, r StopRequest) (runs.View, error) {
		return ws.Runs.Stop(ctx, c.By, r.Run, r.Why)
	})
)

// startRun carries out one run and tells what happens in it.
func (w *Workspace) startRun(ctx context.Context, c Call, r runs.StartRequest) (runs.View, error) {
	r.By, r.Key, r.Live = c.By, c.Key, func(e loop.Event) { c.Say(Progress{Event: &e}) }
	prepared, err := w.prepareRun(ctx, c, r)
	if err != nil {
		return runs.View{}, err
	}
	return w.Runs.Start(ctx, prepared)
}

// queued is why only a daemon fires runs.
const queued = "runs for which nobody waits are executed by a daemon"

// fireRun queues one run for the daemon.
func (w *Workspace) fireRun(ctx context.Context, c Call, r runs.StartRequest) (f Fired, err error) {
	r.By, r.Key, r.Anywhere = c.By, c.Key, true
	prepared, err := w.prepareRun(ctx, c, r)
	if err != nil {
		return f, err
	}
	run, err := w.Runs.Fire(ctx, prepared)
	return Fired{firedSchema, run.ID, prepared.Target.Loop.Name, run.N}, err
}

const firedSchema = "pawl.fired/v1"

// prepareRun checks what a request would run and tells it. The store learns if the
// definition broke.
func (w *Workspace) prepareRun(ctx context.Context, c Call, r runs.StartRequest) (runs.Prepared, error) {
	p, err := w.Runs.Prepare(ctx, r)
	if err != nil {
		if r.Loop != "" {
			err = errors.Join(err, w.Loops.RegisterOne(ctx, r.Loop))
		}
		return p, err
	}
	plan, err := w.Runs.Plan(ctx, p)
	if err == nil {
		c.Say(Progress{Plan: &plan})
	}
	return p, err
}

// NextQuery selects the coming firings of a loop.
type NextQuery struct {
	Loop  string `json:"loop"`
	Count int    `json:"count"`
}

// LoopList is the loops of a workspace.
type LoopList struct {
	Root  string      `json:"root"` // top of the checkout
	Loops []loops.Row `json:"loops"`
}

// RegisterRequest says how to register a workspace.
type RegisterRequest struct {
	Accept bool `json:"accept,omitempty"` // what git would execute now, if that has changed
}

// SwitchRequest says what to pause or resume.
type SwitchRequest struct {
	Loop string `json:"loop,omitempty"` // empty: every loop
	Why  string `json:"why,omitempty"`
}

// The verbs for loops.
var (
	ListLoops = read("loops.list", "list the loops of the workspace", func(ctx context.Context, ws *Workspace, _ Call, q LoopQuery) (l LoopList, err error) {
		l.Root = ws.Root
		l.Loops, err = ws.Loops.ListPage(ctx, catalog.Page{After: catalog.Key{Name: q.AfterName, Protocol: q.AfterProtocol}, Limit: q.Limit})
		return l, err
	})
	ShowLoop = read("loops.show", "show a loop", func(ctx context.Context, ws *Workspace, _ Call, r LoopRef) (loops.Row, error) {
		return ws.Loops.Show(ctx, r.Loop)
	})
	PlanLoop = read("loops.next", "say when a loop fires next", func(ctx context.Context, ws *Workspace, _ Call, q NextQuery) (loops.Plan, error) {
		return ws.Loops.Next(ctx, q.Loop, q.Count)
	})
	PlanLoops = read("loops.plans", "say when each loop fires next", func(ctx context.Context, ws *Workspace, _ Call, _ None) ([]loops.Plan, error) {
		return ws.Loops.Plans(ctx)
	})
	RegisterLoops = write("loops.register", "read all definitions of the workspace again", func(ctx context.Context, ws *Workspace, c Call, _ None) (catalog.Synced, error) {
		synced, err := ws.Loops.Register(ctx)
		if err == nil && c.By.IsPerson() {
			err = ws.Loops.AcceptRegistered(ctx, c.By)
		}
		return synced, err
	})
	RegisterWorkspace = write("workspaces.register", "record the workspace, and what git would execute in it", func(ctx context.Context, ws *Workspace, c Call, r RegisterRequest) (None, error) {
		return None{}, ws.Setup.Register(ctx, c.By, r.Accept)
	})
	PauseLoops = switchOff("loops.pause", "set the kill switch of a loop, or of all", func(ctx context.Context, ws *Workspace, c Call, r SwitchRequest) (loops.Switched, error) {
		return ws.Loops.Pause(ctx, c.By, r.Loop, r.Why)
	})
	ResumeLoops = write("loops.resume", "clear the kill switch of a loop, or of all", func(ctx context.Context, ws *Workspace, c Call, r LoopRef) (loops.Switched, error) {
		return ws.Loops.Resume(ctx, c.By, r.Loop)
	})
	KillLoops = switchOff("loops.kill", "set the kill switch and wait until nothing runs any more", func(ctx context.Context, ws *Workspace, c Call, r SwitchRequest) (loops.Switched, error) {
		return ws.Loops.Kill(ctx, c.By, r.Loop, r.Why)
	})
	ForgetLoop = write("loops.forget", "list a loop no more, and close its open approvals", func(ctx context.Context, ws *Workspace, c Call, r LoopRef) (loops.Forgotten, error) {
		return ws.Loops.Forget(ctx, c.By, r.Loop)
	})
	PauseEverywhere = stopStore("everywhere.pause", "set the kill switch of every loop of every workspace", func(ctx context.Context, c Call, r SwitchRequest) (loops.Switched, error) {
		return c.Store.Everywhere.Pause(ctx, c.By, r.Why)
	})
	ResumeEverywhere = writeStore("everywhere.resume", "clear what everywhere.pause has set", func(ctx context.Context, c Call, _ None) (loops.Switched, error) {
		return c.Store.Everywhere.Resume(ctx, c.By)
	})
)

// ApprovalQuery selects approvals.
type ApprovalQuery struct {
	Loop string `json:"loop,omitempty"` // empty: of all loops
	All  bool   `json:"all,omitempty"`  // also those that are not open any more
}

// ApprovalRef names an approval: its id, the run that asked it, or its loop.
type ApprovalRef struct {
	Approval string `json:"approval"`
}

// AnswerRequest is an answer to an approval.
type AnswerRequest struct {
	Approval string `json:"approval"`
	Note     string `json:"note,omitempty"`
	Changes  bool   `json:"changes,omitempty"` // of a rejection: the loop works on the same step again, with the note
}

// LandingRequest says which proposal to land.
type LandingRequest struct {
	Run string `json:"run"`
	approvals.LandRequest

	// Hash is that of the landing that was shown; Land refuses another one.
	Hash string `json:"hash,omitempty"`
	Note string `json:"note,omitempty"`
}

// The verbs for approvals.
var (
	ListApprovals = read("approvals.list", "list what waits for a person", func(ctx context.Context, ws *Workspace, _ Call, q ApprovalQuery) ([]approvals.View, error) {
		return ws.Approvals.List(ctx, q.Loop, q.All)
	})
	ShowApproval = read("approvals.show", "show exactly what happens on approval", func(ctx context.Context, ws *Workspace, _ Call, r ApprovalRef) (approvals.View, error) {
		return ws.Approvals.Find(ctx, r.Approval)
	})
	Approve = write("approvals.approve", "say yes to a question, once, and carry it out", func(ctx context.Context, ws *Workspace, c Call, r AnswerRequest) (runs.View, error) {
		by, err := c.answer(r.Note)
		if err != nil {
			return runs.View{}, err
		}
		return ws.Approvals.Approve(ctx, r.Approval, by)
	})
	Reject = write("approvals.reject", "say no to a question, once", func(ctx context.Context, ws *Workspace, c Call, r AnswerRequest) (approvals.View, error) {
		by, err := c.answer(r.Note)
		if err != nil {
			return approvals.View{}, err
		}
		by.Changes = r.Changes
		return ws.Approvals.Reject(ctx, r.Approval, by)
	})
	ShowLanding = write("approvals.landing", "show what landing a proposal does; one that is on its base already is void", func(ctx context.Context, ws *Workspace, _ Call, r LandingRequest) (approvals.View, error) {
		return ws.Approvals.Landing(ctx, r.Run, r.LandRequest)
	})
	Land = write("approvals.land", "land a proposal, as it was shown", func(ctx context.Context, ws *Workspace, c Call, r LandingRequest) (runs.View, error) {
		by, err := c.answer(r.Note)
		if err != nil {
			return runs.View{}, err
		}
		return ws.Approvals.Land(ctx, r.Run, r.LandRequest, r.Hash, by)
	})
)

// answer is the caller's answer. Agents cannot give one.
func (c Call) answer(note string) (loop.Answer, error) {
	if c.By.Role != loop.RoleHuman {
		return loop.Answer{}, &loop.Fault{Exit: loop.ExitRefused, What: "only a person can answer", Why: c.By.Who + " is not one", Fix: "let a human answer, outside of the run"}
	}
	return loop.Answer{By: c.By.Who, From: c.By.From, Note: note}, nil
}

// SnapshotRef names a snapshot.
type SnapshotRef struct {
	Snapshot string `json:"snapshot"`
}

// RestoreRequest says where to put a snapshot.
type RestoreRequest struct {
	Snapshot string `json:"snapshot"`
	Branch   string `json:"branch"`
}

// PruneRequest says which snapshots to remove.
type PruneRequest struct {
	OlderSeconds int64 `json:"older_seconds"`
	DryRun       bool  `json:"dry_run,omitempty"`
}

// The verbs for work that is on no branch.
var (
	ListSnapshots = read("snapshots.list", "list work that is on no branch", func(ctx context.Context, ws *Workspace, _ Call, _ None) ([]runs.Snapshot, error) {
		return ws.Snapshots.List(ctx)
	})
	DiffSnapshot = read("snapshots.diff", "show what a snapshot changed, as a patch", func(ctx context.Context, ws *Workspace, _ Call, r SnapshotRef) (runs.Patch, error) {
		return ws.Snapshots.Diff(ctx, r.Snapshot)
	})
	RestoreSnapshot = write("snapshots.restore", "put a snapshot on a new branch", func(ctx context.Context, ws *Workspace, c Call, r RestoreRequest) (runs.Restored, error) {
		return ws.Snapshots.Restore(ctx, c.By, r.Snapshot, r.Branch)
	})
	PruneSnapshots = write("snapshots.prune", "remove old snapshots", func(ctx context.Context, ws *Workspace, c Call, r PruneRequest) (runs.Pruned, error) {
		return ws.Snapshots.Prune(ctx, c.By, time.Duration(r.OlderSeconds)*time.Second, r.DryRun)
	})
	ListGone = readStore("snapshots.gone", "list the checkouts that are gone, with what is open of them", func(ctx context.Context, c Call, _ None) ([]runs.GoneRepository, error) {
		return c.Store.Gone(ctx)
	})
)

// The verbs for budgets and run logs.
var (
	ShowBudgets = read("budgets.show", "show what is used, reserved and left", func(ctx context.Context, ws *Workspace, _ Call, t budgets.Target) ([]budgets.Row, error) {
		return ws.Budgets.Show(ctx, t)
	})
	SetBudget = write("budgets.set", "set or remove caps", func(ctx context.Context, ws *Workspace, c Call, change budgets.Change) ([]budgets.Row, error) {
		change.By = c.By
		return ws.Budgets.Set(ctx, change)
	})
	ShowRunLog = read("logs.show", "make the run log of a loop from its audit chain", func(ctx context.Context, ws *Workspace, _ Call, r LoopRef) (audit.RunLog, error) {
		return ws.Audit.RunLog(ctx, r.Loop)
	})
	RewriteRunLog = write("logs.rewrite", "write the run log of a loop anew", func(ctx context.Context, ws *Workspace, c Call, r LoopRef) (audit.RunLog, error) {
		return ws.Audit.RewriteLog(ctx, c.By, r.Loop)
	})
)

// MemoryRef names an entry of the memory: its number, 12 or #12.
type MemoryRef struct {
	Memory string `json:"memory"`
}

// The verbs for what was learned.
var (
	ListMemories = read("memory.list", "list what was learned in the workspace", func(ctx context.Context, ws *Workspace, _ Call, q memories.Query) ([]memories.View, error) {
		return ws.Memories.List(ctx, q)
	})
	ExplainMemory = read("memory.why", "say where an entry comes from, and what would make it count", func(ctx context.Context, ws *Workspace, _ Call, r MemoryRef) (memories.Explained, error) {
		return ws.Memories.Why(ctx, r.Memory)
	})
	AddMemory = write("memory.add", "add an entry, which counts at once", func(ctx context.Context, ws *Workspace, c Call, a memories.Addition) (memories.Explained, error) {
		by, err := c.answer("")
		if err != nil {
			return memories.Explained{}, err
		}
		return ws.Memories.Once(c.claim).Add(ctx, by.Actor(), a)
	})
	ApproveMemory = write("memory.approve", "make an entry count", func(ctx context.Context, ws *Workspace, c Call, r MemoryRef) (memories.Explained, error) {
		by, err := c.answer("")
		if err != nil {
			return memories.Explained{}, err
		}
		return ws.Memories.Approve(ctx, by.Actor(), r.Memory)
	})
	ForgetMemory = write("memory.forget", "make an entry count no more", func(ctx context.Context, ws *Workspace, c Call, r MemoryRef) (memories.Explained, error) {
		by, err := c.answer("")
		if err != nil {
			return memories.Explained{}, err
		}
		return ws.Memories.Forget(ctx, by.Actor(), r.Memory)
	})
)

// NodeRef names a node.
type NodeRef struct {
	Node string `json:"node"`
}

// NodeChange is what to change of this node; null leaves it as it is.
type NodeChange struct {
	Name   *string   `json:"name,omitempty"`
	Labels *[]string `json:"labels,omitempty"`
}

// The verbs for nodes.
var (
	ListNodes = readStore("nodes.list", "list the machines that share the store", func(ctx context.Context, c Call, _ None) ([]nodes.View, error) {
		return c.Store.Nodes.List(ctx)
	})
	SetNode = writeStore("nodes.set", "name this node, or set its labels", func(ctx context.Context, c Call, n NodeChange) (loop.Node, error) {
		return c.Store.Nodes.Set(ctx, n.Name, n.Labels)
	})
	ShowForgotten = readStore("nodes.forgotten", "say what forgetting a node gives up", func(ctx context.Context, c Call, r NodeRef) (nodes.Forgotten, error) {
		return c.Store.Nodes.Plan(ctx, r.Node)
	})
	ForgetNode = writeStore("nodes.forget", "remove a node that is gone for good", func(ctx context.Context, c Call, r NodeRef) (nodes.Forgotten, error) {
		return c.Store.Nodes.Forget(ctx, c.By, r.Node)
	})
)

// ChannelRef names a channel.
type ChannelRef struct {
	Channel string `json:"channel"`
}

// NoticeQuery selects notices.
type NoticeQuery struct {
	Before int64 `json:"before,omitempty"` // only those before the one with this number
	Limit  int   `json:"limit"`
}

// The verbs for notices.
var (
	ListChannels = readStore("notices.channels", "list where notices are sent", func(ctx context.Context, c Call, _ None) ([]notices.View, error) {
		return c.Store.Notices.List(ctx)
	})
	AddChannel = writeStore("notices.add", "send notices to one more place", func(ctx context.Context, c Call, channel loop.Channel) (loop.Channel, error) {
		once := *c.Store.Notices
		once.Claim = c.claim
		return once.Add(ctx, c.By, channel)
	})
	RemoveChannel = writeStore("notices.remove", "send notices to a place no more", func(ctx context.Context, c Call, r ChannelRef) (None, error) {
		return None{}, c.Store.Notices.Remove(ctx, r.Channel)
	})
	ListNotices = readStore("notices.list", "list notices and whether they were delivered", func(ctx context.Context, c Call, q NoticeQuery) ([]notices.Logged, error) {
		if err := checkLimit(q.Limit); err != nil {
			return nil, err
		}
		return c.Store.Notices.Log(ctx, q.Before, q.Limit)
	})
)

// AgentRef names an entry of the roster.
type AgentRef struct {
	Agent string `json:"agent"`
}

// AgentChange is an entry of the roster to create or change.
type AgentChange struct {
	Agent string `json:"agent"`
	roster.Change
}

// The verbs for the roster.
var (
	ListAgents = readStore("agents.list", "list who can act", func(ctx context.Context, c Call, _ None) ([]loop.Agent, error) {
		return c.Store.Roster.List(ctx)
	})
	ShowAgent = readStore("agents.show", "show who acts", func(ctx context.Context, c Call, r AgentRef) (roster.Entry, error) {
		return c.Store.Roster.Show(ctx, r.Agent)
	})
	CreateAgent = writeStore("agents.create", "add an agent to the roster", func(ctx context.Context, c Call, r AgentChange) (roster.Entry, error) {
		once := c.Store.Roster
		once.Claim = c.claim
		return once.Create(ctx, r.Agent, r.Change)
	})
	SetAgent = writeStore("agents.set", "change an agent of the roster", func(ctx context.Context, c Call, r AgentChange) (roster.Entry, error) {
		return c.Store.Roster.Set(ctx, r.Agent, r.Change)
	})
)
