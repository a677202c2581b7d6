package engine

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// watching is the one watcher of an engine, with the runs that it watches. It works
// while there are any.
type watching struct {
	mu   sync.Mutex
	runs map[*watched]bool
	end  func() // ends the watcher and waits for it; nil: it does not work

	extending sync.Mutex // held by extendLeases
	beat      time.Time  // when the store was last told that this node is there; zero: not by this engine
}

// addWatched lets the watcher look for a run, too. What it does for the first run it
// does with the values of that run's context.
func (e *Engine) addWatched(ctx context.Context, w *watched) {
	e.watching.mu.Lock()
	defer e.watching.mu.Unlock()
	if e.watching.runs == nil {
		e.watching.runs = map[*watched]bool{}
	}
	e.watching.runs[w] = true
	if e.watching.end == nil {
		e.watching.end = e.startWatcher(context.WithoutCancel(ctx))
	}
}

// removeWatched is the end of addWatched. With the last run it waits for the watcher.
func (e *Engine) removeWatched(w *watched) {
	e.watching.mu.Lock()
	delete(e.watching.runs, w)
	end := e.watching.end
	if len(e.watching.runs) > 0 {
		end = nil
	} else {
		e.watching.end = nil
	}
	e.watching.mu.Unlock()
	if end != nil {
		end()
	}
}

// startWatcher starts the watcher. Reading never waits for writing, which may take its
// time on SQLite.
func (e *Engine) startWatcher(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() { e.repeat(ctx, e.lookAtRuns) })
	both.Go(func() { e.repeat(ctx, e.extendLeases) })
	return func() {
		cancel()
		both.Wait()
	}
}

// repeat calls do once in every WatchGap until ctx ends.
func (e *Engine) repeat(ctx context.Context, do func(context.Context)) {
	tick := time.NewTicker(e.WatchGap)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// watchedRuns lists what is watched at the moment.
func (e *Engine) watchedRuns() []*watched {
	e.watching.mu.Lock()
	defer e.watching.mu.Unlock()
	list := make([]*watched, 0, len(e.watching.runs))
	for w := range e.watching.runs {
		list = append(list, w)
	}
	return list
}

// lookAtRuns asks the store in one query for all that the runs are to know: who holds
// them, whether they are to stop, and which switches are set.
func (e *Engine) lookAtRuns(ctx context.Context) {
	list := e.watchedRuns()
	runs := make([]loop.Run, 0, len(list))
	for _, w := range list {
		runs = append(runs, w.c.id)
	}
	limited, cancel := context.WithTimeout(ctx, e.answerTime(list))
	defer cancel()
	seen, err := e.Store.Watch(limited, runs)
	if ctx.Err() != nil { // Nobody is watched any more.
		return
	}
	for _, w := range list {
		asked, wrong := seen.Of(w.c.id)
		if err != nil {
			wrong = err
		}
		w.see(asked, wrong)
	}
}

// answerTime is how long the store may take for an answer. A run that has to end because
// there is none ends in time.
func (e *Engine) answerTime(list []*watched) time.Duration {
	lease := e.Store.Lease()
	limit := lease / 3
	for _, w := range list {
		if left := w.c.Store.Left() - lease/leaveBefore; left > 0 {
			limit = min(limit, left)
		}
	}
	return limit
}

// extendLeases extends the leases of which a third is over, in one transaction. Those of
// which a sixth is over come along, so that they become due together. It also says
// that this node is there, and of which runs no program is left, and tells the guard
// what came of it.
func (e *Engine) extendLeases(ctx context.Context) {
	e.watching.extending.Lock()
	defer e.watching.extending.Unlock()
	lease := e.Store.Lease()
	var all, list, stopped []*watched
	waits := map[*watched]bool{} // the store is only busy: nobody takes these runs
	defer func() {
		for _, w := range all {
			w.guard.look(waits[w])
		}
	}()
	var holders []*store.Holding
	if e.watching.beat.IsZero() { // Whoever registered the node has just said so.
		e.watching.beat = e.Now()
	}
	heart := e.Self.Node != "" && e.Now().Sub(e.watching.beat) >= lease/3
	due := heart
	for _, w := range e.watchedRuns() {
		if w.kind == watchEffect {
			continue
		}
		all = append(all, w)
		age, overdue := w.c.Store.Age(), w.guard.overdue()
		if due = due || overdue || age >= lease/3; overdue || age >= lease/6 {
			list, holders = append(list, w), append(holders, w.c.Store)
		}
		if w.stopped.Load() && !w.noted.Load() {
			stopped = append(stopped, w)
		}
	}
	if !due && len(stopped) == 0 {
		return
	}
	var runs []loop.Run
	for _, w := range stopped {
		runs = append(runs, w.c.id)
	}
	// What is under way when the last run ends may still be committed: only time ends it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.answerTime(list))
	defer cancel()
	tried, err := e.Store.Extend(ctx, holders, runs, func(tx *store.Tx) error {
		if !heart {
			return nil
		}
		return tx.SeeNode(ctx, e.Self.Node, e.Store.Skew())
	})
	if err == nil {
		for _, w := range stopped {
			w.noted.Store(true)
		}
		if heart {
			e.watching.beat = e.Now()
		}
	}
	for _, w := range list {
		if extended, ok := tried[w.c.Store]; ok {
			w.see(store.Asked{Cancel: extended.Cancel}, extended.Err)
			waits[w] = e.Store.Waiting(extended.Err)
		}
	}
}
