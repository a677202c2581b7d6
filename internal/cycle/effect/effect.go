// Package effect holds the kinds of effects: actions that leave the workspace or
// move a branch. Each can be applied, and each can be looked for, so that an
// unknown outcome is reconciled and never repeated blindly.
//
// It never writes rows; the engine does, before and after.
package effect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Found is the result of looking for an effect.
type Found struct {
	Applied bool
	Begun   bool // it happened but is incomplete; applying it again completes it
	Result  map[string]string
}

// KindPropose is the kind of effect that puts a gated tree on a branch of its
// own, for people to judge.
const KindPropose = "propose"

// Repository is what proposing needs of a git repository.
type Repository interface {
	Commit(ctx context.Context, tree string, parents []string, message string, when time.Time) (string, error)
	UpdateRef(ctx context.Context, ref, to, from string) error
	Ref(ctx context.Context, ref string) (string, bool, error)
}

// Propose creates the branch refs/heads/<branch> at a commit of the gated
// tree. It never moves a branch that exists.
type Propose struct {
	repo Repository
}

// NewPropose returns the kind for one repository.
func NewPropose(repo Repository) *Propose { return &Propose{repo} }

// Arguments of a propose effect.
const (
	ArgBranch  = "branch"
	ArgTree    = "tree"
	ArgParent  = "parent"
	ArgMessage = "message"
	ArgFlags   = "flags" // what a person should know before it lands, one per line
	ArgStack   = "stack" // the proposals that it builds on, as JSON
	ArgWhen    = "when"  // RFC 3339; fixed when the effect is requested, so that applying it twice makes the same commit
)

// ResultCommit is the key of the commit in the result.
const ResultCommit = "commit"

// Apply makes the commit and the branch. The same request always makes the same
// commit, so only the branch shows whether the effect happened. Before the branch
// exists nothing refers to the commit, so confirm is called only once.
func (p *Propose) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	if err := confirm(ctx); err != nil {
		return nil, err
	}
	commit, err := p.makeCommit(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := p.repo.UpdateRef(ctx, BranchRef(e.Args[ArgBranch]), commit, ""); err != nil {
		return nil, fmt.Errorf("propose branch %s: %w", e.Args[ArgBranch], err)
	}
	return map[string]string{ResultCommit: commit}, nil
}

// Look reports whether the branch is at the commit of this effect. A branch of
// that name at another commit is an error: it belongs to somebody else.
func (p *Propose) Look(ctx context.Context, e loop.Effect) (Found, error) {
	at, exists, err := p.repo.Ref(ctx, BranchRef(e.Args[ArgBranch]))
	if err != nil || !exists {
		return Found{}, err
	}
	want, err := p.makeCommit(ctx, e)
	if err != nil {
		return Found{}, err
	}
	if at != want {
		return Found{}, fmt.Errorf("branch %s exists at %s: %w", e.Args[ArgBranch], at, git.ErrRefMoved)
	}
	return Found{Applied: true, Result: map[string]string{ResultCommit: want}}, nil
}

func (p *Propose) makeCommit(ctx context.Context, e loop.Effect) (string, error) {
	when, err := time.Parse(time.RFC3339, e.Args[ArgWhen])
	if err != nil {
		return "", errors.Join(fmt.Errorf("effect %s has no time", e.Key), err)
	}
	return p.repo.Commit(ctx, e.Args[ArgTree], []string{e.Args[ArgParent]}, e.Args[ArgMessage], when)
}

// BranchRef returns the full name of a branch.
func BranchRef(branch string) string {
	return "refs/heads/" + strings.TrimPrefix(branch, "refs/heads/")
}
