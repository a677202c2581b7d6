//go:build unix

package effect_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// bench is a repository with two trees: that of main, and one that was gated.
type bench struct {
	dir           string
	repo          *git.Repo
	propose       *effect.Propose
	parent, gated string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir()}
	gittest.Run(t, b.dir, "init", "-q")
	writeFile(t, filepath.Join(b.dir, "a.txt"), "one\n")
	gittest.Run(t, b.dir, "add", "-A")
	gittest.Run(t, b.dir, "commit", "-q", "-m", "first")
	b.parent = gittest.Run(t, b.dir, "rev-parse", "HEAD")
	writeFile(t, filepath.Join(b.dir, "a.txt"), "two\n")
	gittest.Run(t, b.dir, "add", "-A")
	b.gated = gittest.Run(t, b.dir, "write-tree")
	gittest.Run(t, b.dir, "reset", "-q", "--hard")
	var err error
	if b.repo, err = git.Open(t.Context(), b.dir); err != nil {
		t.Fatal(err)
	}
	b.propose = effect.NewPropose(b.repo)
	return b
}

// yes confirms every step that cannot be taken back.
func yes(context.Context) error { return nil }

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// request is the effect of a run that proposes the gated tree.
func (b *bench) request(change ...string) loop.Effect {
	e := loop.Effect{
		RunID: "run_1", Seq: 1, Kind: effect.KindPropose, Key: "run_1/pawl/fix/1", State: loop.EffectApplying,
		Args: map[string]string{
			effect.ArgBranch: "pawl/fix/1", effect.ArgTree: b.gated, effect.ArgParent: b.parent,
			effect.ArgMessage: "put it right\n\nPawl-Loop: fix\n", effect.ArgWhen: "2026-09-03T08:20:00Z",
		},
	}
	for i := 0; i < len(change); i += 2 {
		e.Args[change[i]] = change[i+1]
	}
	return e
}

// refs are all refs of the repository with what they name.
func (b *bench) refs(t *testing.T) string {
	t.Helper()
	return gittest.Run(t, b.dir, "for-each-ref", "--format=%(refname) %(objectname)") + "\n" + gittest.Run(t, b.dir, "symbolic-ref", "HEAD")
}

func (b *bench) apply(t *testing.T, e loop.Effect) string {
	t.Helper()
	res, err := b.propose.Apply(t.Context(), e, yes)
	if err != nil {
		t.Fatal(err)
	}
	return res[effect.ResultCommit]
}

func TestAProposedBranchHoldsExactlyTheGatedTree(t *testing.T) {
	b := newBench(t)
	before := b.refs(t)
	commit := b.apply(t, b.request())
	if got := gittest.Run(t, b.dir, "rev-parse", "refs/heads/pawl/fix/1"); got != commit || commit == "" {
		t.Errorf("the branch is at %s, and the result says %q", got, commit)
	}
	got := gittest.Run(t, b.dir, "log", "-1", "--format=%T|%P|%s|%an|%cI", commit)
	if want := b.gated + "|" + b.parent + "|put it right|pawl|2026-09-03T08:20:00Z"; strings.ReplaceAll(got, "+00:00", "Z") != want {
		t.Errorf("commit = %s, want %s", got, want)
	}
	if got := gittest.Run(t, b.dir, "log", "-1", "--format=%(trailers:key=Pawl-Loop,valueonly)", commit); got != "fix" {
		t.Errorf("trailer = %q, want fix", got)
	}
	if after := b.refs(t); strings.Replace(after, "refs/heads/pawl/fix/1 "+commit+"\n", "", 1) != before {
		t.Errorf("other refs moved:\n%s", cmp.Diff(before, after))
	}
	if status := gittest.Run(t, b.dir, "status", "--porcelain"); status != "" {
		t.Errorf("the checkout changed: %s", status)
	}
}

func TestLookingFindsWhatWasAppliedAndNothingElse(t *testing.T) {
	b := newBench(t)
	before := b.refs(t)
	found, err := b.propose.Look(t.Context(), b.request())
	if err != nil || found.Applied || found.Result != nil {
		t.Errorf("before: Look = %+v, %v; want not applied", found, err)
	}
	if after := b.refs(t); after != before {
		t.Errorf("looking moved refs:\n%s", cmp.Diff(before, after))
	}
	commit := b.apply(t, b.request())
	want := effect.Found{Applied: true, Result: map[string]string{effect.ResultCommit: commit}}
	found, err = b.propose.Look(t.Context(), b.request())
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("after: Look = %v (-want +got):\n%s", err, diff)
	}
	gittest.Run(t, b.dir, "pack-refs", "--all")
	if found, err = b.propose.Look(t.Context(), b.request()); err != nil || !found.Applied {
		t.Errorf("packed: Look = %+v, %v; want applied", found, err)
	}
	if found, err = b.propose.Look(t.Context(), b.request(effect.ArgBranch, "pawl/fix/2")); err != nil || found.Applied {
		t.Errorf("another branch: Look = %+v, %v; want not applied", found, err)
	}
}

func TestApplyingTwiceChangesNothingAndLookingSettlesIt(t *testing.T) {
	b := newBench(t)
	commit := b.apply(t, b.request())
	before := b.refs(t)
	if _, err := b.propose.Apply(t.Context(), b.request(), yes); !errors.Is(err, git.ErrRefMoved) || !strings.Contains(err.Error(), "pawl/fix/1") {
		t.Errorf("second Apply = %v, want a moved ref with the branch's name", err)
	}
	if found, err := b.propose.Look(t.Context(), b.request()); err != nil || !found.Applied || found.Result[effect.ResultCommit] != commit {
		t.Errorf("Look = %+v, %v; want %s", found, err, commit)
	}
	if after := b.refs(t); after != before {
		t.Errorf("refs moved:\n%s", cmp.Diff(before, after))
	}
}

func TestABranchOfSomebodyElseIsAnErrorAndStaysWhereItIs(t *testing.T) {
	for name, at := range map[string]func(*testing.T, *bench) string{
		"at the base": func(_ *testing.T, b *bench) string { return b.parent },
		"at a commit of the same tree": func(t *testing.T, b *bench) string {
			t.Helper()
			return gittest.Run(t, b.dir, "commit-tree", b.gated, "-p", b.parent, "-m", "put it right")
		},
		"at what an earlier request made": func(t *testing.T, b *bench) string {
			t.Helper()
			commit := b.apply(t, b.request(effect.ArgBranch, "other", effect.ArgWhen, "2026-09-03T08:20:01Z"))
			gittest.Run(t, b.dir, "branch", "-D", "other")
			return commit
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			gittest.Run(t, b.dir, "update-ref", "refs/heads/pawl/fix/1", at(t, b))
			before := b.refs(t)
			if _, err := b.propose.Apply(t.Context(), b.request(), yes); !errors.Is(err, git.ErrRefMoved) {
				t.Errorf("Apply = %v, want a moved ref", err)
			}
			found, err := b.propose.Look(t.Context(), b.request())
			if !errors.Is(err, git.ErrRefMoved) || found.Applied || !strings.Contains(err.Error(), "pawl/fix/1") {
				t.Errorf("Look = %+v, %v; want a moved ref with the branch's name", found, err)
			}
			if after := b.refs(t); after != before {
				t.Errorf("refs moved:\n%s", cmp.Diff(before, after))
			}
		})
	}
}

func TestTheSameRequestMakesTheSameCommit(t *testing.T) {
	b := newBench(t)
	first := b.apply(t, b.request())
	gittest.Run(t, b.dir, "branch", "-D", "pawl/fix/1")
	if again := b.apply(t, b.request()); again != first {
		t.Errorf("again = %s, first = %s", again, first)
	}
	seen := map[string]string{first: "the first"}
	for name, change := range map[string][]string{
		"another message": {effect.ArgMessage, "put it left"},
		"another time":    {effect.ArgWhen, "2026-09-03T08:20:01Z"},
		"another tree":    {effect.ArgTree, gittest.Run(t, b.dir, "rev-parse", "HEAD^{tree}")},
		"another parent":  {effect.ArgParent, first},
	} {
		commit := b.apply(t, b.request(append(change, effect.ArgBranch, "pawl/"+strings.ReplaceAll(name, " ", "-"))...))
		if other, taken := seen[commit]; taken {
			t.Errorf("%s gives the commit of %s", name, other)
		}
		seen[commit] = name
	}
	if same := b.apply(t, b.request(effect.ArgBranch, "elsewhere", effect.ArgWhen, "2026-09-03T10:20:00+02:00")); same != first {
		t.Errorf("the same moment in another zone gives %s, want %s", same, first)
	}
}

func TestOfManyAtOnceOneMakesTheBranch(t *testing.T) {
	b := newBench(t)
	errs := make([]error, 6)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = b.propose.Apply(t.Context(), b.request(), yes) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d made the branch, want 1: %v", made, errs)
	}
	if found, err := b.propose.Look(t.Context(), b.request()); err != nil || !found.Applied {
		t.Errorf("Look = %+v, %v; want applied", found, err)
	}
}

func TestARequestThatCannotBeMetLeavesNoBranch(t *testing.T) {
	missing := strings.Repeat("ab", 20)
	for name, change := range map[string][]string{
		"no time":                 {effect.ArgWhen, ""},
		"no such time":            {effect.ArgWhen, "yesterday"},
		"no such tree":            {effect.ArgTree, missing},
		"no tree at all":          {effect.ArgTree, ""},
		"a tree that is a flag":   {effect.ArgTree, "--help"},
		"no such parent":          {effect.ArgParent, missing},
		"no parent at all":        {effect.ArgParent, ""},
		"no branch":               {effect.ArgBranch, ""},
		"a branch that climbs":    {effect.ArgBranch, "../../config"},
		"a branch named HEAD":     {effect.ArgBranch, "HEAD"},
		"a branch of white space": {effect.ArgBranch, "a b"},
		"a branch that is a flag": {effect.ArgBranch, "-d"},
		"a branch below another":  {effect.ArgBranch, "main/fix"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			before := b.refs(t)
			if res, err := b.propose.Apply(t.Context(), b.request(change...), yes); err == nil || res != nil {
				t.Errorf("Apply = %v, %v; want an error", res, err)
			}
			if after := b.refs(t); after != before {
				t.Errorf("refs moved:\n%s", cmp.Diff(before, after))
			}
			if found, err := b.propose.Look(t.Context(), b.request(change...)); found.Applied {
				t.Errorf("Look = %+v, %v; want not applied", found, err)
			}
		})
	}
}

func TestAnErrorOfTheRepositoryIsNeverAnAnswer(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := b.propose.Look(ctx, b.request()); err == nil || found.Applied {
		t.Errorf("Look = %+v, %v; want an error", found, err)
	}
	b.apply(t, b.request())
	e := b.request()
	delete(e.Args, effect.ArgWhen)
	if found, err := b.propose.Look(t.Context(), e); err == nil || found.Applied || !strings.Contains(err.Error(), e.Key) {
		t.Errorf("Look = %+v, %v; want an error that names the effect", found, err)
	}
}

func TestArgumentsAreLeftAsTheyAre(t *testing.T) {
	b := newBench(t)
	e := b.request()
	before := maps.Clone(e.Args)
	b.apply(t, e)
	if diff := cmp.Diff(before, e.Args); diff != "" {
		t.Errorf("arguments (-before +after):\n%s", diff)
	}
}

func TestRefIsTheFullNameOfABranch(t *testing.T) {
	for branch, want := range map[string]string{
		"pawl/fix/1": "refs/heads/pawl/fix/1", "refs/heads/main": "refs/heads/main", "refs/tags/v1": "refs/heads/refs/tags/v1",
	} {
		if got := effect.BranchRef(branch); got != want {
			t.Errorf("Ref(%s) = %s, want %s", branch, got, want)
		}
	}
}
