//go:build unix

package effect_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// clone is a workspace whose memory is one file of lines, on main.
type clone struct {
	t      *testing.T
	dir    string
	repo   *git.Repo
	slept  []time.Duration
	before func() // each push
}

// mergeLines unites the lines of a file; "broken" is not valid.
func mergeLines(_ context.Context, contract string, _, ours, theirs map[string]string) (map[string]string, error) {
	if contract != "contract" {
		return nil, fmt.Errorf("contract %q", contract)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(ours["memory"] + theirs["memory"]) {
		lines[line] = true
	}
	if lines["broken\n"] {
		return nil, errors.New("the merged memory is invalid")
	}
	return map[string]string{"memory": strings.Join(slices.Sorted(maps.Keys(lines)), "")}, nil
}

// newClones makes a bare repository and clones of it.
func newClones(t *testing.T, n int) (remote string, all []*clone) {
	t.Helper()
	first := gittest.Repo(t, map[string]string{"memory": "a\n", "work": "w\n", "other": "o\n"})
	remote = t.TempDir()
	gittest.Run(t, remote, "clone", "-q", "--bare", first, ".")
	for range n {
		dir := t.TempDir()
		gittest.Run(t, dir, "clone", "-q", remote, ".")
		repo, err := git.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &clone{t: t, dir: dir, repo: repo})
	}
	return remote, all
}

func (c *clone) sleep(_ context.Context, d time.Duration) error {
	c.slept = append(c.slept, d)
	return nil
}

func (c *clone) git(args ...string) string { return gittest.Run(c.t, c.dir, args...) }

// tree is the tree of main with other contents.
func (c *clone) tree(files map[string]string) string {
	gittest.Write(c.t, c.dir, files)
	c.git("add", "-A")
	tree := c.git("write-tree")
	c.git("reset", "-q", "--hard")
	return tree
}

// run is the effect of a run that leaves the memory so, which it has written into the
// checkout.
func (c *clone) run(id, memory, tree string) loop.Effect {
	gittest.Write(c.t, c.dir, map[string]string{"memory": memory})
	return loop.Effect{RunID: id, Kind: effect.KindMemoryCommit, Key: id, Args: map[string]string{
		effect.ArgBase: "main", effect.ArgOnto: c.git("rev-parse", "main"), effect.ArgTree: tree, effect.ArgMessage: "agent: " + id,
		effect.ArgWhen: time.Unix(1_700_000_000, 0).UTC().Format(time.RFC3339), effect.ArgFiles: effect.EncodeFiles(map[string]string{"memory": memory}),
		effect.ArgContract: "contract",
	}}
}

func (c *clone) commits() *effect.MemoryCommit {
	return effect.NewMemoryCommit(c.repo, mergeLines, c.sleep)
}

func (c *clone) commit(e loop.Effect) (map[string]string, error) {
	c.t.Helper()
	return c.commits().Apply(c.t.Context(), e, yes)
}

func (c *clone) push(e loop.Effect) (map[string]string, error) {
	c.t.Helper()
	e.Args = maps.Clone(e.Args)
	e.Args[effect.ArgRemote] = "origin"
	return effect.NewMemoryPush(c.repo, mergeLines, c.sleep, os.Environ()).Apply(c.t.Context(), e, func(context.Context) error {
		if c.before != nil {
			c.before()
		}
		return nil
	})
}

// wants fails unless main has these files, and plain git finds no difference.
func (c *clone) wants(files map[string]string) {
	c.t.Helper()
	for name, want := range files {
		if got := c.git("show", "main:"+name) + "\n"; got != want {
			c.t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if got := c.git("status", "--porcelain") + c.git("fsck", "--strict", "--no-dangling"); got != "" {
		c.t.Errorf("status and fsck: %q", got)
	}
}

// result fails the test unless an effect was applied.
func result(t *testing.T) func(map[string]string, error) map[string]string {
	t.Helper()
	return func(v map[string]string, err error) map[string]string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestTheMemoryAndTheWorkOfARunAreOneCommit(t *testing.T) {
	_, all := newClones(t, 1)
	c := all[0]
	e := c.run("r1", "a\nb\n", c.tree(map[string]string{"work": "done\n", "memory": "of the agent\n"}))
	first := result(t)(c.commit(e))
	c.wants(map[string]string{"memory": "a\nb\n", "work": "done\n"})
	if got := c.git("log", "-1", "--format=%B %P"); got != "agent: r1\n\nPawl-Run: r1\n "+e.Args[effect.ArgOnto] {
		t.Errorf("commit = %q", got)
	}
	again := result(t)(c.commit(e))
	if !maps.Equal(first, again) || c.git("rev-list", "--count", "main") != "2" {
		t.Errorf("applied twice: %v and %v", first, again)
	}
	if got := result(t)(c.commit(c.run("r2", "a\nb\n", ""))); len(got) != 0 {
		t.Errorf("a run that changed nothing has the commit %v", got)
	}
}

func TestACommitOnABranchThatHasMovedIsMerged(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs map[string]string
		want         map[string]string
		err          string
	}{
		"only the memory":   {nil, map[string]string{"memory": "a\nc\n"}, map[string]string{"memory": "a\nb\nc\n"}, ""},
		"a person's work":   {nil, map[string]string{"other": "theirs\n"}, map[string]string{"memory": "a\nb\n", "other": "theirs\n"}, ""},
		"work of two sides": {map[string]string{"work": "ours\n"}, map[string]string{"other": "theirs\n"}, nil, "no gate has judged"},
		"the same lines":    {map[string]string{"work": "ours\n"}, map[string]string{"work": "theirs\n"}, nil, "two sides changed the same lines of work"},
		"an invalid memory": {nil, map[string]string{"memory": "broken\n"}, nil, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, all := newClones(t, 1)
			w := all[0]
			tree := ""
			if c.ours != nil {
				tree = w.tree(c.ours)
			}
			onto := w.git("rev-parse", "main")
			gittest.Write(t, w.dir, c.theirs)
			w.git("commit", "-q", "-a", "-m", "theirs")
			theirs := w.git("rev-parse", "main")
			e := w.run("r1", "a\nb\n", tree)
			e.Args[effect.ArgOnto] = onto
			_, err := w.commit(e)
			if ungated, ok := errors.AsType[*effect.UngatedError](err); ok && w.git("show", ungated.Commit+":work") == "ours" {
				e.Args[effect.ArgGated] = "x " + ungated.Tree
				if _, err := w.commit(e); err != nil {
					t.Fatal(err)
				}
				w.wants(map[string]string{"memory": "a\nb\n", "work": "ours\n", "other": "theirs\n"})
			}
			if c.err == "" {
				if err != nil {
					t.Fatal(err)
				}
				w.wants(c.want)
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error = %v, want %q", err, c.err)
			}
			if got := w.git("rev-parse", "main"); e.Args[effect.ArgGated] == "" && got != theirs {
				t.Errorf("main is at %s, want %s", got, theirs)
			}
		})
	}
}

// inCheckout makes an effect that of files which are read when the commit is made.
func inCheckout(e loop.Effect) loop.Effect {
	e.Args[effect.ArgPaths], e.Args[effect.ArgContract] = `["memory"]`, ""
	return e
}

func TestWhatIsReadInTheCheckoutIsBasedOnWhereTheBranchIs(t *testing.T) {
	_, all := newClones(t, 1)
	c := all[0]
	onto := c.git("rev-parse", "main")
	gittest.Write(t, c.dir, map[string]string{"memory": "a\nby hand\n", "other": "theirs\n"})
	c.git("commit", "-q", "-a", "-m", "by hand")
	gittest.Write(t, c.dir, map[string]string{"work": "half done\n"})
	e := inCheckout(c.run("r1", "a\nby hand\nb\n", ""))
	e.Args[effect.ArgOnto] = onto
	result(t)(c.commit(e))
	if got := c.git("show", "--format=%s", "--name-only", "main"); got != "agent: r1\n\nmemory" {
		t.Errorf("commit = %q", got)
	}
	if got := c.git("status", "--porcelain"); got != "M work" {
		t.Errorf("status = %q, want what is half done, and it alone", got)
	}
	gittest.Write(t, c.dir, map[string]string{"memory": "c\n"})
	c.git("commit", "-q", "-a", "-m", "the memory, by hand")
	tip := c.git("rev-parse", "main")
	e = inCheckout(c.run("r2", "c\n", ""))
	e.Args[effect.ArgOnto] = onto
	result(t)(c.commit(e))
	if got := c.git("rev-parse", "main"); got != tip {
		t.Errorf("main moved to %s by a commit of what it has", got)
	}
}

func TestALockedIndexIsTriedThreeTimes(t *testing.T) {
	_, all := newClones(t, 1)
	c := all[0]
	e := c.run("r1", "a\nb\n", "")
	lock := filepath.Join(c.dir, ".git", "index.lock")
	gittest.WriteFile(t, lock, "")
	if _, err := c.commit(e); err == nil || len(c.slept) != 2 {
		t.Fatalf("slept %v, %v; want two waits and an error", c.slept, err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	result(t)(c.commit(e))
	c.wants(map[string]string{"memory": "a\nb\n"})
}

func TestARejectedPushIsMadeAgainOnTopOfTheOthers(t *testing.T) {
	remote, all := newClones(t, 2)
	a, b := all[0], all[1]
	ea := a.run("r1", "a\nb\n", "")
	result(t)(a.commit(ea))
	result(t)(a.push(ea))
	for _, id := range []string{"r2", "r3"} {
		eb := b.run(id, "a\n"+id+"\n", "")
		result(t)(b.commit(eb))
	}
	eb := b.run("r4", "a\nr4\n", "")
	result(t)(b.commit(eb))
	got := result(t)(b.push(eb))
	b.wants(map[string]string{"memory": "a\nb\nr2\nr3\nr4\n"})
	if got["commit"] != gittest.Run(t, remote, "rev-parse", "main") || got["commit"] != b.git("rev-parse", "origin/main") {
		t.Errorf("pushed %v", got)
	}
	if log := b.git("log", "--format=%s", "--no-merges", "main~4..main"); log != "agent: r4\nagent: r3\nagent: r2\nagent: r1" {
		t.Errorf("history:\n%s", log)
	}
	if found, err := b.commits().Look(t.Context(), eb); err != nil || found.Result["commit"] != got["commit"] {
		t.Errorf("the commit that was made again is found as %+v, %v", found, err)
	}
}

func TestCommitsOfPeopleAreMergedAndNeverMadeAgain(t *testing.T) {
	_, all := newClones(t, 2)
	a, b := all[0], all[1]
	ea := a.run("r1", "a\nb\n", "")
	result(t)(a.commit(ea))
	result(t)(a.push(ea))
	gittest.Write(t, b.dir, map[string]string{"other": "by hand\n"})
	b.git("commit", "-q", "-a", "-m", "by hand")
	hand := b.git("rev-parse", "main")
	eb := b.run("r2", "a\nc\n", "")
	result(t)(b.commit(eb))
	result(t)(b.push(eb))
	b.wants(map[string]string{"memory": "a\nb\nc\n", "other": "by hand\n"})
	if log := b.git("log", "--format=%H", "main"); !strings.Contains(log, hand) {
		t.Error("the person's commit is not in the history")
	}
	if s := b.git("log", "-1", "--format=%s"); s != "agent: merge the sessions of origin/main" {
		t.Errorf("the last commit is %q", s)
	}
}

func TestAPushThatCannotBeMergedKeepsEverythingHere(t *testing.T) {
	_, all := newClones(t, 2)
	a, b := all[0], all[1]
	ea := a.run("r1", "a\nb\n", a.tree(map[string]string{"work": "theirs\n"}))
	result(t)(a.commit(ea))
	result(t)(a.push(ea))
	eb := b.run("r2", "a\nc\n", b.tree(map[string]string{"work": "ours\n"}))
	result(t)(b.commit(eb))
	tip := b.git("rev-parse", "main")
	if _, err := b.push(eb); err == nil || !strings.Contains(err.Error(), "same lines of work") || len(b.slept) > 0 {
		t.Errorf("error = %v after waits %v", err, b.slept)
	}
	b.wants(map[string]string{"memory": "a\nc\n", "work": "ours\n"})
	if got := b.git("rev-parse", "main"); got != tip {
		t.Errorf("main is at %s, was %s", got, tip)
	}
}

func TestAPushThatFailsIsTriedAgainWithLongerWaits(t *testing.T) {
	remote, all := newClones(t, 1)
	c := all[0]
	e := c.run("r1", "a\nb\n", "")
	result(t)(c.commit(e))
	away := remote + ".away"
	if err := os.Rename(remote, away); err != nil {
		t.Fatal(err)
	}
	if _, err := c.push(e); err == nil || !slices.Equal(c.slept, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}) {
		t.Errorf("waits = %v, %v", c.slept, err)
	}
	pushes := 0
	c.before = func() {
		if pushes++; pushes == 3 {
			if err := os.Rename(away, remote); err != nil {
				t.Error(err)
			}
		}
	}
	result(t)(c.push(e))
	if got := gittest.Run(t, remote, "rev-parse", "main"); got != c.git("rev-parse", "main") || pushes != 3 {
		t.Errorf("the remote is at %s after %d pushes", got, pushes)
	}
}

func TestSomebodyFasterIsMergedWithAgain(t *testing.T) {
	_, all := newClones(t, 2)
	a, b := all[0], all[1]
	pushes := 0
	b.before = func() {
		if pushes++; pushes > 3 {
			return
		}
		id := fmt.Sprint("a", pushes)
		ea := a.run(id, a.git("show", "main:memory")+"\n"+id+"\n", "")
		result(t)(a.commit(ea))
		result(t)(a.push(ea))
	}
	eb := b.run("r", "a\nb\n", "")
	result(t)(b.commit(eb))
	result(t)(b.push(eb))
	b.wants(map[string]string{"memory": "a\na1\na2\na3\nb\n"})
}

func TestARepositoryWithoutRemoteHasNowhereToPush(t *testing.T) {
	_, all := newClones(t, 1)
	c := all[0]
	c.git("remote", "remove", "origin")
	got := result(t)(c.push(c.run("r", "a\n", "")))
	if got[effect.ResultUnpushed] == "" {
		t.Errorf("result = %v", got)
	}
}

// A process that dies between the branch and the checkout leaves a commit that is made
// once, and not another one on top of it.
func TestACommitWhoseCheckoutDidNotFollowIsFinished(t *testing.T) {
	_, clones := newClones(t, 1)
	c := clones[0]
	e := c.run("run_1", "a\nb\n", c.tree(map[string]string{"work": "done\n"}))
	for _, point := range []string{"git.advance.ref.after", "git.advance.index.before"} { // The second one while it is finished.
		dies := fault.With(t.Context(), new(fault.Plan).Do(point, 1, func(context.Context) error { return errors.New("it dies") }))
		if _, err := c.commits().Apply(dies, e, yes); err == nil {
			t.Fatalf("%s was not passed", point)
		}
	}
	tip := c.git("rev-parse", "main")
	found, err := c.commits().Look(t.Context(), e)
	if err != nil || found.Applied || !found.Begun {
		t.Fatalf("look = %+v, %v, want it begun", found, err)
	}
	if made := result(t)(c.commit(e)); made[effect.ResultCommit] != tip || c.git("rev-parse", "main") != tip {
		t.Errorf("commit = %v and main is at %s, want %s", made, c.git("rev-parse", "main"), tip)
	}
	c.wants(map[string]string{"memory": "a\nb\n", "work": "done\n"})
}
