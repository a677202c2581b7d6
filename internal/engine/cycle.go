package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/budget"
	"github.com/pawl-run/pawl/internal/credential"
	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/runenv"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/transcript"
	"github.com/pawl-run/pawl/internal/turn"
)

// cycle is one run on its way. The goroutine that drives it owns everything
// but what mu guards.
type cycle struct {
	*Engine
	Store   *store.Holding // hides that of the engine, whose calls are not tried again
	t       Target
	f       Firing
	run     loop.Run
	id      loop.Run        // what of run never changes: id, loop, fence; for the watcher
	def     loop.Definition // as pinned by the run: overrides applied
	session Session
	sensed  Sensed
	records map[[2]string]loop.TestRecord // of this run's gates, by tree and gate
	onPass  bool                          // gates that pass on the base mean that there is nothing to do
	found   string                        // what the sources said, without the answer that the run was fired for
	started time.Time

	steps     map[string]loop.Step   // rows by key, as this run knows them
	settled   map[string]bool        // keys of steps that this run is through with
	answered  map[string]bool        // approvals with an answer
	proposals []proposal             // without an answer, or on a pull request that is open
	declined  map[string][]declined  // by id of the step: what it proposed on this base and is not to be paid for again; nil: nobody looked yet
	pulled    []loop.Effect          // pull requests that are merged or closed
	inputs    map[string]loop.Inputs // of the candidates, by key
	its       []loop.Iteration
	turns     int
	counted   int // the last iteration of a dead run of which a turn was saved
	items     int
	worked    int // iterations on work; replies do not count
	success   loop.Outcome

	actor    turn.Actor
	nobody   error          // why there is no actor
	prices   price.Table    // of a run that starts; one that died has been counted
	money    *budget.Ledger // nil: nobody asked for it
	blind    bool           // there was a turn of which nobody counted the tokens
	signed   credential.Credential
	unsigned error            // why there is no credential
	loan     *credential.Loan // a login that a turn has renewed; nil: there is none
	hold     *loop.Hold       // what keeps the loop or its account from acting; nil: nothing
	failures int64            // turns in a row that ended with an error of the agent's program
	limits   int64            // in a row, of the account
	taken    bool             // from a process that died, before the run was concluded
	unseen   bool             // its process died before the end of a turn was recorded
	talk     *loop.Session    // the conversation to go on with; nil: a fresh one

	tools    runenv.Tools
	disk     runenv.Disk
	tree     *runenv.Copy // the agent's copy, kept between iterations
	fresh    *runenv.Copy // for a gate that is tried again
	treeBase string       // commit that the copy was made from

	guided      string   // the repository's instructions as they stand in a prompt
	guidedFor   string   // commit that they are of
	guidedPaths []string // of the files that were found

	baseBranch string      // that the base is the tip of; empty if HEAD is detached
	refusal    *loop.Fault // why a guardrail refused an effect
	toldGates  bool        // gates that files of the scope can rewrite were shown to whoever watches
	copied     bool        // there is or was a copy
	restored   string      // snapshot ref that the copy goes on from, if any
	held       bool        // there are or were refs that hold candidates
	unkept     string      // what could not be kept of the work, and where the rest is
	secured    bool        // the work is kept as far as it can be
	kept       string      // tree that an effect is about to put on a branch; a snapshot of it is not needed

	requested int  // effects asked for
	halt      bool // the loop is paused when the run ends
	assessed  bool // the agent said how ready the loop is

	staged  []write              // join the next commit
	pending []loop.PendingChange // recorded, not yet applied
	applied []loop.PendingChange // applied, rows to be forgotten with the next commit

	outlet *os.File // the locked file of lockEffects; nil: not locked
	marks  *os.File // where the phase is marked for whoever finds this run dead

	said *transcript.Transcript

	mu       sync.Mutex
	live     *liveTurn   // the turn under way; nil: there is none
	unsaved  []loop.Turn // that are over, and in no transaction yet
	notes    *os.File    // where live and unsaved are noted; nil: nothing was
	notesLen int         // bytes that were written to it
	noted    []byte      // what was last written
}

// write is a part of a transaction.
type write func(context.Context, *store.RunTx) error

var beforeCommit, afterCommit = commitPoints("before"), commitPoints("after")

// commitPoints declares a fault point for every phase that ends with a
// transaction.
func commitPoints(side string) map[loop.Phase]*fault.Point {
	points := map[loop.Phase]*fault.Point{}
	for _, p := range []loop.Phase{
		loop.PhaseRehydrate, loop.PhaseSense, loop.PhaseDecide, loop.PhaseGather, loop.PhaseConclude, loop.PhaseEffect, loop.PhaseSleep,
	} {
		points[p] = fault.New("engine." + string(p) + ".commit." + side)
	}
	return points
}

// commit writes staged parts, the given parts and all events so far in one
// transaction that only the holder of the run's fence can make.
func (c *cycle) commit(ctx context.Context, phase loop.Phase, parts ...write) error {
	return c.commitBy(ctx, phase, func(ctx context.Context, tx *store.Tx) (*store.RunTx, error) {
		return tx.Enter(ctx, c.id, phase)
	}, parts...)
}

// guard is the first statement of a transaction, which only the holder of the
// fence can make.
type guard func(context.Context, *store.Tx) (*store.RunTx, error)

func (c *cycle) commitBy(ctx context.Context, phase loop.Phase, by guard, parts ...write) error {
	if err := beforeCommit[phase].Hit(ctx); err != nil {
		return err
	}
	// A canceled run must still be concluded: a transaction ends with its own time.
	limit := c.Engine.Store.Patience()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, fmt.Errorf("the store did not answer within %s", limit))
	defer cancel()
	recorded := c.pending
	err := c.said.Save(func(_ loop.Phase, events []loop.Event) error {
		return c.Store.Update(ctx, func(tx *store.Tx) error {
			rt, err := by(ctx, tx)
			if err != nil {
				return err
			}
			if err := rt.AppendEvents(ctx, events); err != nil {
				return err
			}
			for _, part := range slices.Concat(c.staged, parts) {
				if err := part(ctx, rt); err != nil {
					return err
				}
			}
			return tx.Applied(ctx, c.applied)
		})
	})
	if err != nil {
		c.pending = recorded // What is in no row is not written into a file either.
		return err
	}
	c.staged, c.applied = nil, nil
	c.mu.Lock()
	c.unsaved = nil
	c.mu.Unlock()
	return afterCommit[phase].Hit(ctx)
}

// stage puts parts of a transaction aside for the next commit.
func (c *cycle) stage(parts ...write) { c.staged = append(c.staged, parts...) }

// flush commits the events so far, so that readers elsewhere see them while an
// agent works.
func (c *cycle) flush(ctx context.Context) error {
	return c.said.Save(func(phase loop.Phase, events []loop.Event) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		sofar := c.live.news()
		if len(events) == 0 && sofar == nil {
			return nil
		}
		if c.live != nil && c.said.Learn(c.live.count.turnEnv.Secrets()) {
			for i, ev := range events {
				events[i].Text = c.said.Hide(ev.Text)
			}
		}
		tried, err := c.Store.TryUpdate(ctx, func(tx *store.Tx) error {
			rt, err := tx.Enter(ctx, c.id, phase)
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
			sofar.saved(c.live)
		}
		return err
	})
}

// errBusy means that the events are saved later: a transaction of the run is under
// way.
var errBusy = errors.New("the store is in use by the run itself")

// enter begins a phase.
func (c *cycle) enter(phase loop.Phase) {
	c.mark(phase)
	c.said.Enter(phase)
}

// listen makes the transcript of the run that the cycle is for.
func (e *Engine) listen(runID string) *transcript.Transcript {
	return transcript.New(transcript.Options{Run: runID, Now: e.Now, Environ: e.Environ, Known: e.known, Live: e.Live})
}

// stepOf is the step of an iteration, as this run knows it.
func (c *cycle) stepOf(it *loop.Iteration) loop.Step {
	for _, s := range c.steps {
		if s.ID == it.StepID {
			return s
		}
	}
	return loop.Step{}
}

// endOf is when an iteration ends: its begin and the time that has passed since,
// so that a clock that is set in between makes no duration wrong.
func (c *cycle) endOf(it *loop.Iteration) time.Time {
	return it.Started.Add(max(0, c.Now().Sub(it.Started)))
}

// current is the iteration being worked on.
func (c *cycle) current() *loop.Iteration { return &c.its[len(c.its)-1] }
