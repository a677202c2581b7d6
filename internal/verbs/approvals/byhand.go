package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// LandRequest says how a proposal is landed by hand.
type LandRequest struct {
	Merge bool   `json:"merge,omitempty"` // with a merge commit
	Via   string `json:"via,omitempty"`   // pr: push the branch and open a pull request; empty: move the branch
}

// Landing is the question whether to land the newest proposal of a run, bound to
// exactly what is there now. Nobody is asked it yet, so it has no id.
func (s *Service) Landing(ctx context.Context, ref string, r LandRequest) (View, error) {
	run, err := s.ws.ChangingRun(ctx, ref)
	if err != nil {
		return View{}, err
	}
	if run, err = s.proposingRun(ctx, run); err != nil {
		return View{}, err
	}
	if node, path, err := s.ws.Elsewhere(ctx, run); err != nil || node != "" {
		return View{}, errors.Join(err, lookup.ElsewhereFault("land "+ref, s.ws.RunName(ctx, run), node, path))
	}
	if err := s.refuseIfLanded(ctx, run); err != nil {
		return View{}, err
	}
	if v, found, err := s.pushOf(ctx, run); err != nil || found {
		return v, err
	}
	a, err := s.newLanding(ctx, run, r)
	if err != nil {
		return View{}, err
	}
	if _, found, err := s.yesTo(ctx, a); err != nil {
		return View{}, err
	} else if !found { // Else the try may have landed, and is looked for.
		if err := s.refuseIfOnBase(ctx, run, a.Action); err != nil {
			return View{}, err
		}
	}
	if err := s.refuseIfRejectedBelow(ctx, ref, a); err != nil {
		return View{}, err
	}
	v, err := s.approvalView(ctx, a)
	v.Land = new(engine.LandAgain(a, v.Run))
	return v, err
}

// Land asks the question that Landing returns, and says yes to it. Hash is that of the
// landing that was shown: if another one would be made now, nothing lands. Empty: none
// was shown. A yes to exactly this landing that is still valid is carried out, and nothing
// is asked anew.
func (s *Service) Land(ctx context.Context, ref string, r LandRequest, hash string, by loop.Answer) (runs.View, error) {
	v, err := s.Landing(ctx, ref, r)
	if err != nil {
		return runs.View{}, err
	}
	if hash != "" && hash != v.Hash {
		return runs.View{}, &loop.Fault{
			Exit: loop.ExitRefused, What: "land " + ref + ": nothing has landed", Why: "it is not what was shown any more: " + v.Does, Fix: "look at it again: {1}",
			Actions: []loop.Command{*v.Land},
		}
	}
	yes, found, err := s.yesTo(ctx, v.Row)
	if err != nil {
		return runs.View{}, err
	}
	if found {
		return s.landYes(ctx, yes, by)
	}
	a := v.Row
	a.ID, a.State = s.newID("ap"), loop.ApprovalOpen
	v.ID = a.ID
	if _, err := s.prepareAnswer(ctx, v); err != nil { // Before an older question is void: a live run may be landing it.
		return runs.View{}, err
	}
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.WaitInstead(ctx, a.StepID, a.ID); err != nil {
			return err
		}
		if _, err := tx.VoidProposals(ctx, a.LoopID, []string{a.StepID}, "", "landed by hand instead"); err != nil {
			return err
		}
		return tx.AskApproval(ctx, a)
	})
	if err != nil {
		return runs.View{}, err
	}
	return s.Approve(ctx, a.ID, by)
}

// pushOf finds a yes to a push of what a run committed that has not come about. An open
// question about one is answered, not landed by hand.
func (s *Service) pushOf(ctx context.Context, run loop.Run) (v View, found bool, err error) {
	var pending []loop.Approval
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		pending, err = r.Approvals(ctx, run.LoopID, loop.PendingStates()...)
		return err
	})
	at := slices.IndexFunc(pending, func(a loop.Approval) bool {
		return a.RunID == run.ID && a.Action.Kind == loop.ActionPush && a.Pending(s.ws.Now())
	})
	if err != nil || at < 0 {
		return v, false, err
	}
	if v, err = s.approvalView(ctx, pending[at]); err != nil {
		return v, false, err
	}
	if v.State == loop.ApprovalOpen {
		return v, false, &loop.Fault{
			Exit: loop.ExitRefused, What: "land " + v.Run, Why: "it asks whether its commits may be pushed, and nobody has answered", Fix: "{1} pushes them",
			Actions: []loop.Command{loop.PawlCommand("approve", v.Run)},
		}
	}
	v.Land = new(engine.LandAgain(v.Row, v.Run))
	return v, true, nil
}

// yesTo finds a yes to exactly this landing that is still valid.
func (s *Service) yesTo(ctx context.Context, a loop.Approval) (View, bool, error) {
	var landings []loop.Approval
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		landings, err = r.Approvals(ctx, a.LoopID, loop.ApprovalLanding)
		return err
	})
	at := slices.IndexFunc(landings, func(l loop.Approval) bool { return l.Hash == a.Hash && l.Pending(s.ws.Now()) })
	if err != nil || at < 0 {
		return View{}, false, err
	}
	v, err := s.approvalView(ctx, landings[at])
	return v, true, err
}

// landYes tries once more to land what a person said yes to before.
func (s *Service) landYes(ctx context.Context, v View, by loop.Answer) (runs.View, error) {
	plan, err := s.prepareAnswer(ctx, v)
	if err != nil {
		return runs.View{}, err
	}
	again, err := s.voidIfNotArrived(ctx, v)
	if err != nil {
		return runs.View{}, err
	}
	if again {
		plan.Firing = engine.Again(v.ID, by)
		plan.Firing.Overrides = v.RunRow.Overrides
		return s.startAgain(ctx, plan, v)
	}
	if err := s.ws.Accepted.Accept(accepted.Answer(v.Row)); err != nil {
		return runs.View{}, err
	}
	plan.Firing = engine.Try(v.ID, s.newID("try"), by.Actor())
	plan.Firing.Overrides = v.RunRow.Overrides
	if err := s.keepRubric(ctx, v, &plan.Target.Definition); err != nil {
		return runs.View{}, err
	}
	return s.runs.Start(ctx, plan)
}

// voidIfNotArrived is voidIfStale for a landing that was tried before, unless a look says that
// a try has arrived: then the next one finds it.
func (s *Service) voidIfNotArrived(ctx context.Context, v View) (again bool, err error) {
	arrived, err := s.engine.HasArrived(ctx, s.ws.Repo, v.Row)
	if arrived {
		return false, nil
	}
	if err == nil {
		return s.voidIfStale(ctx, v)
	}
	tip, _, refErr := s.ws.Repo.Ref(ctx, effect.BranchRef(v.Action.Base))
	if refErr != nil || v.Stale == "" && !v.Action.BaseMoved(tip) {
		return false, refErr // The try says what is wrong.
	}
	return false, &loop.Fault{
		Exit: loop.ExitError, What: "land " + v.Run + ": nothing was done", Why: "whether an earlier try has landed is not known: " + err.Error(), Err: err,
		Fix: "once that is known: {1}", Actions: []loop.Command{engine.LandAgain(v.Row, v.Run)},
	}
}

// refuseIfLanded refuses a proposal that has landed and is still on its base, like
// a second answer to a question: who said yes, and when.
func (s *Service) refuseIfLanded(ctx context.Context, run loop.Run) error {
	var said []loop.Approval
	err := s.ws.View(ctx, func(r *store.Reader) (err error) {
		said, err = r.Approvals(ctx, run.LoopID, loop.ApprovalApproved)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range said {
		if a.RunID != run.ID || a.Action.Kind != loop.ActionLand {
			continue
		}
		held, err := s.branchHolds(ctx, a.Action.Base, a.Action.Commit)
		if err != nil {
			return err
		}
		if held {
			return s.landedFault(ctx, run, loop.ExitHeld,
				fmt.Sprintf("it has landed: %s is on %s since %s", a.Action.Branch, a.Action.Base, (&loop.AnsweredError{Approval: a}).Error()))
		}
	}
	return nil
}

// refuseIfOnBase refuses a proposal that got onto its base in another way. A question
// about it is void by that.
func (s *Service) refuseIfOnBase(ctx context.Context, run loop.Run, act loop.Action) error {
	held, err := s.branchHolds(ctx, act.Base, act.Commit)
	if err != nil || !held {
		return err
	}
	why := act.Base + " holds " + act.Branch + " already"
	err = s.ws.Store.Update(ctx, func(tx *store.Tx) error {
		open, err := tx.Approvals(ctx, run.LoopID, loop.PendingStates()...)
		for _, a := range open {
			if a.RunID == run.ID && a.Action.Kind != loop.ActionCommand {
				_, voidErr := tx.VoidApproval(ctx, a.ID, why)
				err = errors.Join(err, voidErr)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.landedFault(ctx, run, loop.ExitRefused, why)
}

// branchHolds reports whether a branch has a commit in its history.
func (s *Service) branchHolds(ctx context.Context, branch, commit string) (bool, error) {
	tip, ok, err := s.ws.Repo.Ref(ctx, "refs/heads/"+branch)
	if err != nil || !ok {
		return false, err
	}
	return s.ws.Repo.Contains(ctx, tip, commit)
}

func (s *Service) landedFault(ctx context.Context, run loop.Run, exit int, why string) error {
	view, err := s.runs.ViewOf(ctx, run)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s#%d", view.Loop, view.N)
	return &loop.Fault{
		Exit: exit, What: "land " + name, Why: why,
		Fix: "nothing is left to land; {1} says what it was about, {2} makes a new proposal", Actions: []loop.Command{loop.PawlCommand("show", name), loop.PawlCommand("run", view.Loop)},
	}
}

// proposingRun is the run whose proposal an approved run was to land, and every
// other run itself.
func (s *Service) proposingRun(ctx context.Context, run loop.Run) (loop.Run, error) {
	id := engine.AnswerOf(run)
	if id == "" || run.Approval != "" && run.Approval != id {
		return run, nil
	}
	err := s.ws.View(ctx, func(r *store.Reader) error {
		a, err := s.ws.ApprovalByID(ctx, r, id)
		if err == nil && a.Action.Kind != loop.ActionCommand {
			run, err = s.ws.RunByID(ctx, r, a.RunID)
		}
		return err
	})
	return run, err
}

// newLanding is the question about the proposal of a run.
func (s *Service) newLanding(ctx context.Context, run loop.Run, r LandRequest) (loop.Approval, error) {
	if run.Branch == "" || run.Commit == "" || run.Outcome != loop.OutcomeProposed && run.Outcome != loop.OutcomeWaiting {
		return loop.Approval{}, &loop.Fault{
			Exit: loop.ExitRefused, What: fmt.Sprintf("land run %s", run.ID), Why: fmt.Sprintf("it ended %s and proposed nothing that could land", run.Outcome),
			Fix: "{1} shows which runs ended proposed", Actions: []loop.Command{loop.PawlCommand("runs")},
		}
	}
	v := View{RunRow: run}
	if view, err := s.runs.ViewOf(ctx, run); err == nil {
		v.Loop, v.Run = view.Loop, fmt.Sprintf("%s#%d", view.Loop, view.N)
	}
	def, err := s.effectiveDefinition(ctx, v)
	if err != nil {
		return loop.Approval{}, err
	}
	if def.Digest() != run.Definition {
		return loop.Approval{}, &loop.Fault{
			Exit: loop.ExitRefused, What: "land " + v.Run, Why: "the definition was changed after its gates ran", Fix: "run the loop again",
		}
	}
	base, err := s.ws.Repo.Base(ctx, def.Base)
	if err != nil {
		return loop.Approval{}, err
	}
	if base.Branch == "" {
		return loop.Approval{}, &loop.Fault{
			Exit: loop.ExitRefused, What: "land " + v.Run, Why: "no branch is checked out, so there is none to land on", Fix: "check one out, or name one as base in the definition",
		}
	}
	tree, err := s.ws.Repo.TreeOf(ctx, run.Commit)
	if err != nil {
		return loop.Approval{}, err
	}
	step, err := s.gatedStep(ctx, run, tree)
	if err != nil {
		return loop.Approval{}, err
	}
	kind, remote := loop.ActionLand, ""
	if r.Via == "pr" {
		kind, remote = loop.ActionPullRequest, "origin"
	}
	flags, stack, err := s.proposalOf(ctx, run)
	if err != nil {
		return loop.Approval{}, err
	}
	now := s.ws.Now().UTC()
	a := loop.Approval{
		LoopID: run.LoopID, RunID: run.ID, StepID: step, Tree: tree, Definition: def.Digest(),
		Action: loop.Action{
			Kind: kind, Why: run.Summary, Branch: run.Branch, Commit: run.Commit, Base: base.Branch, Onto: run.BaseCommit, Merge: r.Merge, Remote: remote,
			Stack: stack, Flags: flags,
		},
		Created: now, Expires: now.Add(engine.ApprovalTime),
	}
	a.Hash = a.BindingHash()
	return a, nil
}

// proposalOf is what the run that proposed found worth a human's look, and the proposals that
// its own one builds on.
func (s *Service) proposalOf(ctx context.Context, run loop.Run) (flags []string, stack []loop.Lower, err error) {
	err = s.ws.View(ctx, func(r *store.Reader) error {
		effects, err := r.Effects(ctx, run.ID)
		for _, e := range effects {
			if e.Kind == effect.KindPropose && e.Args[effect.ArgBranch] == run.Branch {
				flags, stack = effect.ProposalFlags(e), effect.ProposalStack(e)
			}
		}
		return err
	})
	return flags, stack, err
}

// gatedStep is the step whose iteration made a tree that passed the gates of the run.
// It refuses a tree that no gate passed.
func (s *Service) gatedStep(ctx context.Context, run loop.Run, tree string) (stepID string, err error) {
	var its []loop.Iteration
	err = s.ws.View(ctx, func(r *store.Reader) (err error) {
		its, err = r.Iterations(ctx, run.ID)
		return err
	})
	if err != nil {
		return "", err
	}
	for _, it := range its {
		if it.Tree == tree && (it.Verdict == loop.VerdictPass || it.Verdict == loop.VerdictPending) {
			return it.StepID, nil
		}
	}
	return "", &loop.Fault{
		Exit: loop.ExitRefused, What: "land " + run.Branch, Why: "its commit holds another tree than the one that the gates passed",
		Fix: "run the loop again; what stands on the branch now was never judged",
	}
}
