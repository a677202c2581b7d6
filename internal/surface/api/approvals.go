package api

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/audit"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/memories"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
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

func (r ApprovalRef) subject() verb.Subject {
	if strings.HasPrefix(r.Approval, "ap_") {
		return verb.Subject{Approval: r.Approval}
	}
	return verb.Subject{Run: r.Approval}
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
	ListApprovals = verb.Read("approvals.list", "list what waits for a person", func(ctx context.Context, ws *Workspace, _ verb.Call, q ApprovalQuery) ([]approvals.View, error) {
		return ws.Approvals.List(ctx, q.Loop, q.All)
	}).About(func(q ApprovalQuery) verb.Subject { return verb.Subject{Loop: q.Loop, All: true} }).Cut(nil, verb.CutEntries(func(v approvals.View) string { return v.Loop })).Seen().
		Tool(verb.Tool{Name: "approval_list", Schema: "pawl.approvals/v1", Group: verb.ToolsCore, Command: "approvals", Does: "List what waits for a person: exactly what happens on approval, with its gates. Only a person answers."})
	ShowApproval = verb.Read("approvals.show", "show exactly what happens on approval", func(ctx context.Context, ws *Workspace, _ verb.Call, r ApprovalRef) (approvals.View, error) {
		return ws.Approvals.Find(ctx, r.Approval)
	}).About(ApprovalRef.subject).Cut(nil, func(v approvals.View, reached verb.Reached, _ int) (approvals.View, bool) {
		return v, reached(v.Loop)
	}).Seen().
		Tool(verb.Tool{Name: "approval_show", Group: verb.ToolsAll, Command: "approvals", Does: "Show exactly what happens on approval."})
	Approve = verb.Write("approvals.approve", "say yes to a question, once, and carry it out", "approve", verb.Unknown, byPerson(func(ctx context.Context, ws *Workspace, _ verb.Call, by loop.Answer, r AnswerRequest) (runs.View, error) {
		by.Note = r.Note
		return ws.Approvals.Approve(ctx, r.Approval, by)
	}))
	Reject = verb.Write("approvals.reject", "say no to a question, once", "reject", verb.Unknown, byPerson(func(ctx context.Context, ws *Workspace, _ verb.Call, by loop.Answer, r AnswerRequest) (approvals.View, error) {
		by.Note = r.Note
		by.Changes = r.Changes
		return ws.Approvals.Reject(ctx, r.Approval, by)
	}))
	ShowLanding = verb.Write("approvals.landing", "show what landing a proposal does; one that is on its base already is void", "land", verb.Repeatable, func(ctx context.Context, ws *Workspace, _ verb.Call, r LandingRequest) (approvals.View, error) {
		return ws.Approvals.Landing(ctx, r.Run, r.LandRequest)
	})
	Land = verb.Write("approvals.land", "land a proposal, as it was shown", "land", verb.Unknown, byPerson(func(ctx context.Context, ws *Workspace, _ verb.Call, by loop.Answer, r LandingRequest) (runs.View, error) {
		by.Note = r.Note
		return ws.Approvals.Land(ctx, r.Run, r.LandRequest, r.Hash, by)
	}))
)

// byPerson carries out what only a person may do: an answer, without a note yet.
func byPerson[In, Out any](do func(context.Context, *Workspace, verb.Call, loop.Answer, In) (Out, error)) func(context.Context, *Workspace, verb.Call, In) (Out, error) {
	return func(ctx context.Context, ws *Workspace, c verb.Call, in In) (out Out, err error) {
		if c.By.Role != loop.RoleHuman {
			return out, &loop.Fault{Exit: loop.ExitRefused, What: "only a person can answer", Why: c.By.Who + " is not one", Fix: "let a human answer, outside of the run"}
		}
		return do(ctx, ws, c, loop.Answer{By: c.By.Who, From: c.By.From}, in)
	}
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
	ListSnapshots = verb.Read("snapshots.list", "list work that is on no branch", func(ctx context.Context, ws *Workspace, _ verb.Call, _ verb.None) ([]runs.Snapshot, error) {
		return ws.Snapshots.List(ctx)
	}).Tool(verb.Tool{Name: "snapshot_list", Schema: "pawl.snapshots/v1", Group: verb.ToolsAll, Command: "recover", Does: "List work that is on no branch."})
	DiffSnapshot = verb.Read("snapshots.diff", "show what a snapshot changed, as a patch", func(ctx context.Context, ws *Workspace, _ verb.Call, r SnapshotRef) (runs.Patch, error) {
		return ws.Snapshots.Diff(ctx, r.Snapshot)
	}).Tool(verb.Tool{Name: "snapshot_diff", Group: verb.ToolsAll, Command: "recover show", Does: "Show what a snapshot changed, as a patch."})
	RestoreSnapshot = verb.Write("snapshots.restore", "put a snapshot on a new branch", "recover restore", verb.Unknown, func(ctx context.Context, ws *Workspace, c verb.Call, r RestoreRequest) (runs.Restored, error) {
		return ws.Snapshots.Restore(ctx, c.By, r.Snapshot, r.Branch)
	})
	PruneSnapshots = verb.Write("snapshots.prune", "remove old snapshots", "recover prune", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, r PruneRequest) (runs.Pruned, error) {
		return ws.Snapshots.Prune(ctx, c.By, time.Duration(r.OlderSeconds)*time.Second, r.DryRun)
	})
	ListGone = verb.ReadStore("snapshots.gone", "list the checkouts that are gone, with what is open of them", func(ctx context.Context, s *Store, c verb.Call, _ verb.None) ([]runs.GoneRepository, error) {
		return s.Gone(ctx)
	}).Tool(verb.Tool{Name: "snapshot_gone", Schema: "pawl.gone/v1", Group: verb.ToolsAll, Command: "recover", Does: "List the checkouts that are gone, with what is open of them."})
)

// The verbs for budgets and run logs.
var (
	ShowBudgets = verb.Read("budgets.show", "show what is used, reserved and left", func(ctx context.Context, ws *Workspace, _ verb.Call, t budgets.Target) ([]budgets.Row, error) {
		return ws.Budgets.Show(ctx, t)
	}).About(aboutBudgets).SeenUnless(ofAllWorkspaces).
		Tool(verb.Tool{Name: "budget_show", Schema: "pawl.budgets/v1", Group: verb.ToolsCore, Command: "budget show", Does: "Show what is used, reserved and left of each budget."})
	SetBudget = verb.Write("budgets.set", "set or remove caps", "budget set", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, change budgets.Change) ([]budgets.Row, error) {
		change.By = c.By
		return ws.Budgets.Set(ctx, change)
	})
	ShowRunLog = verb.Read("logs.show", "make the run log of a loop from its audit chain", func(ctx context.Context, ws *Workspace, _ verb.Call, r LoopRef) (audit.RunLog, error) {
		return ws.Audit.RunLog(ctx, r.Loop)
	}).About(LoopRef.subject).Seen().Tool(verb.Tool{Name: "run_log", Group: verb.ToolsAll, Command: "audit log", Does: "Show the run log of a loop, made from its audit chain."})
	RewriteRunLog = verb.Write("logs.rewrite", "write the run log of a loop anew", "audit log", verb.Repeatable, func(ctx context.Context, ws *Workspace, c verb.Call, r LoopRef) (audit.RunLog, error) {
		return ws.Audit.RewriteLog(ctx, c.By, r.Loop)
	})
)

// aboutBudgets is the loop of which budgets are asked for, unless others are asked for too.
func aboutBudgets(t budgets.Target) verb.Subject {
	if !t.Workspace && !t.All && t.Agent == "" {
		return verb.Subject{Loop: t.Loop}
	}
	return verb.Subject{}
}

// ofAllWorkspaces refuses the agent of a run the budgets of all workspaces.
func ofAllWorkspaces(t budgets.Target) string {
	if t.All {
		return "the budget of everything tells of other workspaces"
	}
	return ""
}

// MemoryRef names an entry of the memory: its number, 12 or #12.
type MemoryRef struct {
	Memory string `json:"memory"`
}

// The verbs for what was learned.
var (
	ListMemories = verb.Read("memory.list", "list what was learned in the workspace", func(ctx context.Context, ws *Workspace, _ verb.Call, q memories.Query) ([]memories.View, error) {
		return ws.Memories.List(ctx, q)
	}).Seen().ToolFrom(verb.Tool{Name: "memory_list", Schema: "pawl.memories/v1", Group: verb.ToolsAll, Command: "memory list", Does: "List what was learned in the workspace."}, verb.From(func(r RunChoice) memories.Query { return memories.Query{Loop: r.Loop, Limit: mostRuns} }))
	ExplainMemory = verb.Read("memory.why", "say where an entry comes from, and what would make it count", func(ctx context.Context, ws *Workspace, _ verb.Call, r MemoryRef) (memories.Explained, error) {
		return ws.Memories.Why(ctx, r.Memory)
	}).Seen().Tool(verb.Tool{Name: "memory_why", Group: verb.ToolsAll, Command: "memory why", Does: "Say where an entry of the memory comes from, and what would make it count."})
	AddMemory = verb.Write("memory.add", "add an entry, which counts at once", "memory add", verb.InOneTransaction, byPerson(func(ctx context.Context, ws *Workspace, c verb.Call, by loop.Answer, a memories.Addition) (memories.Explained, error) {
		return ws.Memories.Once(c.Claim).Add(ctx, by.Actor(), a)
	}))
	ApproveMemory = verb.Write("memory.approve", "make an entry count", "memory approve", verb.Repeatable, byPerson(func(ctx context.Context, ws *Workspace, _ verb.Call, by loop.Answer, r MemoryRef) (memories.Explained, error) {
		return ws.Memories.Approve(ctx, by.Actor(), r.Memory)
	}))
	ForgetMemory = verb.Write("memory.forget", "make an entry count no more", "memory forget", verb.Repeatable, byPerson(func(ctx context.Context, ws *Workspace, _ verb.Call, by loop.Answer, r MemoryRef) (memories.Explained, error) {
		return ws.Memories.Forget(ctx, by.Actor(), r.Memory)
	}))
)
