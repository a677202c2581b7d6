//go:build unix

package effect_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// pushTo sends main up to a commit.
func (c *clone) pushTo(commit string) (map[string]string, error) {
	c.t.Helper()
	return c.branchPush().Apply(c.t.Context(), upTo(commit), yes)
}

func (c *clone) branchPush() *effect.BranchPush {
	return effect.NewBranchPush(c.repo, c.sleep, os.Environ())
}

func upTo(commit string) loop.Effect {
	return loop.Effect{RunID: "r", Kind: effect.KindBranchPush, Key: "ap/push", Args: map[string]string{effect.ArgBase: "main", effect.ArgRemote: "origin", effect.ArgCommit: commit}}
}

// What was committed after the commit that a person was shown stays here.
func TestAYesPushesUpToTheCommitThatWasShown(t *testing.T) {
	remote, all := newClones(t, 2)
	a, b := all[0], all[1]
	result(t)(a.commit(a.run("r1", "a\nb\n", "")))
	shown := a.git("rev-parse", "main")
	result(t)(a.commit(a.run("r2", "a\nb\nc\n", "")))
	if found, err := a.branchPush().Look(t.Context(), upTo(shown)); found.Applied || err != nil {
		t.Errorf("before: %+v, %v", found, err)
	}
	for range 2 { // It does no harm to do it again.
		if got := result(t)(a.pushTo(shown)); got[effect.ResultCommit] != shown {
			t.Errorf("result = %v", got)
		}
	}
	if at := gittest.Run(t, remote, "rev-parse", "main"); at != shown || a.git("rev-parse", "origin/main") != shown {
		t.Errorf("the remote is at %s, want %s", at, shown)
	}
	result(t)(a.pushTo(a.git("rev-parse", "main")))
	found, err := a.branchPush().Look(t.Context(), upTo(shown))
	if !found.Applied || err != nil {
		t.Errorf("the remote has gone on: %+v, %v", found, err)
	}
	// The other clone does not follow what the remote has: nothing is united.
	own := b.run("r3", "a\nz\n", "")
	result(t)(b.commit(own))
	wantRefusal(t, b, b.git("rev-parse", "main"))
	if at := gittest.Run(t, remote, "rev-parse", "main"); at != a.git("rev-parse", "main") {
		t.Errorf("the remote is at %s", at)
	}
}

func TestACommitThatTheBranchDoesNotHaveIsNotPushed(t *testing.T) {
	remote, all := newClones(t, 1)
	c := all[0]
	before := c.git("rev-parse", "main")
	result(t)(c.commit(c.run("r1", "a\nb\n", "")))
	shown := c.git("rev-parse", "main")
	c.git("reset", "-q", "--hard", before)
	wantRefusal(t, c, shown)
	if at := gittest.Run(t, remote, "rev-parse", "main"); at != before {
		t.Errorf("the remote is at %s, want %s", at, before)
	}
}

// wantRefusal fails unless a push up to the commit is refused, and not tried again.
func wantRefusal(t *testing.T, c *clone, commit string) {
	t.Helper()
	_, err := c.pushTo(commit)
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitRefused || f.Fix == "" || len(c.slept) > 0 {
		t.Errorf("push = %v after waits of %v, want a refusal", err, c.slept)
	}
}

// Whether a push sends work or the memory alone is seen in the commits of runs that the
// remote did not have.
func TestAPushSaysWhetherItSentWork(t *testing.T) {
	_, all := newClones(t, 1)
	c := all[0]
	memory := c.run("r1", "a\nb\n", "")
	result(t)(c.commit(memory))
	if got := result(t)(c.push(memory)); got[effect.ResultWork] != "" {
		t.Errorf("the memory alone: %v", got)
	}
	work := c.run("r2", "a\nb\nc\n", c.tree(map[string]string{"work": "better\n"}))
	result(t)(c.commit(work))
	later := c.run("r3", "a\nb\nc\nd\n", "")
	result(t)(c.commit(later))
	if got := result(t)(c.push(later)); got[effect.ResultWork] == "" {
		t.Errorf("work of an earlier run: %v", got)
	}
	gittest.WriteFile(t, filepath.Join(c.dir, "other"), "of a person\n")
	c.git("commit", "-qam", "by hand")
	last := c.run("r4", "a\nb\nc\nd\ne\n", "")
	result(t)(c.commit(last))
	look := maps.Clone(last.Args)
	look[effect.ArgRemote] = "origin"
	last.Args = look
	c.git("push", "-q", c.git("remote", "get-url", "origin"), "main") // By another process, which has died since.
	found, err := effect.NewMemoryPush(c.repo, mergeLines, c.sleep, os.Environ()).Look(context.WithoutCancel(t.Context()), last)
	if err != nil || !found.Applied || found.Result[effect.ResultWork] != "" {
		t.Errorf("work of a person: %+v, %v", found, err)
	}
}
