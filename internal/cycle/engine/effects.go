package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/cycle/gatecheck"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	beforeApply = fault.New("engine.effect.apply.before")
	afterApply  = fault.New("engine.effect.apply.after")
)

// outbox applies the effects that the run has asked for.
type outbox struct {
	*heldRun
	tree      *workTree
	requested int             // effects asked for
	owed      map[string]bool // keys of effects of earlier runs that this one was through with at its start
	due       *owedLanding    // the yes whose landing this run tries before its own work; nil: none
	landed    *landedLater    // what it has landed by that; nil: nothing
	gaveUp    bool            // that was the last try before a person asks for it
	refusal   *loop.Fault     // why a guardrail refused one
	lock      *os.File        // the locked file of acquire; nil: not locked
}

// request stages effects, which are applied when the run has been concluded.
func (o *outbox) request(effects ...loop.EffectRequest) {
	o.requested += len(effects)
	for _, e := range effects {
		o.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.RequestEffect(ctx, e) })
	}
}

// drain takes the outbox of the run to its end, in order. An effect that fails
// or is refused stops those behind it, because they may build on it.
func (o *outbox) drain(ctx context.Context) ([]loop.Effect, error) {
	kinds := o.Effects(o.target.Repo.MovedBy(fmt.Sprintf("%s fence %d", o.run.ID, o.run.Fence)))
	var effects []loop.Effect
	err := o.Store.View(ctx, func(r *store.Reader) (err error) {
		effects, err = r.Effects(ctx, o.run.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	undone := map[string]bool{} // ids of approvals an effect of which did not come about
	for i := range effects {
		e := &effects[i]
		if o.owed[e.Key] || isStateCommit(*e) || undone[e.Args[effect.ArgApproval]] {
			continue
		}
		if e.State == loop.EffectRequested || e.State == loop.EffectApplying { // Else whoever found that out died before the run had ended.
			if err := o.acquire(); err != nil {
				return effects, err
			}
			if err := o.applyEffect(ctx, kinds, e); err != nil {
				return effects, err
			}
		}
		switch {
		case e.State == loop.EffectDone:
			o.noteDone(*e)
		case o.isOwed(*e):
			o.said.Note("%s: %s", e.Kind, firstLine(o.said.Hide(e.Error)))
			undone[e.Args[effect.ArgApproval]] = true
		case e.Kind == effect.KindMemoryPush: // All is here, and the next run pushes it first.
			o.noteUndone("not pushed", e.Error)
			o.run.Commit = cmp.Or(e.Result[effect.ResultCommit], o.run.Commit)
			o.run.Cause.Unpushed = e.Args[effect.ArgBase]
		case e.Kind == effect.KindMemoryPull:
			o.noteUndone("not brought up to date", e.Error)
		default:
			return effects, o.concludeUndone(ctx, *e)
		}
	}
	return effects, nil
}

// applyOwed applies what a session owes from earlier runs, and reports whether it did
// anything. A failure is no failure of this run.
func (o *outbox) applyOwed(ctx context.Context, s Session) (bool, error) {
	owing, ok := s.(OwedEffects)
	if !ok {
		return false, nil
	}
	requests := owing.Owed()
	if len(requests) == 0 {
		return false, nil
	}
	for _, e := range requests {
		o.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.RequestEffect(ctx, e) })
	}
	if err := o.commit(ctx, loop.PhaseRehydrate); err != nil {
		return false, err
	}
	effects, err := o.drain(ctx)
	o.owed = map[string]bool{}
	for _, e := range effects {
		o.owed[e.Key] = true
	}
	o.run.Detail = "" // Of a push that failed once more. The last one says what counts.
	return err == nil, err
}

// isAccount reports whether an effect only writes down how a run ended. A switch keeps
// that from nobody.
func isAccount(e loop.Effect) bool { return e.Args[loop.ArgAccount] != "" }

// judgeMerged tries the gates on work of two sides that was merged, and says what is wrong
// with it; empty: nothing. Reviewers are not asked.
func (o *outbox) judgeMerged(ctx context.Context, commit string) (string, error) {
	o.said.Note("work of two sides was merged; the gates judge it")
	of := gatecheck.Subject{Loop: o.target.Loop.Name, Root: o.target.Workspace.Root, Repo: o.target.Repo, Definition: o.def, Commit: commit}
	results, err := o.gateChecker().Gates(ctx, of, o.said.Output())
	for _, g := range results {
		if !g.Pass && !g.Pending {
			return g.Name + ": " + firstLine(o.said.Hide(g.Evidence)), err
		}
	}
	return "", err
}

// noteUndone says in the run what an effect did not do that fails no run.
func (o *outbox) noteUndone(what, why string) {
	why = what + ": " + firstLine(o.said.Hide(why))
	o.said.Note("%s", why)
	o.run.Detail = joinWords(o.run.Detail, why)
}

// applyEffect applies one effect: kill switch, durable intent, the thing itself, and
// its outcome, which joins the next commit. An effect that was being applied
// when its process died is looked for first.
func (o *outbox) applyEffect(ctx context.Context, kinds map[string]Effect, e *loop.Effect) error {
	kind, ok := kinds[e.Kind]
	if !ok {
		return fmt.Errorf("effect %s: kind %q: %w", e.Key, e.Kind, loop.ErrNotFound)
	}
	err := o.admitEffect(ctx, *e)
	if f, ok := errors.AsType[*loop.Fault](err); ok && errors.Is(err, loop.ErrNotAcceptedHere) {
		o.refusal = f
		o.recordOutcome(e, e.State, loop.EffectRefused, nil, err)
		return nil
	}
	if err != nil {
		return err
	}
	var found effect.Found
	if e.State == loop.EffectApplying {
		found, err = kind.Look(ctx, *e)
		if err != nil {
			o.recordOutcome(e, loop.EffectApplying, loop.EffectFailed, nil, err)
			return nil
		}
		if found.Applied {
			o.recordOutcome(e, loop.EffectApplying, loop.EffectDone, found.Result, nil)
			return nil
		}
	}
	end, err := o.anySwitchEnding(ctx)
	if err != nil {
		return err
	}
	if end == nil {
		end = o.labelEnding(ctx)
	}
	if end != nil && !found.Begun && !isAccount(*e) { // A branch that has moved does not stay without its checkout.
		o.refuseBy(end.cause.Switch, e, e.State, found.Result, errors.New(setWords+end.detail))
		return nil
	}
	if from := e.State; from != loop.EffectApplying {
		e.State = loop.EffectApplying
		intent := *e
		err := o.commit(ctx, loop.PhaseEffect, func(ctx context.Context, rt *store.RunTx) error { return rt.SaveEffect(ctx, from, intent) })
		if errors.Is(err, loop.ErrPaused) { // Since the switches were read.
			o.refuseBy(switchOf(err), e, from, nil, fmt.Errorf(setWords+"%w", err))
			return nil
		}
		if err != nil {
			return err
		}
	}
	if e.Args[effect.ArgRetry] != "" { // Nothing is repeated before a look said that nothing arrived.
		found, err := kind.Look(ctx, *e)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			o.recordOutcome(e, loop.EffectApplying, loop.EffectFailed, nil, fmt.Errorf("look whether it happened: %w", err))
			return nil
		}
		if found.Applied {
			o.recordOutcome(e, loop.EffectApplying, loop.EffectDone, found.Result, nil)
			return nil
		}
	}
	if err := beforeApply.Hit(ctx); err != nil {
		return err
	}
	result, end, err := o.applyWatched(ctx, kind, *e)
	for ungated, ok := errors.AsType[*effect.UngatedError](err); ok; ungated, ok = errors.AsType[*effect.UngatedError](err) {
		why, judgeErr := o.judgeMerged(ctx, ungated.Commit)
		if judgeErr != nil {
			return judgeErr
		}
		if why != "" {
			err = fmt.Errorf("the merged work does not pass: %s", why)
			break
		}
		e.Args[effect.ArgGated] += " " + ungated.Tree
		result, end, err = o.applyWatched(ctx, kind, *e)
	}
	if hit := afterApply.Hit(ctx); hit != nil {
		return hit
	}
	if err == nil {
		o.recordOutcome(e, loop.EffectApplying, loop.EffectDone, result, nil)
		return nil
	}
	if errors.Is(err, loop.ErrLeaseLost) {
		return err // Whoever has the run now looks what became of it.
	}
	// Any other error does not prove that nothing happened.
	found, lookErr := kind.Look(ctx, *e)
	if lookErr == nil && found.Applied {
		o.recordOutcome(e, loop.EffectApplying, loop.EffectDone, found.Result, nil)
		return nil
	}
	if lookErr == nil && found.Begun {
		return err // The run settles until somebody finishes it: what has moved cannot be called failed.
	}
	if lookErr != nil && ctx.Err() != nil {
		return err // Nobody could look: what became of it is unknown, and not a failure.
	}
	if errors.Is(err, loop.ErrPaused) {
		o.refuseBy(switchOf(err), e, loop.EffectApplying, found.Result, fmt.Errorf(setWords+"%w", err))
		return nil
	}
	if f, ok := errors.AsType[*loop.Fault](err); ok && f.Exit == loop.ExitRefused {
		o.refusal = f
		o.recordOutcome(e, loop.EffectApplying, loop.EffectRefused, found.Result, err)
		return nil
	}
	if end != nil {
		o.refuseBy(end.cause.Switch, e, loop.EffectApplying, found.Result, fmt.Errorf("the kill switch was set: %s: %w", end.detail, err))
		return nil
	}
	o.recordOutcome(e, loop.EffectApplying, loop.EffectFailed, found.Result, err)
	return nil
}

// applyWatched makes an effect happen. One that waits for another machine ends with the
// kill switch, and end then says so. What is done here takes a moment, and is not
// left half-done.
func (o *outbox) applyWatched(ctx context.Context, kind Effect, e loop.Effect) (result map[string]string, end *ending, err error) {
	confirm := o.confirmEffect
	if isAccount(e) {
		confirm = o.confirmAccount
	}
	switch e.Kind {
	case effect.KindPush, effect.KindPullRequest, effect.KindMemoryPush, effect.KindMemoryPull, effect.KindBranchPush:
	default:
		result, err = kind.Apply(ctx, e, confirm)
		return result, nil, err
	}
	ctx, watched := o.watchAs(ctx, watchEffect)
	defer watched.stop()
	result, err = kind.Apply(ctx, e, confirm)
	return result, stopEnding(ctx), err
}

// recordOutcome stages the row of an effect whose outcome is known, with its link
// in the audit chain.
func (o *outbox) recordOutcome(e *loop.Effect, from, to loop.EffectState, result map[string]string, cause error) {
	e.State, e.Result, e.Error = to, result, ""
	if cause != nil {
		e.Error = cause.Error()
	}
	row := *e
	o.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveEffect(ctx, from, row) }, o.linkEffect(row))
	o.settleLanding(row)
}

// refuseBy records that a switch kept an effect from happening. It also stores the switch in the
// run, because another worker may have to finish the run.
func (o *outbox) refuseBy(sw loop.KillSwitch, e *loop.Effect, from loop.EffectState, result map[string]string, cause error) {
	o.run.Cause.Switch = sw
	o.recordOutcome(e, from, loop.EffectRefused, result, cause)
}

// switchOf returns the switch in a PausedError, or the zero KillSwitch.
func switchOf(err error) (sw loop.KillSwitch) {
	if paused, ok := errors.AsType[*loop.PausedError](err); ok {
		sw = paused.By
	}
	return sw
}

// linkEffect is the part of a transaction that puts an effect into the audit chain.
func (h *heldRun) linkEffect(e loop.Effect) write {
	return func(ctx context.Context, rt *store.RunTx) error {
		return rt.Link(ctx, h.run.LoopID, loop.LinkEffect, h.run.ID, map[string]any{
			"key": e.Key, "kind": e.Kind, "state": e.State, "result": e.Result, "error": e.Error,
		})
	}
}

// noteDone copies what an effect did into the run.
func (o *outbox) noteDone(e loop.Effect) {
	switch e.Kind {
	case effect.KindPropose:
		o.run.Branch, o.run.Commit = e.Args[effect.ArgBranch], e.Result[effect.ResultCommit]
	case effect.KindPullRequest:
		o.run.Cause.PullRequest = e.Result[effect.ResultURL]
	case effect.KindLand, effect.KindPush, effect.KindMemoryCommit, effect.KindBranchPush:
		o.run.Commit = e.Result[effect.ResultCommit]
	case effect.KindMemoryPush:
		if why := e.Result[effect.ResultUnpushed]; why != "" {
			o.said.Note("not pushed: %s", why)
			return
		}
		o.run.Commit = e.Result[effect.ResultCommit]
		o.run.Cause.Unpushed = "" // One that failed at the beginning of the run is made good for.
		if e.Result[effect.ResultWork] != "" && len(o.runEnv().Gates()) == 0 {
			o.run.Cause.Ungated = e.Args[effect.ArgRemote] + "/" + e.Args[effect.ArgBase]
		}
	}
	o.said.Note("%s: done", e.Kind)
}

// concludeUndone gives the run the outcome that an effect left it with. Steps that had
// passed are open again, because their result went nowhere.
func (o *outbox) concludeUndone(ctx context.Context, e loop.Effect) error {
	end := endingOfEffect(e, o.refusal)
	o.run.Outcome, o.run.Reason, o.run.Detail = end.outcome, end.reason, end.detail
	o.reopenPassed()
	if e.Kind != effect.KindPropose && e.Kind != effect.KindMemoryCommit || len(o.its) == 0 {
		return nil
	}
	o.run.Branch = ""
	err := o.tree.keepCandidate(ctx, e.Args[effect.ArgTree])
	o.run.Detail = joinWords(o.run.Detail, o.tree.unkept)
	return err
}

// stood reports whether no gate objected to an iteration.
func stood(it loop.Iteration) bool {
	return it.Verdict == loop.VerdictPass || it.Verdict == loop.VerdictPending && it.Reason != loop.ReasonApproval
}

// reopenPassed opens the steps again that the run finished: their result went nowhere.
func (h *heldRun) reopenPassed() {
	for _, key := range h.passedKeys() {
		s := h.steps[key]
		if s.State != loop.StepDone && s.State != loop.StepWaiting {
			continue
		}
		s.State, s.WaitsFor = loop.StepOpen, ""
		h.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, s) })
	}
}

// passedKeys lists the keys of the steps that this run finished.
func (p *progress) passedKeys() []string {
	var keys []string
	for i, it := range p.its {
		if stood(it) {
			keys = append(keys, p.stepOf(&p.its[i]).Key)
		}
	}
	return keys
}
