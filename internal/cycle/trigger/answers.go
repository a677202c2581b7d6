package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// hearTime is how old an answer is before its run is fired here: whoever gave it is about
// to start one.
const hearTime = 10 * time.Second

// TakeUpAnswers fires a run for each answer that nobody has taken up: the loop was at work,
// or paused, or the process that recorded it died. It returns the runs.
func (t *Trigger) TakeUpAnswers(ctx context.Context) (fired []loop.Run, err error) {
	var answers []loop.Approval
	err = t.Store.View(ctx, func(r *store.Reader) (err error) {
		answers, err = r.UnheardAnswers(ctx, t.Node, t.Store.Now().Add(-hearTime), batchSize)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		run, err := t.takeUp(ctx, a)
		switch {
		case errors.Is(err, loop.ErrDuplicateKey), errors.Is(err, loop.ErrPaused):
		case err != nil && ctx.Err() != nil:
			return fired, err
		case err != nil:
			t.Tell(loop.Loop{ID: a.LoopID}, fmt.Errorf("take up the answer to %s: %w", a.ID, err))
		case run.ID != "":
			fired = append(fired, run)
		}
	}
	return fired, nil
}

// takeUp fires the run of one answer, unless the loop is paused.
func (t *Trigger) takeUp(ctx context.Context, a loop.Approval) (run loop.Run, err error) {
	var l loop.Loop
	var def loop.Definition
	var asked loop.Run
	err = t.Store.View(ctx, func(r *store.Reader) (err error) {
		if l, err = r.Loop(ctx, a.LoopID); err != nil {
			return err
		}
		if asked, err = r.Run(ctx, a.RunID); err != nil {
			return err
		}
		digest := l.Registered.Good
		if digest == "" {
			digest = l.Definition // No file defines it.
		}
		def, err = r.Definition(ctx, digest)
		return err
	})
	if err != nil {
		return run, err
	}
	target, sw, err := t.Target(ctx, l, def)
	if err != nil || sw != "" || l.Paused {
		return run, err
	}
	f := engine.Heard(a.ID, eventActor)
	f.Overrides = asked.Overrides
	if err := beforeTick.Hit(ctx); err != nil {
		return run, err
	}
	err = t.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if run, err = t.Engine.Fire(ctx, tx, target, f); err != nil || t.Hint == nil {
			return err
		}
		return t.Hint(ctx, tx, []loop.Run{run})
	})
	if err == nil {
		err = afterTick.Hit(ctx)
	}
	return run, err
}
