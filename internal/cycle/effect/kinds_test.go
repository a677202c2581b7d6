//go:build unix

package effect_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

var when = time.Unix(1_700_000_000, 0)

// proposed commits the gated tree on top of main, as a proposal does.
func (b *bench) proposed(t *testing.T) string {
	t.Helper()
	commit, err := b.repo.Commit(t.Context(), b.gated, []string{b.parent}, "m", when)
	if err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, b.dir, "update-ref", "refs/heads/pawl/fix/1", commit)
	return commit
}

func (b *bench) landing(commit, merge string) loop.Effect {
	return loop.Effect{Kind: effect.KindLand, Key: "k", Args: map[string]string{
		effect.ArgBase: "main", effect.ArgOnto: b.parent, effect.ArgCommit: commit, effect.ArgTree: b.gated, effect.ArgMerge: merge,
		effect.ArgMessage: "m", effect.ArgWhen: when.UTC().Format(time.RFC3339), effect.ArgBranch: "pawl/fix/1",
	}}
}

func TestLandingIsFoundWhenTheBranchMovedAndNotBefore(t *testing.T) {
	for name, merge := range map[string]string{"by a fast-forward": "", "by a merge": "true"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			commit := b.proposed(t)
			land, e := effect.NewLand(b.repo), b.landing(commit, merge)
			if found, err := land.Look(t.Context(), e); err != nil || found.Applied {
				t.Errorf("before: Look = %+v, %v; want not applied", found, err)
			}
			result, err := land.Apply(t.Context(), e, yes)
			if err != nil {
				t.Fatal(err)
			}
			tip := gittest.Run(t, b.dir, "rev-parse", "main")
			if result[effect.ResultCommit] != tip || merge == "" && tip != commit {
				t.Errorf("Apply = %v, and main is at %s", result, tip)
			}
			want := effect.Found{Applied: true, Result: map[string]string{effect.ResultCommit: tip}}
			found, err := land.Look(t.Context(), e)
			if diff := cmp.Diff(want, found); err != nil || diff != "" {
				t.Errorf("after: Look = %v (-want +got):\n%s", err, diff)
			}
			gittest.Run(t, b.dir, "commit", "-q", "--allow-empty", "-m", "people go on")
			found, err = land.Look(t.Context(), e)
			if diff := cmp.Diff(want, found); err != nil || diff != "" {
				t.Errorf("when the branch has gone on: Look = %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestLandingOnABranchThatIsGoneIsNotFound(t *testing.T) {
	b := newBench(t)
	e := b.landing(b.proposed(t), "")
	e.Args[effect.ArgBase] = "gone"
	if found, err := effect.NewLand(b.repo).Look(t.Context(), e); err != nil || found.Applied {
		t.Errorf("Look = %+v, %v; want not applied", found, err)
	}
}

func TestALandingThatCannotBeReadIsAnErrorAndMovesNothing(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		change map[string]string
		says   string
	}{
		"the repository does not answer": {ended, nil, context.Canceled.Error()},
		"no such commit":                 {t.Context(), map[string]string{effect.ArgCommit: strings.Repeat("ab", 20)}, "ababab"},
		"a tree that was not gated":      {t.Context(), map[string]string{effect.ArgTree: strings.Repeat("ab", 20)}, "the commit does not hold the gated tree"},
		"a merge without a time":         {t.Context(), map[string]string{effect.ArgMerge: "true", effect.ArgWhen: "yesterday"}, "effect k has no time"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			land, e := effect.NewLand(b.repo), b.landing(b.proposed(t), "")
			maps.Copy(e.Args, c.change)
			if found, err := land.Look(c.ctx, e); err == nil || found.Applied || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Look = %+v, %v; want an error with %q", found, err, c.says)
			}
			if got, err := land.Apply(c.ctx, e, yes); err == nil || got != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Apply = %v, %v; want an error with %q", got, err, c.says)
			}
			if tip := gittest.Run(t, b.dir, "rev-parse", "main"); tip != b.parent {
				t.Errorf("main is at %s, was %s", tip, b.parent)
			}
		})
	}
}

func TestALandingThatIsNotConfirmedMovesNothing(t *testing.T) {
	for name, merge := range map[string]string{"by a fast-forward": "", "by a merge": "true"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			no := errors.New("the lease is lost")
			_, err := effect.NewLand(b.repo).Apply(t.Context(), b.landing(b.proposed(t), merge), func(context.Context) error { return no })
			if !errors.Is(err, no) {
				t.Errorf("Apply = %v, want %v", err, no)
			}
			if tip := gittest.Run(t, b.dir, "rev-parse", "main"); tip != b.parent {
				t.Errorf("main is at %s, was %s", tip, b.parent)
			}
		})
	}
}

// pushing is a bench with a remote, and the effect that pushes a proposal there.
func pushing(t *testing.T) (*bench, string, loop.Effect) {
	t.Helper()
	b := newBench(t)
	remote := filepath.Join(t.TempDir(), "remote.git")
	gittest.Run(t, b.dir, "init", "-q", "--bare", remote)
	gittest.Run(t, b.dir, "remote", "add", "origin", remote)
	return b, remote, loop.Effect{Kind: effect.KindPush, Key: "k", Args: map[string]string{
		effect.ArgRemote: "origin", effect.ArgBranch: "pawl/fix/1", effect.ArgCommit: b.proposed(t), effect.ArgTree: b.gated,
	}}
}

func TestAPushIsFoundWhenTheRemoteHasItAndNotBefore(t *testing.T) {
	b, remote, e := pushing(t)
	push := effect.NewPush(b.repo, os.Environ())
	if found, err := push.Look(t.Context(), e); err != nil || found.Applied {
		t.Errorf("before: Look = %+v, %v; want not applied", found, err)
	}
	result, err := push.Apply(t.Context(), e, yes)
	if at := gittest.Run(t, remote, "rev-parse", "refs/heads/pawl/fix/1"); err != nil || at != e.Args[effect.ArgCommit] || result[effect.ResultCommit] != at {
		t.Errorf("Apply = %v, %v, and the remote is at %s", result, err, at)
	}
	want := effect.Found{Applied: true, Result: result}
	found, err := push.Look(t.Context(), e)
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("after: Look = %v (-want +got):\n%s", err, diff)
	}
	gittest.Run(t, remote, "update-ref", "refs/heads/pawl/fix/1", b.parent)
	if found, err := push.Look(t.Context(), e); err != nil || found.Applied {
		t.Errorf("at another commit: Look = %+v, %v; want not applied", found, err)
	}
}

func TestAPushThatCannotBeMetSendsNothing(t *testing.T) {
	for name, change := range map[string][3]string{
		"a tree that was not gated": {effect.ArgTree, strings.Repeat("ab", 20), "the commit does not hold the gated tree"},
		"no such commit":            {effect.ArgCommit, strings.Repeat("ab", 20), "tree of abab"},
		"no such remote":            {effect.ArgRemote, "nowhere", "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			b, remote, e := pushing(t)
			e.Args[change[0]] = change[1]
			push := effect.NewPush(b.repo, os.Environ())
			if got, err := push.Apply(t.Context(), e, yes); err == nil || !strings.Contains(err.Error(), change[2]) {
				t.Errorf("Apply = %v, %v, want an error with %q", got, err, change[2])
			}
			if refs := gittest.Run(t, remote, "for-each-ref"); refs != "" {
				t.Errorf("the remote has %s", refs)
			}
			if change[0] == effect.ArgRemote {
				if found, err := push.Look(t.Context(), e); err == nil || found.Applied {
					t.Errorf("Look = %+v, %v; want an error", found, err)
				}
			}
		})
	}
}

func TestAPushThatIsNotConfirmedSendsNothing(t *testing.T) {
	b, remote, e := pushing(t)
	no := errors.New("the lease is lost")
	if _, err := effect.NewPush(b.repo, os.Environ()).Apply(t.Context(), e, func(context.Context) error { return no }); !errors.Is(err, no) {
		t.Errorf("Apply = %v, want %v", err, no)
	}
	if refs := gittest.Run(t, remote, "for-each-ref"); refs != "" {
		t.Errorf("the remote has %s", refs)
	}
}

// host answers as a forge does.
type host struct {
	pr    forge.PR
	there bool
	err   error
	asked forge.PullRequest
}

func (h *host) FindPullRequest(context.Context, forge.Repository, string) (forge.PR, bool, error) {
	return h.pr, h.there, h.err
}

func (h *host) OpenPullRequest(_ context.Context, p forge.PullRequest) (forge.PR, error) {
	h.asked = p
	return h.pr, h.err
}

func TestAPullRequestIsFoundWhenTheForgeHasIt(t *testing.T) {
	b := newBench(t)
	gittest.Run(t, b.dir, "remote", "add", "origin", "https://github.com/o/r.git")
	gittest.Run(t, b.dir, "remote", "add", "odd", "not an address")
	const url = "https://github.com/o/r/pull/7"
	down := errors.New("the forge is down")
	for name, c := range map[string]struct {
		host   host
		remote string
		look   effect.Found
		err    bool
	}{
		"it is there":      {host{pr: forge.PR{URL: url}, there: true}, "origin", effect.Found{Applied: true, Result: map[string]string{effect.ResultURL: url}}, false},
		"it is not there":  {host{}, "origin", effect.Found{}, false},
		"the forge fails":  {host{pr: forge.PR{URL: url}, there: true, err: down}, "origin", effect.Found{}, true},
		"no such remote":   {host{pr: forge.PR{URL: url}, there: true}, "nowhere", effect.Found{}, true},
		"no forge of ours": {host{pr: forge.PR{URL: url}, there: true}, "odd", effect.Found{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := loop.Effect{Kind: effect.KindPullRequest, Args: map[string]string{
				effect.ArgRemote: c.remote, effect.ArgBranch: "pawl/fix/1", effect.ArgBase: "main", effect.ArgTitle: "a title", effect.ArgBody: "a body",
			}}
			pulls := effect.NewPullRequest(b.repo, &c.host)
			found, err := pulls.Look(t.Context(), e)
			if diff := cmp.Diff(c.look, found); diff != "" || (err != nil) != c.err {
				t.Errorf("Look = %v (-want +got):\n%s", err, diff)
			}
			result, err := pulls.Apply(t.Context(), e, yes)
			if (err != nil) != c.err {
				t.Errorf("Apply = %v, want an error: %v", err, c.err)
			}
			if !c.err && (result[effect.ResultURL] != c.host.pr.URL || c.host.asked.Head != "pawl/fix/1" || c.host.asked.Base != "main" ||
				c.host.asked.Title != "a title" || c.host.asked.Body != "a body" || c.host.asked.Confirm == nil) {
				t.Errorf("Apply = %v, and the forge was asked for %+v", result, c.host.asked)
			}
		})
	}
}
