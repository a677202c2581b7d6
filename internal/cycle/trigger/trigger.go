// Package trigger fires loops whose time has come or for which events wait, and keeps the
// ledgers that say of each planned time and of each event what became of it.
//
// Any number of nodes may do so for one store: a time is decided by the transaction
// that moves the loop on to the next one, an event by the one that gives it its verdict.
// It never runs anything; the runs that it fires are queued. It notices no event itself:
// package listen does.
package trigger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
)

var (
	beforeTick = fault.New("trigger.tick.commit.before")
	afterTick  = fault.New("trigger.tick.commit.after")
)

// The triggers of runs: that they were planned, or that an event happened.
const (
	Name    = "schedule"
	OnEvent = "event"
)

// Who fires them: the person who wrote the definition said so before.
var (
	actor      = loop.Actor{Who: Name, Role: loop.RoleTrigger, From: "daemon"}
	eventActor = loop.Actor{Who: OnEvent, Role: loop.RoleTrigger, From: "daemon"}
)

const (
	batchSize = 100                 // loops that one transaction fires at most
	restTime  = 1 * time.Minute     // until a loop that could not be fired is tried again
	eventGap  = 5 * time.Second     // until it is looked again whether events still have to wait
	keepTime  = 30 * 24 * time.Hour // for which events are kept that have fired
)

// Engine fires runs; see engine.Engine.
type Engine interface {
	Fire(ctx context.Context, tx *store.Tx, t engine.Target, f engine.Firing) (loop.Run, error)
	IntroduceAll(ctx context.Context, list []engine.Target) error
}

// Trigger fires the loops of workspaces that lie on one node. Its methods are for one
// goroutine at a time.
type Trigger struct {
	Store  *store.Store
	Node   string // id
	Engine Engine
	// Target returns what a run of a loop with the definition works on, and which kill
	// switch stops it now: the path of a file; empty: none.
	Target func(ctx context.Context, l loop.Loop, d loop.Definition) (t engine.Target, sw string, err error)
	// Hint tells others of runs that the transaction has queued; nil: nobody.
	Hint func(ctx context.Context, tx *store.Tx, runs []loop.Run) error
	// Tell is called with a loop that is due and cannot be fired. It is tried again after
	// a minute.
	Tell func(l loop.Loop, why error)

	rests map[string]time.Time // loops that could not be fired, and until when
}

// due is a loop that is to fire.
type due struct {
	loop.Loop

	def    loop.Definition
	target engine.Target
	sw     string // kill switch that stops it
	events bool   // events wait for it
}

// Tick fires the loops that are due and those for which events wait, and returns their
// runs and when to call it again. The zero time means never. A loop that cannot be fired
// keeps no other from it.
func (t *Trigger) Tick(ctx context.Context) (fired []loop.Run, next time.Time, err error) {
	var after string // the loop with events that was looked at last
	for {
		list, more, next, err := t.read(ctx, &after)
		if err != nil || len(list) == 0 && !more {
			return fired, next, err
		}
		runs, err := t.fire(ctx, list)
		fired = append(fired, runs...)
		if err != nil {
			return fired, next, err
		}
	}
}

// read returns loops that are due, and loops with events that come after the one with the id
// after, which it moves on: with all that firing them needs. It reports more if there may be
// others.
func (t *Trigger) read(ctx context.Context, after *string) (list []due, more bool, next time.Time, err error) {
	now := t.Store.Now()
	for id, until := range t.rests {
		if !now.Before(until) || until.Sub(now) > restTime { // Or the clock was set back.
			delete(t.rests, id)
		}
	}
	var loops, withEvents []loop.Loop
	var defs map[string]loop.Definition
	err = t.Store.View(ctx, func(r *store.Reader) error {
		// Those that rest are among those that have been due for longest.
		if loops, err = r.DueLoops(ctx, t.Node, now, batchSize+len(t.rests)); err != nil {
			return err
		}
		if next, err = r.NextDue(ctx, t.Node, now); err != nil {
			return err
		}
		event, err := r.NextEvent(ctx, t.Node, now)
		if err != nil {
			return err
		}
		if withEvents, err = r.LoopsWithEvents(ctx, t.Node, now, *after, batchSize); err != nil {
			return err
		}
		if *after != "" || len(withEvents) > 0 {
			event = now.Add(eventGap) // Some may have to wait.
		}
		next = earlier(next, event)
		if more = len(withEvents) == batchSize; len(withEvents) > 0 {
			*after = withEvents[len(withEvents)-1].ID
		}
		for _, l := range withEvents {
			if !slices.ContainsFunc(loops, func(d loop.Loop) bool { return d.ID == l.ID }) {
				loops = append(loops, l)
			}
		}
		if len(loops) == 0 {
			return nil
		}
		var digests []string
		for _, l := range loops {
			digests = append(digests, l.Registered.Good)
		}
		slices.Sort(digests)
		defs, err = r.Definitions(ctx, slices.Compact(digests)...)
		return err
	})
	if err != nil {
		return nil, false, next, err
	}
	for _, until := range t.rests {
		next = earlier(next, until)
	}
	for _, l := range loops {
		if _, rests := t.rests[l.ID]; rests {
			continue
		}
		d := due{Loop: l, events: slices.ContainsFunc(withEvents, func(e loop.Loop) bool { return e.ID == l.ID })}
		var known bool
		if d.def, known = defs[l.Registered.Good]; !known {
			err = fmt.Errorf("its definition %s is not in the store", l.Registered.Good)
		} else {
			d.target, d.sw, err = t.Target(ctx, l, d.def)
		}
		if err != nil {
			t.rest(l, err)
			continue
		}
		list = append(list, d)
	}
	return list, more, next, ctx.Err()
}

// earlier returns the earlier of two times of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// rest keeps a loop that cannot be fired from being tried all the time.
func (t *Trigger) rest(l loop.Loop, why error) {
	if t.rests == nil {
		t.rests = map[string]time.Time{}
	}
	t.rests[l.ID] = t.Store.Now().Add(restTime)
	t.Tell(l, why)
}

// fire gives the planned times of the loops their verdicts, in one transaction.
func (t *Trigger) fire(ctx context.Context, list []due) ([]loop.Run, error) {
	for len(list) > 0 {
		if err := beforeTick.Hit(ctx); err != nil {
			return nil, err
		}
		var runs []loop.Run
		bad, unknown := -1, []int(nil)
		err := t.Store.Update(ctx, func(tx *store.Tx) (err error) {
			runs, bad, unknown = nil, -1, nil
			locked, err := t.lock(ctx, tx, list)
			if err != nil {
				return err
			}
			for i, d := range list {
				l, ok := locked.loops[d.ID]
				if !ok || l.Registered != d.Registered {
					continue // Somebody else was faster, or its file has changed.
				}
				d.Loop = l
				more, err := t.decide(ctx, tx, d, locked)
				switch {
				case errors.Is(err, engine.ErrNewLoop):
					unknown = append(unknown, i)
				case err != nil:
					bad = i
					return err
				}
				runs = append(runs, more...)
			}
			if t.Hint == nil || len(runs) == 0 {
				return nil
			}
			return t.Hint(ctx, tx, runs)
		})
		switch {
		case bad >= 0 && ctx.Err() == nil && !t.Store.Waiting(err):
			t.rest(list[bad].Loop, err)
			list = slices.Delete(list, bad, bad+1)
			continue
		case err != nil:
			return nil, err
		}
		if err := afterTick.Hit(ctx); err != nil {
			return runs, err
		}
		if len(unknown) == 0 {
			return runs, nil
		}
		again := t.introduce(ctx, list, unknown)
		more, err := t.fire(ctx, again)
		return append(runs, more...), err
	}
	return nil, nil
}

// introduce makes it possible to fire those loops of the list that never fired before. It
// returns them without those of which something is wrong.
func (t *Trigger) introduce(ctx context.Context, list []due, which []int) []due {
	fresh, targets := make([]due, len(which)), make([]engine.Target, len(which))
	for i, w := range which {
		fresh[i], targets[i] = list[w], list[w].target
	}
	if err := t.Engine.IntroduceAll(ctx, targets); err == nil {
		for i := range fresh {
			fresh[i].target = targets[i]
		}
		return fresh
	}
	// Something is wrong with one of them.
	return slices.DeleteFunc(fresh, func(d due) bool {
		one := []engine.Target{d.target}
		err := t.Engine.IntroduceAll(ctx, one)
		if err != nil && ctx.Err() == nil {
			t.rest(d.Loop, err)
		}
		return err != nil
	})
}

// locked is what a transaction that fires loops has read and locked.
type locked struct {
	loops    map[string]loop.Loop
	waiting  map[string][]loop.Run // by loop: planned runs that nobody has claimed yet
	switches map[string]string     // by workspace: the switch in the store that stops it
}

func (t *Trigger) lock(ctx context.Context, tx *store.Tx, list []due) (l locked, err error) {
	l = locked{map[string]loop.Loop{}, map[string][]loop.Run{}, map[string]string{}}
	var ids []string
	for _, d := range list {
		ids = append(ids, d.ID)
		if _, asked := l.switches[d.WorkspaceID]; asked {
			continue
		}
		set, err := tx.Switches(ctx, d.WorkspaceID)
		if err != nil {
			return l, err
		}
		l.switches[d.WorkspaceID] = ""
		if len(set) > 0 {
			l.switches[d.WorkspaceID] = set[0].Scope.Command()
		}
	}
	slices.Sort(ids)
	rows, err := tx.LockLoops(ctx, ids...)
	if err != nil {
		return l, err
	}
	for _, row := range rows {
		l.loops[row.ID] = row
	}
	runs, err := tx.PlannedRuns(ctx, ids...)
	for _, r := range runs {
		l.waiting[r.LoopID] = append(l.waiting[r.LoopID], r)
	}
	return l, err
}

// decide gives the events and the planned times of one loop their verdicts, and fires its
// runs, which it returns.
func (t *Trigger) decide(ctx context.Context, tx *store.Tx, d due, locked locked) (runs []loop.Run, err error) {
	stopped := "" // why, as the ledger has it
	if d.Paused || d.def.NeverFires() || d.sw != "" || locked.switches[d.WorkspaceID] != "" {
		stopped = loop.TickPaused
	} else if d.def.Spec != "" {
		rests, err := goalRests(ctx, tx, d.ID)
		if err != nil {
			return nil, err
		}
		if rests {
			stopped = loop.TickRests
		}
	}
	var run loop.Run
	if d.events {
		if run, err = t.decideEvents(ctx, tx, d, stopped != ""); err != nil {
			return nil, err
		}
	}
	waiting := locked.waiting[d.ID]
	if run.ID != "" { // It makes up for a time that is due now, too.
		runs, waiting = append(runs, run), append(waiting, run)
	}
	if d.Registered.Due.IsZero() || d.Registered.Due.After(tx.Now()) {
		return runs, nil
	}
	if run, err = t.decideTimes(ctx, tx, d, stopped, waiting); run.ID != "" {
		runs = append(runs, run)
	}
	return runs, err
}

// goalRests reports whether the goal of a spec is met, waits for a human or was given up: a
// spec that is not running is not due.
func goalRests(ctx context.Context, tx *store.Tx, loopID string) (bool, error) {
	steps, err := tx.Steps(ctx, loopID)
	rests := slices.ContainsFunc(steps, func(s loop.Step) bool {
		return s.State == loop.StepWaiting || s.State == loop.StepEscalated
	})
	return rests, err
}

// decideEvents gives the events that wait for a loop their verdicts. It returns the run that
// it fired, or the zero Run.
func (t *Trigger) decideEvents(ctx context.Context, tx *store.Tx, d due, stopped bool) (run loop.Run, err error) {
	waiting, err := tx.WaitingEvents(ctx, d.ID, tx.Now())
	if err != nil || len(waiting) == 0 {
		return run, err
	}
	scene := schedule.Scene{Stopped: stopped}
	if scene.Queued, err = tx.QueuedByEvent(ctx, d.ID); err != nil {
		return run, err
	}
	switch _, err := tx.Live(ctx, d.ID); {
	case err == nil:
		scene.Live = true
	case !errors.Is(err, loop.ErrNotFound):
		return run, err
	}
	decided := schedule.DecideEvents(waiting, scene)
	if decided[0].Verdict == loop.FiringRan {
		run, err = t.Engine.Fire(ctx, tx, d.target, engine.Firing{Trigger: OnEvent, Event: sourcesOf(decided), By: eventActor, Key: decided[0].FiringKey()})
		if err != nil {
			return loop.Run{}, err
		}
		for i := range decided {
			decided[i].RunID = run.ID
		}
		if err := tx.ForgetEvents(ctx, d.ID, tx.Now().Add(-keepTime)); err != nil {
			return loop.Run{}, err
		}
	}
	changed := decided[:0]
	for i, e := range decided {
		if e.Verdict != waiting[i].Verdict || e.Reason != waiting[i].Reason {
			changed = append(changed, e)
		}
	}
	return run, tx.DecideEvents(ctx, changed)
}

// mostSources is how many characters of the sources of its events a run is known by.
const mostSources = 200

// sourcesOf names the sources of events, each once.
func sourcesOf(list []loop.FiringEvent) string {
	var all []string
	for _, e := range list {
		if !slices.Contains(all, e.Source) {
			all = append(all, e.Source)
		}
	}
	text := strings.Join(all, ", ")
	if runes := []rune(text); len(runes) > mostSources {
		text = string(runes[:mostSources-1]) + "…"
	}
	return text
}

// decideTimes gives the planned times of one loop their verdicts, and fires its runs. It
// returns the last run, or the zero Run if it fired none. Stopped is why it may not fire; empty: it may. Waiting are its runs that nobody
// has claimed yet.
func (t *Trigger) decideTimes(ctx context.Context, tx *store.Tx, d due, stopped string, waiting []loop.Run) (run loop.Run, err error) {
	reg := d.Registered
	ticks, next, err := schedule.Ticks(d.def, d.Created, schedule.Firing{Planned: reg.Planned, Due: reg.Due}, tx.Now())
	if err != nil {
		return run, err
	}
	if len(ticks) == 0 { // The database's clock was set back since it was read.
		return run, tx.PlanNext(ctx, d.ID, next.Planned, next.Due, d.Ticked)
	}
	ahead := -1 // index of the first tick that does not know its run yet
	for i := range ticks {
		k := &ticks[i]
		k.LoopID = d.ID
		switch {
		case k.Verdict == loop.TickSkipped:
			continue
		case stopped != "":
			k.Verdict, k.Reason = loop.TickSkipped, stopped
			continue
		case k.Verdict == loop.TickRan && len(waiting) > 0 && (d.def.CatchUp != loop.CatchUpAll || len(waiting) >= schedule.MaxCatchUp):
			k.Verdict, k.RunID = loop.TickCoalesced, waiting[len(waiting)-1].ID
		case k.Verdict == loop.TickRan:
			run, err = t.Engine.Fire(ctx, tx, d.target, engine.Firing{
				Trigger: Name, Planned: k.First, By: actor, Key: fmt.Sprintf("%s@%d", d.ID, k.First.UnixMilli()),
			})
			if err != nil {
				return run, err
			}
			k.RunID = run.ID
			waiting = append(waiting, run)
		}
		switch {
		case k.RunID == "" && ahead < 0:
			ahead = i
		case k.RunID != "" && ahead >= 0:
			for j := ahead; j < i; j++ {
				ticks[j].RunID = k.RunID
			}
			ahead = -1
		}
	}
	if err := tx.AddTicks(ctx, ticks); err != nil {
		return run, err
	}
	return run, tx.PlanNext(ctx, d.ID, next.Planned, next.Due, ticks[len(ticks)-1].Last)
}
