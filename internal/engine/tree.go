package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/workspace"
)

const (
	purposeAct  = "act"
	purposeGate = "gate"
)

func treeName(runID, purpose string) string { return runID + "-" + purpose }

var (
	afterTree  = fault.New("engine.tree.made.after")
	beforeDrop = fault.New("engine.tree.drop.before")
)

// trees are the copies that this run works in. What the ignore rules of a copy
// name is no change of it: build output, installed packages.
func (c *cycle) trees(ctx context.Context, purpose string) *workspace.Trees {
	ignores := c.t.Repo.Ignores(ctx, filepath.Join(c.treesDir(), treeName(c.run.ID, purpose)))
	c.ignores, c.copied = append(c.ignores, ignores), true
	return workspace.New(c.treesDir(), c.t.Repo, workspace.Limits{Skip: ignores.Ignored})
}

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
	tree, err := c.copyOf(ctx, purposeAct, c.treeBase)
	if err != nil {
		return err
	}
	c.tree = tree
	return afterTree.Hit(ctx)
}

// copyOf makes a copy of a commit. One of the same purpose that could not be
// removed before goes first.
func (c *cycle) copyOf(ctx context.Context, purpose, commit string) (*workspace.Tree, error) {
	trees, name := c.trees(ctx, purpose), treeName(c.run.ID, purpose)
	tree, err := trees.Make(ctx, name, commit)
	if errors.Is(err, fs.ErrExist) {
		if err := trees.Remove(ctx, name); err != nil {
			return nil, err
		}
		tree, err = trees.Make(ctx, name, commit)
	}
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", short(commit), err)
	}
	return tree, nil
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
		c.note("snapshot %s is gone: starting from the base", step.Snapshot)
		return nil
	}
	parent, err := c.t.Repo.Parent(ctx, commit)
	if err != nil {
		return err
	}
	if err := c.dropTree(ctx); err != nil {
		return err
	}
	c.treeBase = commit
	c.run.BaseCommit, c.run.BaseTree = parent.Commit, parent.Tree
	c.note("going on from snapshot %s", step.Snapshot)
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
		n += "-" + c.run.ID[max(0, len(c.run.ID)-refTail):]
	}
	return n
}

// refTail is how much of a run's id tells refs apart.
const refTail = 6

// keep puts whatever is in the tree now under a snapshot ref, unless nothing
// changed or this very state is on its way to a branch.
func (c *cycle) keep(ctx context.Context) error {
	if c.tree == nil {
		return nil
	}
	return c.snapshot(ctx, c.tree)
}

// keepCandidate puts the last candidate under the snapshot ref: a branch was to
// hold it and does not.
func (c *cycle) keepCandidate(ctx context.Context) error {
	ref, commit := c.snapshotRef(), c.current().Candidate
	err := c.t.Repo.UpdateRef(ctx, ref, commit, "")
	if errors.Is(err, git.ErrRefMoved) {
		at, _, lookErr := c.t.Repo.Ref(ctx, ref)
		if lookErr == nil && at == commit {
			err = nil // Kept by the process that died.
		}
	}
	if err != nil {
		return fmt.Errorf("keep the candidate of run %s: %w", c.run.ID, err)
	}
	c.run.Snapshot = ref
	return nil
}

func (c *cycle) snapshot(ctx context.Context, tree *workspace.Tree) error {
	ref := c.snapshotRef()
	msg := fmt.Sprintf("pawl: work of %s#%d that is on no branch", c.t.Loop.Name, c.run.N)
	snap, err := tree.Snapshot(ctx, ref, msg, c.Now())
	if err != nil {
		return fmt.Errorf("keep the tree of run %s: %w", c.run.ID, err)
	}
	if snap != "" {
		c.run.Snapshot = ref
	}
	return nil
}

// candidate writes what the agent changed as a commit on the run's base, on no
// branch, and returns it with the changed paths.
func (c *cycle) candidate(ctx context.Context, changes []git.FileChange) (git.Candidate, error) {
	if len(changes) == 0 {
		return git.Candidate{Commit: c.treeBase, Tree: c.tree.From}, nil
	}
	return c.t.Repo.Candidate(ctx, git.Draft{Base: c.treeBase, Changes: changes, Message: "pawl: candidate of " + c.run.ID, When: c.Now()})
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

// dropTrees removes all copies of the run, and ends what watched over them.
func (c *cycle) dropTrees(ctx context.Context) error {
	var errs []error
	for _, ig := range c.ignores {
		errs = append(errs, ig.Close())
	}
	c.ignores, c.tree = nil, nil
	if err := beforeDrop.Hit(ctx); err != nil {
		return err
	}
	trees := workspace.New(c.treesDir(), c.t.Repo, workspace.Limits{})
	for _, purpose := range []string{purposeAct, purposeGate} {
		errs = append(errs, trees.Remove(ctx, treeName(c.run.ID, purpose)))
	}
	return errors.Join(errs...)
}
