package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

var (
	beforeApply = fault.New("engine.effect.apply.before")
	afterApply  = fault.New("engine.effect.apply.after")
)

// drain takes the outbox of the run to its end, in order. An effect that fails
// or is refused stops those behind it, because they may build on it.
func (c *cycle) drain(ctx context.Context) ([]loop.Effect, error) {
	kinds := c.Effects(c.t.Repo.MovedBy(fmt.Sprintf("%s fence %d", c.run.ID, c.run.Fence)))
	var effects []loop.Effect
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		effects, err = r.Effects(ctx, c.run.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range effects {
		e := &effects[i]
		if e.State == loop.EffectDone {
			c.took(*e)
			continue
		}
		if e.State == loop.EffectFailed || e.State == loop.EffectRefused {
			return effects, c.undone(ctx, *e) // Whoever found that out died before the run had ended.
		}
		if err := c.lockEffects(); err != nil {
			return effects, err
		}
		if err := c.applyEffect(ctx, kinds, e); err != nil {
			return effects, err
		}
		if e.State != loop.EffectDone {
			return effects, c.undone(ctx, *e)
		}
		c.took(*e)
	}
	return effects, nil
}

// applyEffect applies one effect: kill switch, durable intent, the thing itself, and
// its outcome, which joins the next commit. An effect that was being applied
// when its process died is looked for first.
func (c *cycle) applyEffect(ctx context.Context, kinds map[string]Effect, e *loop.Effect) error {
	kind, ok := kinds[e.Kind]
	if !ok {
		return fmt.Errorf("effect %s: kind %q: %w", e.Key, e.Kind, loop.ErrNotFound)
	}
	var found effect.Found
	if e.State == loop.EffectApplying {
		var err error
		found, err = kind.Look(ctx, *e)
		if err != nil {
			return c.outcomeOf(e, loop.EffectApplying, loop.EffectFailed, nil, err)
		}
		if found.Applied {
			return c.outcomeOf(e, loop.EffectApplying, loop.EffectDone, found.Result, nil)
		}
	}
	end, err := c.pausedAnywhere(ctx, c.Store.View)
	if err != nil {
		return err
	}
	if end == nil {
		end = c.unlabelled(ctx)
	}
	if end != nil && !found.Begun { // A branch that has moved does not stay without its checkout.
		return c.outcomeOf(e, e.State, loop.EffectRefused, nil, errors.New(setWords+end.detail))
	}
	if from := e.State; from != loop.EffectApplying {
		e.State = loop.EffectApplying
		intent := *e
		err := c.commit(ctx, loop.PhaseEffect, func(ctx context.Context, rt *store.RunTx) error { return rt.SaveEffect(ctx, from, intent) })
		if errors.Is(err, loop.ErrPaused) { // Since the switches were read.
			return c.outcomeOf(e, from, loop.EffectRefused, nil, fmt.Errorf(setWords+"%w", err))
		}
		if err != nil {
			return err
		}
	}
	if err := beforeApply.Hit(ctx); err != nil {
		return err
	}
	result, end, err := c.apply(ctx, kind, *e)
	if hit := afterApply.Hit(ctx); hit != nil {
		return hit
	}
	if err == nil {
		return c.outcomeOf(e, loop.EffectApplying, loop.EffectDone, result, nil)
	}
	if errors.Is(err, loop.ErrLeaseLost) {
		return err // Whoever has the run now looks what became of it.
	}
	// Any other error does not prove that nothing happened.
	found, lookErr := kind.Look(ctx, *e)
	if lookErr == nil && found.Applied {
		return c.outcomeOf(e, loop.EffectApplying, loop.EffectDone, found.Result, nil)
	}
	if lookErr == nil && found.Begun {
		return err // The run settles until somebody finishes it: what has moved cannot be called failed.
	}
	if lookErr != nil && ctx.Err() != nil {
		return err // Nobody could look: what became of it is unknown, and not a failure.
	}
	if errors.Is(err, loop.ErrPaused) {
		return c.outcomeOf(e, loop.EffectApplying, loop.EffectRefused, nil, fmt.Errorf(setWords+"%w", err))
	}
	if f, ok := errors.AsType[*loop.Fault](err); ok && f.Exit == loop.ExitRefused {
		c.refusal = f
		return c.outcomeOf(e, loop.EffectApplying, loop.EffectRefused, nil, err)
	}
	if end != nil {
		return c.outcomeOf(e, loop.EffectApplying, loop.EffectRefused, nil, fmt.Errorf("the kill switch was set: %s: %w", end.detail, err))
	}
	return c.outcomeOf(e, loop.EffectApplying, loop.EffectFailed, nil, err)
}

// apply makes an effect happen. One that waits for another machine ends with the
// kill switch, and end then says so. What is done here takes a moment, and is not
// left half-done.
func (c *cycle) apply(ctx context.Context, kind Effect, e loop.Effect) (result map[string]string, end *ending, err error) {
	if e.Kind != effect.KindPush && e.Kind != effect.KindPullRequest {
		result, err = kind.Apply(ctx, e, c.confirm)
		return result, nil, err
	}
	watched, stop := c.watchWith(ctx, func(w *watcher, ctx context.Context) {
		if end, err := w.c.pausedAnywhere(ctx, w.c.Store.TryView); err == nil && end != nil {
			w.cancel(&stopError{*end})
		}
	})
	defer stop()
	result, err = kind.Apply(watched, e, c.confirm)
	return result, stopped(watched), err
}

// outcomeOf stages the row of an effect whose outcome is known, with its link
// in the audit chain.
func (c *cycle) outcomeOf(e *loop.Effect, from, to loop.EffectState, result map[string]string, cause error) error {
	e.State, e.Result, e.Error = to, result, ""
	if cause != nil {
		e.Error = cause.Error()
	}
	row := *e
	c.stage(
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveEffect(ctx, from, row) },
		func(ctx context.Context, rt *store.RunTx) error {
			return rt.Link(ctx, c.run.LoopID, "effect", c.run.ID, map[string]any{
				"key": row.Key, "kind": row.Kind, "state": row.State, "result": row.Result, "error": row.Error,
			})
		},
	)
	return nil
}

// took copies what an effect did into the run.
func (c *cycle) took(e loop.Effect) {
	switch e.Kind {
	case effect.KindPropose:
		c.run.Branch, c.run.Commit = e.Args[effect.ArgBranch], e.Result[effect.ResultCommit]
	case effect.KindPullRequest:
		c.run.Subject = "pr=" + e.Result[effect.ResultURL]
	case effect.KindLand, effect.KindPush:
		c.run.Commit = e.Result[effect.ResultCommit]
	}
	c.said.Note("%s: done", e.Kind)
}

// undone gives the run the outcome that an effect left it with. Steps that had
// passed are open again, because their result went nowhere.
func (c *cycle) undone(ctx context.Context, e loop.Effect) error {
	c.run.Outcome, c.run.Reason = loop.OutcomeFailed, loop.ReasonEffectFailed
	if e.State == loop.EffectRefused {
		c.run.Outcome, c.run.Reason = loop.OutcomePaused, loop.ReasonKillSwitch
	}
	c.run.Detail = fmt.Sprintf("%s: %s", e.Kind, e.Error)
	if f := c.refusal; f != nil {
		c.run.Outcome, c.run.Reason = loop.OutcomeRefused, loop.ReasonLanding
		c.run.Detail = fmt.Sprintf("%s; nothing was changed; %s", f, f.Advice())
	}
	for _, key := range c.passed() {
		s := c.steps[key]
		if s.State != loop.StepDone {
			continue
		}
		s.State = loop.StepOpen
		c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, s) })
	}
	if e.Kind != effect.KindPropose || len(c.its) == 0 {
		return nil
	}
	c.run.Branch = ""
	err := c.keepCandidate(ctx, e.Args[effect.ArgTree])
	c.run.Detail = joinWords(c.run.Detail, c.unkept)
	return err
}

// passed lists the keys of the steps that this run finished.
func (c *cycle) passed() []string {
	var keys []string
	for i, it := range c.its {
		if it.Verdict == loop.VerdictPass {
			keys = append(keys, c.stepOf(&c.its[i]).Key)
		}
	}
	return keys
}
