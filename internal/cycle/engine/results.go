package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// ResultState says whether others may build on the result of a step.
type ResultState string

// The states of results. A step that proposed nothing has the empty one.
const (
	ResultWaits    ResultState = "waits"    // it is on a branch and not on the base: what builds on it starts from there
	ResultLanded   ResultState = "landed"   // the base has it
	ResultRejected ResultState = "rejected" // a person said no
	ResultVoid     ResultState = "void"     // it can land no more, though nobody said no
)

// StepResult is what a step has proposed last. The zero StepResult: nothing.
type StepResult struct {
	State    ResultState
	Approval loop.Approval
	Stack    []loop.Lower // if it waits: what work that builds on it stands on, the lowest first
}

// Results says what became of what steps have proposed.
type Results interface {
	// Of returns the results of steps by their ids. A step that proposed nothing is missing.
	Of(ctx context.Context, steps ...string) (map[string]StepResult, error)
	// Refused lists the ids of steps that have a proposal that was rejected or is void.
	Refused(ctx context.Context) ([]string, error)
}

// results are those of the loop of a run.
type results struct{ *heldRun }

// Of implements Results.
func (rs results) Of(ctx context.Context, steps ...string) (map[string]StepResult, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	var list []loop.Approval
	err := rs.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.ApprovalsOfSteps(ctx, rs.run.LoopID, steps...)
		return err
	})
	if err != nil {
		return nil, err
	}
	found := map[string]StepResult{}
	for _, a := range list {
		if _, newer := found[a.StepID]; newer || a.Action.Commit == "" {
			continue
		}
		res := StepResult{Approval: a, State: ResultWaits}
		if a.State == loop.ApprovalRejected {
			res.State = ResultRejected
		} else if res.Stack, err = unlandedStack(ctx, rs.target.Repo, a.Action); err != nil {
			return nil, err
		}
		expired := !rs.Now().Before(a.Expires) && slices.Contains(loop.PendingStates(), a.State)
		switch {
		case res.State == ResultRejected:
		case len(res.Stack) == 0:
			res.State = ResultLanded
		case a.State == loop.ApprovalVoid, a.State == loop.ApprovalExpired, expired:
			res.State, res.Stack = ResultVoid, nil
		}
		found[a.StepID] = res
	}
	return found, nil
}

// Refused implements Results.
func (rs results) Refused(ctx context.Context) (ids []string, err error) {
	var list []loop.Approval
	err = rs.Store.View(ctx, func(r *store.Reader) (err error) {
		list, err = r.Approvals(ctx, rs.run.LoopID, loop.ApprovalRejected, loop.ApprovalVoid, loop.ApprovalExpired)
		return err
	})
	for _, a := range list {
		if a.Action.Commit != "" && !slices.Contains(ids, a.StepID) {
			ids = append(ids, a.StepID)
		}
	}
	return ids, err
}

// unlandedStack are the proposals from the lowest that the base lacks up to this one; none
// if the base has it.
func unlandedStack(ctx context.Context, repo *git.Repo, act loop.Action) ([]loop.Lower, error) {
	stack := append(slices.Clone(act.Stack), loop.Lower{Branch: act.Branch, Commit: act.Commit, Onto: act.Onto})
	tip, there, err := repo.Ref(ctx, effect.BranchRef(act.Base))
	if err != nil || !there {
		return stack, err
	}
	for i, l := range slices.Backward(stack) {
		has, err := repo.Contains(ctx, tip, l.Commit)
		if errors.Is(err, loop.ErrNotFound) {
			has, err = false, nil // The commit is gone with its branch.
		}
		if err != nil {
			return nil, err
		}
		if has {
			return stack[i+1:], nil
		}
	}
	return stack, nil
}

// startFrom makes the proposals that a step builds on the base of the run. What a snapshot
// of the step was made on must be the same: else the work begins anew.
func (c *cycle) startFrom(ctx context.Context, stack []loop.Lower, step *loop.Step) error {
	top := stack[len(stack)-1]
	if c.stack != nil && c.run.BaseCommit == top.Commit {
		return nil // An earlier iteration has begun there.
	}
	tree, err := c.target.Repo.TreeOf(ctx, top.Commit)
	if err != nil {
		return fmt.Errorf("start from %s, which the step builds on: %w", top.Branch, err)
	}
	if step.Snapshot != "" {
		if same, err := c.madeOn(ctx, step.Snapshot, top.Commit); err != nil {
			return err
		} else if !same {
			c.said.Note("%s was made on something else than %s: starting anew; the snapshot stays", step.Snapshot, top.Branch)
			step.Snapshot = ""
		}
	}
	if err := errors.Join(c.tree.drop(ctx), c.resolveBase(ctx)); err != nil { // The branch is asked for the landing, whichever commit counts.
		return err
	}
	c.tree.madeFrom, c.tree.restored = "", ""
	c.run.BaseCommit, c.run.BaseTree = top.Commit, tree
	c.stack = stack
	c.said.Note("starting from %s, on which the step builds and which has not landed", top.Branch)
	return nil
}

// madeOn reports whether the parent of a snapshot is that commit.
func (h *heldRun) madeOn(ctx context.Context, ref, commit string) (bool, error) {
	at, there, err := h.target.Repo.Ref(ctx, ref)
	if err != nil || !there {
		return !there, err
	}
	parent, err := h.target.Repo.Parent(ctx, at)
	return parent.Commit == commit, err
}

// stackFlag tells whoever approves a proposal what lands with it.
func stackFlag(stack []loop.Lower) []string {
	if len(stack) == 0 {
		return nil
	}
	names := make([]string, len(stack))
	for i, l := range stack {
		names[i] = l.Branch
	}
	return []string{"it builds on " + quoteList(names) + ", which lands with it unless it has landed before"}
}

// voidStacked makes the questions about proposals void that build on one that will not land
// as it is.
func voidStacked(ctx context.Context, tx *store.Tx, lower loop.Approval, why string) error {
	if lower.Action.Commit == "" {
		return nil
	}
	open, err := tx.Approvals(ctx, lower.LoopID, loop.PendingStates()...)
	for _, a := range open {
		if err == nil && a.Action.BuildsOn(lower.Action.Commit) {
			_, err = tx.VoidApproval(ctx, a.ID, why)
		}
	}
	return err
}

// voidLanded stages that the questions about the proposals are void that land with another
// one.
func (h *heldRun) voidLanded(a loop.Approval) {
	if len(a.Action.Stack) == 0 {
		return
	}
	h.stage(func(ctx context.Context, rt *store.RunTx) error {
		open, err := rt.Approvals(ctx, a.LoopID, loop.PendingStates()...)
		for _, lower := range open {
			if err == nil && a.Action.BuildsOn(lower.Action.Commit) {
				_, err = rt.VoidApproval(ctx, lower.ID, fmt.Sprintf("it landed with %s, which %s approved", a.Action.Branch, a.By))
			}
		}
		return err
	})
}

// noCyclesSince counts the runs since a step was blocked that were not cycles.
func (c *cycle) noCyclesSince(ctx context.Context, step loop.Step) (n int64, err error) {
	if step.State != loop.StepBlocked {
		return 0, nil
	}
	err = c.Store.View(ctx, func(r *store.Reader) (err error) {
		n, err = r.NoCyclesBetween(ctx, c.run.LoopID, step.BlockedAt, c.run.N)
		return err
	})
	return n, err
}

// baseTreeOf is the tree that the work on a candidate begins from.
func (c *cycle) baseTreeOf(ctx context.Context, cand plan.Candidate) (string, error) {
	if n := len(cand.Stack); n > 0 {
		return c.target.Repo.TreeOf(ctx, cand.Stack[n-1].Commit)
	}
	return c.run.BaseTree, nil
}
