package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/record/transcript"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// cycle takes one run through its phases. What several of them need is a value of
// its own; what one hands to the next is a parameter. One goroutine drives it, and
// owns all but what the journal guards.
type cycle struct {
	*heldRun
	login     *login
	money     *spending
	tree      *workTree
	agent     *agentSide
	judge     *judge
	memory    *memory
	sensed    *sensing
	proposals *proposals
	outbox    *outbox

	inputs   map[string]loop.Inputs // of the candidates, by key
	halt     bool                   // the loop is paused when the run ends
	awaits   bool                   // a step could not be chosen because a person has not answered
	assessed bool                   // the agent said how ready the loop is
}

// newCycle makes the cycle of a run with definition d.
func (e *Engine) newCycle(t Target, f Firing, d loop.Definition) *cycle {
	h := &heldRun{
		Engine: e, journal: &journal{engine: e}, target: t, firing: f, def: d, started: e.Now(),
		progress: progress{steps: map[string]loop.Step{}, settled: map[string]bool{}, claimed: map[string]bool{}},
	}
	c := &cycle{heldRun: h, inputs: map[string]loop.Inputs{}}
	c.login = &login{heldRun: h}
	c.money = &spending{heldRun: h, login: c.login}
	c.tree = &workTree{heldRun: h}
	c.agent = &agentSide{heldRun: h, tree: c.tree, login: c.login, money: c.money}
	c.judge = &judge{heldRun: h, tree: c.tree, critics: &critics{heldRun: h, money: c.money, sides: map[loop.Reviewer]*agentSide{}}, records: map[[2]string]loop.TestRecord{}}
	c.outbox = &outbox{heldRun: h, tree: c.tree}
	c.memory = &memory{heldRun: h, agent: c.agent, outbox: c.outbox, answered: map[string]bool{}}
	c.sensed = &sensing{heldRun: h, tree: c.tree, judge: c.judge, memory: c.memory}
	c.proposals = &proposals{heldRun: h}
	return c
}

// heldRun is a run that this process holds: what it was fired for, its row, how far
// it has come, and its journal.
type heldRun struct {
	*Engine
	*journal
	progress
	target     Target
	firing     Firing
	run        loop.Run        // the row, as the next transaction writes it
	def        loop.Definition // as pinned by the run: overrides applied
	started    time.Time
	inputTrees map[string]string // by tree: without the memory of loops
	baseBranch string            // that the base is the tip of; empty if HEAD is detached
	stack      []loop.Lower      // proposals between that branch and the base, the lowest first
	maker      turn.Actor        // who works on the steps
	nobody     error             // why there is no maker
	tools      runenv.Tools
	disk       runenv.Disk
	taken      bool               // from a process that died, before the run was concluded
	rejected   []policy.Rejection // commands of the step under way that a person said no to
	deferred   *ending            // it gives way to another run; nil: it does not
}

// progress is what the run has done so far.
type progress struct {
	steps   map[string]loop.Step // rows by key, as this run knows them
	settled map[string]bool      // keys of steps that this run is through with
	claimed map[string]bool      // keys of steps that others claimed before this run could
	its     []loop.Iteration
	items   int
	worked  int          // iterations on work; replies do not count
	success loop.Outcome // of a run that passed; empty: nothing has passed
}

// journal is what the run writes into the store, and what is said of it until then.
// The goroutine that drives the run owns all but what mu guards.
type journal struct {
	engine *Engine
	Store  *store.Holding // hides that of the engine, whose calls are not tried again
	id     loop.Run       // what of the row never changes: id, loop, fence; for the watcher
	said   *transcript.Transcript

	staged  []write              // join the next commit
	pending []loop.PendingChange // recorded, not yet applied
	applied []loop.PendingChange // applied, rows to be forgotten with the next commit
	lost    []loop.Row           // of the commit under way: changed by somebody else, and left so

	marks *os.File // where the phase is marked for whoever finds this run dead
	turns turnNotes
}

// turnNotes are the turns of a run that are in no transaction yet.
type turnNotes struct {
	mu      sync.Mutex
	live    *liveTurn   // the turn under way; nil between turns
	unsaved []loop.Turn // that are over
	file    *os.File    // where both are noted; nil: nothing was
	length  int         // bytes that were written to it
	last    []byte      // what was last written
}

// write is a part of a transaction.
type write func(context.Context, *store.RunTx) error

var beforeCommit, afterCommit = commitPoints("before"), commitPoints("after")

// commitPoints declares a fault point for every phase that ends with a
// transaction.
func commitPoints(side string) map[loop.Phase]*fault.Point {
	points := map[loop.Phase]*fault.Point{}
	for _, p := range []loop.Phase{
		loop.PhaseRehydrate, loop.PhaseSense, loop.PhaseDecide, loop.PhaseAct, loop.PhaseGather, loop.PhaseConclude, loop.PhaseEffect, loop.PhaseSleep,
	} {
		points[p] = fault.New("engine." + string(p) + ".commit." + side)
	}
	return points
}

// commit writes staged parts, the given parts and all events so far in one
// transaction that only the holder of the run's fence can make.
func (j *journal) commit(ctx context.Context, phase loop.Phase, parts ...write) error {
	return j.commitBy(ctx, phase, func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		return tx.Enter(ctx, j.id, phase)
	}, parts...)
}

// guard is the first statement of a transaction, which only the holder of the
// fence can make.
type guard func(context.Context, *store.Tx) (*store.RunTx, error)

func (j *journal) commitBy(ctx context.Context, phase loop.Phase, by guard, parts ...write) error {
	if err := beforeCommit[phase].Hit(ctx); err != nil {
		return err
	}
	// A canceled run must still be concluded: a transaction ends with its own time.
	limit := j.engine.Store.Patience()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, fmt.Errorf("the store did not answer within %s", limit))
	defer cancel()
	recorded := j.pending
	err := j.said.Save(func(_ loop.Phase, events []loop.Event) error {
		return j.Store.Update(ctx, func(tx *store.Tx) error {
			j.lost = nil
			rt, err := by(ctx, tx)
			if err != nil {
				return err
			}
			if err := rt.AppendEvents(ctx, events); err != nil {
				return err
			}
			for _, part := range slices.Concat(j.staged, parts) {
				if err := part(ctx, rt); err != nil {
					return err
				}
			}
			return tx.Applied(ctx, j.applied)
		})
	})
	if err != nil {
		j.pending = recorded // What is in no row is not written into a file either.
		return err
	}
	j.staged, j.applied = nil, nil
	for _, row := range j.lost {
		j.said.Note("%s of %s was changed by somebody else, and what this run says of it is not written", row.Key, row.Set)
	}
	j.turns.mu.Lock()
	j.turns.unsaved = nil
	j.turns.mu.Unlock()
	if err := afterCommit[phase].Hit(ctx); err != nil {
		return &writtenError{err}
	}
	return nil
}

// writtenError is an error after a transaction that was made.
type writtenError struct{ error }

func (e *writtenError) Unwrap() error { return e.error }

// notWritten reports whether an error of commitBy means that the transaction was not made.
// A run that cannot find that out has lost its lease.
func notWritten(err error) bool {
	_, written := errors.AsType[*writtenError](err)
	return err != nil && !written
}

// stage puts parts of a transaction aside for the next commit.
func (j *journal) stage(parts ...write) { j.staged = append(j.staged, parts...) }

// saveEvents commits the events so far, so that readers elsewhere see them while an
// agent works.
func (j *journal) saveEvents(ctx context.Context) error {
	return j.said.Save(func(phase loop.Phase, events []loop.Event) error {
		j.turns.mu.Lock()
		defer j.turns.mu.Unlock()
		sofar := j.turns.live.unsavedState()
		if len(events) == 0 && sofar == nil {
			return nil
		}
		if j.turns.live != nil && j.said.Learn(j.turns.live.count.turnEnv.Secrets()) {
			for i, ev := range events {
				events[i].Text = j.said.Hide(ev.Text)
			}
		}
		tried, err := j.Store.TryUpdate(ctx, func(tx *store.Tx) error {
			rt, err := tx.Enter(ctx, j.id, phase)
			if err != nil {
				return err
			}
			if err := sofar.save(ctx, rt); err != nil {
				return err
			}
			return rt.AppendEvents(ctx, events)
		})
		if !tried {
			err = errBusy
		}
		if err == nil {
			sofar.saved(j.turns.live)
		}
		return err
	})
}

// errBusy means that the events are saved later: a transaction of the run is under
// way.
var errBusy = errors.New("the store is in use by the run itself")

// enterPhase begins a phase.
func (j *journal) enterPhase(phase loop.Phase) {
	j.markPhase(phase)
	j.said.Enter(phase)
}

// newTranscript makes the transcript of the run that the cycle is for.
func (e *Engine) newTranscript(runID string) *transcript.Transcript {
	return transcript.New(transcript.Options{Run: runID, Now: e.Now, Environ: e.Environ, Known: e.known, Live: e.Live})
}

// stepOf is the step of an iteration, as this run knows it.
func (p *progress) stepOf(it *loop.Iteration) loop.Step {
	for _, s := range p.steps {
		if s.ID == it.StepID {
			return s
		}
	}
	return loop.Step{}
}

// endOf is when an iteration ends: its begin and the time that has passed since,
// so that a clock that is set in between makes no duration wrong.
func (h *heldRun) endOf(it *loop.Iteration) time.Time {
	return it.Started.Add(max(0, h.Now().Sub(it.Started)))
}

// current is the iteration being worked on.
func (p *progress) current() *loop.Iteration { return &p.its[len(p.its)-1] }
