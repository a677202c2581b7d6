package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// BranchPush sends a branch to the branch of the same name of a remote, up to the commit
// that a person was shown: what was committed since stays here, and nothing is united.
type BranchPush struct{ MemoryPush }

// NewBranchPush returns the kind for one repository. Environ is the user's environment,
// which contains credentials.
func NewBranchPush(repo *git.Repo, sleep func(context.Context, time.Duration) error, environ []string) *BranchPush {
	return &BranchPush{*NewMemoryPush(repo, nil, sleep, environ)}
}

// Apply pushes. A commit that the branch does not have any more, or that does not follow
// what the remote has by now, is a *loop.Fault with exit status 14.
func (p *BranchPush) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	to, err := p.remoteOf(e)
	if err != nil {
		return nil, err
	}
	ref, commit := BranchRef(e.Args[ArgBase]), e.Args[ArgCommit]
	for tried := 0; ; tried++ {
		if err := p.checkHeld(ctx, e, ref, commit); err != nil {
			return nil, err
		}
		err := p.repo.Push(ctx, git.Push{To: to, Commit: commit, Ref: ref, Under: ref, Confirm: confirm})
		switch {
		case err == nil:
			return map[string]string{ResultCommit: commit}, p.track(ctx, e, commit)
		case errors.Is(err, git.ErrRefMoved):
			return nil, &loop.Fault{
				Exit: loop.ExitRefused, What: fmt.Sprintf("push %s to %s", e.Args[ArgBase], e.Args[ArgRemote]), Why: "it has commits by now that are not here",
				Fix: "the next session takes them in and asks again", Err: err,
			}
		}
		if err := p.waitAgain(ctx, tried, err); err != nil {
			return nil, err
		}
	}
}

// checkHeld refuses a commit that the branch here does not have any more.
func (p *BranchPush) checkHeld(ctx context.Context, e loop.Effect, ref, commit string) error {
	tip, there, err := p.repo.Ref(ctx, ref)
	held := false
	if err == nil && there {
		held, err = p.repo.Contains(ctx, tip, commit)
	}
	if err != nil || held {
		return err
	}
	return &loop.Fault{
		Exit: loop.ExitRefused, What: fmt.Sprintf("push %s to %s", e.Args[ArgBase], e.Args[ArgRemote]), Why: "it does not have " + commit + " any more, which was shown",
		Fix: "the next session asks about what it has",
	}
}

// Look asks the remote whether it has the commit.
func (p *BranchPush) Look(ctx context.Context, e loop.Effect) (Found, error) {
	from, err := p.remoteOf(e)
	if err != nil {
		return Found{}, err
	}
	commit := e.Args[ArgCommit]
	at, there, err := p.repo.RemoteRef(ctx, from, BranchRef(e.Args[ArgBase]))
	if err != nil || !there {
		return Found{}, err
	}
	if at != commit {
		has, err := p.repo.Contains(ctx, at, commit)
		if errors.Is(err, loop.ErrNotFound) { // What the remote has is not here.
			err = nil
		}
		if err != nil || !has {
			return Found{}, err
		}
	}
	return Found{Applied: true, Result: map[string]string{ResultCommit: commit}}, p.track(ctx, e, at)
}
