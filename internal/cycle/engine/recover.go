package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/record/projection"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Recovered is a run that another process left behind, and how it ended.
type Recovered struct {
	Loop   string
	Run    loop.Run
	Died   loop.Phase  // where it stood
	How    string      // how it was lost, after its name: "died in act (its process is gone)"
	Killed int         // processes that had survived
	Lost   string      // what could not be kept of its work, and where the rest is; empty: everything is kept
	Next   loop.Advice // what a person does so that nothing is left half-way; empty: nothing
}

var afterSeize = fault.New("engine.recover.claim.after")

// Recover concludes the target's run if its holder is dead, and writes files
// that a dead process left unwritten. It is the normal start of every command
// that may write; when nothing is left behind it reads twice and returns nil.
func (e *Engine) Recover(ctx context.Context, t Target) (*Recovered, error) {
	var live loop.Run
	var pending []loop.PendingChange
	err := e.Store.View(ctx, func(r *store.Reader) (err error) {
		if pending, err = r.Pending(ctx, t.Loop.ID, e.Self.Node); err != nil {
			return err
		}
		live, err = r.Live(ctx, t.Loop.ID)
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return nil, e.finishFiles(ctx, t, pending)
	}
	if err != nil {
		return nil, err
	}
	before := e.HolderState(live.Holder)
	dead, ok, err := e.findDeadHolder(ctx, live)
	if err != nil || !ok {
		return nil, err
	}
	if live.Node != "" && e.Self.Node != "" && live.Node != e.Self.Node {
		return e.freeLost(ctx, t, live, dead)
	}
	c, err := e.takeFromDead(ctx, t, live, dead)
	if errors.Is(err, loop.ErrLeaseLost) {
		return nil, nil // Another process applies its effects or recovers it at this moment.
	}
	var rec *Recovered
	if err == nil {
		rec, err = c.concludeDead(ctx, live, takeover{from: live.Holder, by: e.Self, state: before})
	}
	if err != nil {
		e.stuck.Store(live.ID, err)
	}
	return rec, err
}

// Held is the error of a run that is in the way of what was asked for. One that
// this engine has taken and could not conclude is held by no other process: then
// the error says why, and what a person can do.
func (e *Engine) Held(name string, run loop.Run) error {
	why, _ := e.stuck.Load(run.ID)
	if err, ok := why.(error); ok && run.Holder == e.Self {
		return RecoverFault(name, err)
	}
	return &loop.HeldError{Run: fmt.Sprintf("%s#%d", name, run.N), Holder: run.Holder}
}

// RecoverFault says how a person can help where the recovery of a loop cannot go
// on.
func RecoverFault(name string, err error) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok && f.Fix != "" {
		return fmt.Errorf("recover %s: %w", name, err)
	}
	return &loop.Fault{
		Exit: loop.ExitError, What: "recover " + name, Why: err.Error(), Err: err,
		Fix: "remove the cause and run {1} again; the work is kept", Actions: []loop.Command{loop.PawlCommand("recover")},
	}
}

// findDeadHolder returns the holder if it can be proven not to write any more, or nobody
// if its lease may have lapsed: Claim compares that by the database's clock. A
// process of this host that runs keeps its run, however old its lease is: the
// host may be slow, or its clock may have jumped. One that is stopped past its
// lease is ended first, because it could be continued between a question and
// what it does next.
func (e *Engine) findDeadHolder(ctx context.Context, r loop.Run) (loop.Holder, bool, error) {
	if r.Holder == e.Self {
		_, driving := e.driving.Load(r.ID)
		return r.Holder, !driving, nil
	}
	lapsed := e.Now().After(r.LeaseUntil)
	switch e.HolderState(r.Holder) {
	case loop.HolderDead:
		return r.Holder, true, nil
	case loop.HolderRunning:
		return loop.Holder{}, false, nil
	case loop.HolderStopped:
		if !lapsed {
			return loop.Holder{}, false, nil
		}
		return r.Holder, true, e.EndHolder(ctx, r.Holder)
	case loop.HolderElsewhere:
	}
	return loop.Holder{}, lapsed, nil
}

// takeFromDead takes the run from its dead holder and rebuilds what is known of it.
//
// While somebody applies effects of the run it is ErrLeaseLost: what they come
// to is not known yet, and so neither is the run's outcome.
func (e *Engine) takeFromDead(ctx context.Context, t Target, seen loop.Run, dead loop.Holder) (c *cycle, err error) {
	if err := checkNames(seen.ID, seen.LoopID); err != nil {
		return nil, err
	}
	c = e.newCycle(t, Firing{}, loop.Definition{})
	c.run = seen
	if err := c.outbox.acquire(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.outbox.release())
		}
	}()
	claimed := e.Now()
	err = e.Store.Update(ctx, func(tx *store.Tx) (err error) {
		c.run, _, err = tx.Claim(ctx, seen.ID, seen.Fence, e.Self, dead)
		return err
	})
	if err != nil {
		return c, err
	}
	c.taken = c.run.State != loop.RunSettling // What was concluded is settled.
	c.takeHold(claimed)
	if err := afterSeize.Hit(ctx); err != nil {
		return c, err
	}
	return c, c.readProgress(ctx)
}

// readProgress reads how far the run has come that another process held.
func (c *cycle) readProgress(ctx context.Context) error {
	var turns []loop.Turn
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		if c.target.Loop, err = r.Loop(ctx, c.run.LoopID); err != nil {
			return err
		}
		if c.def, err = r.Definition(ctx, c.run.Definition); err != nil {
			return err
		}
		if c.its, err = r.Iterations(ctx, c.run.ID); err != nil {
			return err
		}
		if turns, err = r.Turns(ctx, c.run.ID); err != nil {
			return err
		}
		return c.resumeEvents(ctx, r)
	})
	if err != nil {
		return err
	}
	c.countDead(turns)
	return nil
}

// resumeEvents continues the run's sequence and its clock: time in which
// nobody held the run is not counted.
func (c *cycle) resumeEvents(ctx context.Context, r *store.Reader) error {
	c.said, c.started = c.newTranscript(c.run.ID), c.Now()
	seq, err := r.LastEvent(ctx, c.run.ID)
	c.said.Resume(c.run.Phase, seq)
	if err != nil || seq == 0 {
		return err
	}
	last, err := r.Events(ctx, c.run.ID, seq-1, 1)
	if err == nil && len(last) == 1 {
		c.started = c.Now().Add(-max(0, last[0].At.Sub(c.run.Started)))
	}
	return err
}

// concludeDead ends a seized run: one that had its outcome already is carried
// on from there, any other is interrupted. Nothing is repeated.
func (c *cycle) concludeDead(ctx context.Context, dead loop.Run, how takeover) (*Recovered, error) {
	ctx, watched := c.watchLease(ctx)
	defer watched.stop()
	defer func() { c.cleanUp(context.WithoutCancel(ctx)) }()
	dead.Phase = c.markedPhase(dead)
	rec := &Recovered{Loop: c.target.Loop.Name, Died: dead.Phase, How: how.sentence(dead.Phase)}
	c.countUnseen()
	var err error
	if rec.Killed, err = c.Survive(ctx, runenv.Tag(c.run.ID)); err != nil {
		return nil, err
	}
	c.login.fetchFromDead(ctx)
	c.target.Definition, c.tree.copied, c.tree.held = c.def, true, true
	c.openMarks()
	v, err := c.memory.readLoop(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.applyPending(ctx); err != nil {
		return nil, err
	}
	if end := c.memory.open(ctx, v); end != nil {
		c.said.Note("the loop's memory cannot be opened: %s", end.detail)
	}
	if c.run.State == loop.RunSettling {
		c.said.Note("taken over in %s: %s", dead.Phase, how.words())
		err = c.settleRun(ctx)
	} else {
		rec.Next, err = c.landAgain(ctx)
		if err == nil {
			err = c.endInterrupted(ctx, dead, how, rec.Next)
		}
	}
	rec.Run, rec.Lost = c.run, c.tree.unkept
	return rec, err
}

// endInterrupted gives the run of a dead process its end: the tree is kept, the
// iteration that it was in is judged as interrupted, the step is free again.
func (c *cycle) endInterrupted(ctx context.Context, dead loop.Run, how takeover, next loop.Advice) error {
	c.tree.madeFrom = c.run.BaseCommit
	if c.run.BaseCommit != "" {
		if err := c.tree.takeUp(ctx, dead.Phase); err != nil {
			return err
		}
	}
	if err := c.outbox.countRequested(ctx); err != nil {
		return err
	}
	end := ending{outcome: loop.OutcomeInterrupted, reason: how.reason()}
	if err := c.tree.keepWork(ctx, end); err != nil {
		return err
	}
	end.detail = joinWords(joinWords(how.detail(dead.Phase), c.tree.unkept), next.String())
	told, err := c.commandsOfDead(ctx)
	if err != nil {
		return err
	}
	c.chargeAttempt(end, told)
	return c.finish(ctx, end)
}

// chargeAttempt counts the attempt in which the run was lost, and tells the next one,
// also what commands it had run.
func (h *heldRun) chargeAttempt(end ending, commands string) {
	for key, s := range h.steps {
		if s.RunID == h.run.ID {
			s.Attempts++
			s.Feedback = strings.TrimSuffix(end.detail+"\n"+commands, "\n")
			h.steps[key] = s
		}
	}
}

// takeUp takes up the copy of a dead run, or keeps what is left of its work.
func (wt *workTree) takeUp(ctx context.Context, died loop.Phase) (err error) {
	if wt.copy, err = wt.host().Adopt(ctx, wt.target.Repo, wt.run); err != nil {
		return wt.salvage(ctx, err)
	}
	if wt.copy == nil {
		return wt.missingCopy(ctx, died)
	}
	return nil
}

// landAgain says what is left of an approval whose run died before anything was asked
// for: nothing has landed, and the yes stays valid.
func (c *cycle) landAgain(ctx context.Context) (loop.Advice, error) {
	id := AnswerOf(c.run)
	if id == "" {
		return loop.Advice{}, nil
	}
	a, err := c.readApproval(ctx, id)
	if err != nil || a.State != loop.ApprovalLanding {
		return loop.Advice{}, err
	}
	var asked loop.Run
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		asked, err = r.Run(ctx, a.RunID)
		return err
	})
	again := LandAgain(a, fmt.Sprintf("%s#%d", c.target.Loop.Name, asked.N))
	return loop.Advise("nothing has landed, and the yes to "+a.ID+" stays valid: the next run lands it, or {1}", again), err
}

// LandAgain is the command that does what an approval of that run allowed and
// what did not come about.
func LandAgain(a loop.Approval, run string) loop.Command {
	land := loop.PawlCommand("land", run)
	switch {
	case a.Action.Kind == loop.ActionPullRequest:
		return land.WithFlag("pr")
	case a.Action.Merge:
		return land.WithFlag("merge")
	}
	return land
}

// countRequested counts the effects that the dead process had asked for: an earlier
// item of the run had passed, and what passed goes its way.
func (o *outbox) countRequested(ctx context.Context) error {
	return o.Store.View(ctx, func(r *store.Reader) error {
		effects, err := r.Effects(ctx, o.run.ID)
		o.requested = len(effects)
		return err
	})
}

// Sweep removes folders and refs of runs that have ended, left by processes that
// died while they cleaned up, and folders of tries whose process died. Once a day it
// also removes what was made for runs to come and none has wanted for long.
func (e *Engine) Sweep(ctx context.Context, repo *git.Repo) error {
	return errors.Join(e.gateChecker().Sweep(ctx, repo), e.sweepRuns(ctx, repo), e.sweepCandidates(ctx, repo), e.host().Collect(ctx, repo))
}

func (e *Engine) sweepCandidates(ctx context.Context, repo *git.Repo) error {
	runs, err := repo.CandidateRuns(ctx)
	if err != nil {
		return err
	}
	for _, id := range runs {
		if err := e.ifEnded(ctx, id, func(run loop.Run) error { return repo.DropCandidates(ctx, run.ID) }); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) sweepRuns(ctx context.Context, repo *git.Repo) error {
	trees := e.host().Trees(repo, sandbox.None)
	names, err := trees.TreeNames()
	if err != nil {
		return err
	}
	for _, name := range names {
		id, _, _ := strings.Cut(name, "-")
		err := e.ifEnded(ctx, id, func(run loop.Run) error {
			return errors.Join(e.rescueTree(ctx, repo, run, name), trees.Remove(ctx, name))
		})
		if err != nil {
			return err
		}
	}
	dirs, err := os.ReadDir(filepath.Join(e.Home, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range dirs {
		id, _, _ := strings.Cut(d.Name(), ".")
		if err := e.ifEnded(ctx, id, func(loop.Run) error { return sandbox.RemoveTree(filepath.Join(e.Home, "runs", d.Name())) }); err != nil {
			return err
		}
	}
	return nil
}

// ifEnded calls fn if the run has ended and nothing of it is owed here. A run that the
// store does not know is somebody else's.
func (e *Engine) ifEnded(ctx context.Context, runID string, fn func(loop.Run) error) error {
	var run loop.Run
	err := e.Store.View(ctx, func(r *store.Reader) (err error) {
		run, err = r.Run(ctx, runID)
		return err
	})
	switch {
	case errors.Is(err, loop.ErrNotFound), err == nil && (run.State != loop.RunEnded || run.Owed && run.Node == e.Self.Node):
		return nil
	case err != nil:
		return err
	}
	return fn(run)
}

// rescueTree keeps the work in a tree whose run was ended by a process that could
// not see it: one with another home. What cannot be read is kept as it lies.
func (e *Engine) rescueTree(ctx context.Context, repo *git.Repo, run loop.Run, name string) error {
	seen := run.Branch != "" || run.Snapshot != "" && !strings.HasSuffix(run.Snapshot, candidateSuffix)
	if name != runenv.TreeName(run.ID, runenv.ForAct) || seen || run.BaseCommit == "" {
		return nil
	}
	tree, err := e.host().Adopt(ctx, repo, run)
	if err == nil && tree == nil {
		return nil
	}
	if err == nil {
		ref := snapshotPrefix + "rescued/" + run.ID
		_, _, err = makeSnapshot(ctx, tree, ref, run.ID, "pawl: work of run "+run.ID+" that its recovery did not see", e.Now())
		if errors.Is(err, workspace.ErrIncomplete) {
			_, err = tree.KeepAs(keepPrefix + run.ID)
		}
		err = errors.Join(err, tree.Leave())
	}
	if err == nil || ctx.Err() != nil || projection.DiskFull(err) {
		return err
	}
	to, keepErr := e.host().Trees(repo, sandbox.None).SetAside(name, keepPrefix+run.ID)
	if keepErr == nil {
		e.Log.WarnContext(ctx, "no snapshot of a run's work could be made; its files are kept as they lie",
			slog.String("run", run.ID), slog.String("in", to), slog.String("error", err.Error()))
	}
	return keepErr
}
