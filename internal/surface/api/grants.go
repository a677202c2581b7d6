package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/formats/spec/specs"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/approvals"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// subject is what of a workspace a request is about, for grants.
type subject struct {
	loop string // a loop, as people name it; empty: none is named
	run  string // a run, as people name it
	ask  string // id of an approval
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
	ShowApproval.Name: func(in any) subject {
		ref := in.(ApprovalRef).Approval
		if strings.HasPrefix(ref, "ap_") {
			return subject{ask: ref}
		}
		return subject{run: ref}
	},
	GetSpec.Name: aboutSpec, ExportSpec.Name: aboutSpec, StepSpec.Name: aboutSpec, QueueStep.Name: aboutSpec, StopSpec.Name: aboutSpec,
	FlagSpec.Name:   func(in any) subject { return subject{loop: in.(FlagRequest).Spec} },
	ListAgents.Name: aboutAll, ShowAgent.Name: aboutAll,
}

func aboutAll(any) subject      { return subject{all: true} }
func aboutRun(in any) subject   { return subject{run: in.(RunRef).Run} }
func aboutLoop(in any) subject  { return subject{loop: in.(LoopRef).Loop} }
func aboutSpec(in any) subject  { return subject{loop: in.(SpecRef).Spec} }
func aboutStart(in any) subject { return subject{loop: in.(runs.StartRequest).Loop} }

// loopOf is the id of the loop that a request is about.
func (w *Workspace) loopOf(ctx context.Context, s subject) (id string, err error) {
	if s.ask != "" {
		err = w.Lookup.View(ctx, func(r *store.Reader) error {
			a, err := w.Lookup.ApprovalByID(ctx, r, s.ask)
			id = a.LoopID
			return err
		})
		return id, err
	}
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
	var why string
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

// outsideOfLoops says why a request is outside of a grant of loops; empty: it is not.
func (i Info) outsideOfLoops(ctx context.Context, w *Workspace, g *loop.Grant, in any) (string, error) {
	names := g.NamesIn(w.Lookup.ID)
	if len(names) == 0 {
		return "it reaches no loop of this workspace", nil
	}
	reaches := "it reaches the loops " + strings.Join(names, ", ")
	about := subjects[i.Name]
	if about == nil {
		return reaches + ", and this is about more", nil
	}
	s := about(in)
	if s.loop == "" && s.run == "" && s.ask == "" {
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

// granted are the ids of the loops of a grant in this workspace. Those that are not there yet
// are left out.
func (w *Workspace) granted(ctx context.Context, g *loop.Grant) (ids []string, err error) {
	for _, name := range g.NamesIn(w.Lookup.ID) {
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

// widen asks for the whole of a list that is cut to a grant afterwards. Most is how many entries were
// asked for; 0: all.
func (c Call) widen(in any) (wide any, most int) {
	if g := c.By.Grant; g != nil && g.Inside == nil {
		switch q := in.(type) {
		case LoopQuery:
			most, q.Limit = q.Limit, 0
			return q, most
		case specs.Query:
			most, q.Limit = q.Limit, 0
			return q, most
		}
	}
	return in, 0
}

// cutToGrant leaves of a result what a grant of loops reaches, and of a list at most so many entries;
// 0: all.
func (c Call) cutToGrant(ctx context.Context, i Info, in, out any, most int) (any, error) {
	g := c.By.Grant
	if g == nil || g.Inside != nil || !i.InWorkspace {
		return out, nil
	}
	w, err := c.Workspace(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	granted := g.NamesIn(w.Lookup.ID)
	for _, name := range granted {
		if e, err := w.Lookup.Loops.Resolve(ctx, name); err == nil {
			names[e.Name] = true
		}
	}
	switch list := out.(type) {
	case LoopList:
		list.Loops = firstOf(most, keep(list.Loops, func(r loops.Row) bool { return names[r.Name] }))
		return list, nil
	case []loops.Plan:
		return keep(list, func(p loops.Plan) bool { return names[p.Loop] }), nil
	case []runs.View:
		return keep(list, func(v runs.View) bool { return names[v.Loop] }), nil
	case []specs.Row:
		return firstOf(most, keep(list, func(r specs.Row) bool { return names[r.ID] })), nil
	case []approvals.View:
		return keep(list, func(v approvals.View) bool { return names[v.Loop] }), nil
	case approvals.View:
		if !names[list.Loop] {
			return nil, grantFault(i, c.By, "it reaches the loops "+strings.Join(granted, ", "), in)
		}
	}
	return out, nil
}

func keep[T any](list []T, good func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(v T) bool { return !good(v) })
}

// firstOf returns at most so many entries; 0: all.
func firstOf[T any](most int, list []T) []T {
	if most > 0 && len(list) > most {
		return list[:most]
	}
	return list
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
