package effect

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Kinds of effects that show a proposal on a forge.
const (
	KindPush        = "push"         // sends the branch to a remote
	KindPullRequest = "pull_request" // opens a pull request for the branch
)

// Arguments of these, in addition to those of a land effect.
const (
	ArgRemote = "remote" // the remote's name in the repository's configuration
	ArgTitle  = "title"
	ArgBody   = "body"
)

// Keys of the result of a pull request.
const (
	ResultURL   = "url"   // the pull request's URL
	ResultState = "state" // forge.Merged or forge.Closed, after a later run has found out
)

// Sender is what pushing needs of a git repository.
type Sender interface {
	TreeOf(ctx context.Context, commit string) (string, error)
	RemoteURL(name string) (string, error)
	RemoteRef(ctx context.Context, from git.Remote, ref string) (string, bool, error)
	Push(ctx context.Context, p git.Push) error
}

// Push sends the commit of a proposal to a remote's branch of the same name.
type Push struct {
	repo    Sender
	environ []string
}

// NewPush returns the kind for one repository. Environ is the user's environment,
// which contains credentials.
func NewPush(repo Sender, environ []string) *Push { return &Push{repo, environ} }

// Apply pushes. It does nothing if the branch is already at the commit.
func (p *Push) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	tree, err := p.repo.TreeOf(ctx, e.Args[ArgCommit])
	if err != nil {
		return nil, err
	}
	if tree != e.Args[ArgTree] {
		return nil, fmt.Errorf("push %s: %w: %s instead of %s", e.Args[ArgCommit], errOtherTree, tree, e.Args[ArgTree])
	}
	to, err := p.remoteOf(e)
	if err != nil {
		return nil, err
	}
	err = p.repo.Push(ctx, git.Push{To: to, Commit: e.Args[ArgCommit], Ref: BranchRef(e.Args[ArgBranch]), Confirm: confirm})
	return map[string]string{ResultCommit: e.Args[ArgCommit]}, err
}

// Look asks the remote where the branch is.
func (p *Push) Look(ctx context.Context, e loop.Effect) (Found, error) {
	from, err := p.remoteOf(e)
	if err != nil {
		return Found{}, err
	}
	at, there, err := p.repo.RemoteRef(ctx, from, BranchRef(e.Args[ArgBranch]))
	if err != nil || !there || at != e.Args[ArgCommit] {
		return Found{}, err
	}
	return Found{Applied: true, Result: map[string]string{ResultCommit: at}}, nil
}

func (p *Push) remoteOf(e loop.Effect) (git.Remote, error) {
	address, err := p.repo.RemoteURL(e.Args[ArgRemote])
	// Local allows a path as the URL, since the user configured it.
	return git.Remote{URL: address, Environ: p.environ, Local: true}, err
}

// Host is what pull requests need of a code host.
type Host interface {
	FindPullRequest(ctx context.Context, repo forge.Repository, head string) (forge.PR, bool, error)
	OpenPullRequest(ctx context.Context, p forge.PullRequest) (forge.PR, error)
}

// PullRequest opens a pull request for a branch that was pushed.
type PullRequest struct {
	repo Sender
	host Host
}

// NewPullRequest returns the kind for one repository.
func NewPullRequest(repo Sender, host Host) *PullRequest { return &PullRequest{repo, host} }

// Apply opens a pull request unless the branch has one.
func (p *PullRequest) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	where, err := p.repositoryOf(e)
	if err != nil {
		return nil, err
	}
	pr, err := p.host.OpenPullRequest(ctx, forge.PullRequest{
		Repo: where, Base: e.Args[ArgBase], Head: e.Args[ArgBranch], Title: e.Args[ArgTitle], Body: e.Args[ArgBody],
		Confirm: confirm,
	})
	return map[string]string{ResultURL: pr.URL}, err
}

// Look asks the code host for a pull request of the branch.
func (p *PullRequest) Look(ctx context.Context, e loop.Effect) (Found, error) {
	where, err := p.repositoryOf(e)
	if err != nil {
		return Found{}, err
	}
	pr, there, err := p.host.FindPullRequest(ctx, where, e.Args[ArgBranch])
	if err != nil || !there {
		return Found{}, err
	}
	return Found{Applied: true, Result: map[string]string{ResultURL: pr.URL}}, nil
}

func (p *PullRequest) repositoryOf(e loop.Effect) (forge.Repository, error) {
	address, err := p.repo.RemoteURL(e.Args[ArgRemote])
	if err != nil {
		return forge.Repository{}, err
	}
	return forge.ParseRepository(address)
}
