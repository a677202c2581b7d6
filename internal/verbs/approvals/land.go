package approvals

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// Approve says yes to a question and carries it out by a run of its own, which
// it returns. An answer counts once. What cannot be done now (the kill switch
// is set, the checkout has work on the same files) is refused before the
// answer is used up; a question that no longer means what it said is made
// void. If the base moved, the run makes a new proposal there, gated, with a new
// question, and comes with a *loop.Fault that exits with 13: nothing has landed.
func (s *Service) Approve(ctx context.Context, ref string, by loop.Answer) (runs.View, error) {
	v, err := s.Find(ctx, ref)
	if err != nil {
		return runs.View{}, err
	}
	if err := v.checkOpen(); err != nil {
		return runs.View{}, err
	}
	if v.Node != "" {
		return runs.View{}, lookup.ElsewhereFault("approve "+v.ID+": nothing has landed", v.Run, v.Node, v.Path)
	}
	plan, err := s.prepareAnswer(ctx, v)
	if err != nil {
		return runs.View{}, s.preferAnswered(ctx, v.ID, err)
	}
	if v.Action.Kind != loop.ActionCommand {
		again, err := s.voidIfStale(ctx, v)
		if err != nil {
			return runs.View{}, s.preferAnswered(ctx, v.ID, err)
		}
		if again {
			plan.Firing = engine.Again(v.ID, by)
			plan.Firing.Overrides = v.RunRow.Overrides
			return s.startAgain(ctx, plan, v)
		}
	}
	if err := s.keepRubric(ctx, v, &plan.Target.Definition); err != nil {
		return runs.View{}, err
	}
	plan.Firing = engine.Yes(v.ID, by)
	plan.Firing.Overrides = v.RunRow.Overrides
	if err := s.ws.Accepted.Accept(accepted.Answer(v.Row)); err != nil {
		return runs.View{}, err
	}
	return s.runs.Start(ctx, plan)
}

// startAgain makes a proposal again on a base that moved. Its run comes with an error:
// nothing has landed, and the new proposal waits for an answer of its own.
func (s *Service) startAgain(ctx context.Context, p runs.Prepared, v View) (runs.View, error) {
	view, err := s.runs.Start(ctx, p)
	if err != nil || view.Outcome != loop.OutcomeProposed && view.Outcome != loop.OutcomeWaiting {
		return view, err
	}
	run := fmt.Sprintf("%s#%d", view.Loop, view.N)
	f := &loop.Fault{
		Exit: loop.ExitWaiting, What: "approve " + v.ID + ": nothing has landed",
		Why: fmt.Sprintf("%s moved after the gates of %s ran; %s makes the same change on top of it and passes the gates", v.Action.Base, v.Run, run),
		Fix: "{1}", Actions: []loop.Command{loop.PawlCommand("approve", run)},
	}
	if view.Answer != loop.ApprovalOpen {
		f = f.WithAdvice(runs.Next(view))
	}
	return view, f
}

// preferAnswered prefers who answered meanwhile to what his answer has changed since.
func (s *Service) preferAnswered(ctx context.Context, id string, err error) error {
	if now, viewErr := s.Find(context.WithoutCancel(ctx), id); viewErr == nil && now.State != loop.ApprovalVoid {
		if answered := now.checkOpen(); answered != nil {
			return answered
		}
	}
	return err
}

// prepareAnswer is the run that an answer fires, if nothing stands before it.
func (s *Service) prepareAnswer(ctx context.Context, v View) (runs.Prepared, error) {
	def, warnings, err := s.ws.Definition(ctx, v.Loop)
	p := runs.Prepared{Warnings: warnings}
	if err != nil {
		return p, err
	}
	p.Target = s.ws.Target(def)
	l, err := s.ws.Loop(ctx, v.Loop)
	if err != nil {
		return p, err
	}
	if sw := s.ws.PausedBy(l); !sw.IsZero() {
		f := &loop.Fault{Exit: loop.ExitPaused, What: "approve " + v.ID + ": nothing has landed", Why: "the kill switch is set: " + sw.String()}
		return p, f.WithAdvice(sw.ClearedBy(v.Loop).Then(", then ", loop.Advise("approve again")))
	}
	if l.Last != nil && s.ws.Liveness(*l.Last) == lookup.Running {
		return p, s.engine.Held(l.Name, *l.Last)
	}
	return p, nil
}

// voidIfStale makes a question void that no longer means what it said, and reports
// whether its proposal has to be made again on a base that moved. It refuses
// what the checkout does not allow now, with the question still open.
func (s *Service) voidIfStale(ctx context.Context, v View) (again bool, err error) {
	if v.Stale != "" {
		return false, s.voidWithFault(ctx, v, v.Stale)
	}
	act := v.Action
	switch act.Kind {
	case loop.ActionAccept, loop.ActionKeep, loop.ActionQuestion: // No branch moves here.
		return false, nil
	}
	tip, ok, err := s.ws.Repo.Ref(ctx, "refs/heads/"+act.Base)
	switch {
	case err != nil:
		return false, err
	case !ok:
		return false, s.voidWithFault(ctx, v, "branch "+act.Base+" is gone")
	}
	if act.BaseMoved(tip) {
		lost, err := s.checkLower(ctx, v)
		if err != nil {
			return false, err
		}
		if lost != "" {
			return false, s.voidWithFault(ctx, v, lost)
		}
		why := fmt.Sprintf("%s moved to %s after the gates ran; the change is made again there", act.Base, short(tip))
		return true, s.voidUnlessAnswered(ctx, v, why)
	}
	if act.Kind != loop.ActionLand {
		return false, nil
	}
	return false, s.ws.Repo.CanAdvance(ctx, git.Advance{Branch: act.Base, Onto: tip, Commit: act.Commit, From: act.Branch})
}

// checkLower looks at the proposals that one builds on, after their base has moved: they have
// to be on it before this one is made again there. It returns why the question is void; one
// that is to be answered first is a *loop.Fault.
func (s *Service) checkLower(ctx context.Context, v View) (void string, err error) {
	if len(v.Action.Stack) == 0 {
		return "", nil
	}
	below, err := s.newestBelow(ctx, v.Row)
	for _, a := range below {
		switch {
		case a.State == loop.ApprovalRejected:
			return rejectedBelow(a), nil
		case a.State == loop.ApprovalOpen && s.ws.Now().Before(a.Expires):
			return "", &loop.Fault{
				Exit: loop.ExitHeld, What: "approve " + v.ID + ": nothing has landed",
				Why: fmt.Sprintf("%s has moved, and %s, on which it builds, has to be made again there first", v.Action.Base, a.Action.Branch),
				Fix: "{1}, then approve this one", Actions: []loop.Command{loop.PawlCommand("approve", a.ID)},
			}
		}
	}
	return "", err
}

// newestBelow are the newest questions about the steps whose proposals one builds on, the
// lowest first.
func (s *Service) newestBelow(ctx context.Context, upper loop.Approval) (below []loop.Approval, err error) {
	var all []loop.Approval
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		all, err = r.Approvals(ctx, upper.LoopID)
		return err
	})
	for _, lower := range upper.Action.Stack {
		at := slices.IndexFunc(all, func(a loop.Approval) bool { return a.Action.Commit == lower.Commit })
		if at < 0 {
			continue
		}
		newest := slices.IndexFunc(all, func(a loop.Approval) bool { return a.StepID == all[at].StepID && a.Action.Commit != "" })
		below = append(below, all[newest])
	}
	return below, err
}

func rejectedBelow(a loop.Approval) string {
	return fmt.Sprintf("it builds on %s, which %s rejected", a.Action.Branch, a.By)
}

// refuseIfRejectedBelow refuses a proposal that would bring one along that a person has
// rejected.
func (s *Service) refuseIfRejectedBelow(ctx context.Context, ref string, upper loop.Approval) error {
	below, err := s.newestBelow(ctx, upper)
	for _, a := range below {
		if err != nil || a.State != loop.ApprovalRejected {
			continue
		}
		held, heldErr := s.branchHolds(ctx, a.Action.Base, a.Action.Commit)
		if err = heldErr; err == nil && !held {
			return &loop.Fault{
				Exit: loop.ExitRefused, What: "land " + ref + ": nothing has landed", Why: rejectedBelow(a),
				Fix: "land the rejected one first if you want it after all: {1}", Actions: []loop.Command{loop.PawlCommand("land", a.RunID)},
			}
		}
	}
	return err
}

// voidWithFault closes a question and returns why it was not done.
func (s *Service) voidWithFault(ctx context.Context, v View, why string) error {
	if err := s.voidUnlessAnswered(ctx, v, why); err != nil {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitRefused, What: "approve " + v.ID + ": nothing has landed", Why: why + "; the approval is void",
		Fix: "look at what there is now ({1}), and run the loop again for a new proposal", Actions: []loop.Command{loop.PawlCommand("diff", v.Run)},
	}
}

// voidUnlessAnswered makes a question void, unless it has been answered since it was read.
func (s *Service) voidUnlessAnswered(ctx context.Context, v View, why string) error {
	return s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		closed, err := tx.VoidApproval(ctx, v.ID, why)
		if err != nil || closed {
			return err
		}
		if v.Row, err = tx.Approval(ctx, v.ID); err != nil {
			return err
		}
		v.State = v.Row.State
		return v.checkOpen()
	})
}

// Reject says no, or takes a yes back that has not landed. The branch stays; nothing lands.
func (s *Service) Reject(ctx context.Context, ref string, by loop.Answer) (View, error) {
	v, err := s.Find(ctx, ref)
	if err != nil {
		return v, err
	}
	if v.State != loop.ApprovalLanding { // A yes may be taken back until it has landed.
		if err := v.checkOpen(); err != nil {
			return v, err
		}
	}
	if by.Changes {
		return s.requestChanges(ctx, v, by)
	}
	by.Yes = false
	_, firing, err := s.engine.Answer(ctx, v.ID, by)
	if err != nil {
		return v, err
	}
	if v.Action.Kind == loop.ActionCommand {
		// The step waits for the answer, and is taken up with it.
		plan, err := s.prepareAnswer(ctx, v)
		if err != nil {
			return v, err
		}
		firing.Overrides = v.RunRow.Overrides
		plan.Firing = firing
		if _, err := s.runs.Start(ctx, plan); err != nil {
			return v, err
		}
	}
	return s.Find(ctx, v.ID)
}

// requestChanges rejects a result and starts a run that changes it as the note says. The
// answer is recorded only if that run can start.
func (s *Service) requestChanges(ctx context.Context, v View, by loop.Answer) (View, error) {
	if v.Action.Kind == loop.ActionCommand || v.Action.Kind == loop.ActionQuestion || v.Action.Kind == loop.ActionPush || strings.TrimSpace(by.Note) == "" {
		f := &loop.Fault{Exit: loop.ExitUsage, What: "ask for changes to " + v.ID, Why: "the note says what is to be different, and there is none", Fix: "add --note TEXT"}
		if v.Action.Kind == loop.ActionQuestion {
			f.Why, f.Fix = "it is a question: there is no result to change", "approve it with --note TEXT, which is the answer; or reject it"
		}
		if v.Action.Kind == loop.ActionPush {
			f.Why, f.Fix = "it is about commits that are made", "reject it, and say in a task what is to be different"
		}
		if v.Action.Kind == loop.ActionCommand {
			f.Why, f.Fix = "it is about a command, which runs or does not", "reject it without asking for changes; the note is told to the agent"
		}
		return v, f
	}
	if v.Node != "" {
		return v, lookup.ElsewhereFault("ask for changes to "+v.ID, v.Run, v.Node, v.Path)
	}
	plan, err := s.prepareAnswer(ctx, v)
	if err != nil {
		return v, s.preferAnswered(ctx, v.ID, err)
	}
	var key string
	err = s.ws.View(ctx, func(r *store.Reader) error {
		steps, err := r.Steps(ctx, v.Row.LoopID)
		for _, step := range steps {
			if step.ID == v.Row.StepID {
				key = step.Key
			}
		}
		return err
	})
	if err != nil {
		return v, err
	}
	if key == "" {
		return v, &loop.Fault{
			Exit: loop.ExitRefused, What: "ask for changes to " + v.ID, Why: "its step is not in the loop's memory any more", Fix: "reject it, or run the loop with a request: {1}",
			Actions: []loop.Command{loop.PawlCommand("run", v.Loop)},
		}
	}
	plan.Firing = engine.Changes(v.ID, key, by)
	over := v.RunRow.Overrides
	over.Step, over.Hint, over.Base = key, "", ""
	plan.Firing.Overrides = over
	if _, err := s.runs.Start(ctx, plan); err != nil {
		return v, err
	}
	return s.Find(ctx, v.ID)
}
