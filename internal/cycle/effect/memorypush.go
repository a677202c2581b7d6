package effect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// MemoryPush sends a branch to the branch of the same name of a remote. If that holds other
// commits, the runs' own commits are made again on top of them, or both histories are
// merged, and the branch here follows.
type MemoryPush struct {
	memory
	environ []string
}

// NewMemoryPush returns the kind for one repository. Environ is the user's environment,
// which contains credentials.
func NewMemoryPush(repo *git.Repo, merge MemoryMerge, sleep func(context.Context, time.Duration) error, environ []string) *MemoryPush {
	return &MemoryPush{memory{repo, merge, sleep}, environ}
}

// MemoryPull brings a branch to what its remote has, as MemoryPush does before it tries
// again.
type MemoryPull struct{ MemoryPush }

// NewMemoryPull returns the kind for one repository.
func NewMemoryPull(repo *git.Repo, merge MemoryMerge, sleep func(context.Context, time.Duration) error, environ []string) *MemoryPull {
	return &MemoryPull{*NewMemoryPush(repo, merge, sleep, environ)}
}

// Apply fetches and unites, once.
func (p *MemoryPull) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	to, err := p.remoteOf(e)
	if err != nil {
		return nil, err
	}
	tip, _, err := p.repo.Ref(ctx, BranchRef(e.Args[ArgBase]))
	if err != nil {
		return nil, err
	}
	if err := p.unite(ctx, e, to, tip, confirm); err != nil {
		return nil, err
	}
	tip, _, err = p.repo.Ref(ctx, BranchRef(e.Args[ArgBase]))
	return map[string]string{ResultCommit: tip}, err
}

// Look never finds anything: pulling again does no harm.
func (p *MemoryPull) Look(context.Context, loop.Effect) (Found, error) { return Found{}, nil }

// pushWaits are the waits before a push that failed is tried again.
var pushWaits = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}

const (
	mostUnions  = 20 // of one push, each because somebody else was faster
	mostRebased = 20 // commits; a longer history is merged
)

// Apply pushes. A remote that the repository does not have is no error: then the result says
// so.
func (p *MemoryPush) Apply(ctx context.Context, e loop.Effect, confirm func(context.Context) error) (map[string]string, error) {
	to, err := p.remoteOf(e)
	if errors.Is(err, loop.ErrNotFound) {
		return map[string]string{ResultUnpushed: "the repository has no remote " + e.Args[ArgRemote]}, nil
	}
	if err != nil {
		return nil, err
	}
	ref := BranchRef(e.Args[ArgBase])
	for tried, united := 0, 0; ; {
		tip, there, err := p.repo.Ref(ctx, ref)
		if err != nil || !there {
			return nil, errors.Join(err, fmt.Errorf("push %s: %w", ref, loop.ErrNotFound))
		}
		// A try before this one may have moved the branch and not the checkout.
		if err = p.repo.FinishAdvance(ctx); err == nil {
			err = p.repo.Push(ctx, git.Push{To: to, Commit: tip, Ref: ref, Under: ref, Confirm: confirm})
		}
		if err == nil {
			return p.pushed(ctx, e, tip)
		}
		if errors.Is(err, git.ErrRefMoved) && united < mostUnions {
			united++
			if err = p.unite(ctx, e, to, tip, confirm); err == nil || errors.Is(err, git.ErrRefMoved) {
				continue
			}
		}
		if err := p.waitAgain(ctx, tried, err); err != nil {
			return nil, err
		}
		tried++
	}
}

// waitAgain waits before a push that failed is tried once more. It returns the error if that
// would be of no use, or was done often enough.
func (p *MemoryPush) waitAgain(ctx context.Context, tried int, err error) error {
	switch {
	case ctx.Err() != nil || !mayPass(err):
		return err
	case tried == len(pushWaits):
		return fmt.Errorf("after %d tries: %w", tried+1, err)
	}
	return p.sleep(ctx, pushWaits[tried])
}

// pushed is the result of a push up to a commit.
func (p *MemoryPush) pushed(ctx context.Context, e loop.Effect, tip string) (map[string]string, error) {
	result := map[string]string{ResultCommit: tip}
	work, err := p.sendsWork(ctx, e, tip)
	if work {
		result[ResultWork] = "true"
	}
	return result, errors.Join(err, p.track(ctx, e, tip))
}

// mostSent bounds the commits of a push that are looked at.
const mostSent = 200

// sendsWork reports whether a commit of a run which the remote was not known to have changes
// more than the memory.
func (p *MemoryPush) sendsWork(ctx context.Context, e loop.Effect, tip string) (bool, error) {
	files, err := DecodeFiles(e.Args[ArgFiles])
	if err != nil {
		return false, err
	}
	seen, _, err := p.repo.Ref(ctx, TrackingRef(e.Args[ArgRemote], e.Args[ArgBase]))
	if err != nil || seen == tip {
		return false, err
	}
	list, err := p.repo.History(ctx, tip, seen, "", mostSent)
	for _, c := range list {
		if err != nil || !IsOfRun(c.Message) || len(c.Parents) != 1 {
			continue
		}
		var changed []string
		if changed, err = p.repo.Changed(ctx, c.Parents[0], c.ID); err == nil && changesWork(changed, files) {
			return true, nil
		}
	}
	return false, err
}

// mayPass reports whether a push that failed so may work a little later.
func mayPass(err error) bool {
	if _, ungated := errors.AsType[*UngatedError](err); ungated {
		return false
	}
	if f, ok := errors.AsType[*loop.Fault](err); ok && f.Exit == loop.ExitRefused {
		return false
	}
	return !errors.Is(err, loop.ErrPaused) && !errors.Is(err, loop.ErrLeaseLost) && !errors.Is(err, errSides)
}

// Look asks the remote whether it has what the branch has here. The result of a push that
// it does not have is what the run's commit has become here.
func (p *MemoryPush) Look(ctx context.Context, e loop.Effect) (Found, error) {
	from, err := p.remoteOf(e)
	if errors.Is(err, loop.ErrNotFound) {
		return Found{}, nil
	}
	if err != nil {
		return Found{}, err
	}
	ref := BranchRef(e.Args[ArgBase])
	tip, there, err := p.repo.Ref(ctx, ref)
	if err != nil || !there {
		return Found{}, err
	}
	at, there, err := p.repo.RemoteRef(ctx, from, ref)
	if err != nil || !there || at != tip {
		own, ownErr := p.endsWithRun(ctx, tip, e.RunID)
		if ownErr != nil || !own {
			return Found{}, errors.Join(err, ownErr)
		}
		return Found{Result: map[string]string{ResultCommit: tip}}, err
	}
	result, err := p.pushed(ctx, e, at)
	return Found{Applied: true, Result: result}, err
}

// endsWithRun reports whether a commit is the run's own, or unites that one with others.
func (p *MemoryPush) endsWithRun(ctx context.Context, commit, runID string) (bool, error) {
	list, err := p.repo.History(ctx, commit, "", "", 1)
	if err == nil && len(list) == 1 && len(list[0].Parents) == 2 {
		list, err = p.repo.History(ctx, list[0].Parents[0], "", "", 1)
	}
	return len(list) == 1 && isOf(runID, list[0].Message), err
}

func (p *MemoryPush) remoteOf(e loop.Effect) (git.Remote, error) {
	address, err := p.repo.RemoteURL(e.Args[ArgRemote])
	return git.Remote{URL: address, Environ: p.environ, Local: true}, err
}

// TrackingRef is the ref that says where a branch of a remote was seen.
func TrackingRef(remote, branch string) string { return "refs/remotes/" + remote + "/" + branch }

// track notes where the branch of the remote is, as git does after a push.
func (p *MemoryPush) track(ctx context.Context, e loop.Effect, at string) error {
	name := TrackingRef(e.Args[ArgRemote], e.Args[ArgBase])
	seen, _, err := p.repo.Ref(ctx, name)
	if err != nil || seen == at {
		return err
	}
	if err = p.repo.UpdateRef(ctx, name, at, seen); errors.Is(err, git.ErrRefMoved) {
		return nil // Somebody has fetched, and knows better.
	}
	return err
}

// unite makes the branch here hold what its remote has.
func (p *MemoryPush) unite(ctx context.Context, e loop.Effect, from git.Remote, tip string, confirm func(context.Context) error) error {
	files, err := DecodeFiles(e.Args[ArgFiles])
	if err != nil {
		return err
	}
	theirs, err := p.repo.Fetch(ctx, from, BranchRef(e.Args[ArgBase]), tip)
	if err != nil {
		return err
	}
	if err := p.track(ctx, e, theirs); err != nil {
		return err
	}
	base, err := p.repo.MergeBase(ctx, tip, theirs)
	switch {
	case err != nil:
		return err
	case base == "":
		return &loop.Fault{
			Exit: loop.ExitError, What: fmt.Sprintf("%s here and %s at %s have no commit in common", e.Args[ArgBase], e.Args[ArgBase], e.Args[ArgRemote]),
			Fix: "push to another branch or remote, or join the histories by hand", Err: errSides,
		}
	case base == theirs: // The remote has gone back to what is known here.
		return nil
	}
	advance := git.Advance{Branch: e.Args[ArgBase], Onto: tip, Commit: theirs, Memory: p.blobs(files), Confirm: confirm}
	if base != tip {
		build, rewrites, err := p.planUnion(ctx, e, files, union{base, tip, theirs})
		if err != nil {
			return err
		}
		c, err := build(ctx)
		if err != nil {
			return err
		}
		advance.Commit, advance.Rewrites, advance.Confirm = c.Commit, rewrites, rebuilt(build, confirm)
	}
	if err := p.repo.Advance(ctx, advance); err != nil {
		return fmt.Errorf("bring %s to what %s has: %w", e.Args[ArgBase], e.Args[ArgRemote], err)
	}
	return nil
}

// planUnion decides how two histories become one: commits of runs alone are made again on
// theirs, and anything else is merged.
func (p *MemoryPush) planUnion(ctx context.Context, e loop.Effect, files map[string]string, u union) (build func(context.Context) (object.Candidate, error), rewrites bool, err error) {
	own, err := p.repo.History(ctx, u.ours, u.theirs, "", mostRebased+1)
	if err != nil {
		return nil, false, err
	}
	merged, err := p.mergeFiles(ctx, e, files, u)
	if err != nil {
		return nil, false, err
	}
	if err := p.checkGated(ctx, e, files, u, merged); err != nil {
		return nil, false, err
	}
	rewrites = len(own) <= mostRebased && !slices.ContainsFunc(own, func(c git.Commit) bool { return len(c.Parents) != 1 || !IsOfRun(c.Message) })
	if !rewrites {
		return func(ctx context.Context) (object.Candidate, error) {
			return p.replay(ctx, e, git.Replay{
				Base: u.base, Commit: u.ours, Onto: u.theirs, Parents: []string{u.ours, u.theirs}, Settled: changesOf(merged),
				Message: fmt.Sprintf(mergeMessage, e.Args[ArgRemote], e.Args[ArgBase]),
			})
		}, false, nil
	}
	slices.Reverse(own)
	return func(ctx context.Context) (c object.Candidate, err error) {
		c.Commit = u.theirs
		for _, commit := range own {
			merged, err := p.mergeFiles(ctx, e, files, union{commit.Parents[0], commit.ID, c.Commit})
			if err != nil {
				return c, err
			}
			if c, err = p.replay(ctx, e, git.Replay{Base: commit.Parents[0], Commit: commit.ID, Onto: c.Commit, When: commit.When, Settled: changesOf(merged)}); err != nil {
				return c, err
			}
		}
		return c, nil
	}, true, nil
}

// mergeMessage has the form that the boot protocol gives to messages of sessions.
const mergeMessage = "agent: merge the sessions of %s/%s\n\n- Updated STATE: the newer one is kept\n- Updated TODO: united by id\n- Session summary: two workspaces had gone on by themselves\n"

// mergeFiles unites the memories of two commits.
func (p *MemoryPush) mergeFiles(ctx context.Context, e loop.Effect, like map[string]string, u union) (map[string]string, error) {
	var sides [3]map[string]string
	for i, commit := range []string{u.base, u.ours, u.theirs} {
		var err error
		if sides[i], err = p.readFiles(ctx, commit, like); err != nil {
			return nil, err
		}
	}
	return p.merge(ctx, e.Args[ArgContract], sides[0], sides[1], sides[2])
}
