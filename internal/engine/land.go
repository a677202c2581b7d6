package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/store"
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
	if err != nil || a.Action.Kind == loop.ActionCommand {
		return ending{}, err != nil, err
	}
	if a.State != loop.ApprovalApproved {
		return ending{}, true, fmt.Errorf("approval %s is %s: %w", a.ID, a.State, loop.ErrAnswered)
	}
	if a.LoopID != c.run.LoopID || a.Hash != a.BindingHash() || a.Definition != c.run.Definition {
		return ending{
			outcome: loop.OutcomeRefused, reason: loop.ReasonApproval,
			detail: "approval " + a.ID + " was given for another action or another definition of this loop; ask again",
		}, true, nil
	}
	act := a.Action
	c.run.BaseCommit, c.run.Branch = act.Onto, act.Branch
	c.outbox.request(effect.RequestsFor(a, c.Now())...) // What the human allowed, and nothing else.
	if act.Kind == loop.ActionPullRequest {
		return ending{outcome: loop.OutcomeProposed, reason: loop.ReasonApproved, detail: a.By + " said yes"}, true, nil
	}
	return ending{outcome: loop.OutcomeLanded, reason: loop.ReasonApproved, detail: fmt.Sprintf("%s said yes to landing %s on %s", a.By, act.Branch, act.Base)}, true, nil
}

// approvalFor is the question that a finished proposal asks a human, or nil if
// there is none: nothing was proposed, or somebody else lands.
func (c *cycle) approvalFor(effects []loop.Effect) *loop.Approval {
	i := -1
	for n, e := range effects {
		if e.Kind == effect.KindLand || e.Kind == effect.KindPush {
			return nil // It landed without a human, or tried to.
		}
		if e.Kind == effect.KindPropose && e.State == loop.EffectDone && e.Args[effect.ArgBase] != "" {
			i = n // The newest holds what the earlier ones do.
		}
	}
	kind := loop.ActionLand
	switch c.def.LandVia {
	case "", "human":
	case "pr":
		kind = loop.ActionPullRequest
	default:
		return nil
	}
	if i < 0 || c.run.Outcome != loop.OutcomeProposed {
		return nil
	}
	e, now := effects[i], c.Now().UTC()
	a := &loop.Approval{
		ID: c.NewID("ap"), LoopID: c.run.LoopID, RunID: c.run.ID, StepID: c.stepOfTree(e.Args[effect.ArgTree]),
		Action: loop.Action{
			Kind: kind, Why: c.run.Summary, Branch: e.Args[effect.ArgBranch], Commit: e.Result[effect.ResultCommit],
			Base: e.Args[effect.ArgBase], Onto: e.Args[effect.ArgParent], Remote: remoteOf(kind), Flags: effect.ProposalFlags(e),
		},
		Tree: e.Args[effect.ArgTree], Definition: c.run.Definition, State: loop.ApprovalOpen, Created: now, Expires: now.Add(ApprovalTime),
	}
	a.Hash = a.BindingHash()
	return a
}

func remoteOf(kind string) string {
	if kind == loop.ActionPullRequest {
		return "origin"
	}
	return ""
}

// stepOfTree is the id of the step whose iteration made a tree.
func (p *progress) stepOfTree(tree string) string {
	for _, it := range slices.Backward(p.its) {
		if it.Tree == tree {
			return it.StepID
		}
	}
	return ""
}

// askLanding stages the question and makes those of older proposals of the same
// steps void.
func (c *cycle) askLanding(effects []loop.Effect) {
	a := c.approvalFor(effects)
	if a == nil {
		return
	}
	c.run.Approval = a.ID
	c.said.Note("approval %s is open: approving it lands %s on %s", a.ID, a.Action.Branch, a.Action.Base)
	c.stage(
		func(ctx context.Context, rt *store.RunTx) error {
			_, err := rt.VoidProposals(ctx, a.LoopID, passedSteps(c.its), a.ID, "superseded by "+a.Action.Branch)
			return err
		},
		func(ctx context.Context, rt *store.RunTx) error { return rt.AskApproval(ctx, *a) },
	)
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
	moved, conflicts, err := c.target.Repo.Rebase(ctx, git.Replay{Commit: a.Action.Commit, Onto: c.run.BaseCommit, When: c.Now(), Hold: c.tree.holdCandidate(1)})
	switch {
	case err != nil:
		return ending{}, err
	case len(conflicts) > 0:
		return ending{
			outcome: loop.OutcomeEscalated, reason: loop.ReasonConflict,
			detail: fmt.Sprintf("%s and %s changed the same lines: %s; land it by hand, or run the loop again", a.Action.Branch, a.Action.Base, quoteList(conflicts)),
		}, nil
	case moved.Tree == c.run.BaseTree:
		return ending{outcome: loop.OutcomeDone, reason: loop.ReasonNoChange, detail: a.Action.Base + " holds this change already"}, nil
	}
	return c.judgeRebased(ctx, a, moved)
}

// judgeRebased takes the moved change through scope, gates and proposal like
// any other candidate.
func (c *cycle) judgeRebased(ctx context.Context, a loop.Approval, moved object.Candidate) (ending, error) {
	changed, err := c.target.Repo.Changed(ctx, c.run.BaseCommit, moved.Commit)
	if err != nil {
		return ending{}, err
	}
	inputs, err := c.inputsOf(ctx, a)
	if err != nil {
		return ending{}, err
	}
	step := c.stepByID(a.StepID)
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
		attempt.Attempt = plan.Attempt{Verdict: loop.VerdictFail, Reason: reason, Gate: "scope", Tree: w.candidate.Tree, Words: words}
		end = ending{outcome: loop.OutcomeRefused, reason: reason, detail: words}
	} else {
		c.enterPhase(loop.PhaseVerify)
		if attempt, err = c.judge.judgeGates(ctx, w); err != nil {
			return ending{}, err
		}
		end = ending{outcome: loop.OutcomeProposed, reason: attempt.Reason}
		if attempt.Verdict != loop.VerdictPass {
			end.outcome, end.detail = loop.OutcomeFailed, firstLine(attempt.Words)
		}
	}
	if end.outcome != loop.OutcomeProposed {
		end.detail = fmt.Sprintf("nothing has landed: %s moved to %s, and there: %s", a.Action.Base, shortHash(c.run.BaseCommit), end.detail)
	}
	it.Verdict, it.Reason, it.Feedback, it.Ended = attempt.Verdict, attempt.Reason, feedbackOf(attempt.Attempt), c.endOf(it)
	saved = *it
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, saved) })
	if end.outcome == loop.OutcomeProposed {
		c.run.Summary = a.Action.Why
		c.items++
		e := *c.proposalEffect(step, w, attempt)
		c.run.Branch = e.Args[effect.ArgBranch]
		c.outbox.request(e)
	}
	return end, nil
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
