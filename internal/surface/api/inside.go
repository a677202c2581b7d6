package api

import (
	"context"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/boards/boards"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// readInside has the verbs that the agent of a run may ask for if it has pawl's tools: they tell
// of its own workspace, and of nothing that may have secrets.
var readInside = []Info{
	ListRuns.Info, ShowRun.Info, ExplainRun.Info, DiffRun.Info, ListEvents.Info, FindFeedHead.Info, AwaitRun.Info, FindLive.Info,
	ListLoops.Info, ShowLoop.Info, PlanLoop.Info, PlanLoops.Info, CheckLoops.Info, EstimateLoop.Info,
	ListSpecs.Info, GetSpec.Info, ExportSpec.Info, ListApprovals.Info, ShowApproval.Info, ShowBudgets.Info, ShowRunLog.Info,
	ListMemories.Info, ExplainMemory.Info, BootStatus.Info, ListSessions.Info, ShowOrg.Info, ListAgents.Info, ShowAgent.Info,
	ListBoards.Info, ShowBoard.Info, ListActivity.Info, ListErrors.Info, ListTasks.Info, ShowTask.Info, ExplainTask.Info,
	ListMembers.Info, ShowMember.Info, ListMessages.Info, ShowMessage.Info, ListResources.Info, ShowResource.Info,
}

// postInside has the verbs with which the agent of a run may change something if it may post, and
// what of a request it may not ask.
var postInside = map[string]func(ctx context.Context, w *Workspace, of *loop.Inside, in any) (why string, err error){
	CreateSpec.Name: func(context.Context, *Workspace, *loop.Inside, any) (string, error) { return "", nil },
	StepSpec.Name:   onDescendant, QueueStep.Name: onDescendant, StartRun.Name: onDescendant, FireRun.Name: onDescendant, FlagSpec.Name: onDescendant, StopSpec.Name: onDescendant, PauseLoops.Name: onDescendant, StopRun.Name: onDescendant,
	// Whoever waits for a run concludes it if its process has died.
	RecoverRuns.Name: func(context.Context, *Workspace, *loop.Inside, any) (string, error) { return "", nil },
	SendMessage.Name: func(_ context.Context, _ *Workspace, of *loop.Inside, in any) (string, error) {
		return inOwnName(of, in.(boards.SendRequest).From), nil
	},
	CreateTask.Name: func(_ context.Context, _ *Workspace, of *loop.Inside, in any) (string, error) {
		return inOwnName(of, in.(boards.CreateTaskRequest).By), nil
	},
	CommentTask.Name: func(_ context.Context, _ *Workspace, of *loop.Inside, in any) (string, error) {
		return inOwnName(of, in.(boards.CommentRequest).By), nil
	},
	SetTask.Name: func(ctx context.Context, w *Workspace, of *loop.Inside, in any) (string, error) {
		return onOwnTask(ctx, w, of, in.(TaskSetting).Task, true)
	},
	MoveTask.Name: func(ctx context.Context, w *Workspace, of *loop.Inside, in any) (string, error) {
		return onOwnTask(ctx, w, of, in.(TaskMove).Task, false)
	},
	ClaimTask.Name: func(_ context.Context, _ *Workspace, of *loop.Inside, in any) (string, error) {
		return inOwnName(of, in.(TaskAssignment).Agent), nil
	},
	AssignTask.Name: func(ctx context.Context, w *Workspace, of *loop.Inside, in any) (string, error) {
		r := in.(TaskAssignment)
		if strings.TrimPrefix(r.Agent, "@") != of.Handle {
			return onOwnTask(ctx, w, of, r.Task, true)
		}
		t, err := w.Boards.ShowTask(ctx, r.Task)
		if err == nil && t.AssigneeID != "" && t.AssigneeID != of.Handle {
			return "the task is @" + t.AssigneeID + "'s", nil
		}
		return "", err
	},
}

// inOwnName refuses an agent to write in the name of somebody else.
func inOwnName(of *loop.Inside, handle string) string {
	if strings.TrimPrefix(handle, "@") != of.Handle {
		return "it writes in its own name only: @" + of.Handle
	}
	return ""
}

// onOwnTask refuses a change of a task that is not the agent's: one that it has, or if made that
// it made.
func onOwnTask(ctx context.Context, w *Workspace, of *loop.Inside, id string, made bool) (string, error) {
	t, err := w.Boards.ShowTask(ctx, id)
	if err != nil || t.AssigneeID == of.Handle || made && t.CreatedBy == of.Handle {
		return "", err
	}
	return "the task is not one of @" + of.Handle, nil
}

// onDescendant refuses what is not about a loop that the agent's own has made, or about a run of
// one.
func onDescendant(ctx context.Context, w *Workspace, of *loop.Inside, in any) (string, error) {
	var target subject
	switch r := in.(type) {
	case SpecRef:
		target.loop = r.Spec
	case FlagRequest:
		target.loop = r.Spec
	case runs.StartRequest:
		target.loop = r.Loop
	case SwitchRequest:
		target.loop = r.Loop
	case StopRequest:
		target.run = r.Run
	}
	id, err := w.loopOf(ctx, target)
	if err != nil {
		return "", err
	}
	var why string
	err = w.Lookup.View(ctx, func(r *store.Reader) error {
		above, err := r.Ancestors(ctx, id)
		if err != nil {
			return err
		}
		aboveOwn, err := r.Ancestors(ctx, of.LoopID)
		is := func(id string) func(loop.Loop) bool { return func(l loop.Loop) bool { return l.ID == id } }
		switch {
		case slices.ContainsFunc(above, is(of.LoopID)):
			why = ""
		case id == of.LoopID:
			why = "it is the loop of this run, which would wait for itself"
		case slices.ContainsFunc(aboveOwn, is(id)):
			why = "it is above the loop of this run, and waits for it"
		default:
			why = "it reaches loops that it has made itself, and what those have made"
		}
		return err
	})
	return why, err
}

// outsideOfRun says why a request is outside of the grant of an agent in its run; empty: it is
// not.
func (i Info) outsideOfRun(ctx context.Context, w *Workspace, of *loop.Inside, in any) (string, error) {
	if w.Lookup.ID != of.Workspace {
		return "it reaches the workspace of its run only", nil
	}
	if i.Writes {
		check := postInside[i.Name]
		switch {
		case check == nil:
			return "inside of a run an agent may not do that", nil
		case !of.Posts():
			return "the definition of its loop lets it read only (pawl_tools: read)", nil
		}
		return check(ctx, w, of, in)
	}
	if !isOneOf(readInside, i) {
		return "inside of a run an agent does not see that", nil
	}
	if t, ok := in.(budgets.Target); ok && t.All {
		return "the budget of everything tells of other workspaces", nil
	}
	return "", nil
}

// limitsInside says of the verbs with which the agent of a run may change something what they are
// limited to.
var limitsInside = map[string]string{
	CreateSpec.Name: "from a template, below the loop of its run", StepSpec.Name: "loops below its own", StartRun.Name: "loops below its own", FireRun.Name: "loops below its own",
	QueueStep.Name: "loops below its own", FlagSpec.Name: "loops below its own", StopSpec.Name: "loops below its own", PauseLoops.Name: "loops below its own", StopRun.Name: "runs of loops below its own",
	SendMessage.Name: "in its own name", CommentTask.Name: "in its own name", CreateTask.Name: "in its own name",
	SetTask.Name: "tasks that it has or made", AssignTask.Name: "to itself, or a task that it has or made", MoveTask.Name: "tasks that it has", ClaimTask.Name: "for itself",
}

// LimitInside says what the verb is limited to for the agent of a run that may post; empty: it only
// reads, or cannot be asked for.
func (i Info) LimitInside() string { return limitsInside[i.Name] }
