package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
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
// second value stops watching.
func (h *heldRun) watch(ctx context.Context) (context.Context, *watched) {
	return h.watchAs(ctx, watchRun)
}

// watchLease only keeps the lease: a run that is being recovered is not
// stopped by a switch, because nothing of it acts any more.
func (h *heldRun) watchLease(ctx context.Context) (context.Context, *watched) {
	return h.watchAs(ctx, watchRecovery)
}

func (h *heldRun) watchAs(ctx context.Context, kind watchKind) (context.Context, *watched) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watched{c: h, kind: kind, cancel: cancel, flushed: h.Now(), done: make(chan struct{})}
	if kind != watchEffect {
		w.guard = h.guardPrograms(cancel)
	}
	h.addWatched(ctx, w)
	w.own.Go(func() {
		tick := time.NewTicker(h.WatchGap)
		defer tick.Stop()
		for {
			select {
			case <-w.done:
				return
			case <-tick.C:
				w.lookHere(context.WithoutCancel(ctx))
			}
		}
	})
	return ctx, w
}

// watchKind says for what a run is watched.
type watchKind int

const (
	watchRun      watchKind = iota // all
	watchRecovery                  // the lease only
	watchEffect                    // the switches only; the run itself is watched beside it
)

// watched is a run that is watched. A goroutine of its own looks at the files of its
// switches and shows readers its events; the watcher of the engine, one for all runs,
// asks the store.
type watched struct {
	c       *heldRun
	kind    watchKind
	cancel  context.CancelCauseFunc
	guard   *guardedRun // used by extendLeases only; nil for an effect, which is guarded beside it
	done    chan struct{}
	own     sync.WaitGroup
	flushed time.Time   // used by the own goroutine only
	away    atomic.Bool // the store did not answer the last look
	stopped atomic.Bool // no program of the run is left, and it is to end
	noted   atomic.Bool // that, in the store
}

// stop ends the watching. It returns when nothing is written for the run any more.
func (w *watched) stop() {
	w.c.removeWatched(w)
	close(w.done)
	w.own.Wait()
	if w.guard != nil {
		w.guard.release()
	}
	w.cancel(nil)
}

// lookHere is one look of the run's own goroutine.
func (w *watched) lookHere(ctx context.Context) {
	if w.kind != watchRecovery {
		if end := w.c.switchEnding(); end != nil {
			w.cancel(&stopError{*end})
		}
	}
	if w.kind == watchEffect {
		return
	}
	w.c.noteLive(ctx)
	if w.c.Now().Sub(w.flushed) <= flushGap || w.away.Load() {
		return
	}
	w.flushed = w.c.Now()
	ctx, cancel := context.WithTimeout(ctx, w.c.Store.Lease()/3)
	defer cancel()
	if err := w.c.saveEvents(ctx); errors.Is(err, loop.ErrLeaseLost) || errors.Is(err, loop.ErrStoreGone) {
		w.cancel(err)
	}
}

// see ends the run's context if the store says so. What cannot be read stops the
// run: a store that does not answer counts as a stop once the lease could have lapsed.
func (w *watched) see(asked store.Asked, err error) {
	w.away.Store(err != nil)
	switch {
	case w.kind == watchEffect && err != nil: // The run is watched for that beside it.
	case errors.Is(err, loop.ErrLeaseLost), errors.Is(err, loop.ErrStoreGone):
		w.cancel(err)
	case w.c.Engine.Store.Waiting(err): // Nobody takes the run from a process of this host that runs, however late it extends the lease.
	case err != nil && w.c.Store.Left() <= w.c.Store.Lease()/leaveBefore:
		w.cancel(&awayError{w.c.Store.Age(), err})
	case err != nil || w.kind == watchRecovery:
	case asked.Switch != "":
		w.cancel(&stopError{*pausedBy(loop.KillSwitch{Scope: asked.Switch})})
	case asked.Cancel != "" && w.kind == watchRun:
		w.cancel(&stopError{ending{outcome: loop.OutcomeInterrupted, reason: loop.ReasonStopped, detail: asked.Cancel}})
	}
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
