package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	afterTree  = fault.New("engine.tree.made.after")
	beforeDrop = fault.New("engine.tree.drop.before")
)

// workTree is the copy that the agent of a run works on. It keeps the work in a
// snapshot or a candidate before the copy is removed.
type workTree struct {
	*heldRun
	copy     *runenv.Copy // kept between iterations; nil if missing
	madeFrom string       // commit that the copy was made from
	copied   bool         // there is or was a copy
	restored string       // snapshot ref that the copy was made from, if any
	held     bool         // there are or were refs that hold candidates
	unkept   string       // what could not be kept of the work, and where the rest is
	secured  bool         // the work is kept as far as it can be
	discards []string     // files, and folders that end with a slash, to which changes are dropped
	kept     string       // tree that an effect is about to put on a branch; a snapshot of it is not needed
}

// make makes the run's copy if it has none yet.
func (wt *workTree) make(ctx context.Context) error {
	if wt.copy != nil {
		return nil
	}
	wt.openMarks()
	if err := wt.resolveBase(ctx); err != nil {
		return err
	}
	if wt.madeFrom == "" {
		wt.madeFrom = wt.run.BaseCommit
	}
	tree, err := wt.copyOf(ctx, runenv.ForAct, wt.madeFrom)
	if err != nil {
		return err
	}
	wt.copy = tree
	return afterTree.Hit(ctx)
}

// copyOf makes a copy of a commit for the run.
func (wt *workTree) copyOf(ctx context.Context, purpose runenv.Purpose, commit string) (*runenv.Copy, error) {
	wt.copied = true
	return wt.runEnv().Copy(ctx, purpose, commit)
}

func (wt *workTree) drop(ctx context.Context) error {
	if wt.copy == nil {
		return nil
	}
	if err := beforeDrop.Hit(ctx); err != nil {
		return err
	}
	err := wt.copy.Remove(ctx)
	wt.copy = nil
	return err
}

// restoreSnapshot makes the copy from the snapshot that the step was left with. The
// base of the run is then the commit on which the snapshot was made, so that nothing
// which moved since is undone by it.
func (wt *workTree) restoreSnapshot(ctx context.Context, step loop.Step) error {
	if wt.restored == step.Snapshot {
		return nil
	}
	wt.restored = step.Snapshot
	commit, ok, err := wt.target.Repo.Ref(ctx, step.Snapshot)
	if err != nil {
		return err
	}
	if !ok {
		wt.said.Note("snapshot %s is gone: starting from the base", step.Snapshot)
		return nil
	}
	parent, err := wt.target.Repo.Parent(ctx, commit)
	if err != nil {
		return err
	}
	if err := errors.Join(wt.drop(ctx), wt.resolveBase(ctx)); err != nil { // The branch is asked for the landing, whichever commit counts.
		return err
	}
	wt.madeFrom = commit
	wt.run.BaseCommit, wt.run.BaseTree = parent.Commit, parent.Tree
	wt.said.Note("going on from snapshot %s", step.Snapshot)
	return nil
}

// snapshotRef is where the work of a run is kept that is on no branch.
func (h *heldRun) snapshotRef() string { return snapshotPrefix + h.target.Loop.Name + "/" + h.number() }

const snapshotPrefix = "refs/pawl/snapshots/"

// branchOf is the name of a proposed branch.
func branchOf(name, number string) string { return "pawl/" + name + "/" + number }

// number is the run's number as refs have it. Checkouts that share their refs
// count their runs apart, so there it carries the end of the run's id.
func (h *heldRun) number() string {
	n := strconv.FormatInt(h.run.N, 10)
	if h.target.Repo.Shared() {
		n += "-" + idTail(h.run.ID)
	}
	return n
}

// idTail is the part of a run's id that tells refs apart.
func idTail(runID string) string { return runID[max(0, len(runID)-6):] }

// keepSnapshot puts whatever is in the tree now under a snapshot ref, unless nothing
// changed. What does not fit is workspace.ErrIncomplete, and the rest is kept.
func (wt *workTree) keepSnapshot(ctx context.Context) error {
	if wt.copy == nil {
		return nil
	}
	msg := fmt.Sprintf("pawl: work of %s#%d that is on no branch", wt.target.Loop.Name, wt.run.N)
	ref, commit, err := makeSnapshot(ctx, wt.copy, wt.snapshotRef(), wt.run.ID, msg, wt.Now())
	if ref != "" {
		wt.run.Snapshot = ref
		if err := wt.clearSecrets(ctx, ref, commit, msg); err != nil {
			return fmt.Errorf("take secrets out of %s: %w", ref, err)
		}
	}
	return err
}

// makeSnapshot keeps a tree under the ref, or under one of its own if somebody
// else's work is there. It returns "" if there is nothing to keep.
func makeSnapshot(ctx context.Context, tree *runenv.Copy, ref, runID, msg string, now time.Time) (_, commit string, err error) {
	commit, err = tree.Snapshot(ctx, ref, msg, now)
	if errors.Is(err, git.ErrRefMoved) {
		ref += "-" + idTail(runID)
		commit, err = tree.Snapshot(ctx, ref, msg, now)
	}
	if commit == "" {
		ref = ""
	}
	return ref, commit, err
}

// setAside keeps a tree that is too large for a snapshot as it is, under a name
// that nothing removes.
func (wt *workTree) setAside(why error) error {
	to, err := wt.copy.KeepAs(keepPrefix + wt.run.ID)
	if err != nil {
		return errors.Join(why, err)
	}
	wt.noteLoss(fmt.Sprintf("%s; the whole tree stays in %s", why, to))
	err = wt.copy.Leave()
	wt.copy = nil
	return err
}

// keepCandidate puts the candidate of a tree under the snapshot ref: a branch
// was to hold it and does not.
func (wt *workTree) keepCandidate(ctx context.Context, tree string) error {
	i := slices.IndexFunc(wt.its, func(it loop.Iteration) bool { return it.Tree == tree })
	if i < 0 {
		return nil // An effect of the protocol's own.
	}
	ref := wt.snapshotRef()
	err := wt.keepAt(ctx, ref, wt.its[i].Candidate)
	if errors.Is(err, git.ErrRefMoved) {
		ref += "-" + idTail(wt.run.ID)
		err = wt.keepAt(ctx, ref, wt.its[i].Candidate)
	}
	if err != nil {
		return wt.keepCopy(ctx, fmt.Errorf("keep the candidate of run %s: %w", wt.run.ID, err))
	}
	wt.run.Snapshot = cmp.Or(wt.run.Snapshot, ref)
	return nil
}

// keepAsked keeps the tree on which a command may run after an answer, and returns its
// snapshot: the given one if it has exactly that tree, else one of its own. Without it a
// base that moves meanwhile would leave nothing to run the command on.
func (wt *workTree) keepAsked(ctx context.Context, tree, snapshot string) (string, error) {
	if snapshot != "" {
		commit, ok, err := wt.target.Repo.Ref(ctx, snapshot)
		if err != nil {
			return "", err
		}
		if ok {
			if has, err := wt.target.Repo.TreeOf(ctx, commit); err != nil || has == tree {
				return snapshot, err
			}
		}
	}
	msg := fmt.Sprintf("pawl: what %s#%d asked a person about", wt.target.Loop.Name, wt.run.N)
	commit, err := wt.target.Repo.Commit(ctx, tree, []string{wt.run.BaseCommit}, msg, wt.Now())
	if err != nil {
		return "", err
	}
	ref := wt.snapshotRef()
	err = wt.keepAt(ctx, ref, commit)
	if errors.Is(err, git.ErrRefMoved) {
		ref += "-" + idTail(wt.run.ID)
		err = wt.keepAt(ctx, ref, commit)
	}
	wt.run.Snapshot = cmp.Or(wt.run.Snapshot, ref)
	return ref, err
}

// keepAt makes a ref, unless the process that died has made it.
func (wt *workTree) keepAt(ctx context.Context, ref, commit string) error {
	err := wt.target.Repo.UpdateRef(ctx, ref, commit, "")
	if errors.Is(err, git.ErrRefMoved) {
		if at, _, lookErr := wt.target.Repo.Ref(ctx, ref); lookErr == nil && at == commit {
			return nil
		}
	}
	return err
}

// makeCandidate writes what the agent changed as a commit on the run's base, on no
// branch, and returns it. It is held until the run has ended; that of a report
// goes nowhere, and the snapshot of the copy keeps it.
func (wt *workTree) makeCandidate(ctx context.Context, changes []object.FileChange) (object.Candidate, error) {
	if len(changes) == 0 {
		return object.Candidate{Commit: wt.madeFrom, Tree: wt.copy.From}, nil
	}
	d := object.Draft{Base: wt.madeFrom, Changes: changes, Message: "pawl: candidate of " + wt.run.ID, When: wt.Now()}
	if wt.def.Tier != loop.TierReport {
		d.Hold = wt.holdCandidate(len(wt.its))
	}
	return wt.target.Repo.Candidate(ctx, d)
}

// holdCandidate keeps the candidate of an iteration from git's garbage collection.
func (wt *workTree) holdCandidate(iteration int) func(context.Context, string) error {
	return func(ctx context.Context, commit string) error {
		wt.held = true
		return wt.target.Repo.HoldCandidate(ctx, wt.run.ID, iteration, commit)
	}
}

// dropCandidates lets go of the run's candidates: what is worth keeping has a ref
// of its own. A ref that cannot be removed now is left to Sweep.
func (wt *workTree) dropCandidates(ctx context.Context) {
	if !wt.held {
		return
	}
	if err := wt.target.Repo.DropCandidates(ctx, wt.run.ID); err != nil {
		wt.Log.WarnContext(ctx, "refs stay behind", slog.String("run", wt.run.ID), slog.String("error", err.Error()))
		return
	}
	wt.held = false
}

func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// dropAll removes all copies of the run.
func (wt *workTree) dropAll(ctx context.Context) error {
	return errors.Join(wt.drop(ctx), wt.host().Drop(ctx, wt.target.Repo, wt.runEnv().Tier(), wt.run.ID))
}
