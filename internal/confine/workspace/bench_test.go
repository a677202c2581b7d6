//go:build unix

package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/proc"
)

func benchRepo(b *testing.B, files int) string {
	b.Helper()
	dir := b.TempDir()
	benchGit(b, dir, "init", "-q")
	for i := range files {
		write(b, dir, map[string]string{fmt.Sprintf("d%d/f%d.go", i%37, i): strings.Repeat(fmt.Sprintln("line", i), 40)})
	}
	benchGit(b, dir, "add", "-A")
	benchGit(b, dir, "commit", "-q", "-m", "x")
	return dir
}

func benchGit(b *testing.B, dir string, args ...string) {
	b.Helper()
	res, err := proc.Plain{}.Run(b.Context(), proc.Spec{
		Argv: append([]string{"git", "-c", "user.name=a", "-c", "user.email=a@localhost"}, args...), Dir: dir,
		Env: []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}, Stderr: os.Stderr,
	})
	if err != nil || res.Exit != 0 {
		b.Fatalf("git %v: %+v, %v", args, res, err)
	}
}

// starts counts processes.
type starts struct{ n int }

func (s *starts) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	s.n++
	return proc.Plain{}.Run(ctx, spec)
}

// BenchmarkRun is what a run that proposes a branch does with git and trees:
// one tree for the agent, one changed file, a candidate, one tree for the
// gates, the branch, both trees removed.
func BenchmarkRun(b *testing.B) {
	dir := benchRepo(b, 20)
	trees := filepath.Join(b.TempDir(), "trees")
	var count starts
	n := 0
	for b.Loop() {
		n++
		ctx := b.Context()
		repo, err := git.OpenWith(ctx, &count, dir)
		must(b, err)
		base, err := repo.Base(ctx, "")
		must(b, err)
		t := New(trees, repo, Options{})
		act, err := t.Make(ctx, "act", base.Commit)
		must(b, err)
		must(b, os.WriteFile(filepath.Join(act.Dir, "new.go"), fmt.Appendln(nil, "package x", n), 0o644))
		changes, _, err := act.Changes(ctx)
		must(b, err)
		c, err := repo.Candidate(ctx, object.Draft{Base: base.Commit, Changes: changes, Message: "m", When: time.Unix(int64(n), 0)})
		must(b, err)
		verify, err := t.Make(ctx, "verify", c.Commit)
		must(b, err)
		must(b, repo.UpdateRef(ctx, fmt.Sprint("refs/heads/p", n), c.Commit, ""))
		must(b, act.Remove(ctx))
		must(b, verify.Remove(ctx))
	}
	b.ReportMetric(float64(count.n)/float64(n), "processes/op")
}

// BenchmarkPlainWorktrees is the same by the usual commands.
func BenchmarkPlainWorktrees(b *testing.B) {
	dir := benchRepo(b, 20)
	act, verify := filepath.Join(b.TempDir(), "act"), filepath.Join(b.TempDir(), "verify")
	n := 0
	for b.Loop() {
		n++
		branch := fmt.Sprint("p", n)
		benchGit(b, dir, "worktree", "add", "-q", "-b", branch, act)
		must(b, os.WriteFile(filepath.Join(act, "new.go"), fmt.Appendln(nil, "package x", n), 0o644))
		benchGit(b, act, "add", "-A")
		benchGit(b, act, "commit", "-q", "-m", "m")
		benchGit(b, dir, "worktree", "add", "-q", "--detach", verify, branch)
		benchGit(b, dir, "worktree", "remove", "--force", act)
		benchGit(b, dir, "worktree", "remove", "--force", verify)
	}
}

func BenchmarkTwoThousandFiles(b *testing.B) {
	dir := benchRepo(b, 2000)
	repo, err := git.Open(b.Context(), dir)
	must(b, err)
	base, err := repo.Base(b.Context(), "")
	must(b, err)
	trees := New(b.TempDir(), repo, Options{})
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			tree, err := trees.Make(b.Context(), "x", base.Commit)
			must(b, err)
			b.StopTimer()
			must(b, tree.Remove(b.Context()))
			b.StartTimer()
		}
	})
	tree, err := trees.Make(b.Context(), "y", base.Commit)
	must(b, err)
	adopted, err := trees.Adopt(b.Context(), "y", base.Commit)
	must(b, err)
	for name, tree := range map[string]*Tree{"changes": tree, "changes adopted": adopted} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _, err := tree.Changes(b.Context())
				must(b, err)
			}
		})
	}
	b.Run("remove", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			tree, err := trees.Make(b.Context(), "x", base.Commit)
			must(b, err)
			b.StartTimer()
			must(b, tree.Remove(b.Context()))
		}
	})
}

// BenchmarkCompare is one changed file among many.
func BenchmarkCompare(b *testing.B) {
	dir := benchRepo(b, 20_000)
	repo, err := git.Open(b.Context(), dir)
	must(b, err)
	base, err := repo.Base(b.Context(), "")
	must(b, err)
	id := repo.Format.HashBytes([]byte(strings.Repeat(fmt.Sprintln("line", 7), 40)))
	c, err := repo.Candidate(b.Context(), object.Draft{Base: base.Commit, Changes: []object.FileChange{{Path: "new.go", Mode: object.ModeFile, ID: id}}})
	must(b, err)
	for b.Loop() {
		got, err := Compare(b.Context(), repo, base.Tree, c.Tree)
		if err != nil || len(got.Changes) != 1 {
			b.Fatalf("%d changes, %v", len(got.Changes), err)
		}
	}
}
