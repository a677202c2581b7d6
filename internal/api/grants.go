package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/approvals"
	"github.com/pawl-run/pawl/internal/boards"
	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/runs"
	"github.com/pawl-run/pawl/internal/specs"
	"github.com/pawl-run/pawl/internal/store"
)

// subject is what of a workspace a request is about, for grants.
type subject struct {
	loop string // a loop, as people name it; empty: none is named
	run  string // a run, as people name it
	all  bool   // without a loop it is about all of them, and the result is cut to those that are granted
}

// subjects says of each verb that can be reached with a grant of loops what a request is about. A
// verb that is not here is about more than loops, and cannot be reached.
var subjects = map[string]func(in any) subject{
	ListRuns.Name:   func(in any) subject { return subject{loop: in.(RunQuery).Loop, all: true} },
	ShowRun.Name:    aboutRun,
	ExplainRun.Name: aboutRun,
	DiffRun.Name:    aboutRun,
	ListEvents.Name: func(in any) subject { return subject{run: in.(EventQuery).ID} },
	AwaitRun.Name:   func(in any) subject { return subject{run: in.(RunWait).ID} },
	StopRun.Name:    func(in any) subject { return subject{run: in.(StopRequest).Run} },
	PlanRun.Name:    aboutStart, StartRun.Name: aboutStart, FireRun.Name: aboutStart,
	ListLoops.Name: aboutAll, PlanLoops.Name: aboutAll, FindFeedHead.Name: aboutAll, FindLive.Name: aboutAll, RecoverRuns.Name: aboutAll, ListSpecs.Name: aboutAll,
	ShowLoop.Name: aboutLoop, EstimateLoop.Name: aboutLoop, ShowRunLog.Name: aboutLoop, ResumeLoops.Name: aboutLoop,
	PlanLoop.Name:      func(in any) subject { return subject{loop: in.(NextQuery).Loop} },
	CheckLoops.Name:    func(in any) subject { return subject{loop: in.(LoopChoice).Loop} },
	DiagnoseLoops.Name: func(in any) subject { return subject{loop: in.(LoopChoice).Loop} },
	PauseLoops.Name:    func(in any) subject { return subject{loop: in.(SwitchRequest).Loop} },
	ShowBudgets.Name: func(in any) subject {
		if t := in.(budgets.Target); !t.Workspace && !t.All && t.Agent == "" {
			return subject{loop: t.Loop}
		}
		return subject{}
	},
	ListApprovals.Name: func(in any) subject { return subject{loop: in.(ApprovalQuery).Loop, all: true} },
	ShowApproval.Name:  aboutAll,
	GetSpec.Name:       aboutSpec, ExportSpec.Name: aboutSpec, StepSpec.Name: aboutSpec, QueueStep.Name: aboutSpec, StopSpec.Name: aboutSpec,
	FlagSpec.Name:   func(in any) subject { return subject{loop: in.(FlagRequest).Spec} },
	ListAgents.Name: aboutAll, ShowAgent.Name: aboutAll,
}

func aboutAll(any) subject      { return subject{all: true} }
func aboutRun(in any) subject   { return subject{run: in.(RunRef).Run} }
func aboutLoop(in any) subject  { return subject{loop: in.(LoopRef).Loop} }
func aboutSpec(in any) subject  { return subject{loop: in.(SpecRef).Spec} }
func aboutStart(in any) subject { return subject{loop: in.(runs.StartRequest).Loop} }

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

// loopOf is the id of the loop that a request is about.
func (w *Workspace) loopOf(ctx context.Context, s subject) (string, error) {
	if s.run != "" {
		run, err := w.Lookup.Run(ctx, s.run)
		return run.LoopID, err
	}
	e, err := w.Lookup.Loops.Resolve(ctx, s.loop)
	return e.LoopID(), err
}

// checkGrant refuses what is outside of the grant of a caller, in its workspace.
func (i Info) checkGrant(ctx context.Context, c *Call, in any) error {
	g := c.By.Grant
	if g == nil {
		return nil
	}
	if !i.InWorkspace {
		if of := g.Inside; of != nil && !isOneOf(readInside, i) || of == nil && subjects[i.Name] == nil {
			return grantFault(i, c.By, "it is about more than its grant", in)
		}
		return nil
	}
	w, err := c.Workspace(ctx)
	if err != nil {
		return err
	}
	c.Workspace = func(context.Context) (*Workspace, error) { return w, nil }
	why := ""
	if g.Inside != nil {
		why, err = i.outsideOfRun(ctx, w, g.Inside, in)
	} else {
		why, err = i.outsideOfLoops(ctx, w, g, in)
	}
	if err != nil {
		return err
	}
	if why != "" {
		return grantFault(i, c.By, why, in)
	}
	return nil
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
	if about := subjects[i.Name]; about != nil && about(in).run != "" {
		id, err := w.loopOf(ctx, about(in))
		if err != nil {
			return "", err
		}
		return w.foreign(ctx, id)
	}
	return "", nil
}

// foreign says that a loop is of another workspace; empty: it is of this one.
func (w *Workspace) foreign(ctx context.Context, loopID string) (why string, err error) {
	err = w.Lookup.View(ctx, func(r *store.Reader) error {
		l, err := r.Loop(ctx, loopID)
		if err == nil && l.WorkspaceID != w.Lookup.ID {
			why = "it is of another workspace"
		}
		return err
	})
	return why, err
}

// outsideOfLoops says why a request is outside of a grant of loops; empty: it is not.
func (i Info) outsideOfLoops(ctx context.Context, w *Workspace, g *loop.Grant, in any) (string, error) {
	reaches := "it reaches the loops " + strings.Join(g.Names(), ", ")
	about := subjects[i.Name]
	if about == nil {
		return reaches + ", and this is about more", nil
	}
	s := about(in)
	if s.loop == "" && s.run == "" {
		if s.all {
			return "", nil
		}
		return reaches + ", and this is about all", nil
	}
	id, err := w.loopOf(ctx, s)
	if err != nil {
		if errors.Is(err, loop.ErrNotFound) { // Nor does it learn which others there are.
			return reaches, nil
		}
		return "", err
	}
	granted, err := w.granted(ctx, g)
	if err != nil || slices.Contains(granted, id) {
		return "", err
	}
	return reaches, nil
}

// granted are the ids of the loops of a grant. Those that are not there yet are left out.
func (w *Workspace) granted(ctx context.Context, g *loop.Grant) (ids []string, err error) {
	for _, name := range g.Loops {
		e, err := w.Lookup.Loops.Resolve(ctx, name)
		if errors.Is(err, loop.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, e.LoopID())
	}
	return ids, nil
}

// cutToGrant leaves of a result what a grant of loops reaches.
func (c Call) cutToGrant(ctx context.Context, i Info, in, out any) (any, error) {
	g := c.By.Grant
	if g == nil || g.Inside != nil || !i.InWorkspace {
		return out, nil
	}
	w, err := c.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, name := range g.Loops {
		if e, err := w.Lookup.Loops.Resolve(ctx, name); err == nil {
			names[e.Name] = true
		}
	}
	switch list := out.(type) {
	case LoopList:
		list.Loops = keep(list.Loops, func(r loops.Row) bool { return names[r.Name] })
		return list, nil
	case []loops.Plan:
		return keep(list, func(p loops.Plan) bool { return names[p.Loop] }), nil
	case []runs.View:
		return keep(list, func(v runs.View) bool { return names[v.Loop] }), nil
	case []specs.Row:
		return keep(list, func(r specs.Row) bool { return names[r.ID] }), nil
	case []approvals.View:
		return keep(list, func(v approvals.View) bool { return names[v.Loop] }), nil
	case approvals.View:
		if !names[list.Loop] {
			return nil, grantFault(i, c.By, "it reaches the loops "+strings.Join(g.Names(), ", "), in)
		}
	}
	return out, nil
}

func keep[T any](list []T, good func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !good(v) })
}

func isOneOf(list []Info, i Info) bool {
	return slices.ContainsFunc(list, func(v Info) bool { return v.Name == i.Name })
}

// grantFault refuses what is outside of a grant.
func grantFault(i Info, by loop.Actor, why string, in any) error {
	f := &loop.Fault{Exit: loop.ExitRefused, What: fmt.Sprintf("%s may not %s", by.Who, i.Does), Why: why, Err: loop.ErrGrant, Fix: "stay within what is granted"}
	if c := i.PersonsCommand(in); c.Verb != "" {
		return f.WithAdvice(loop.Advise("let a person do it: {1}", c))
	}
	return f
}

// Reaches reports whether an actor with a grant may ask for the verb at all: what it may not is
// not offered to it.
func (i Info) Reaches(g *loop.Grant) bool {
	switch {
	case g == nil:
		return true
	case g.Inside == nil:
		return subjects[i.Name] != nil
	case i.Writes:
		return postInside[i.Name] != nil && g.Inside.Posts()
	}
	return isOneOf(readInside, i)
}

// limitsInside says of the verbs with which the agent of a run may change something what they are
// limited to.
var limitsInside = map[string]string{
	CreateSpec.Name: "from a template, below the loop of its run", StepSpec.Name: "loops below its own", StartRun.Name: "loops below its own", FireRun.Name: "loops below its own",
	QueueStep.Name: "loops below its own", FlagSpec.Name: "loops below its own", StopSpec.Name: "loops below its own", PauseLoops.Name: "loops below its own", StopRun.Name: "runs of loops below its own",
	SendMessage.Name: "in its own name", CommentTask.Name: "in its own name", CreateTask.Name: "in its own name",
	SetTask.Name: "tasks that it has or made", AssignTask.Name: "to itself, or a task that it has or made", MoveTask.Name: "tasks that it has",
}

// LimitInside says what the verb is limited to for the agent of a run that may post; empty: it only
// reads, or cannot be asked for.
func (i Info) LimitInside() string { return limitsInside[i.Name] }
