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

// awayError is the cause with which a run's context ends when the store does not
// answer. Nobody can tell then whether the lease is still held: it is
// ErrLeaseLost.
type awayError struct {
	since time.Duration // since the lease was extended for the last time
	err   error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("%s: the store did not answer for %s: %s", loop.ErrLeaseLost, e.since.Round(time.Second), e.err)
}

func (e *awayError) Unwrap() []error { return []error{loop.ErrLeaseLost, e.err} }

// ending is how a run ends that was stopped because the store was away, and can
// be written because the store is there again.
func (e *awayError) ending() *ending {
	detail := fmt.Sprintf("the store did not answer for %s, and without it nobody can tell who holds the run: %s", e.since.Round(time.Second), e.err)
	fix := "see that the database is reachable from here, and run the loop again: the work of this run is kept"
	if f, ok := errors.AsType[*loop.Fault](e.err); ok && f.Fix != "" {
		fix = f.Advice().String()
	}
	return &ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonStoreAway, detail: detail + "; " + fix}
}

// leaveBefore is the part of its lease that a run leaves unused when the store does
// not answer: its programs need a moment to end, and must have ended when another
// host may take the run.
const leaveBefore = 10

// flushGap is how long an event may wait before readers in other processes
// can see it.
const flushGap = 500 * time.Millisecond

// watch returns a context that ends when a kill switch appears, the run is
// asked to stop, or the lease is lost, and keeps the lease while it lasts. The
// second value stops watching; it returns when the watcher is gone.
func (h *heldRun) watch(ctx context.Context) (context.Context, func()) {
	return h.watchWith(ctx, (*watcher).lookOnce)
}

// watchLease only keeps the lease: a run that is being recovered is not
// stopped by a switch, because nothing of it acts any more.
func (h *heldRun) watchLease(ctx context.Context) (context.Context, func()) {
	return h.watchWith(ctx, func(w *watcher, ctx context.Context) {
		w.recovers = true
		_ = w.holdLease(ctx)
	})
}

func (h *heldRun) watchWith(ctx context.Context, look func(*watcher, context.Context)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	guard := h.guardPrograms(cancel)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		w := watcher{c: h, cancel: cancel, guard: guard, flushed: h.Now()}
		tick := time.NewTicker(h.WatchGap)
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
		guard.release()
		cancel(nil)
	}
}

type watcher struct {
	c        *heldRun
	cancel   context.CancelCauseFunc
	guard    *guardedRun
	flushed  time.Time
	recovers bool // the run is being recovered: the switch in the store does not stop that either
}

// lookOnce is one round. What it cannot read stops the run: a store that does not
// answer, like a switch that cannot be read, counts as a stop once the lease
// could have lapsed.
func (w *watcher) lookOnce(ctx context.Context) {
	if end := w.c.switchEnding(); end != nil {
		w.cancel(&stopError{*end})
		return
	}
	if why := w.holdLease(ctx); why != "" {
		w.cancel(&stopError{ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonStopped, detail: why}})
	}
}

// holdLease keeps the lease and shows readers the events so far. It returns what
// the run was asked to stop for.
func (w *watcher) holdLease(ctx context.Context) string {
	w.c.noteLive(ctx)
	ctx, cancel := context.WithTimeout(ctx, w.c.Store.Lease()/3)
	defer cancel()
	why, err := w.readAsked(ctx)
	switch {
	case errors.Is(err, loop.ErrLeaseLost), errors.Is(err, loop.ErrStoreGone):
		w.cancel(err)
	case w.c.Engine.Store.Waiting(err): // Nobody takes the run from a process of this host that runs, however late it extends the lease.
	case err != nil && w.c.Store.Left() <= w.c.Store.Lease()/leaveBefore:
		w.cancel(&awayError{w.c.Store.Age(), err})
	}
	w.guard.look(w.c.Engine.Store.Waiting(err))
	if w.c.Now().Sub(w.flushed) > flushGap && err == nil {
		w.flushed = w.c.Now()
		if err := w.c.saveEvents(ctx); errors.Is(err, loop.ErrLeaseLost) || errors.Is(err, loop.ErrStoreGone) {
			w.cancel(err)
		}
	}
	return why
}

// readAsked reads the cancel column, and extends the lease when a third of it is
// over. It never waits for a transaction of the run itself, which may be trying to
// reach the store for a long time and extends the lease when it does.
func (w *watcher) readAsked(ctx context.Context) (why string, err error) {
	run := w.c.id.ID
	if w.c.Store.Age() >= w.c.Store.Lease()/3 || w.guard.overdue() {
		tried, err := w.c.Store.TryUpdate(ctx, func(tx *store.Tx) (err error) {
			why, err = tx.Extend(ctx, run, w.c.id.Fence)
			return err
		})
		if tried {
			return why, err
		}
	}
	err = w.c.Store.TryView(ctx, func(r *store.Reader) error {
		asked, err := r.Asked(ctx, run)
		if err == nil && asked.Fence != w.c.id.Fence {
			return loop.ErrLeaseLost
		}
		if why = asked.Cancel; asked.Paused && !w.recovers {
			w.cancel(&stopError{storeSwitch})
		}
		return err
	})
	return why, err
}

// stopEnding says how a run ends whose context is over, or nil if it is not.
func stopEnding(ctx context.Context) *ending {
	if ctx.Err() == nil {
		return nil
	}
	if stop, ok := errors.AsType[*stopError](context.Cause(ctx)); ok {
		return &stop.end
	}
	if away, ok := errors.AsType[*awayError](context.Cause(ctx)); ok {
		return away.ending()
	}
	return &ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonCanceled, detail: "pawl was asked to end"}
}
