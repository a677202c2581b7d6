package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// readApproval reads the approval with the given id.
func (h *heldRun) readApproval(ctx context.Context, id string) (a loop.Approval, err error) {
	err = h.Store.View(ctx, func(r *store.Reader) (err error) {
		a, err = r.Approval(ctx, id)
		return err
	})
	return a, err
}

// landApproved is the way of a run that an answer about a landing fired: no agent
// acts in it. It reports false for every other run.
func (c *cycle) landApproved(ctx context.Context) (ending, bool, error) {
	switch {
	case c.firing.Rebase != "":
		end, err := c.rebaseProposal(ctx)
		return end, true, err
	case c.firing.Approval == "":
		return ending{}, false, nil
	}
	a, err := c.readApproval(ctx, c.firing.Approval)
	if err != nil || a.Action.Kind == loop.ActionCommand || a.Action.Kind == loop.ActionQuestion || a.Changes {
		return ending{}, err != nil, err
	}
	act := a.Action
	switch {
	case act.Lands() && a.State == loop.ApprovalApproved: // Another run was first.
		return ending{outcome: loop.OutcomeDone, reason: loop.ReasonApproved, detail: landedWords(a) + ", and it has landed"}, true, nil
	case act.Lands() && a.State != loop.ApprovalLanding, !act.Lands() && a.State != loop.ApprovalApproved:
		return answeredEnding(a), true, nil
	}
	if a.LoopID != c.run.LoopID || a.Hash != a.BindingHash() || a.Definition != c.run.Definition {
		return ending{
			outcome: loop.OutcomeRefused, reason: loop.ReasonApproval,
			detail: "approval " + a.ID + " was given for another action or another definition of this loop; ask again",
		}, true, nil
	}
	if err := c.admitAnswer(a); err != nil {
		end, err := notGiven(err)
		return deref(end), true, err
	}
	c.run.BaseCommit, c.run.Branch = act.Onto, act.Branch
	if !act.Lands() {
		c.stage(c.finishWaiting(a.ID))
		return ending{outcome: loop.OutcomeDone, reason: loop.ReasonApproved, detail: a.By + " accepted the result"}, true, nil
	}
	if a, err = c.landingFrom(ctx, a); err != nil {
		return ending{}, true, err
	}
	a = c.nextTry(a)
	err = c.commit(ctx, loop.PhaseRehydrate, func(ctx context.Context, rt *store.RunTx) error { return rt.TryLanding(ctx, a) })
	if gone, ok := errors.AsType[*loop.AnsweredError](err); ok {
		return answeredEnding(gone.Approval), true, nil
	}
	if err != nil {
		return ending{}, true, err
	}
	c.voidLanded(a)
	c.outbox.request(c.requestsFor(a)...)
	end := ending{outcome: loop.OutcomeLanded, reason: loop.ReasonApproved, detail: landedWords(a)}
	if act.Kind == loop.ActionPullRequest {
		end.outcome = loop.OutcomeProposed
	}
	return end, true, nil
}

// answeredEnding is how a run ends whose approval does not allow anything any more.
func answeredEnding(a loop.Approval) ending {
	why := (&loop.AnsweredError{Approval: a}).Error()
	return ending{outcome: loop.OutcomeRefused, reason: loop.ReasonApproval, detail: fmt.Sprintf("approval %s allows nothing any more: %s", a.ID, why)}
}

// landingFrom is the approval with the commit that its base points to now, if that is one of
// those from which it may be moved: a lower proposal may have landed meanwhile.
func (h *heldRun) landingFrom(ctx context.Context, a loop.Approval) (loop.Approval, error) {
	if len(a.Action.Stack) == 0 {
		return a, nil
	}
	tip, _, err := h.target.Repo.Ref(ctx, effect.BranchRef(a.Action.Base))
	if err == nil && a.Action.MayAdvance(tip) {
		a.Action.Onto = tip
	}
	return a, err
}

// approvalFor returns the question about the results of a run, or nil if nobody is asked:
// the run has no result, or somebody else lands it.
func (c *cycle) approvalFor(effects []loop.Effect) *loop.Approval {
	if c.run.Outcome != loop.OutcomeProposed && c.run.Outcome != loop.OutcomeWaiting {
		return nil
	}
	proposed := -1
	for n, e := range effects {
		if c.isOwed(e) {
			continue
		}
		if e.Kind == effect.KindLand || e.Kind == effect.KindPush {
			return nil // It landed without a human, or tried to.
		}
		if e.Kind == effect.KindPropose && e.State == loop.EffectDone {
			proposed = n // The newest holds what the earlier ones do.
		}
	}
	it, waits := c.waitingResult()
	now := c.Now().UTC()
	a := &loop.Approval{
		ID: cmp.Or(waits.WaitsFor, c.NewID("ap")), LoopID: c.run.LoopID, RunID: c.run.ID, Action: loop.Action{Why: c.run.Summary},
		Definition: c.run.Definition, State: loop.ApprovalOpen, Created: now, Expires: now.Add(ApprovalTime),
	}
	kind := c.landingKind()
	if proposed >= 0 {
		e := effects[proposed]
		a.StepID, a.Tree = c.iterationOfTree(e.Args[effect.ArgTree]).StepID, e.Args[effect.ArgTree]
		a.Action.Branch, a.Action.Commit, a.Action.Onto = e.Args[effect.ArgBranch], e.Result[effect.ResultCommit], e.Args[effect.ArgParent]
		a.Action.Base, a.Action.Flags, a.Action.Stack = e.Args[effect.ArgBase], effect.ProposalFlags(e), effect.ProposalStack(e)
	}
	switch {
	case proposed >= 0 && a.Action.Base != "" && kind != "":
		a.Action.Kind, a.Action.Remote = kind, remoteOf(kind)
	case waits.ID == "":
		return nil
	case proposed >= 0 && c.def.HumanGate != loop.HumanGateAccept:
		a.Action.Kind = loop.ActionKeep
	default:
		a.Action.Kind = loop.ActionAccept
	}
	if waits.ID != "" {
		a.StepID, a.Tree = waits.ID, cmp.Or(a.Tree, it.Tree, c.run.BaseTree)
	} else {
		it = c.iterationOfTree(a.Tree)
	}
	if it.Verdict == loop.VerdictPending {
		a.Action.Flags = append([]string{"no gate has decided: " + strings.Join(printables([]string{firstLine(it.Feedback)}), "")}, a.Action.Flags...)
	}
	a.Hash = a.BindingHash()
	return a
}

// landingKind is the action by which approval lands a proposal; empty: it does not, or
// somebody else lands.
func (c *cycle) landingKind() string {
	switch {
	case c.def.HumanGate == loop.HumanGateAccept || c.def.HumanGate == loop.HumanGateKeep:
		return ""
	case c.def.LandVia == "pr":
		return loop.ActionPullRequest
	case c.def.LandVia == "" || c.def.LandVia == "human":
		return loop.ActionLand
	}
	return ""
}

// waitingResult is the newest iteration of the run whose result waits for a human, with
// its step; the zero values: none does.
func (p *progress) waitingResult() (loop.Iteration, loop.Step) {
	for _, it := range slices.Backward(p.its) {
		s := p.stepOf(&it)
		if s.State == loop.StepWaiting && stood(it) {
			return it, s
		}
	}
	return loop.Iteration{}, loop.Step{}
}

func remoteOf(kind string) string {
	if kind == loop.ActionPullRequest {
		return "origin"
	}
	return ""
}

// iterationOfTree is the newest iteration that made a tree; the zero value: none did.
func (p *progress) iterationOfTree(tree string) loop.Iteration {
	for _, it := range slices.Backward(p.its) {
		if it.Tree == tree {
			return it
		}
	}
	return loop.Iteration{}
}

// askLanding stages the question and makes those of older proposals of the same
// steps void. A step that waits for a question that is not asked is open again.
func (c *cycle) askLanding(effects []loop.Effect) {
	a := c.approvalFor(effects)
	for i := range c.its {
		s := c.stepOf(&c.its[i])
		if s.State != loop.StepWaiting || !stood(c.its[i]) || a != nil && s.WaitsFor == a.ID {
			continue
		}
		if a != nil {
			s.WaitsFor = a.ID // The newest proposal holds its result too.
		} else {
			s.State, s.WaitsFor = loop.StepOpen, ""
		}
		c.steps[s.Key] = s
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, s) })
	}
	if a == nil {
		return
	}
	c.run.Approval = a.ID
	c.said.Note("approval %s is open: approving it %s", a.ID, approvalDoes(a.Action))
	newer := "superseded by " + cmp.Or(a.Action.Branch, fmt.Sprintf("the result of %s#%d", c.target.Loop.Name, c.run.N))
	c.stage(
		func(ctx context.Context, rt *store.RunTx) error {
			older, err := rt.VoidProposals(ctx, a.LoopID, passedSteps(c.its), a.ID, newer)
			for _, old := range older {
				if err == nil {
					err = voidStacked(ctx, rt.Tx, old, fmt.Sprintf("it builds on %s, which is superseded", old.Action.Branch))
				}
			}
			return err
		},
		func(ctx context.Context, rt *store.RunTx) error { return rt.AskApproval(ctx, *a) },
	)
}

// approvalDoes says what happens on approval.
func approvalDoes(act loop.Action) string {
	switch act.Kind {
	case loop.ActionKeep:
		return "keeps " + act.Branch + " as the result"
	case loop.ActionAccept:
		return "accepts the result; nothing moves"
	case loop.ActionQuestion:
		return "lets the step be worked on again, with the note as the answer"
	case loop.ActionPush:
		return fmt.Sprintf("pushes %s to %s up to %s", act.Base, act.Remote, shortHash(act.Commit))
	case loop.ActionPullRequest:
		return fmt.Sprintf("pushes %s and opens a pull request for %s", act.Branch, act.Base)
	}
	return fmt.Sprintf("lands %s on %s", act.Branch, act.Base)
}

// rebaseProposal makes the change of a proposal again on a base that has moved, gates
// it there, and proposes it anew. The old question is void by then.
func (c *cycle) rebaseProposal(ctx context.Context) (ending, error) {
	a, err := c.readApproval(ctx, c.firing.Rebase)
	if err != nil {
		return ending{}, err
	}
	c.def.Base = a.Action.Base // Not what happens to be checked out by now.
	if end, err := c.memory.rehydrate(ctx); err != nil || end != nil {
		return deref(end), err
	}
	if err := c.resolveBase(ctx); err != nil {
		return ending{}, err
	}
	step := c.stepByID(a.StepID)
	if step.State == loop.StepOpen {
		step.State, step.RunID = loop.StepClaimed, c.run.ID
		c.steps[step.Key] = step
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, step) })
	}
	moved, conflicts, err := c.target.Repo.Rebase(ctx, git.Replay{Commit: a.Action.Commit, Onto: c.run.BaseCommit, When: c.Now(), Hold: c.tree.holdCandidate(1)})
	switch {
	case err != nil:
		return ending{}, err
	case len(conflicts) > 0:
		end := ending{
			outcome: loop.OutcomeEscalated, reason: loop.ReasonConflict,
			detail: fmt.Sprintf("%s and %s changed the same lines: %s; land it by hand, or run the loop again", a.Action.Branch, a.Action.Base, quoteList(conflicts)),
		}
		c.settleStep(step, loop.StepOpen, end.detail)
		return end, nil
	case moved.Tree == c.run.BaseTree:
		c.settleStep(step, loop.StepDone, "")
		return ending{outcome: loop.OutcomeDone, reason: loop.ReasonNoChange, detail: a.Action.Base + " holds this change already"}, nil
	}
	return c.judgeRebased(ctx, a, step, moved)
}

// judgeRebased takes the moved change through scope, gates and proposal like
// any other candidate.
func (c *cycle) judgeRebased(ctx context.Context, a loop.Approval, step loop.Step, moved object.Candidate) (ending, error) {
	changed, err := c.target.Repo.Changed(ctx, c.run.BaseCommit, moved.Commit)
	if err != nil {
		return ending{}, err
	}
	inputs, err := c.inputsOf(ctx, a)
	if err != nil {
		return ending{}, err
	}
	c.its = append(c.its, loop.Iteration{
		RunID: c.run.ID, N: len(c.its) + 1, StepID: step.ID, Step: step.Title, Verdict: loop.VerdictIntended, Gates: []loop.GateResult{}, Started: c.Now(),
		Sensed:  fmt.Sprintf("%s moved from %s to %s", a.Action.Base, shortHash(a.Action.Onto), shortHash(c.run.BaseCommit)),
		Decided: fmt.Sprintf("make %s again on it", a.Action.Branch),
		Acted:   "rebased without conflict; " + changedText(changed), Considered: []loop.Considered{},
		Tree: moved.Tree, Candidate: moved.Commit, Changed: changed, Inputs: inputs,
	})
	w := work{candidate: moved, changed: changed}
	w.report.Summary = a.Action.Why
	if err := c.tree.checkScope(ctx, &w); err != nil {
		return ending{}, err
	}
	it := c.current()
	saved := *it
	err = c.commit(ctx, loop.PhaseGather, func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, saved) })
	if err != nil {
		return ending{}, err
	}
	var attempt judgement
	var end ending
	if w.refused != nil { // It is never run.
		words, reason := w.whyRefused()
		attempt.Attempt = plan.Attempt{Verdict: loop.VerdictFail, Reason: reason, Gate: plan.ScopeGate, Tree: w.candidate.Tree, Words: words}
		end = ending{outcome: loop.OutcomeRefused, reason: reason, detail: words}
	} else {
		c.enterPhase(loop.PhaseVerify)
		if attempt, err = c.judge.judgeGates(ctx, w); err != nil {
			return ending{}, err
		}
		end = ending{outcome: loop.OutcomeProposed, reason: attempt.Reason}
		if step.State == loop.StepClaimed || attempt.Verdict == loop.VerdictPending {
			end.outcome = loop.OutcomeWaiting
		}
		if !attempt.stands() {
			end.outcome, end.detail = loop.OutcomeFailed, firstLine(attempt.Words)
		}
	}
	stands := attempt.stands()
	if !stands {
		end.detail = fmt.Sprintf("nothing has landed: %s moved to %s, and there: %s", a.Action.Base, shortHash(c.run.BaseCommit), end.detail)
		c.settleStep(step, loop.StepOpen, end.detail)
	}
	it.Verdict, it.Reason, it.Feedback, it.Ended = attempt.Verdict, attempt.Reason, feedbackOf(attempt.Attempt), c.endOf(it)
	saved = *it
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, saved) })
	if stands {
		if end.outcome == loop.OutcomeWaiting {
			c.settleStep(step, loop.StepWaiting, "")
		}
		c.run.Summary = a.Action.Why
		c.items++
		e := *c.proposalEffect(step, w, attempt)
		c.run.Branch = e.Args[effect.ArgBranch]
		c.outbox.request(e)
	}
	return end, nil
}

// settleStep stages what has become of the step of a proposal that is made again. It is of
// this run only if it was open: what is done stays done, and only its landing is asked about.
func (c *cycle) settleStep(step loop.Step, state loop.StepState, feedback string) {
	if step.State != loop.StepClaimed {
		return
	}
	step.State, step.RunID, step.Feedback = state, "", feedback
	if state != loop.StepOpen {
		step.Snapshot = ""
	}
	if state == loop.StepWaiting {
		step.WaitsFor = c.NewID("ap")
	}
	c.steps[step.Key] = step
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, step) })
}

// inputsOf is the digest of what the work of a proposal was made from, apart from its
// base and definition.
func (c *cycle) inputsOf(ctx context.Context, a loop.Approval) (digest string, err error) {
	err = c.Store.View(ctx, func(r *store.Reader) error {
		its, err := r.Iterations(ctx, a.RunID)
		for _, it := range its {
			if it.StepID == a.StepID && it.Verdict == loop.VerdictPass {
				digest = it.Inputs
			}
		}
		return err
	})
	return digest, err
}

func (p *progress) stepByID(id string) loop.Step {
	for _, s := range p.steps {
		if s.ID == id {
			return s
		}
	}
	return loop.Step{ID: id, Title: "landing"}
}
