package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// KindLand is the kind of effect that moves a person's branch to a gated tree.
const KindLand = "land"

// Arguments of a land effect, in addition to ArgBranch (the proposal), ArgTree (the
// gated tree), and ArgMessage and ArgWhen (for a merge commit).
const (
	ArgBase   = "base"   // the branch to move, short name
	ArgOnto   = "onto"   // the commit that the branch must be at
	ArgCommit = "commit" // the commit of the proposal
	ArgMerge  = "merge"  // "true": by a merge commit, else by a fast-forward

	ArgApproval = "approval" // the yes that it carries out; empty: nobody was asked
	ArgRetry    = "retry"    // "true": an earlier try may have arrived, which is looked for before it is applied
)

// Mover is what landing needs of a git repository.
type Mover interface {
	Commit(ctx context.Context, tree string, parents []string, message string, when time.Time) (string, error)
	TreeOf(ctx context.Context, commit string) (string, error)
	Ref(ctx context.Context, ref string) (string, bool, error)
	Contains(ctx context.Context, tip, commit string) (bool, error)
	Unfinished(ctx context.Context) (git.Advance, bool, error)
	Advance(ctx context.Context, a git.Advance) error
}

// Land moves a branch by compare-and-swap to a commit with exactly the gated
// tree. If the branch is checked out, it updates the checkout.
type Land struct {
	repo Mover
}

// NewLand returns the kind for one repository.
func NewLand(repo Mover) *Land { return &Land{repo} }

// errOtherTree means that a commit has a tree other than the gated one.
var errOtherTree = errors.New("the commit does not hold the gated tree")

// Apply lands. It may be repeated: a branch that has landed stays, and a checkout
// that was interrupted is completed.
func (l *Land) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	target, err := l.landedCommit(ctx, e)
	if err != nil {
		return nil, err
	}
	confirmed := func(ctx context.Context) error {
		if err := confirm(ctx); err != nil || e.Args[ArgMerge] != "true" {
			return err
		}
		// Nothing refers to the merge commit yet, so git may have removed it.
		_, err := l.landedCommit(ctx, e)
		return err
	}
	err = l.repo.Advance(ctx, git.Advance{Branch: e.Args[ArgBase], Onto: e.Args[ArgOnto], Commit: target, From: e.Args[ArgBranch], Confirm: confirmed})
	if err != nil {
		return nil, fmt.Errorf("land %s on %s: %w", e.Args[ArgBranch], e.Args[ArgBase], err)
	}
	return map[string]string{ResultCommit: target}, nil
}

// Look reports whether the branch contains the landed commit and the checkout is
// complete. A branch that has moved on from there has landed too.
func (l *Land) Look(ctx context.Context, e loop.Effect) (Found, error) {
	target, err := l.landedCommit(ctx, e)
	if err != nil {
		return Found{}, err
	}
	tip, exists, err := l.repo.Ref(ctx, BranchRef(e.Args[ArgBase]))
	if err != nil || !exists {
		return Found{}, err
	}
	if tip != target {
		landed, err := l.repo.Contains(ctx, tip, target)
		if err != nil || !landed {
			return Found{}, err
		}
	}
	open, unfinished, err := l.repo.Unfinished(ctx)
	if err != nil {
		return Found{}, err
	}
	if unfinished && open.Commit == target {
		return Found{Begun: true}, nil
	}
	return Found{Applied: true, Result: map[string]string{ResultCommit: target}}, nil
}

// landedCommit returns the commit that the branch moves to. Whatever the approval
// showed, a commit with a tree other than the gated one never lands.
func (l *Land) landedCommit(ctx context.Context, e loop.Effect) (string, error) {
	commit := e.Args[ArgCommit]
	tree, err := l.repo.TreeOf(ctx, commit)
	if err != nil {
		return "", err
	}
	if tree != e.Args[ArgTree] {
		return "", fmt.Errorf("land %s: %w: %s instead of %s", commit, errOtherTree, tree, e.Args[ArgTree])
	}
	if e.Args[ArgMerge] != "true" {
		return commit, nil
	}
	when, err := time.Parse(time.RFC3339, e.Args[ArgWhen])
	if err != nil {
		return "", fmt.Errorf("effect %s has no time: %w", e.Key, err)
	}
	return l.repo.Commit(ctx, tree, []string{e.Args[ArgOnto], commit}, e.Args[ArgMessage], when)
}
