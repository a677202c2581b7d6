package effect

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/forge"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
)

// Kinds of effects that show a proposal on a forge.
const (
	KindPush        = "push"         // the branch is sent to a remote
	KindPullRequest = "pull_request" // and a pull request is opened for it
)

// Arguments of these, beside those of a land effect.
const (
	ArgRemote = "remote" // name of the remote in the repository's configuration
	ArgTitle  = "title"
	ArgBody   = "body"
)

// Keys of the result of a pull request.
const (
	ResultURL   = "url"   // its address
	ResultState = "state" // forge.Merged or forge.Closed, once a later run has learned that
)

// Sender is the part of a git repository that pushing needs.
type Sender interface {
	TreeOf(ctx context.Context, commit string) (string, error)
	RemoteURL(name string) (string, error)
	RemoteRef(ctx context.Context, from git.Remote, ref string) (string, bool, error)
	Push(ctx context.Context, p git.Push) error
}

// Push sends the commit of a proposal to a branch of the same name of a remote.
type Push struct {
	repo    Sender
	environ []string
}

// NewPush returns the kind for one repository. Environ is the user's own
// environment, in which credentials are found.
func NewPush(repo Sender, environ []string) *Push { return &Push{repo, environ} }

// Apply pushes. A branch that is there already at the commit stays.
func (p *Push) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	tree, err := p.repo.TreeOf(ctx, e.Args[ArgCommit])
	if err != nil {
		return nil, err
	}
	if tree != e.Args[ArgTree] {
		return nil, fmt.Errorf("push %s: %w: %s instead of %s", e.Args[ArgCommit], errOtherTree, tree, e.Args[ArgTree])
	}
	to, err := p.remote(e)
	if err != nil {
		return nil, err
	}
	err = p.repo.Push(ctx, git.Push{To: to, Commit: e.Args[ArgCommit], Ref: Ref(e.Args[ArgBranch]), Confirm: confirm})
	return map[string]string{ResultCommit: e.Args[ArgCommit]}, err
}

// Look asks the remote where the branch is.
func (p *Push) Look(ctx context.Context, e loop.Effect) (Found, error) {
	from, err := p.remote(e)
	if err != nil {
		return Found{}, err
	}
	at, there, err := p.repo.RemoteRef(ctx, from, Ref(e.Args[ArgBranch]))
	if err != nil || !there || at != e.Args[ArgCommit] {
		return Found{}, err
	}
	return Found{Applied: true, Result: map[string]string{ResultCommit: at}}, nil
}

func (p *Push) remote(e loop.Effect) (git.Remote, error) {
	address, err := p.repo.RemoteURL(e.Args[ArgRemote])
	// A path is a remote that its owner wrote down; nothing is asked of a host.
	return git.Remote{URL: address, Environ: p.environ, Local: true}, err
}

// Host is the part of a forge that pull requests need.
type Host interface {
	Find(ctx context.Context, repo forge.Repository, head string) (forge.PR, bool, error)
	Open(ctx context.Context, p forge.PullRequest) (forge.PR, error)
}

// PullRequest opens a pull request for a branch that was pushed.
type PullRequest struct {
	repo Sender
	host Host
}

// NewPullRequest returns the kind for one repository.
func NewPullRequest(repo Sender, host Host) *PullRequest { return &PullRequest{repo, host} }

// Apply opens it, unless the branch has one.
func (p *PullRequest) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	where, err := p.where(e)
	if err != nil {
		return nil, err
	}
	pr, err := p.host.Open(ctx, forge.PullRequest{
		Repo: where, Base: e.Args[ArgBase], Head: e.Args[ArgBranch], Title: e.Args[ArgTitle], Body: e.Args[ArgBody],
		Confirm: confirm,
	})
	return map[string]string{ResultURL: pr.URL}, err
}

// Look asks the forge for a pull request of the branch.
func (p *PullRequest) Look(ctx context.Context, e loop.Effect) (Found, error) {
	where, err := p.where(e)
	if err != nil {
		return Found{}, err
	}
	pr, there, err := p.host.Find(ctx, where, e.Args[ArgBranch])
	if err != nil || !there {
		return Found{}, err
	}
	return Found{Applied: true, Result: map[string]string{ResultURL: pr.URL}}, nil
}

func (p *PullRequest) where(e loop.Effect) (forge.Repository, error) {
	address, err := p.repo.RemoteURL(e.Args[ArgRemote])
	if err != nil {
		return forge.Repository{}, err
	}
	return forge.Parse(address)
}
