// Package sim runs loops on a clock of its own: what fires when, what is in whose way, and
// what it uses, for weeks in seconds.
//
// Time is decided by the real trigger, the real arbitration of scopes, the real budgets and
// the real rows, in a store that is in memory and whose time is the simulation's. Nothing
// acts: no process is started, no repository is read, and what a run comes to is drawn from
// the past runs of its loop, or from what its pattern usually needs. The same options give
// the same history.
package sim

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/trigger"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

// Loop is a loop that is simulated.
type Loop struct {
	ID         string // that budgets name; empty: one of the simulation's own
	Definition loop.Definition
	Registered time.Time  // its intervals count from here; zero: the start
	Past       []loop.Run // of it, that have ended; may be empty
}

// Options say what is simulated. Loops, Start and For are required.
type Options struct {
	Loops     []Loop
	Workspace string // id that budgets name; may be empty
	Start     time.Time
	For       time.Duration
	Seed      uint64
	Workers   int           // runs at once; 0: 8
	Budgets   []loop.Budget // of all loops
	Prices    price.Table
	Now       func() time.Time // of this host, by which nothing is decided
	Play      Play             // that decides what runs come to; nil: it is what was drawn

	Fired func(l string, run loop.Run)     // called with each run that fires; may be nil
	Ended func(l string, run loop.Run)     // called with each run that ends; may be nil
	Times func(l string, list []loop.Tick) // called in the end with what became of the planned times of each loop, the newest first; may be nil
}

const (
	workers   = 8           // as many as pawl up has
	lockedGap = time.Minute // until a run that waits for a lock is tried again, as by the daemon
	nodeID    = "node_sim"
	longLease = 1000 * 24 * time.Hour // no holder dies
	mostTicks = 1_000_000
)

// holder is who has all runs.
var holder = loop.Holder{PID: 1, Host: "sim", Node: nodeID}

// happening is something that comes at a time: the end of a run, or a look at the queue.
type happening struct {
	at  time.Time
	seq int // of those at one time the first that was planned comes first
	end *live
}

type agenda []happening

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return cmp.Or(a[i].at.Compare(a[j].at), cmp.Compare(a[i].seq, a[j].seq)) < 0
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is that of heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(happening)) } //nolint:forcetypeassert // Only plan calls it.

// Pop is that of heap.Interface.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// live is a run that is at work.
type live struct {
	run    loop.Run
	of     *simulated
	ledger *budget.Ledger // nil: it reserved nothing
	drawn  drawn
	opens  time.Time // when the budget that was short has enough again; zero: none was
}

// simulated is a loop with what is known of it.
type simulated struct {
	Loop

	row    loop.Loop
	target engine.Target
	counts Tally
	live   string // id of its run that is at work, or was at last
}

// queued is a run that waits to begin.
type queued struct {
	run    loop.Run
	waited bool      // another run was in its way
	behind string    // id of the live run that it waits for; empty: it is not known
	until  time.Time // it waits for no longer
}

type simulation struct {
	Options

	now    time.Time
	store  *store.Store
	engine *engine.Engine
	loops  map[string]*simulated // by id
	order  []*simulated
	agenda agenda
	seq    int
	ids    int
	queue  []queued
	lives  map[string]bool // ids of the runs that are at work
	wake   bool            // an event has happened that fires a loop
}

// Run simulates. It blocks until the time is over, or ctx ends.
func Run(ctx context.Context, o Options) (Result, error) {
	s := &simulation{Options: o, now: o.Start.UTC().Truncate(time.Millisecond), loops: map[string]*simulated{}, lives: map[string]bool{}}
	s.Workers, s.Workspace = cmp.Or(s.Workers, workers), cmp.Or(s.Workspace, "ws_sim")
	var err error
	s.store, err = store.Open(ctx, store.Options{Database: store.Memory, Now: o.Now, Virtual: func() time.Time { return s.now }, Lease: longLease})
	if err != nil {
		return Result{}, err
	}
	err = s.simulate(ctx)
	var r Result
	if err == nil {
		r, err = s.result(ctx)
	}
	return r, errors.Join(err, s.store.Close())
}

func (s *simulation) simulate(ctx context.Context) error {
	s.engine = engine.New(engine.Deps{
		Store: s.store, Now: func() time.Time { return s.now }, NewID: s.newID, Self: holder,
		HolderState: func(loop.Holder) loop.HolderState { return loop.HolderRunning },
	})
	if err := s.register(ctx); err != nil {
		return err
	}
	var failed error
	t := trigger.Trigger{
		Store: s.store, Node: nodeID, Engine: s.engine,
		Target: func(_ context.Context, l loop.Loop, _ loop.Definition) (engine.Target, string, error) {
			return s.loops[l.ID].target, "", nil
		},
		Tell: func(l loop.Loop, why error) { failed = errors.Join(failed, fmt.Errorf("fire %s: %w", l.Name, why)) },
	}
	end := s.now.Add(s.For)
	s.wake = true
	var due time.Time
	for {
		if s.wake || !due.IsZero() && !due.After(s.now) {
			s.wake = false
			fired, next, err := t.Tick(ctx)
			if err = errors.Join(err, failed); err != nil {
				return err
			}
			due = next
			for _, run := range fired {
				s.queue = append(s.queue, queued{run: run})
				if s.Fired != nil {
					s.Fired(s.loops[run.LoopID].row.Name, run)
				}
			}
		}
		next := due
		if err := s.startQueued(ctx); err != nil {
			return err
		}
		if s.wake { // It may come before what was due next.
			continue
		}
		if len(s.agenda) > 0 && (next.IsZero() || s.agenda[0].at.Before(next)) {
			next = s.agenda[0].at
		}
		if next.IsZero() || next.After(end) {
			s.now = end
			return nil
		}
		if next.After(s.now) { // What is due already was looked at.
			s.now = next
		}
		for len(s.agenda) > 0 && !s.agenda[0].at.After(s.now) {
			h := heap.Pop(&s.agenda).(happening) //nolint:forcetypeassert // See Push.
			if h.end == nil {
				continue
			}
			if err := s.endRun(ctx, h.end); err != nil {
				return err
			}
		}
	}
}

func (s *simulation) newID(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s_%08d", prefix, s.ids)
}

func (s *simulation) plan(at time.Time, end *live) {
	s.seq++
	heap.Push(&s.agenda, happening{at, s.seq, end})
}

// register makes the rows that a fleet of real loops has.
func (s *simulation) register(ctx context.Context) error {
	ws := loop.Workspace{ID: s.Workspace, Root: "/sim", Repository: s.Workspace}
	start := s.now
	for i, l := range s.Loops {
		d := l.Definition.WithDefaults()
		id := cmp.Or(l.ID, fmt.Sprintf("lp_%06d", i))
		if s.now = start; !l.Registered.IsZero() {
			s.now = l.Registered.UTC().Truncate(time.Millisecond)
		}
		err := s.store.Update(ctx, func(tx *store.Tx) error {
			if i == 0 {
				err := errors.Join(tx.AddWorkspace(ctx, ws), tx.SaveNode(ctx, loop.Node{ID: nodeID, Name: "sim"}), tx.Place(ctx, loop.Placement{WorkspaceID: s.Workspace, NodeID: nodeID, Path: ws.Root}))
				for _, b := range s.Budgets {
					err = errors.Join(err, tx.SetBudget(ctx, b))
				}
				if err != nil {
					return err
				}
			}
			row := loop.Loop{ID: id, WorkspaceID: s.Workspace, Name: d.Name, Protocol: d.Protocol}
			if err := tx.AddLoop(ctx, ws, row); err != nil {
				return err
			}
			row, err := tx.Loop(ctx, id)
			if err != nil {
				return err
			}
			next, err := schedule.Next(d, row.Created, start)
			if err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
			err = errors.Join(tx.AddDefinition(ctx, id, d), tx.SaveRegistration(ctx, id, loop.Registration{
				Source: "sim", Good: d.Digest(), Planned: next.Planned, Due: next.Due, Listens: strings.Join(d.On, "\n"),
			}))
			one := &simulated{Loop: l, row: row, target: engine.Target{Workspace: ws, Loop: row, Definition: d}, counts: Tally{Loop: d.Name, Cadence: d.Cadence}}
			if one.Definition = d; s.Play != nil {
				one.Past = worked(l.Past)
			}
			s.loops[id], s.order = one, append(s.order, one)
			return err
		})
		if err != nil {
			return err
		}
	}
	s.now = start
	return nil
}

// startQueued begins as many queued runs as can begin now, in the order of firing.
func (s *simulation) startQueued(ctx context.Context) error {
	waiting := s.queue[:0]
	behind := map[string]string{} // ids of live runs, by the locks that they were found to be in the way of
	wait := func(q queued, of *simulated, by string) {
		if !q.waited {
			q.waited = true
			of.counts.Collisions++
		}
		q.behind, q.until = by, s.now.Add(lockedGap)
		waiting = append(waiting, q)
	}
	for i, q := range s.queue {
		if len(s.lives) >= s.Workers {
			waiting = append(waiting, s.queue[i:]...)
			break
		}
		if s.lives[q.behind] && s.now.Before(q.until) {
			waiting = append(waiting, q)
			continue
		}
		of := s.loops[q.run.LoopID]
		lock := fmt.Sprint(plan.LockOf(of.target.Definition.WithDefaults()), q.run.Trigger)
		if by := behind[lock]; s.lives[by] {
			wait(q, of, by)
			continue
		}
		claimed, err := s.engine.Claim(ctx, of.target, q.run.ID, s.lives)
		_, held := errors.AsType[*loop.HeldError](err)
		locked, isLocked := errors.AsType[*loop.LockedError](err)
		switch {
		case held:
			q.behind, q.until = of.live, s.now.Add(s.For)
			waiting = append(waiting, q)
			continue
		case isLocked:
			behind[lock] = locked.By.Run
			s.plan(s.now.Add(lockedGap), nil)
			wait(q, of, locked.By.Run)
			continue
		case err != nil:
			return fmt.Errorf("begin %s#%d: %w", of.row.Name, q.run.N, err)
		}
		if q.waited {
			of.counts.addWait(s.now.Sub(q.run.Created))
		}
		if err := s.begin(ctx, of, claimed); err != nil {
			return err
		}
	}
	s.queue = waiting
	return nil
}

// begin decides what a run that was claimed does, as far as that takes no process.
func (s *simulation) begin(ctx context.Context, of *simulated, c engine.Claimed) error {
	l := &live{run: c.Run, of: of}
	if outcome, reason, deferred := c.Deferred(); deferred {
		of.counts.Deferred++
		of.counts.Collisions++
		return s.end(ctx, l, outcome, reason)
	}
	if s.Play == nil {
		l.drawn = of.draw(s.Seed, c.Run.N)
	} else {
		works, err := s.Play.Open(ctx, of.row.Name, c.Run, s.now)
		if err != nil {
			return err
		}
		if l.drawn = foundNothing; works {
			l.drawn = of.drawWork(s.Seed, c.Run.N)
		}
	}
	step := loop.Step{Key: "work", Title: "work", Kind: loop.StepWork, State: loop.StepOpen}
	snapshot := plan.Snapshot{Rules: plan.DefinitionRules(c.Definition), Run: c.Run.N, RunID: c.Run.ID, Started: s.now, Candidates: []plan.Candidate{{Step: step}}}
	if l.drawn.outcome == loop.OutcomeQuiet {
		snapshot.Nothing = loop.ReasonSensedNothing
	}
	if d := plan.Next(snapshot, s.now); d.Choice == nil {
		return s.begun(l) // It looked, and found nothing to do.
	}
	ledger := budget.New(budget.Owner{
		Store: s.store, Now: func() time.Time { return s.now }, Prices: func() (price.Table, error) { return s.Prices, nil },
		Run: c.Run, Definition: c.Definition, Loop: of.row.Name, Workspace: s.Workspace, Agent: c.Definition.Agent, Model: c.Definition.Model,
	})
	err := ledger.Open(ctx)
	if err == nil {
		err = s.store.Update(ctx, func(tx *store.Tx) error {
			rt, err := tx.Save(ctx, c.Run, loop.PhaseDecide)
			if err != nil {
				return err
			}
			return ledger.Reserve(ctx, rt)
		})
	}
	switch {
	case budget.IsUnpriced(err):
		of.counts.Unfunded++
		l.drawn = drawn{}
		return s.end(ctx, l, loop.OutcomeBlocked, loop.ReasonPriceUnknown)
	case budget.IsUnpaid(err):
		of.counts.Unfunded++
		l.drawn, l.opens = drawn{}, ledger.OpensAgain()
		return s.end(ctx, l, loop.OutcomeBudget, loop.ReasonBudget)
	case err != nil:
		return fmt.Errorf("reserve for %s#%d: %w", of.row.Name, c.Run.N, err)
	}
	l.run.Phase, l.ledger = loop.PhaseDecide, ledger
	if s.Play == nil {
		return s.begun(l)
	}
	calls, err := s.Play.Begin(ctx, of.row.Name, s.now)
	if err == nil {
		err = s.store.Update(ctx, func(tx *store.Tx) error { return s.addCalls(ctx, tx, of, calls) })
	}
	return errors.Join(err, s.begun(l))
}

// begun lets a run end when its time is over.
func (s *simulation) begun(l *live) error {
	s.lives[l.run.ID], l.of.live = true, l.run.ID
	s.plan(s.now.Add(l.drawn.took), l)
	return nil
}

func (s *simulation) endRun(ctx context.Context, l *live) error {
	delete(s.lives, l.run.ID)
	return s.end(ctx, l, l.drawn.outcome, l.drawn.reason)
}

// end ends a run with what it used, and fires the loops that listen to it.
func (s *simulation) end(ctx context.Context, l *live, outcome loop.Outcome, reason loop.Reason) error {
	run, used := l.run, l.drawn
	run.Outcome, run.Reason, run.Detail, run.Usage = outcome, reason, used.detail, used.usage
	run.Spent = loop.Spent{Total: used.took, Agent: used.agent}
	microUSD, priced, assumed := used.microUSD, used.priced, used.assumed
	if !used.known && !used.usage.Zero() {
		microUSD, priced = plan.CallCost(l.of.Definition.Model, used.usage, s.Prices)
		m, _ := s.Prices.PriceOf(l.of.Definition.Model)
		assumed = m.Assumed != ""
	}
	run.Cost.MicroUSD = microUSD
	ending := Ending{Outcome: run.Outcome, Reason: run.Reason, Detail: run.Detail}
	if s.Play != nil {
		var err error
		if ending, err = s.Play.End(ctx, l.of.row.Name, run, s.now); err != nil {
			return err
		}
		run.Outcome, run.Reason, run.Detail = ending.Outcome, ending.Reason, ending.Detail
	}
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		rt, err := tx.Settle(ctx, run, loop.PhaseConclude, false)
		if err != nil {
			return err
		}
		if !l.opens.IsZero() {
			s.wake = true
			if _, err := tx.AddEvent(ctx, engine.WakingEvent(run.LoopID, loop.OnBudget, l.opens), nil); err != nil {
				return err
			}
		}
		if ending.Pause {
			if err := tx.Pause(ctx, run.LoopID, true); err != nil {
				return err
			}
		}
		err = errors.Join(s.addCalls(ctx, tx, l.of, ending.Calls), s.fireListeners(ctx, tx, l.of.row.Name, run))
		if err != nil || l.ledger == nil {
			return err
		}
		return l.ledger.Settle(ctx, rt, budget.Spent{Priced: priced, Used: loop.Amount{
			Tokens: used.usage.ChargedTokens(), Output: used.usage.Output, MicroUSD: microUSD, Wall: used.agent, Iterations: 1,
		}})
	})
	if err != nil {
		return fmt.Errorf("end %s#%d: %w", l.of.row.Name, run.N, err)
	}
	l.of.counts.addRun(run, microUSD, priced, assumed)
	if s.Ended != nil {
		run.Ended = s.now
		s.Ended(l.of.row.Name, run)
	}
	return nil
}

// fireListeners records the end of a run for the loops that it fires.
func (s *simulation) fireListeners(ctx context.Context, tx *store.Tx, name string, run loop.Run) error {
	source := loop.EventSource{Kind: loop.OnLoop, What: name, Outcome: run.Outcome}.String()
	for _, other := range s.order {
		if !slices.Contains(other.Definition.On, source) {
			continue
		}
		if _, err := tx.AddEvent(ctx, loop.FiringEvent{LoopID: other.row.ID, ID: run.ID, Source: source}, nil); err != nil {
			return err
		}
		s.wake = true
	}
	return nil
}
