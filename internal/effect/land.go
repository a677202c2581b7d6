package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
)

// KindLand is the kind of effect that moves a branch of people's to a tree that
// was gated.
const KindLand = "land"

// Arguments of a land effect, beside ArgBranch (the proposal), ArgTree (what
// was gated), ArgMessage and ArgWhen (of a merge commit).
const (
	ArgBase   = "base"   // the branch that moves, short name
	ArgOnto   = "onto"   // the commit that it must stand at
	ArgCommit = "commit" // the commit of the proposal
	ArgMerge  = "merge"  // "true": with a merge commit, else by a fast-forward
)

// Mover is the part of a git repository that landing needs.
type Mover interface {
	Commit(ctx context.Context, tree string, parents []string, message string, when time.Time) (string, error)
	TreeOf(ctx context.Context, commit string) (string, error)
	Ref(ctx context.Context, ref string) (string, bool, error)
	Contains(ctx context.Context, tip, commit string) (bool, error)
	Unfinished(ctx context.Context) (git.Advance, bool, error)
	Advance(ctx context.Context, a git.Advance) error
}

// Land moves a branch by compare-and-swap to a commit whose tree is exactly
// the one that was gated, and the checkout with it where the branch is checked
// out.
type Land struct {
	repo Mover
}

// NewLand returns the kind for one repository.
func NewLand(repo Mover) *Land { return &Land{repo} }

// errOtherTree means that a commit does not hold the tree that was gated.
var errOtherTree = errors.New("the commit does not hold the gated tree")

// Apply lands. Repeating it is harmless: a branch that is there already stays,
// and a checkout that a dead process left half-way is finished.
func (l *Land) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	target, err := l.target(ctx, e)
	if err != nil {
		return nil, err
	}
	confirmed := func(ctx context.Context) error {
		if err := confirm(ctx); err != nil || e.Args[ArgMerge] != "true" {
			return err
		}
		// Nothing leads to a merge commit before the branch does: git may have removed it.
		_, err := l.target(ctx, e)
		return err
	}
	err = l.repo.Advance(ctx, git.Advance{Branch: e.Args[ArgBase], Onto: e.Args[ArgOnto], Commit: target, From: e.Args[ArgBranch], Confirm: confirmed})
	if err != nil {
		return nil, fmt.Errorf("land %s on %s: %w", e.Args[ArgBranch], e.Args[ArgBase], err)
	}
	return map[string]string{ResultCommit: target}, nil
}

// Look reports whether the branch holds the landed commit and the checkout is
// whole. A branch that has gone on from there has landed too.
func (l *Land) Look(ctx context.Context, e loop.Effect) (Found, error) {
	target, err := l.target(ctx, e)
	if err != nil {
		return Found{}, err
	}
	tip, exists, err := l.repo.Ref(ctx, Ref(e.Args[ArgBase]))
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

// target is the commit that the branch moves to. Whatever the approval was
// shown, a commit with any other tree than the gated one never lands.
func (l *Land) target(ctx context.Context, e loop.Effect) (string, error) {
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
