package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// stopError is the cause with which a run's context ends when somebody or
// something stops the run.
type stopError struct{ end ending }

func (e *stopError) Error() string { return string(e.end.reason) + ": " + e.end.detail }

// flushGap is how long an event may wait before readers in other processes
// can see it.
const flushGap = 500 * time.Millisecond

// watch returns a context that ends when a kill switch appears, the run is
// asked to stop, or the lease is lost, and keeps the lease while it lasts. The
// second value stops watching; it returns when the watcher is gone.
func (c *cycle) watch(ctx context.Context) (context.Context, func()) {
	return c.watchWith(ctx, (*watcher).look)
}

// watchLease only keeps the lease: a run that is being recovered is not
// stopped by a switch, because nothing of it acts any more.
func (c *cycle) watchLease(ctx context.Context) (context.Context, func()) {
	return c.watchWith(ctx, func(w *watcher, ctx context.Context) { _ = w.hold(ctx) })
}

func (c *cycle) watchWith(ctx context.Context, look func(*watcher, context.Context)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		w := watcher{c: c, cancel: cancel, extended: c.Now(), flushed: c.Now()}
		tick := time.NewTicker(c.WatchGap)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				look(&w, context.WithoutCancel(ctx))
			}
		}
	})
	return ctx, func() {
		close(done)
		watching.Wait()
		cancel(nil)
	}
}

type watcher struct {
	c                 *cycle
	cancel            context.CancelCauseFunc
	extended, flushed time.Time
}

func (w *watcher) since(t time.Time) time.Duration { return w.c.Now().Sub(t) }

// look is one round. What it cannot read stops the run: a store that does not
// answer, like a switch that cannot be read, counts as a stop once the lease
// could have lapsed.
func (w *watcher) look(ctx context.Context) {
	if end := w.c.paused(); end != nil {
		w.cancel(&stopError{*end})
		return
	}
	if why := w.hold(ctx); why != "" {
		w.cancel(&stopError{ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonStopped, detail: why}})
	}
}

// hold keeps the lease and shows readers the events so far. It returns what
// the run was asked to stop for.
func (w *watcher) hold(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, store.Lease/3)
	defer cancel()
	why, err := w.asked(ctx)
	switch {
	case errors.Is(err, loop.ErrLeaseLost):
		w.cancel(err)
	case err != nil && w.since(w.extended) > store.Lease*2/3:
		w.cancel(fmt.Errorf("%w: the store does not answer: %w", loop.ErrLeaseLost, err))
	}
	if w.since(w.flushed) > flushGap && err == nil {
		w.flushed = w.c.Now()
		if err := w.c.flush(ctx); errors.Is(err, loop.ErrLeaseLost) {
			w.cancel(err)
		}
	}
	return why
}

// asked reads the cancel column, and extends the lease when a third of it is
// over.
func (w *watcher) asked(ctx context.Context) (why string, err error) {
	run := w.c.id.ID
	if w.since(w.extended) < store.Lease/3 {
		err = w.c.Store.View(ctx, func(r *store.Reader) error {
			asked, err := r.Asked(ctx, run)
			if err == nil && asked.Fence != w.c.id.Fence {
				return loop.ErrLeaseLost
			}
			if why = asked.Cancel; asked.Paused {
				w.cancel(&stopError{storeSwitch})
			}
			return err
		})
		return why, err
	}
	err = w.c.Store.Update(ctx, func(tx *store.Tx) error {
		why, err = tx.Extend(ctx, run, w.c.id.Fence)
		return err
	})
	if err == nil {
		w.extended = w.c.Now()
	}
	return why, err
}

// stopped says how a run ends whose context is over, or nil if it is not.
func stopped(ctx context.Context) *ending {
	if ctx.Err() == nil {
		return nil
	}
	if stop, ok := errors.AsType[*stopError](context.Cause(ctx)); ok {
		return &stop.end
	}
	return &ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonCanceled, detail: "pawl was asked to end"}
}
