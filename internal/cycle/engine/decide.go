package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// decide asks the protocol for candidates and plan for one of them.
func (c *cycle) decide(ctx context.Context) (plan.Decision, error) {
	c.enterPhase(loop.PhaseDecide)
	now := c.Now()
	s := plan.Snapshot{
		Rules: c.money.rules(), Run: c.run.N, RunID: c.run.ID, Settled: c.settled, Iterations: c.worked, Items: c.items,
		Started: c.started, Output: c.run.Usage.Output, Hold: c.agent.hold, Nothing: c.sensed.Nothing, NothingDetail: c.sensed.Because,
		News: c.sensed.news,
	}
	asked := c.run.Overrides.Step
	for _, cand := range c.onlyStep(asked, c.memory.session.Candidates(c.sensed.Sensed, now)) {
		// What this run has learned of a step is newer than what the session
		// read when it opened.
		if row, ok := c.steps[cand.Step.Key]; ok && row.RunID == c.run.ID {
			cand.Step = row
		}
		cand.Answered = c.memory.answered[cand.Step.Key]
		if cand.Drop == "" && c.claimed[cand.Step.Key] {
			cand.Drop, cand.Detail = loop.ReasonStepClaimed, "somebody else was first"
		}
		if again := asked != "" && cand.Step.Key == asked; !again {
			c.proposals.holdBack(&cand)
		}
		if s.Nothing == "" && s.Hold == nil && cand.Drop == "" {
			err := c.resolveBase(ctx)
			if err != nil {
				return plan.Decision{}, err
			}
			if cand.NoCycles, err = c.noCyclesSince(ctx, cand.Step); err != nil {
				return plan.Decision{}, err
			}
			tree, err := c.baseTreeOf(ctx, cand)
			if err == nil {
				tree, err = c.inputTree(ctx, tree)
			}
			if err != nil {
				return plan.Decision{}, err
			}
			inputs := loop.Inputs{BaseTree: tree, Definition: c.run.Definition, Memory: cand.Memory, Sensed: c.sensed.found}
			cand.Inputs, c.inputs[cand.Step.Key] = inputs.Digest(), inputs
			if asked == "" && !cand.TakenBack {
				if err := c.proposals.dropDeclined(ctx, &cand, inputs); err != nil {
					return plan.Decision{}, err
				}
			}
		}
		s.Candidates = append(s.Candidates, cand)
	}
	d := plan.Next(s, now)
	c.awaits = slices.ContainsFunc(d.Considered, func(o loop.Considered) bool {
		return o.Reason == loop.ReasonStepWaiting || o.Reason == loop.ReasonLandingWaits || o.Reason == loop.ReasonLandingRests
	})
	body, err := json.Marshal(d.Considered)
	if err != nil {
		panic("engine: reasons do not marshal: " + err.Error())
	}
	c.said.Emit(loop.EventConsidered, string(body))
	return d, nil
}

// onlyStep drops all candidates but the step that a person asked to be worked again,
// which begins as new, also if the protocol does not offer it any more. Without such a
// step, the candidates are the protocol's.
func (c *cycle) onlyStep(key string, offered []plan.Candidate) []plan.Candidate {
	if key == "" {
		return offered
	}
	at := slices.IndexFunc(offered, func(o plan.Candidate) bool { return o.Step.Key == key })
	row, ok := c.steps[key]
	if at < 0 && ok {
		at, offered = len(offered), append(offered, plan.Candidate{Step: row})
	}
	for i := range offered {
		o := &offered[i]
		if i != at {
			o.Drop, o.Detail = loop.ReasonNotEligible, "a person asked for another step"
			continue
		}
		if a := c.sensed.changes; a != nil && ok {
			o.Step = row
			o.Step.State, o.Drop, o.Detail = loop.StepOpen, "", "a person asked for changes"
			o.Step.Feedback, o.Step.Snapshot = a.Note, cmp.Or(a.Action.BranchRef(), o.Step.Snapshot)
			continue
		}
		switch {
		case c.def.Life == nil:
			o.Step = o.Step.AsNew()
		case o.Step.State != loop.StepEscalated: // Else it waits for an answer, however it is asked for.
			o.Step = o.Step.Retried()
		}
		o.Drop, o.Detail = "", "a person asked for it again"
	}
	return offered
}

// saveIntent makes the iteration durable before the agent acts: what was sensed,
// which step was chosen and why, the claim, and the protocol's own plan.
func (c *cycle) saveIntent(ctx context.Context, d plan.Decision) (Brief, error) {
	if err := c.money.ledger().Open(ctx); err != nil {
		return Brief{}, err
	}
	changes, brief, err := c.memory.session.Begin(*d.Choice)
	if err == nil {
		err = loop.CheckChanges(changes)
	}
	if err != nil {
		return brief, fmt.Errorf("begin %q: %w", d.Choice.Step.Title, err)
	}
	if len(brief.Scope) > 0 {
		c.def.Scope = brief.Scope
	}
	step := d.Choice.Step
	if len(d.Choice.Stack) > 0 {
		if err := c.startFrom(ctx, d.Choice.Stack, &step); err != nil {
			return brief, err
		}
	}
	step.LoopID, step.State, step.RunID = c.run.LoopID, loop.StepClaimed, c.run.ID
	step.Inputs = d.Choice.Inputs
	now := c.Now() // With its monotonic part, which a clock that is set does not change.
	if step.Begun.IsZero() {
		step.Begun = now.UTC()
	}
	if step.ID == "" {
		step.ID = StepID(c.run.LoopID, step.Key)
	}
	if step.Kind == "" {
		step.Kind = loop.StepWork
	}
	c.steps[step.Key] = step
	c.its = append(c.its, loop.Iteration{
		RunID: c.run.ID, N: len(c.its) + 1, StepID: step.ID, Step: step.Title, Sensed: sensedText(c.sensed.Observations), Verdict: loop.VerdictIntended,
		Decided: fmt.Sprintf("%s: %s", step.Title, d.Choice.Detail), Considered: d.Considered, Gates: []loop.GateResult{}, Started: now,
		Inputs: c.inputs[step.Key].PerStep().Digest(),
	})
	if step.Kind == loop.StepWork {
		c.worked++
	}
	it := *c.current()
	saved := func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		return tx.Save(ctx, c.run, loop.PhaseDecide)
	}
	seat := c.login.takeSeat()
	err = c.commitBy(ctx, loop.PhaseDecide, saved,
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, step) },
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, it) },
		c.recordClaims(changes, func(row loop.Row) error {
			if !row.Hold {
				return nil // What is not claimed is there already.
			}
			return fmt.Errorf("%s of %s: %w", row.Key, row.Set, loop.ErrRowChanged)
		}),
		func(ctx context.Context, rt *store.RunTx) error {
			if len(c.its) > 1 {
				return nil // The first decision reserved what the run needs.
			}
			if err := seat(ctx, rt); err != nil {
				return err
			}
			return c.money.ledger().Reserve(ctx, rt)
		})
	if notWritten(err) { // The iteration has not begun.
		had := d.Choice.Step
		c.its, c.steps[had.Key] = c.its[:len(c.its)-1], had
		if step.Kind == loop.StepWork {
			c.worked--
		}
	}
	if err != nil {
		return brief, err
	}
	if len(c.its) == 1 && !c.money.ledger().Reserved().Zero() {
		c.said.Note("reserved %s", plan.AmountWords(c.money.ledger().Reserved()))
		if c.run.N == 1 {
			c.said.Note("why: the run %s", c.money.ledger().WhyReserved())
		}
	}
	return brief, c.applyPending(ctx)
}
