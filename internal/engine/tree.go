package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/runenv"
)

var (
	afterTree  = fault.New("engine.tree.made.after")
	beforeDrop = fault.New("engine.tree.drop.before")
)

// makeTree makes the run's copy if it has none yet.
func (c *cycle) makeTree(ctx context.Context) error {
	if c.tree != nil {
		return nil
	}
	c.openMarks()
	if err := c.base(ctx); err != nil {
		return err
	}
	if c.treeBase == "" {
		c.treeBase = c.run.BaseCommit
	}
	tree, err := c.copyOf(ctx, runenv.ForAct, c.treeBase)
	if err != nil {
		return err
	}
	c.tree = tree
	return afterTree.Hit(ctx)
}

// copyOf makes a copy of a commit for the run.
func (c *cycle) copyOf(ctx context.Context, purpose runenv.Purpose, commit string) (*runenv.Copy, error) {
	c.copied = true
	return c.runEnv().Copy(ctx, purpose, commit)
}

// cleanTree makes the copy anew if a sense command wrote into it.
func (c *cycle) cleanTree(ctx context.Context) error {
	changes, problems, err := c.tree.Changes(ctx)
	if err != nil || len(changes)+len(problems) == 0 {
		return err
	}
	return c.dropTree(ctx)
}

func (c *cycle) dropTree(ctx context.Context) error {
	if c.tree == nil {
		return nil
	}
	if err := beforeDrop.Hit(ctx); err != nil {
		return err
	}
	err := c.tree.Remove(ctx)
	c.tree = nil
	return err
}

// restore makes the copy from the snapshot that the step was left with. The
// work then goes on from the commit that the snapshot was made on, so that
// nothing which moved since is undone by it.
func (c *cycle) restore(ctx context.Context, step loop.Step) error {
	if c.restored == step.Snapshot {
		return nil
	}
	c.restored = step.Snapshot
	commit, ok, err := c.t.Repo.Ref(ctx, step.Snapshot)
	if err != nil {
		return err
	}
	if !ok {
		c.said.Note("snapshot %s is gone: starting from the base", step.Snapshot)
		return nil
	}
	parent, err := c.t.Repo.Parent(ctx, commit)
	if err != nil {
		return err
	}
	if err := errors.Join(c.dropTree(ctx), c.base(ctx)); err != nil { // The branch is asked for the landing, whichever commit counts.
		return err
	}
	c.treeBase = commit
	c.run.BaseCommit, c.run.BaseTree = parent.Commit, parent.Tree
	c.said.Note("going on from snapshot %s", step.Snapshot)
	return nil
}

// snapshotRef is where the work of a run is kept that is on no branch.
func (c *cycle) snapshotRef() string { return snapshotPrefix + c.t.Loop.Name + "/" + c.number() }

const snapshotPrefix = "refs/pawl/snapshots/"

// branchOf is the name of a proposed branch.
func branchOf(name, number string) string { return "pawl/" + name + "/" + number }

// number is the run's number as refs have it. Checkouts that share their refs
// count their runs apart, so there it carries the end of the run's id.
func (c *cycle) number() string {
	n := strconv.FormatInt(c.run.N, 10)
	if c.t.Repo.Shared() {
		n += "-" + tail(c.run.ID)
	}
	return n
}

// tail is the part of a run's id that tells refs apart.
func tail(runID string) string { return runID[max(0, len(runID)-6):] }

// keep puts whatever is in the tree now under a snapshot ref, unless nothing
// changed. What does not fit is workspace.ErrIncomplete, and the rest is kept.
func (c *cycle) keep(ctx context.Context) error {
	if c.tree == nil {
		return nil
	}
	msg := fmt.Sprintf("pawl: work of %s#%d that is on no branch", c.t.Loop.Name, c.run.N)
	ref, commit, err := snapshot(ctx, c.tree, c.snapshotRef(), c.run.ID, msg, c.Now())
	if ref != "" {
		c.run.Snapshot = ref
		if err := c.clear(ctx, ref, commit, msg); err != nil {
			return fmt.Errorf("take secrets out of %s: %w", ref, err)
		}
	}
	return err
}

// snapshot keeps a tree under the ref, or under one of its own if somebody
// else's work is there. It returns "" if there is nothing to keep.
func snapshot(ctx context.Context, tree *runenv.Copy, ref, runID, msg string, now time.Time) (_, commit string, err error) {
	commit, err = tree.Snapshot(ctx, ref, msg, now)
	if errors.Is(err, git.ErrRefMoved) {
		ref += "-" + tail(runID)
		commit, err = tree.Snapshot(ctx, ref, msg, now)
	}
	if commit == "" {
		ref = ""
	}
	return ref, commit, err
}

// setAside keeps a tree that is too large for a snapshot as it is, under a name
// that nothing removes.
func (c *cycle) setAside(why error) error {
	to, err := c.tree.Keep(keepPrefix + c.run.ID)
	if err != nil {
		return errors.Join(why, err)
	}
	c.lose(fmt.Sprintf("%s; the whole tree stays in %s", why, to))
	err = c.tree.Leave()
	c.tree = nil
	return err
}

// keepCandidate puts the candidate of a tree under the snapshot ref: a branch
// was to hold it and does not.
func (c *cycle) keepCandidate(ctx context.Context, tree string) error {
	i := slices.IndexFunc(c.its, func(it loop.Iteration) bool { return it.Tree == tree && it.Candidate != "" })
	if i < 0 {
		return nil // An effect of the protocol's own.
	}
	ref := c.snapshotRef()
	err := c.keepAt(ctx, ref, c.its[i].Candidate)
	if errors.Is(err, git.ErrRefMoved) {
		ref += "-" + tail(c.run.ID)
		err = c.keepAt(ctx, ref, c.its[i].Candidate)
	}
	if err != nil {
		return c.keepCopy(ctx, fmt.Errorf("keep the candidate of run %s: %w", c.run.ID, err))
	}
	c.run.Snapshot = or(c.run.Snapshot, ref)
	return nil
}

// keepAt makes a ref, unless the process that died has made it.
func (c *cycle) keepAt(ctx context.Context, ref, commit string) error {
	err := c.t.Repo.UpdateRef(ctx, ref, commit, "")
	if errors.Is(err, git.ErrRefMoved) {
		if at, _, lookErr := c.t.Repo.Ref(ctx, ref); lookErr == nil && at == commit {
			return nil
		}
	}
	return err
}

// candidate writes what the agent changed as a commit on the run's base, on no
// branch, and returns it. It is held until the run has ended; that of a report
// goes nowhere, and the snapshot of the copy keeps it.
func (c *cycle) candidate(ctx context.Context, changes []object.FileChange) (object.Candidate, error) {
	if len(changes) == 0 {
		return object.Candidate{Commit: c.treeBase, Tree: c.tree.From}, nil
	}
	d := object.Draft{Base: c.treeBase, Changes: changes, Message: "pawl: candidate of " + c.run.ID, When: c.Now()}
	if c.def.Tier != loop.TierReport {
		d.Hold = c.holdCandidate(len(c.its))
	}
	return c.t.Repo.Candidate(ctx, d)
}

// holdCandidate keeps the candidate of an iteration from git's garbage collection.
func (c *cycle) holdCandidate(iteration int) func(context.Context, string) error {
	return func(ctx context.Context, commit string) error {
		c.held = true
		return c.t.Repo.HoldCandidate(ctx, c.run.ID, iteration, commit)
	}
}

// dropCandidates lets go of the run's candidates: what is worth keeping has a ref
// of its own. A ref that cannot be removed now is left to Sweep.
func (c *cycle) dropCandidates(ctx context.Context) {
	if !c.held {
		return
	}
	if err := c.t.Repo.DropCandidates(ctx, c.run.ID); err != nil {
		c.Log.WarnContext(ctx, "refs stay behind", slog.String("run", c.run.ID), slog.String("error", err.Error()))
		return
	}
	c.held = false
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

// dropTrees removes all copies of the run.
func (c *cycle) dropTrees(ctx context.Context) error {
	return errors.Join(c.dropTree(ctx), c.host().Drop(ctx, c.t.Repo, c.runEnv().Tier(), c.run.ID))
}
