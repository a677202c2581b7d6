package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// This file carries out what a person said yes to and what did not land at once: the yes is
// valid for its tree until it expires, and no agent works on that step meanwhile.

// owedLanding is a yes of the loop to a landing that has not come about.
type owedLanding struct {
	loop.Approval
	asked loop.Run // whose proposal it is
	moved bool     // its base moved: the change has to be made again there
}

// landedLater is what a run landed for which an earlier one was fired.
type landedLater struct {
	approval            loop.Approval
	commit, pullRequest string // of the run, if it finds nothing else to do
}

// landOwed tries the landing that the loop owes and that is due, and reports whether it
// landed. A failure is no failure of this run.
func (o *outbox) landOwed(ctx context.Context) (landed bool, err error) {
	if o.due == nil {
		return false, nil
	}
	a, err := o.landingFrom(ctx, o.due.Approval)
	if err != nil {
		return false, err
	}
	o.due = nil
	o.voidLanded(a)
	a = o.nextTry(a)
	requests := o.requestsFor(a)
	for _, e := range requests {
		o.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.RequestEffect(ctx, e) })
	}
	tried := func(ctx context.Context, rt *store.RunTx) error { return rt.TryLanding(ctx, a) }
	if err := o.commit(ctx, loop.PhaseRehydrate, tried); err != nil {
		return false, err
	}
	o.said.Note("%s said yes to %s, and it has not landed: try %d of %d", a.By, a.Action.Landing(), a.Tries, plan.MaxLandings)
	effects, err := o.drain(ctx)
	if err != nil {
		return false, err
	}
	o.owed = map[string]bool{}
	for _, e := range effects {
		o.owed[e.Key] = true
	}
	later := landedLater{a, o.run.Commit, o.run.Cause.PullRequest}
	o.run.Commit, o.run.Cause.PullRequest = "", ""
	if slices.ContainsFunc(effects, func(e loop.Effect) bool { return o.isOwed(e) && e.State != loop.EffectDone }) {
		o.gaveUp = plan.NextLanding(a, o.Now()).Move == plan.LandingRest
		return false, o.commit(ctx, loop.PhaseEffect)
	}
	o.landed = &later
	return true, o.commit(ctx, loop.PhaseEffect) // The memory is read again, and the step is done by then.
}

// nextTry is an approval as it is when its landing is tried once more. A person who asks for
// that begins a new series of tries.
func (h *heldRun) nextTry(a loop.Approval) loop.Approval {
	a.Tries++
	if h.firing.Landing {
		a.Tries = 1
	}
	a.Tried, a.Failure = h.Now(), ""
	return a
}

// requestsFor are the effects of one try to land what a person said yes to. Each try has its
// own, and all but the first look whether an earlier one arrived after all.
func (h *heldRun) requestsFor(a loop.Approval) []loop.EffectRequest {
	requests := effect.RequestsFor(a, h.Now()) // What the human allowed, and nothing else.
	if a.Tries == 1 && !h.firing.Landing {
		return requests
	}
	return effect.Retries(requests, h.run.ID)
}

// isOwed reports whether an effect carries out a yes for which this run was not fired.
func (h *heldRun) isOwed(e loop.Effect) bool {
	id := e.Args[effect.ArgApproval]
	return id != "" && id != AnswerOf(h.run)
}

// dueLanding is the oldest yes of the loop whose landing is to be tried now; nil: there is
// none. One that no longer means what it said is made void, but only after a look that
// nothing has arrived: if it did, a try finds it.
func (h *heldRun) dueLanding(ctx context.Context) (*owedLanding, error) {
	var list []owedLanding
	err := h.Store.View(ctx, func(r *store.Reader) error {
		list = nil
		landings, err := r.Approvals(ctx, h.run.LoopID, loop.ApprovalLanding)
		for _, a := range slices.Backward(landings) {
			asked, err := r.Run(ctx, a.RunID)
			if err != nil {
				return err
			}
			list = append(list, owedLanding{Approval: a, asked: asked})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, owed := range list {
		elsewhere := owed.asked.Node != "" && h.Self.Node != "" && owed.asked.Node != h.Self.Node
		if elsewhere || plan.NextLanding(owed.Approval, h.Now()).Move != plan.LandingTry {
			continue
		}
		due, err := h.checkLanding(ctx, &owed)
		if err != nil || due {
			return &owed, err
		}
	}
	return nil, nil
}

// checkLanding reports whether a landing may be tried: what was shown is still what a try
// would do, or an earlier try has arrived.
func (h *heldRun) checkLanding(ctx context.Context, owed *owedLanding) (bool, error) {
	def, err := h.definitionFor(ctx, *owed)
	if err != nil {
		return false, err
	}
	why, err := Stale(ctx, h.target.Repo, owed.Approval, def)
	if err != nil {
		return false, err
	}
	if why == "" {
		tip, _, err := h.target.Repo.Ref(ctx, effect.BranchRef(owed.Action.Base))
		if err != nil {
			return false, err
		}
		owed.moved = owed.Action.BaseMoved(tip)
	}
	if why == "" && !owed.moved {
		return true, nil
	}
	arrived, err := h.HasArrived(ctx, h.target.Repo, owed.Approval)
	switch {
	case err != nil:
		h.said.Note("approval %s: whether an earlier try has landed is not known: %s", owed.ID, firstLine(h.said.Hide(err.Error())))
		return false, nil
	case arrived:
		owed.moved = false
		return true, nil
	case owed.moved:
		return true, nil
	}
	h.said.Note("approval %s is void: %s", owed.ID, why)
	return false, h.commit(ctx, loop.PhaseRehydrate, func(ctx context.Context, rt *store.RunTx) error {
		_, err := rt.VoidApproval(ctx, owed.ID, why)
		return err
	})
}

// definitionFor is the definition as the run that asked would have it now. What was flagged
// in a spec's rubric since then is for later reviews.
func (h *heldRun) definitionFor(ctx context.Context, owed owedLanding) (loop.Definition, error) {
	def := owed.asked.Overrides.Apply(h.target.Definition).WithDefaults()
	if def.Spec == "" {
		return def, nil
	}
	err := h.Store.View(ctx, func(r *store.Reader) error {
		asked, err := r.Definition(ctx, owed.Definition)
		if errors.Is(err, loop.ErrNotFound) {
			return nil
		}
		def.Rubric = asked.Rubric
		return err
	})
	return def, err
}

// HasArrived looks whether all that a landing is to do has happened: an earlier try may have
// arrived that was taken for a failure.
func (e *Engine) HasArrived(ctx context.Context, repo *git.Repo, a loop.Approval) (bool, error) {
	kinds := e.Effects(repo)
	for _, e := range effect.RequestsFor(a, e.Now()) {
		kind, ok := kinds[e.Kind]
		if !ok {
			return false, fmt.Errorf("effect %s: kind %q: %w", e.Key, e.Kind, loop.ErrNotFound)
		}
		found, err := kind.Look(ctx, loop.Effect{Kind: e.Kind, Key: e.Key, Args: e.Args})
		if err != nil || !found.Applied && !found.Begun {
			return false, err
		}
	}
	return true, nil
}

// findOwed finds the yes of the loop whose landing this run tries. If its base has moved, the
// run makes the change again there with a new question, and no agent acts in it; one that
// was fired for something else leaves that to a later run, and reports false.
func (c *cycle) findOwed(ctx context.Context) (ending, bool, error) {
	if c.firing.Approval != "" {
		return ending{}, false, nil
	}
	owed, err := c.dueLanding(ctx)
	if err != nil || owed == nil || !owed.moved {
		c.outbox.due = owed
		return ending{}, false, err
	}
	o := c.run.Overrides
	if len(owed.Action.Stack) > 0 || c.run.Request+c.run.Event+o.Step+o.Hint+o.Base+o.Agent+o.AgentCommand+o.Model != "" {
		return ending{}, false, nil
	}
	why := fmt.Sprintf("%s moved before it landed; the change is made again there", owed.Action.Base)
	var void bool
	err = c.commit(ctx, loop.PhaseRehydrate, func(ctx context.Context, rt *store.RunTx) (err error) {
		void, err = rt.VoidApproval(ctx, owed.ID, why)
		return err
	})
	if err != nil || !void {
		return ending{}, false, err
	}
	c.said.Note("approval %s is void: %s", owed.ID, why)
	c.firing.Rebase = owed.ID
	end, err := c.rebaseProposal(ctx)
	return end, true, err
}

// sayLanded gives a run that found nothing else to do the outcome of the landing that it
// tried: it has landed, or is not tried any more.
func (o *outbox) sayLanded(end ending) ending {
	switch {
	case end.outcome != loop.OutcomeQuiet:
		return end
	case o.gaveUp: // Once, so that a person hears of it.
		return ending{outcome: loop.OutcomeFailed, reason: loop.ReasonLandingRests, detail: end.detail}
	case o.landed == nil:
		return end
	}
	a := o.landed.approval
	o.run.Branch, o.run.Commit, o.run.Cause.PullRequest, o.run.Approval = a.Action.Branch, o.landed.commit, o.landed.pullRequest, a.ID
	end = ending{outcome: loop.OutcomeLanded, reason: loop.ReasonApproved, detail: landedWords(a)}
	if a.Action.Kind == loop.ActionPullRequest {
		end.outcome = loop.OutcomeProposed
	}
	return end
}

func landedWords(a loop.Approval) string {
	switch a.Action.Kind {
	case loop.ActionPullRequest:
		return a.By + " said yes"
	case loop.ActionPush:
		return a.By + " said yes to " + a.Action.Landing()
	}
	return fmt.Sprintf("%s said yes to landing %s on %s", a.By, a.Action.Branch, a.Action.Base)
}

// settleLanding stages what the outcome of an effect means for the yes that it carries out:
// with the last effect of a landing the question is answered, and the steps are done that
// waited for it. Otherwise the yes stays valid.
func (o *outbox) settleLanding(e loop.Effect) {
	id := e.Args[effect.ArgApproval]
	switch {
	case id == "":
	case e.State == loop.EffectFailed, e.State == loop.EffectRefused:
		o.stage(func(ctx context.Context, rt *store.RunTx) error {
			return rt.FailLanding(ctx, id, firstLine(o.said.Hide(e.Error)))
		})
	case e.State == loop.EffectDone && e.Kind != effect.KindPush:
		o.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.Landed(ctx, id) }, o.finishWaiting(id))
	}
}

// finishWaiting is the part of a transaction by which the steps are done that waited for an
// approval: a human has accepted their result.
func (h *heldRun) finishWaiting(approval string) write {
	return func(ctx context.Context, rt *store.RunTx) error {
		steps, err := rt.Steps(ctx, h.run.LoopID)
		for _, s := range steps {
			if err == nil && s.State == loop.StepWaiting && s.WaitsFor == approval {
				s.State = loop.StepDone
				err = rt.SaveStep(ctx, s)
			}
		}
		return err
	}
}

// owedWords says what has become of a yes to a proposal that has not landed, and why its
// step is not worked on meanwhile.
func (ps *proposals) owedWords(a loop.Approval, run string) (string, loop.Reason) {
	next := plan.NextLanding(a, ps.Now())
	words := fmt.Sprintf("%s said yes to %s of %s, and it has not landed: ", a.By, a.Action.Landing(), run)
	if a.Failure != "" {
		words += a.Failure + "; "
	}
	if next.Reason == "" {
		return words + "the next run of the loop tries it", loop.ReasonLandingWaits
	}
	return words + next.Why, next.Reason
}
