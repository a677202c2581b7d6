// Package daemon makes loops come back by themselves: on one node it fires those that
// are due, executes the runs that are queued, and concludes those that were lost.
//
// It decides nothing: triggers, the queue and the engine do. Any number of daemons, one
// for each node, share a store.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/cycle/listen"
	"github.com/pawl-run/pawl/internal/cycle/trigger"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/accepted"
	"github.com/pawl-run/pawl/internal/record/event"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/lookup"
	"github.com/pawl-run/pawl/internal/verbs/notify"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// How often a daemon looks at what nothing tells it.
const (
	scanGap  = 30 * time.Second // at the definitions of all workspaces, and at what is due
	sweepGap = 5 * time.Second  // for runs whose holder is gone
	beatGap  = 15 * time.Second // says that the node is there
	lateGap  = time.Minute      // for loops of all nodes that have stopped coming
	tidyGap  = 10 * time.Minute // for what is old, if no run is being executed
)

// Place is a workspace that lies on this node.
type Place struct {
	*lookup.Workspace

	// Recover concludes what dead processes left in it.
	Recover func(context.Context) ([]engine.Recovered, error)
}

// Queue hands out the runs that wait to be executed on this node; see package queue.
type Queue interface {
	Wake()
	Take(ctx context.Context) (loop.Run, error)
	Finish(run loop.Run, workspace string, again time.Duration)
	Stop()
}

// Deps are what a daemon is made of. All but Hint, Accepted and Beside are required.
type Deps struct {
	Formats format.List
	Store   *store.Store
	Pulse   *event.Pulse // of the store's feed; the daemon runs it
	Queue   Queue
	// Hint tells other nodes of runs that the transaction has queued.
	Hint     func(ctx context.Context, tx *store.Tx, runs []loop.Run) error
	Engine   *engine.Engine
	Node     string // id of this node
	Now      func() time.Time
	NewID    func(prefix string) string
	Log      *slog.Logger
	Accepted *accepted.Folder // what a person has accepted on this machine; nil: all
	// Open opens the workspace that lies at a path on this node.
	Open func(ctx context.Context, path string) (*Place, error)
	// Workers is how many runs are executed at once.
	Workers int
	// Tell is called with what happens, by several goroutines.
	Tell func(Happened)
	// Beside runs beside all this until its context ends, which Stop does.
	Beside []func(context.Context) error
}

// Happened is something that a person should see. Exactly one of Fired, Ended, Recovered
// and Wrong is set.
type Happened struct {
	Loop      string // its name; empty if Wrong is about no loop
	Root      string // of its workspace
	Fired     *loop.Run
	Ended     *loop.Run
	Recovered *engine.Recovered
	Wrong     error
}

// Daemon is the daemon of one node. Start it once, and stop it.
type Daemon struct {
	Deps

	fleet   fleet
	listen  *listen.Listener
	hooks   *hooks // nil: no webhooks are received
	metrics metrics
	looked  atomic.Pointer[time.Time] // when it looked last for loops that are due; nil: never
	poke    chan struct{}             // the definitions are to be read again; has room for one
	atWork  atomic.Int64              // runs that are being executed
	tidied  int64                     // sequence number of the newest run whose transcript was looked at; for one goroutine
	look    chan struct{}             // something may fire; has room for one
	wrong   sync.Map                  // by what is done, or by the root of a workspace: what went wrong the last time

	working sync.WaitGroup // all goroutines but the workers
	workers sync.WaitGroup
	stop    context.CancelFunc // ends working
	abort   context.CancelFunc // interrupts the runs

	requests requests
}

// New makes a daemon.
func New(d Deps) *Daemon {
	m := &Daemon{
		Deps: d, stop: func() {}, abort: func() {}, poke: make(chan struct{}, 1), look: make(chan struct{}, 1),
		fleet: fleet{store: d.Store, node: d.Node, open: d.Open, accepted: d.Accepted, places: map[string]*Place{}},
	}
	m.listen = listen.New(listen.Deps{
		Formats: d.Formats, Store: d.Store, Pulse: d.Pulse, Node: d.Node, Now: d.Now, NewID: d.NewID, Log: d.Log, Hide: d.Engine.Hide, Places: m.fleet.listenPlaces, Ask: m.ask,
		Wake: func() { set(m.look) }, Reload: m.Reload,
		Tell: func(l loop.Loop, subject string, why error) {
			if why != nil {
				why = fmt.Errorf("it cannot be fired by %s: %w", strings.TrimPrefix(subject, l.ID+" "), why)
			}
			m.tellWrongOf(l.Name, subject, why)
		},
	})
	return m
}

// ask runs a command that may fire a loop, unless the loop is paused.
func (d *Daemon) ask(ctx context.Context, l loop.Loop, command string) (listen.Answer, error) {
	var def loop.Definition
	var switches []loop.Switch
	err := d.Store.View(ctx, func(r *store.Reader) (err error) {
		if l, err = r.Loop(ctx, l.ID); err != nil {
			return err
		}
		if switches, err = r.Switches(ctx, l.WorkspaceID); err != nil {
			return err
		}
		def, err = r.Definition(ctx, l.Registered.Good)
		return err
	})
	if err != nil {
		return listen.Answer{}, err
	}
	t, sw, err := d.fleet.target(ctx, l, def)
	if err != nil {
		return listen.Answer{}, err
	}
	if l.Paused || sw != "" || len(switches) > 0 {
		return listen.Answer{}, listen.ErrPaused
	}
	a, err := d.Engine.Ask(ctx, t, command)
	return listen.Answer(a), err
}

// Start concludes what was lost and begins to work. Ending ctx does not end the daemon.
func (d *Daemon) Start(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	if err := d.scan(ctx); err != nil {
		return err
	}
	if d.hooks != nil {
		if err := d.listen.CheckWebhooks(ctx, d.hooks.secrets); err != nil {
			return err
		}
	}
	for _, p := range d.fleet.all() {
		d.recover(ctx, p)
	}
	working, stop := context.WithCancel(ctx)
	running, abort := context.WithCancel(ctx)
	d.stop, d.abort = stop, abort
	for _, keep := range []struct {
		gap   time.Duration
		work  func(context.Context) error
		doing string
	}{
		{tidyGap, d.tidy, "remove and compress what is old"},
		{sweepGap, d.sweep, "look for lost runs"},
		{beatGap, d.beat, "say that this node is there"},
	} {
		d.working.Go(func() { d.repeat(working, keep.gap, keep.doing, keep.work) })
	}
	d.working.Go(func() { d.repeat(working, time.Second, "count the runs that end", d.countEnded) })
	d.working.Go(func() { _ = d.Pulse.Run(working) }) // It ends with its context only, as those beside it.
	for _, work := range d.Beside {
		d.working.Go(func() { _ = work(working) })
	}
	d.working.Go(func() { d.fireDue(working) })
	d.working.Go(func() { _ = d.listen.Run(working) })
	if d.hooks != nil {
		d.working.Go(func() { d.hooks.serve(working, d.listen) })
	}
	for range d.Workers {
		d.workers.Go(func() { d.executeQueued(working, running) })
	}
	return nil
}

// Reload reads the definitions of all workspaces again, soon. Live runs keep theirs.
func (d *Daemon) Reload() { set(d.poke) }

// set sends to a channel that has room for one, unless something is in it.
func set(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Stop claims no more runs, and waits until those that it executes have ended. When
// ctx ends they are interrupted, which keeps their work.
func (d *Daemon) Stop(ctx context.Context) {
	d.requests.refuse()
	d.stop()
	d.Queue.Stop()
	defer context.AfterFunc(ctx, func() {
		d.abort()
		d.requests.interrupt()
	})()
	d.workers.Wait()
	d.requests.wait()
	d.working.Wait()
	d.abort()
}

// Do carries out work for which a caller waits, until ctx ends or Stop has no more
// patience. A daemon that has begun to end refuses it with a *loop.Fault, unless it is brief.
func (d *Daemon) Do(ctx context.Context, brief bool, work func(context.Context) error) error {
	return d.requests.do(ctx, brief, work)
}

// Busy returns how many runs are executed, and how much other work callers wait for that
// is not brief.
func (d *Daemon) Busy() int { return d.Working() + d.requests.count() }

// Hangs reports whether the daemon has stopped looking for loops that are due. The time
// while its host sleeps does not count.
func (d *Daemon) Hangs() bool {
	const most = 3 * scanGap
	at := d.looked.Load()
	return at != nil && clock.System{}.Now().Sub(*at) > most
}

// Ending reports whether Stop was called.
func (d *Daemon) Ending() bool { return d.requests.refused() }

// Carried says that a verb was carried out: what was in the way of a run or an event may
// have ended, a run may have been queued, or loops may have other definitions.
func (d *Daemon) Carried(v verb.Info) {
	if !v.Writes {
		return
	}
	d.Queue.Wake()
	set(d.look)
	if v.Name == api.RegisterLoops.Name || v.Name == api.RegisterWorkspace.Name {
		d.Reload()
	}
}

// Working returns how many runs the daemon executes.
func (d *Daemon) Working() int { return int(d.atWork.Load()) }

// Loops returns how many workspaces lie on this node, and what their definitions say.
func (d *Daemon) Loops() (workspaces int, found Found) { return d.fleet.counts() }

// repeat does some work again and again, until ctx ends.
func (d *Daemon) repeat(ctx context.Context, gap time.Duration, doing string, work func(context.Context) error) {
	for {
		err := work(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", doing, err)
		}
		d.tellWrong(ctx, doing, "", err)
		if !sleep(ctx, gap) {
			return
		}
	}
}

// tellWrong tells what is wrong with something that is tried again and again, if that was
// not told the last time. A nil error means that it works.
func (d *Daemon) tellWrong(ctx context.Context, subject, root string, err error) {
	if err == nil || ctx.Err() == nil {
		d.tellOnce(subject, Happened{Root: root, Wrong: err})
	}
}

// tellWrongOf is tellWrong for what is wrong with a loop.
func (d *Daemon) tellWrongOf(name, subject string, err error) {
	d.tellOnce(subject, Happened{Loop: name, Wrong: err})
}

func (d *Daemon) tellOnce(subject string, h Happened) {
	if h.Wrong == nil {
		d.wrong.Delete(subject)
		return
	}
	if was, told := d.wrong.Swap(subject, h.Wrong.Error()); !told || was != h.Wrong.Error() {
		d.Tell(h)
	}
}

// sleep reports false if ctx has ended before the time was over.
func sleep(ctx context.Context, gap time.Duration) bool {
	t := time.NewTimer(gap)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// fireDue fires loops when they are due, reads their definitions again, and tells of loops
// that are late.
func (d *Daemon) fireDue(ctx context.Context) {
	t := trigger.Trigger{
		Store: d.Store, Node: d.Node, Engine: d.Engine, Target: d.fleet.target, Hint: d.Hint,
		Tell: func(l loop.Loop, why error) {
			d.Tell(Happened{Loop: l.Name, Wrong: fmt.Errorf("it is due and cannot be fired: %w", why)})
		},
	}
	var process clock.System // Looks keep to it: the clock of the store may be set.
	scanned, looked, stored := process.Now(), process.Now(), d.Now().Round(0)
	graceFrom := looked // loops have a lateGap from then on before it is looked for those that did not come
	setBack := true     // the clock of the store may have been set back while no daemon was at work
	for {
		fired, next, err := t.Tick(ctx)
		for _, run := range fired {
			if !run.Planned.IsZero() { // An event has fired the others.
				d.metrics.countFiring(run.Created.Sub(run.Planned))
			}
			d.tell(context.WithoutCancel(ctx), run, Happened{Fired: &run})
		}
		if len(fired) > 0 {
			d.Queue.Wake()
		}
		if err != nil {
			err = fmt.Errorf("fire what is due: %w", err)
			next = d.Now().Add(sweepGap)
		}
		d.tellWrong(ctx, "fire", "", err)
		now, nowStored := process.Now(), d.Now().Round(0)
		if slept := nowStored.Sub(stored) - now.Sub(looked); slept > lateGap/2 {
			graceFrom = now // The host slept, or a clock was set ahead: nobody could come meanwhile.
		}
		setBack = setBack || stored.Sub(nowStored) > lateGap/2
		looked, stored = now, nowStored
		d.looked.Store(&now)
		if err == nil && now.Sub(graceFrom) >= lateGap {
			graceFrom = now
			late := d.lookForLate(ctx, &t, setBack)
			if setBack = setBack && late != nil; late != nil {
				late = fmt.Errorf("look for loops that are late: %w", late)
			}
			d.tellWrong(ctx, "late", "", late)
		}
		wait := scanGap - process.Now().Sub(scanned)
		if !next.IsZero() {
			wait = min(wait, next.Sub(d.Now()))
		}
		timer := time.NewTimer(wait)
		poked := false
		select {
		case <-ctx.Done():
		case <-d.poke:
			poked = true
		case <-d.look:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		if poked || process.Now().Sub(scanned) >= scanGap {
			d.tellWrong(ctx, "scan", "", d.scan(ctx))
			scanned = process.Now()
			d.listen.Refresh()
			heard, err := t.TakeUpAnswers(ctx)
			for _, run := range heard {
				d.tell(context.WithoutCancel(ctx), run, Happened{Fired: &run})
			}
			if len(heard) > 0 {
				d.Queue.Wake()
			}
			d.tellWrong(ctx, "answers", "", err)
		}
	}
}

// lookForLate tells of loops that are late. If the clock was set back, those that wait for that
// reason are planned anew where that is possible, and are late where it is not.
func (d *Daemon) lookForLate(ctx context.Context, t *trigger.Trigger, setBack bool) error {
	if setBack {
		anew, err := t.PlanAnew(ctx)
		if err != nil {
			return err
		}
		for _, l := range anew {
			d.Tell(Happened{Loop: l.Name, Wrong: fmt.Errorf("the clock was set back: it comes at %s now", l.Registered.Due.UTC().Format(time.RFC3339))})
			set(d.look)
		}
	}
	return notify.TellLate(ctx, d.Store, setBack)
}

// scan makes the rows of all loops on this node say what their files say.
func (d *Daemon) scan(ctx context.Context) error {
	found, err := d.fleet.scan(ctx)
	for root, err := range found {
		d.tellWrong(ctx, root, root, err)
	}
	return err
}

// sweep concludes runs whose holder is gone, and approvals whose time has run out.
func (d *Daemon) sweep(ctx context.Context) error {
	var lapsed []string
	var overdue bool
	err := d.Store.View(ctx, func(r *store.Reader) (err error) {
		if lapsed, err = r.LapsedWorkspaces(ctx, d.Node); err != nil {
			return err
		}
		overdue, err = r.OverdueApprovals(ctx, d.Store.Now())
		return err
	})
	if err != nil {
		return err
	}
	var wrong error // Of one workspace that cannot be opened; it keeps no other from its due.
	for _, id := range lapsed {
		p, err := d.fleet.place(ctx, id)
		if err != nil {
			wrong = errors.Join(wrong, err)
			continue
		}
		d.recover(ctx, p)
	}
	if !overdue {
		return wrong
	}
	err = d.Store.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.ExpireApprovals(ctx)
		return err
	})
	set(d.look) // Events may have waited for the answers.
	return errors.Join(wrong, err)
}

func (d *Daemon) recover(ctx context.Context, p *Place) {
	found, err := p.Recover(ctx)
	for _, rec := range found {
		d.Tell(Happened{Root: p.Root, Recovered: &rec})
	}
	d.tellWrong(ctx, "recover "+p.Root, p.Root, err)
	if len(found) > 0 {
		d.Queue.Wake()
	}
}

const (
	oldAge         = 30 * 24 * time.Hour // how old is what tidy compresses or removes
	prunedTogether = 10_000              // entries of the feed in one transaction
)

// tidy compresses some of the old transcripts, removes what is old of the feed and of the
// notices, and makes a SQLite file smaller, while the daemon does nothing else.
func (d *Daemon) tidy(ctx context.Context) error {
	if d.Busy() > 0 {
		return nil
	}
	before := d.Store.Now().Add(-oldAge)
	_, last, err := d.Store.PackTranscripts(ctx, d.tidied, before)
	if err != nil {
		return err
	}
	d.tidied = last
	for more := true; more; {
		if d.Busy() > 0 {
			return nil
		}
		err := d.Store.Update(ctx, func(tx *store.Tx) error {
			n, err := tx.PruneFeed(ctx, before, prunedTogether)
			if more = n == prunedTogether; err != nil || more {
				return err
			}
			_, err = tx.PruneNotices(ctx, before)
			return err
		})
		if err != nil {
			return err
		}
	}
	if d.Busy() > 0 {
		return nil
	}
	_, err = d.Store.Vacuum(ctx, false)
	return err
}

// beat says that this node is there, which otherwise only live runs do.
func (d *Daemon) beat(ctx context.Context) error {
	return d.Store.Update(ctx, func(tx *store.Tx) error { return tx.SeeNode(ctx, d.Node, d.Store.Skew()) })
}

// tell says what happened with the name and place of the run's loop.
func (d *Daemon) tell(ctx context.Context, run loop.Run, h Happened) {
	l, p, err := d.fleet.loopOf(ctx, run.LoopID)
	if err != nil {
		h = Happened{Wrong: err}
	} else {
		h.Loop, h.Root = l.Name, p.Root
	}
	d.Tell(h)
}
