package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/shape"
)

// View is a question to a human, schema pawl.approval/v1: what exactly
// will happen on approval, and what is known about it.
type View struct {
	Schema   string             `json:"schema"`
	ID       string             `json:"id"`
	Loop     string             `json:"loop"`
	Run      string             `json:"run"` // LOOP#N
	State    loop.ApprovalState `json:"state"`
	Action   loop.Action        `json:"action"`
	Does     string             `json:"does"` // the action in words
	Tree     string             `json:"tree"`
	Hash     string             `json:"hash"` // binds action, tree and definition
	Gates    []runs.Gate        `json:"gates"`
	Files    int                `json:"files"` // of the change
	Added    int                `json:"added"` // lines
	Removed  int                `json:"removed"`
	Stale    string             `json:"stale,omitempty"` // why approval would not do what is shown
	Node     string             `json:"node,omitempty"`  // that has the work, if it is not this one
	Path     string             `json:"path,omitempty"`  // of the clone on Node
	Created  time.Time          `json:"created"`
	Expires  time.Time          `json:"expires"`
	Answered *time.Time         `json:"answered,omitempty"`
	By       string             `json:"by,omitempty"`
	From     string             `json:"from,omitempty"`
	Note     string             `json:"note,omitempty"`
	Failure  string             `json:"failure,omitempty"` // of a yes that has not landed: why the last try did not
	Land     *loop.Command      `json:"land,omitempty"`    // lands it; nil: it was asked, and Approve answers it

	Row    loop.Approval `json:"-"` // the question as it is recorded
	RunRow loop.Run      `json:"-"` // the run that asked it
}

// List returns the questions of the workspace, or of one loop, newest
// first: those without an answer and those with a yes that has not landed, or all.
func (s *Service) List(ctx context.Context, name string, all bool) ([]View, error) {
	in := s.ws.ID
	if name != "" {
		e, err := s.ws.Loops.Resolve(ctx, name)
		if err != nil {
			return nil, err
		}
		in = e.LoopID()
	}
	var states []loop.ApprovalState
	if !all {
		states = loop.PendingStates()
	}
	var list []loop.Approval
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Approvals(ctx, in, states...)
		return err
	})
	if err != nil && !lookup.Absent(err) {
		return nil, err
	}
	views := []View{}
	for _, a := range list {
		v, err := s.approvalView(ctx, a)
		if err != nil {
			return nil, err
		}
		if !all && !slices.Contains(states, v.State) {
			continue // Its time has run out.
		}
		views = append(views, v)
	}
	return views, nil
}

// Find finds a question by its id, by the run that asked it, or by the loop:
// then it is the newest that is open, else that of the newest run.
func (s *Service) Find(ctx context.Context, ref string) (View, error) {
	id := ref
	if !strings.HasPrefix(ref, "ap_") {
		open, err := s.ws.OpenApprovals(ctx, ref)
		if err == nil && len(open) > 0 {
			return s.approvalByID(ctx, open[0].ID)
		}
		run, err := s.ws.Run(ctx, ref)
		if err != nil {
			return View{}, err
		}
		if id = run.Approval; id == "" {
			return View{}, s.nothingAskedFault(ctx, ref, run)
		}
	}
	return s.approvalByID(ctx, id)
}

// nothingAskedFault says of a run why there is nothing to answer.
func (s *Service) nothingAskedFault(ctx context.Context, ref string, run loop.Run) error {
	v, err := s.runs.ViewOf(ctx, run)
	if err != nil {
		return err
	}
	f := &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("run %s#%d asked for no approval", v.Loop, v.N), Err: loop.ErrNotFound,
		Fix: "{1} lists those that are open", Actions: []loop.Command{loop.PawlCommand("approvals")},
	}
	if !strings.Contains(ref, "#") && !strings.HasPrefix(ref, "run_") {
		f.What = "nothing of " + v.Loop + " waits for an answer; " + f.What
	}
	if v.Outcome == loop.OutcomeReported {
		f.Why = "a loop at tier L1 reports and proposes nothing"
		f = f.WithAdvice(loop.Advise("set tier: L2 and its gates, so that it proposes branches: {1}", loop.PawlCommand("config edit", v.Loop)))
	}
	if v.Outcome == loop.OutcomeProposed {
		f = f.WithAdvice(runs.Next(v))
	}
	return f
}

func (s *Service) approvalByID(ctx context.Context, id string) (View, error) {
	var a loop.Approval
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		a, err = s.ws.ApprovalByID(ctx, r, id)
		return err
	})
	if lookup.Absent(err) {
		return View{}, noApprovalFault(id)
	}
	if err != nil {
		return View{}, err
	}
	return s.approvalView(ctx, a)
}

func noApprovalFault(ref string) error {
	return &loop.Fault{
		Exit: loop.ExitNotFound, What: fmt.Sprintf("there is no approval %q", ref), Err: loop.ErrNotFound,
		Fix: "{1} lists those that are open", Actions: []loop.Command{loop.PawlCommand("approvals")},
	}
}

func (s *Service) approvalView(ctx context.Context, a loop.Approval) (View, error) {
	v := View{
		Schema: "pawl.approval/v1", ID: a.ID, State: a.State, Action: a.Action, Does: describeAction(a), Tree: a.Tree, Hash: a.Hash, Gates: []runs.Gate{},
		Created: a.Created, Expires: a.Expires, Answered: shape.Time(a.Answered), By: a.By, From: a.From, Note: a.Note, Row: a,
	}
	if slices.Contains(loop.PendingStates(), a.State) && !a.Pending(s.ws.Now()) {
		v.State = loop.ApprovalExpired
	}
	if v.State == loop.ApprovalLanding {
		v.Failure = a.Failure
	}
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		if v.RunRow, err = r.Run(ctx, a.RunID); err != nil {
			return err
		}
		return s.addGates(ctx, r, a, &v)
	})
	if err != nil {
		return v, err
	}
	if run, err := s.runs.ViewOf(ctx, v.RunRow); err == nil {
		v.Loop, v.Run = run.Loop, fmt.Sprintf("%s#%d", run.Loop, run.N)
	}
	if v.Node, v.Path, err = s.ws.Elsewhere(ctx, v.RunRow); err != nil || v.Node != "" {
		return v, err // Whether it can still land is known there.
	}
	if asked := a.State != ""; len(a.Action.Stack) > 0 && (v.State == loop.ApprovalOpen || !asked) {
		tip, _, err := s.ws.Repo.Ref(ctx, "refs/heads/"+a.Action.Base)
		if err != nil {
			return v, err
		}
		if with := a.Action.LandsWith(tip); len(with) > 0 {
			from := a
			from.Action.Onto = tip
			v.Does = describeAction(from) + ", and lands " + strings.Join(with, " and ") + " with it"
		}
	}
	if a.Action.Commit != "" {
		v.Files, v.Added, v.Removed, err = s.ws.Repo.DiffStat(ctx, a.Action.Onto, a.Action.Commit)
		if err != nil {
			v.Stale = "the proposed commit is gone: " + readiness.FirstLine(err.Error())
		}
	}
	if slices.Contains(loop.PendingStates(), v.State) && v.Stale == "" && a.Action.Kind != loop.ActionCommand {
		if why, err := s.whyStale(ctx, v); err == nil {
			v.Stale = why
		}
	}
	return v, nil
}

// addGates finds what the gates said of the tree in question.
func (s *Service) addGates(ctx context.Context, r *store.Reader, a loop.Approval, v *View) error {
	its, err := r.Iterations(ctx, a.RunID)
	for _, it := range its {
		if it.Tree != a.Tree {
			continue
		}
		v.Gates = nil
		for _, g := range it.Gates {
			v.Gates = append(v.Gates, runs.GateOf(g))
		}
	}
	return err
}

// describeAction says what exactly happens on approval.
func describeAction(a loop.Approval) string {
	act := a.Action
	switch act.Kind {
	case loop.ActionLand:
		how := "fast-forwards"
		if act.Merge {
			how = "merges"
		}
		return fmt.Sprintf("%s %s from %s to %s (%s)", how, act.Base, short(act.Onto), act.Branch, short(act.Commit))
	case loop.ActionPullRequest:
		return fmt.Sprintf("pushes %s (%s) to %s and opens a pull request for %s", act.Branch, short(act.Commit), act.Remote, act.Base)
	case loop.ActionPush:
		return fmt.Sprintf("pushes %s to %s up to %s, from %s", act.Base, act.Remote, short(act.Commit), short(act.Onto))
	case loop.ActionKeep:
		return fmt.Sprintf("keeps %s (%s) as the result; no branch moves", act.Branch, short(act.Commit))
	case loop.ActionAccept:
		return "accepts the result; no branch moves"
	case loop.ActionQuestion:
		return "lets the step be worked on again, with the note as the answer"
	}
	return fmt.Sprintf("runs %q in the copy of the run", strings.Join(act.Argv, " "))
}

// whyStale says why approval could not do what was shown: something moved since.
func (s *Service) whyStale(ctx context.Context, v View) (string, error) {
	def, err := s.effectiveDefinition(ctx, v)
	if err != nil {
		return "the definition cannot be read: " + readiness.FirstLine(err.Error()), nil
	}
	return engine.Stale(ctx, s.ws.Repo, v.Row, def)
}

// effectiveDefinition is the definition as the run that asked would have it now.
func (s *Service) effectiveDefinition(ctx context.Context, v View) (loop.Definition, error) {
	def, _, err := s.ws.Definition(ctx, v.Loop)
	if err == nil {
		err = s.keepRubric(ctx, v, &def)
	}
	return v.RunRow.Overrides.Apply(def).WithDefaults(), err
}

// keepRubric gives a definition the rubric that the question was asked with: what was
// flagged since then is for later reviews, and is not about the result.
func (s *Service) keepRubric(ctx context.Context, v View, def *loop.Definition) error {
	if def.Spec == "" {
		return nil
	}
	err := s.ws.View(ctx, func(r *store.Reader) error {
		asked, err := r.Definition(ctx, v.Row.Definition)
		if err == nil {
			def.Rubric, def.Claims = asked.Rubric, asked.Claims
		}
		return err
	})
	if lookup.Absent(err) {
		return nil
	}
	return err
}

// checkOpen refuses an approval that cannot be answered any more, and says who was
// first.
func (v View) checkOpen() error {
	if v.State == loop.ApprovalOpen {
		return nil
	}
	a := v.Row
	a.State = v.State
	answered := &loop.AnsweredError{Approval: a}
	if v.State == loop.ApprovalLanding {
		return &loop.Fault{
			Exit: loop.ExitHeld, What: "approval " + v.ID + " is not open", Why: answered.Error(), Err: errors.Join(loop.ErrAnswered, answered),
			Fix: "{1} tries it at once, {2} takes the yes back", Actions: []loop.Command{engine.LandAgain(a, v.Run), loop.PawlCommand("reject", v.ID)},
		}
	}
	return &loop.Fault{
		Exit: loop.ExitHeld, What: "approval " + v.ID + " is not open", Why: answered.Error(), Err: errors.Join(loop.ErrAnswered, answered),
		Fix: "nothing is left to answer; {1} says what it was about", Actions: []loop.Command{loop.PawlCommand("show", v.Run)},
	}
}

func short(hash string) string { return hash[:min(len(hash), 12)] }
