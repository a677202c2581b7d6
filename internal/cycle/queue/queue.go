// Package queue hands the runs that wait to be executed to those who execute them.
//
// It only wakes: the rows of the store are the truth, a run that it hands out twice
// is claimed once, and one that it forgets is found again by the next look at the rows.
// Local is for one process and SQLite; River is for the nodes that share a PostgreSQL.
package queue

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ErrStopped is the error of Take after Stop.
var ErrStopped = errors.New("the queue was stopped")

// Gap is the time between looks at the rows when nothing wakes the queue: runs that
// others have queued, and work that was in the way of one, are seen after it.
const Gap = 5 * time.Second

// Local is a queue within one process, for the runs that its node may execute.
// Its methods may be called concurrently.
type Local struct {
	store *store.Store
	node  string
	now   func() time.Time
	wake  chan struct{} // has room for one
	turn  chan struct{} // has room for one, who waits for a run; others wait for the turn
	stop  chan struct{}
	once  sync.Once

	hints time.Duration // a run that was fired so recently is left to whoever gets a hint of it; zero: there are no hints

	mu      sync.Mutex
	ready   []loop.Run               // in the order in which they are handed out
	offered map[string]chan struct{} // runs that a hint named, by id; closed when the run is taken
	taken   map[string]int           // runs that somebody executes, by id: how many had ended when it was taken
	ends    int                      // runs that have ended
	last    map[string]int           // the last of them, by workspace
	later   map[string]postponed     // by id
	ended   map[string]bool          // ids of runs that were executed since the look that goes on began
}

// postponed is a run that could not be executed yet.
type postponed struct {
	workspace string
	until     time.Time
}

// NewLocal returns a queue of a node, whose waits are measured by now.
func NewLocal(s *store.Store, node string, now func() time.Time) *Local {
	return &Local{
		store: s, node: node, now: now, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), stop: make(chan struct{}),
		offered: map[string]chan struct{}{}, taken: map[string]int{}, last: map[string]int{}, later: map[string]postponed{},
	}
}

// Wake says that runs were queued, or that something has ended that was in their way.
func (q *Local) Wake() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Take waits for a run that is to be executed, the oldest first. Whoever takes it calls
// Finish. The error is ErrStopped after Stop, or that of ctx.
func (q *Local) Take(ctx context.Context) (loop.Run, error) {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-q.stop:
		return loop.Run{}, ErrStopped
	case <-ctx.Done():
		return loop.Run{}, context.Cause(ctx)
	}
	for {
		if run, ok := q.next(); ok {
			return run, nil
		}
		wait, err := q.look(ctx)
		if err != nil {
			return loop.Run{}, err
		}
		if run, ok := q.next(); ok {
			return run, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-q.wake:
		case <-timer.C:
		case <-q.stop:
			err = ErrStopped
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		timer.Stop()
		if err != nil {
			return loop.Run{}, err
		}
	}
}

// next returns a run that a look at the rows or a hint has found, unless the queue was
// stopped.
func (q *Local) next() (run loop.Run, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.stop:
		return run, false
	default:
	}
	if len(q.ready) == 0 {
		return run, false
	}
	run, q.ready = q.ready[0], q.ready[1:]
	q.taken[run.ID] = q.ends
	if told := q.offered[run.ID]; told != nil {
		close(told)
		delete(q.offered, run.ID)
	}
	return run, true
}

// offer hands out a run that a hint named. The channel is closed when somebody
// takes it; nil if this process knows the run already.
func (q *Local) offer(run loop.Run) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, waits := q.later[run.ID]
	_, taken := q.taken[run.ID]
	if waits || taken || q.offered[run.ID] != nil {
		return nil
	}
	told := make(chan struct{})
	q.offered[run.ID] = told
	q.ready = slices.DeleteFunc(q.ready, func(r loop.Run) bool { return r.ID == run.ID })
	q.ready = append(q.ready, run)
	q.Wake()
	return told
}

// withdraw takes an offer back that nobody has taken.
func (q *Local) withdraw(run loop.Run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.offered[run.ID] != nil {
		delete(q.offered, run.ID)
		q.ready = slices.DeleteFunc(q.ready, func(r loop.Run) bool { return r.ID == run.ID })
	}
}

// look reads which runs are queued. It returns how long to wait until the next look.
func (q *Local) look(ctx context.Context) (time.Duration, error) {
	q.mu.Lock()
	busy := len(q.taken) + len(q.later)
	q.ended = map[string]bool{}
	q.mu.Unlock()
	var rows []loop.Run
	err := q.store.View(ctx, func(r *store.Reader) (err error) {
		rows, err = r.QueuedRuns(ctx, q.node, busy+100) // Those that are busy come first.
		return err
	})
	if err != nil {
		return 0, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	defer func() { q.ended = nil }()
	now, wait := q.now(), Gap
	still := map[string]bool{}
	hinted := slices.DeleteFunc(q.ready, func(run loop.Run) bool { return q.offered[run.ID] == nil })
	var found []loop.Run
	for _, run := range rows {
		still[run.ID] = true
		p, waits := q.later[run.ID]
		_, taken := q.taken[run.ID]
		age := q.store.Now().Sub(run.Created) // It is negative after the clock of the database was set back.
		switch {
		case taken || q.ended[run.ID] || q.offered[run.ID] != nil:
		case waits && p.until.After(now):
			wait = min(wait, p.until.Sub(now))
		case !waits && age.Abs() < q.hints:
			wait = min(wait, q.hints-age)
		default:
			found = append(found, run)
		}
	}
	if q.hints > 0 {
		q.scatter(found)
	}
	q.ready = slices.Concat(hinted, found)
	for id := range q.later {
		if !still[id] {
			delete(q.later, id)
		}
	}
	return wait, nil
}

// scatter puts runs into an order that is another one on each node, so that nodes which
// find the same ones rarely begin with the same. Runs of one loop keep their order.
func (q *Local) scatter(runs []loop.Run) {
	place := func(run loop.Run) uint32 {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(q.node + run.LoopID)) // It never fails.
		return sum.Sum32()
	}
	slices.SortStableFunc(runs, func(a, b loop.Run) int { return cmp.Compare(place(a), place(b)) })
}

// Finish says that a run was executed, or that it could not be: then it is handed out
// again after a while, and sooner if another run of its workspace ends. A zero again
// means that it was executed.
func (q *Local) Finish(run loop.Run, workspace string, again time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	missed := q.last[workspace] > q.taken[run.ID]
	delete(q.taken, run.ID)
	delete(q.later, run.ID)
	if again > 0 && missed { // What was in its way may have ended while it was tried.
		q.later[run.ID] = postponed{workspace, q.now()}
		q.Wake()
		return
	}
	if again > 0 {
		q.later[run.ID] = postponed{workspace, q.now().Add(again)}
		return
	}
	q.ends++
	q.last[workspace] = q.ends
	if q.ended != nil {
		q.ended[run.ID] = true
	}
	for id, p := range q.later {
		if p.workspace == workspace {
			q.later[id] = postponed{workspace, q.now()}
		}
	}
	q.Wake()
}

// Stop ends all Takes, those that wait too. What was taken may be finished.
func (q *Local) Stop() { q.once.Do(func() { close(q.stop) }) }
