//go:build unix

package effect_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var errAsked = errors.New("it could not be asked")

// fakeRepo answers as a repository in one state does, and notes what it is asked
// to do. What is to fail is named as the method.
type fakeRepo struct {
	tip      string // of the branch; empty if missing
	contains bool   // whether the tip contains the target
	open     git.Advance
	fails    string

	parents  []string // of a commit that was made
	advances []git.Advance
	pushes   []git.Push
}

func (r *fakeRepo) err(method string) error {
	if r.fails == method {
		return errAsked
	}
	return nil
}

func (r *fakeRepo) TreeOf(context.Context, string) (string, error) { return "tree", r.err("TreeOf") }

func (r *fakeRepo) Commit(_ context.Context, _ string, parents []string, _ string, _ time.Time) (string, error) {
	r.parents = parents
	return "merge", r.err("Commit")
}

func (r *fakeRepo) Ref(context.Context, string) (string, bool, error) {
	return r.tip, r.tip != "", r.err("Ref")
}

func (r *fakeRepo) Contains(context.Context, string, string) (bool, error) {
	return r.contains, r.err("Contains")
}

func (r *fakeRepo) Unfinished(context.Context) (git.Advance, bool, error) {
	return r.open, r.open.Commit != "", r.err("Unfinished")
}

func (r *fakeRepo) Advance(ctx context.Context, a git.Advance) error {
	r.advances = append(r.advances, a)
	return errors.Join(a.Confirm(ctx), r.err("Advance"))
}

func (r *fakeRepo) RemoteURL(string) (string, error) {
	return "https://forge.test/o/r.git", r.err("RemoteURL")
}

func (r *fakeRepo) RemoteRef(context.Context, git.Remote, string) (string, bool, error) {
	return r.tip, r.tip != "", r.err("RemoteRef")
}

func (r *fakeRepo) Push(ctx context.Context, p git.Push) error {
	r.pushes = append(r.pushes, p)
	return errors.Join(p.Confirm(ctx), r.err("Push"))
}

func landing(change ...string) loop.Effect {
	e := loop.Effect{Kind: effect.KindLand, Key: "k", Args: map[string]string{
		effect.ArgBase: "main", effect.ArgOnto: "onto", effect.ArgCommit: "commit", effect.ArgTree: "tree", effect.ArgBranch: "pawl/x/1",
		effect.ArgWhen: "2026-09-03T08:20:00Z", effect.ArgRemote: "origin", effect.ArgTitle: "title", effect.ArgBody: "body",
	}}
	for i := 0; i < len(change); i += 2 {
		e.Args[change[i]] = change[i+1]
	}
	return e
}

func TestALandingIsFoundOnlyWhereTheBranchHoldsItAndTheCheckoutIsWhole(t *testing.T) {
	found := func(commit string) effect.Found {
		return effect.Found{Applied: true, Result: map[string]string{effect.ResultCommit: commit}}
	}
	for name, c := range map[string]struct {
		repo  fakeRepo
		merge string
		want  effect.Found
	}{
		"the branch stands at it":                {fakeRepo{tip: "commit"}, "", found("commit")},
		"the branch has gone on from it":         {fakeRepo{tip: "later", contains: true}, "", found("commit")},
		"the branch is elsewhere":                {fakeRepo{tip: "other"}, "", effect.Found{}},
		"there is no such branch":                {fakeRepo{}, "", effect.Found{}},
		"its checkout is half-way":               {fakeRepo{tip: "commit", open: git.Advance{Commit: "commit"}}, "", effect.Found{Begun: true}},
		"the checkout is half-way to another":    {fakeRepo{tip: "commit", open: git.Advance{Commit: "other"}}, "", found("commit")},
		"a merge, and the branch stands at it":   {fakeRepo{tip: "merge"}, "true", found("merge")},
		"a merge, and the branch has none of it": {fakeRepo{tip: "onto"}, "true", effect.Found{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := effect.NewLand(&c.repo).Look(t.Context(), landing(effect.ArgMerge, c.merge))
			if d := cmp.Diff(c.want, got); err != nil || d != "" {
				t.Errorf("Look = %v (-want +got):\n%s", err, d)
			}
			if len(c.repo.advances) > 0 {
				t.Error("looking moved the branch")
			}
		})
	}
}

func TestWhatCannotBeLookedUpIsAnErrorAndNeverNothing(t *testing.T) {
	for fails, tip := range map[string]string{
		"TreeOf": "commit", "Ref": "commit", "Contains": "later", "Unfinished": "commit", "Commit": "commit",
	} {
		e := landing()
		if fails == "Commit" {
			e = landing(effect.ArgMerge, "true")
		}
		repo := &fakeRepo{tip: tip, contains: true, fails: fails}
		if got, err := effect.NewLand(repo).Look(t.Context(), e); !errors.Is(err, errAsked) || got.Applied {
			t.Errorf("where %s fails, Look = %+v, %v", fails, got, err)
		}
	}
	for _, fails := range []string{"RemoteURL", "RemoteRef"} {
		repo := &fakeRepo{tip: "commit", fails: fails}
		if got, err := effect.NewPush(repo, nil).Look(t.Context(), landing()); !errors.Is(err, errAsked) || got.Applied {
			t.Errorf("where %s fails, Look of a push = %+v, %v", fails, got, err)
		}
	}
	if got, err := effect.NewLand(&fakeRepo{tip: "commit"}).Look(t.Context(), landing(effect.ArgMerge, "true", effect.ArgWhen, "")); err == nil || got.Applied {
		t.Errorf("a merge without a time: Look = %+v, %v", got, err)
	}
}

func TestALandingAsksForExactlyItsMove(t *testing.T) {
	for name, c := range map[string]struct {
		merge   string
		commit  string
		parents []string
	}{
		"by a fast-forward": {"", "commit", nil}, "by a merge": {"true", "merge", []string{"onto", "commit"}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, asked := &fakeRepo{}, 0
			res, err := effect.NewLand(repo).Apply(t.Context(), landing(effect.ArgMerge, c.merge), func(context.Context) error { asked++; return nil })
			if err != nil || res[effect.ResultCommit] != c.commit || asked != 1 {
				t.Fatalf("Apply = %v, %v; asked %d times, want once", res, err, asked)
			}
			a := repo.advances[0]
			a.Confirm = nil
			if want := (git.Advance{Branch: "main", Onto: "onto", Commit: c.commit, From: "pawl/x/1"}); len(repo.advances) != 1 || !reflect.DeepEqual(a, want) {
				t.Errorf("moves = %+v, want %+v", repo.advances, want)
			}
			if d := cmp.Diff(c.parents, repo.parents); d != "" {
				t.Errorf("parents (-want +got):\n%s", d)
			}
		})
	}
}

// Each kind hands the question on to what takes the step, and takes none when the
// answer is no.
func TestNoEffectHappensWithoutItsConfirmation(t *testing.T) {
	no := func(context.Context) error { return loop.ErrPaused }
	repo, host := &fakeRepo{}, &fakeHost{}
	branch := &fakeBranches{}
	for kind, e := range map[string]interface {
		Apply(context.Context, loop.Effect, func(context.Context) error) (map[string]string, error)
	}{
		effect.KindPropose: effect.NewPropose(branch), effect.KindLand: effect.NewLand(repo), effect.KindPush: effect.NewPush(repo, nil),
		effect.KindPullRequest: effect.NewPullRequest(repo, host),
	} {
		if _, err := e.Apply(t.Context(), landing(), no); !errors.Is(err, loop.ErrPaused) {
			t.Errorf("%s = %v, want ErrPaused", kind, err)
		}
	}
	if branch.moved {
		t.Error("a branch was made that nobody confirmed")
	}
}

type fakeBranches struct {
	fakeRepo
	moved bool
}

func (b *fakeBranches) UpdateRef(context.Context, string, string, string) error {
	b.moved = true
	return nil
}

func TestAPushSendsTheGatedCommitToItsOwnBranchAndNothingElse(t *testing.T) {
	repo := &fakeRepo{}
	res, err := effect.NewPush(repo, []string{"A=b"}).Apply(t.Context(), landing(), yes)
	if err != nil || res[effect.ResultCommit] != "commit" || len(repo.pushes) != 1 {
		t.Fatalf("Apply = %v, %v, %d pushes", res, err, len(repo.pushes))
	}
	p := repo.pushes[0]
	p.Confirm = nil
	want := git.Push{To: git.Remote{URL: "https://forge.test/o/r.git", Environ: []string{"A=b"}, Local: true}, Commit: "commit", Ref: "refs/heads/pawl/x/1"}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("push = %+v, want %+v", p, want)
	}
	for name, c := range map[string]struct {
		repo fakeRepo
		tree string
	}{
		"another tree than the gated one": {fakeRepo{}, "another"}, "a commit that is gone": {fakeRepo{fails: "TreeOf"}, "tree"},
		"a remote that is gone": {fakeRepo{fails: "RemoteURL"}, "tree"},
	} {
		if _, err := effect.NewPush(&c.repo, nil).Apply(t.Context(), landing(effect.ArgTree, c.tree), yes); err == nil || len(c.repo.pushes) > 0 {
			t.Errorf("%s: %v, %d pushes, want an error and none", name, err, len(c.repo.pushes))
		}
	}
}

func TestAPushIsFoundOnlyWhereTheRemoteHasItsCommit(t *testing.T) {
	for tip, want := range map[string]bool{"commit": true, "other": false, "": false} {
		got, err := effect.NewPush(&fakeRepo{tip: tip}, nil).Look(t.Context(), landing())
		if err != nil || got.Applied != want || want && got.Result[effect.ResultCommit] != "commit" {
			t.Errorf("where the remote is at %q, Look = %+v, %v, want applied %v", tip, got, err, want)
		}
	}
}

type fakeHost struct {
	asked []forge.PullRequest
	there bool
	err   error
}

func (h *fakeHost) FindPullRequest(context.Context, forge.Repository, string) (forge.PR, bool, error) {
	return forge.PR{URL: "https://forge.test/1"}, h.there, h.err
}

func (h *fakeHost) OpenPullRequest(ctx context.Context, p forge.PullRequest) (forge.PR, error) {
	h.asked = append(h.asked, p)
	return forge.PR{URL: "https://forge.test/1"}, errors.Join(p.Confirm(ctx), h.err)
}

func TestAPullRequestIsOpenedForItsBranchAndFoundByIt(t *testing.T) {
	host := &fakeHost{}
	kind := effect.NewPullRequest(&fakeRepo{}, host)
	if found, err := kind.Look(t.Context(), landing()); err != nil || found.Applied {
		t.Errorf("before: Look = %+v, %v", found, err)
	}
	res, err := kind.Apply(t.Context(), landing(), yes)
	if err != nil || res[effect.ResultURL] != "https://forge.test/1" || len(host.asked) != 1 {
		t.Fatalf("Apply = %v, %v, asked %d times", res, err, len(host.asked))
	}
	p := host.asked[0]
	p.Confirm = nil
	want := forge.PullRequest{Repo: forge.Repository{Host: "forge.test", Owner: "o", Name: "r"}, Base: "main", Head: "pawl/x/1", Title: "title", Body: "body"}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("asked for %+v, want %+v", p, want)
	}
	host.there = true
	if found, err := kind.Look(t.Context(), landing()); err != nil || !found.Applied || found.Result[effect.ResultURL] != "https://forge.test/1" {
		t.Errorf("after: Look = %+v, %v", found, err)
	}
	host.err = errAsked
	if found, err := kind.Look(t.Context(), landing()); !errors.Is(err, errAsked) || found.Applied {
		t.Errorf("where the forge does not answer, Look = %+v, %v", found, err)
	}
	if _, err := effect.NewPullRequest(&fakeRepo{fails: "RemoteURL"}, host).Look(t.Context(), landing()); !errors.Is(err, errAsked) {
		t.Errorf("without a remote, Look = %v", err)
	}
}
