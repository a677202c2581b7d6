//go:build unix

package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestASnapshotRestoresWhatWasThere(t *testing.T) {
	tree, repo := newTree(t, map[string]string{"a": "1", "d/b": "2"})
	const ref = "refs/pawl/snapshots/loop/1"
	if commit, err := tree.Snapshot(t.Context(), ref, "m", when); commit != "" || err != nil {
		t.Fatalf("snapshot of an untouched tree = %q, %v, want nothing", commit, err)
	}
	write(t, tree.Dir, map[string]string{"a": "work", "new": "file", "d/.git/x": ""})
	must(t, os.Remove(filepath.Join(tree.Dir, "d/b")))
	commit, err := tree.Snapshot(t.Context(), ref, "interrupted", when)
	must(t, err)
	again, err := tree.Snapshot(t.Context(), ref, "interrupted again", when)
	if again != commit || err != nil {
		t.Errorf("repeated snapshot = %s, %v, want %s", again, err, commit)
	}
	if id, ok, err := repo.Ref(t.Context(), ref); id != commit || !ok || err != nil {
		t.Errorf("ref = %s, %v, %v, want %s", id, ok, err, commit)
	}
	message := plainGit(t, t, repo.Root, "log", "-1", "--format=%P %B", commit)
	if want := tree.Base + " interrupted\n\nLeft out: 1\n- \"d/.git\" git_dir"; message != want {
		t.Errorf("message = %q, want %q", message, want)
	}
	restored, err := tree.trees.Make(t.Context(), "restored", commit)
	must(t, err)
	for name, want := range map[string]string{"a": "work", "new": "file"} {
		if got, err := os.ReadFile(filepath.Join(restored.Dir, name)); string(got) != want || err != nil {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	write(t, tree.Dir, map[string]string{"a": "more"})
	if _, err := tree.Snapshot(t.Context(), ref, "m", when); !errors.Is(err, git.ErrRefMoved) {
		t.Errorf("snapshot over another one = %v, want ErrRefMoved", err)
	}
	if _, err := tree.Snapshot(t.Context(), "refs/heads/main", "m", when); err == nil {
		t.Error("a branch was taken for a snapshot")
	}
}

func TestASnapshotWithoutALargeFileIsNeverTakenForAWholeOne(t *testing.T) {
	for name, pipes := range map[string]int{"nothing else is left out": 0, "the list of what is left out is full": maxProblems + 1} {
		t.Run(name, func(t *testing.T) {
			tree, _ := newTree(t, map[string]string{"a": "1"})
			write(t, tree.Dir, map[string]string{"a": "work", "z": "", "pipes/x": ""})
			must(t, os.Truncate(filepath.Join(tree.Dir, "z"), tree.trees.options.Limits.FileBytes+1))
			for i := range pipes {
				must(t, syscall.Mkfifo(filepath.Join(tree.Dir, "pipes", strconv.Itoa(i)), 0o600))
			}
			commit, err := tree.Snapshot(t.Context(), "refs/pawl/snapshots/x", "m", when)
			if commit == "" || !errors.Is(err, ErrIncomplete) {
				t.Errorf("snapshot = %q, %v, want one that says it is incomplete", commit, err)
			}
			if _, problems := changes(t, tree); len(problems) > maxProblems {
				t.Errorf("%d problems, want at most %d", len(problems), maxProblems)
			}
		})
	}
}

// A process of the host may take a file away between the look at its folder and
// the look at the file.
func TestAFileThatCannotBeReadIsAProblemAndNeitherAChangeNorADeletion(t *testing.T) {
	tree, repo := newTree(t, map[string]string{"a": "1"})
	host := filepath.Join(tree.Dir, "entry")
	for name, make := range map[string]func() error{
		"a file": func() error { return os.WriteFile(host, []byte("x"), 0o600) },
		"a link": func() error { return os.Symlink("a", host) },
	} {
		must(t, make())
		info, err := os.Lstat(host)
		must(t, err)
		must(t, os.Remove(host))
		j := judge{ctx: t.Context(), repo: repo, dir: tree.Dir, limits: tree.trees.options.Limits}
		j.judgeLeaf("entry", object.Entry{}, false, info)
		if len(j.changes) > 0 || !slices.Equal(j.problems, []Problem{{"entry", RuleUnread}}) {
			t.Errorf("%s: changes %s, problems %v, want that it is unreadable", name, short(j.changes), j.problems)
		}
	}
}

func TestATreeWithoutACommitIsSnapshottedToo(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1", "b": "2"})
	tree, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "x", base.Tree)
	must(t, err)
	write(t, tree.Dir, map[string]string{"a": "work"})
	commit, err := tree.Snapshot(t.Context(), "refs/pawl/snapshots/x", "m", when)
	must(t, err)
	if got := plainGit(t, t, repo.Root, "diff-tree", "-r", "--name-status", base.Tree, commit); got != "M\ta" {
		t.Errorf("difference = %q, want only a", got)
	}
}

func TestAnAdoptedTreeKnowsItsChanges(t *testing.T) {
	tree, repo := newTree(t, map[string]string{"a": "1", "b": "2"})
	write(t, tree.Dir, map[string]string{"a": "x"})
	info, err := os.Stat(filepath.Join(tree.Dir, "b"))
	must(t, err)
	must(t, os.Chtimes(filepath.Join(tree.Dir, "a"), info.ModTime(), info.ModTime()))

	trees := New(tree.trees.root, repo, Options{})
	left, err := trees.TreeNames()
	if err != nil || !slices.Equal(left, []string{"act"}) {
		t.Fatalf("Left = %v, %v, want act", left, err)
	}
	adopted, err := trees.Adopt(t.Context(), "act", tree.Base)
	must(t, err)
	if c, p := changes(t, adopted); short(c) != "M a" || p != nil {
		t.Errorf("changes = %s, %v, want M a", short(c), p)
	}
	must(t, adopted.Remove(t.Context()))
	if _, err := trees.Adopt(t.Context(), "act", tree.Base); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Adopt of a removed tree = %v, want not found", err)
	}
}

func TestOnlyACompleteTreeHasItsName(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	trees := New(t.TempDir(), repo, Options{})
	must(t, os.MkdirAll(trees.hiddenPath("x", suffixNew), 0o755)) // As a kill in the middle of Make leaves it.
	write(t, trees.hiddenPath("x", suffixNew), map[string]string{"half": ""})
	if _, err := trees.Adopt(t.Context(), "x", base.Commit); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Adopt = %v, want not found", err)
	}
	if left, err := trees.TreeNames(); err != nil || !slices.Equal(left, []string{"x"}) {
		t.Errorf("Left = %v, %v, want x", left, err)
	}
	tree, err := trees.Make(t.Context(), "x", base.Commit)
	must(t, err)
	if c, _ := changes(t, tree); c != nil {
		t.Errorf("changes = %s, want none", short(c))
	}
	must(t, os.Rename(tree.Dir, trees.hiddenPath("x", suffixGone))) // As a kill in the middle of Remove leaves it.
	must(t, trees.Remove(t.Context(), "x"))
	if left, err := trees.TreeNames(); err != nil || left != nil {
		t.Errorf("Left = %v, %v, want nothing", left, err)
	}
}

func TestAFailingMakeLeavesNothing(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	trees := New(t.TempDir(), repo, Options{})
	plan, err := fault.Parse("workspace.make.before=EIO")
	must(t, err)
	if _, err := trees.Make(fault.With(t.Context(), plan), "x", base.Commit); !errors.Is(err, syscall.EIO) {
		t.Errorf("Make = %v, want EIO", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("kill switch")
	cancel(stop)
	if _, err := trees.Make(ctx, "x", base.Commit); !errors.Is(err, stop) {
		t.Errorf("Make = %v, want the cause", err)
	}
	if left, err := trees.TreeNames(); err != nil || left != nil {
		t.Errorf("Left = %v, %v, want nothing", left, err)
	}
}

func TestRemoveTakesWhatAnAgentLocked(t *testing.T) {
	tree, _ := newTree(t, map[string]string{"a/b/c": "1"})
	write(t, tree.Dir, map[string]string{"l/o/c/k": ""})
	for _, dir := range []string{"l/o/c", "l/o", "l", "a/b"} {
		must(t, os.Chmod(filepath.Join(tree.Dir, dir), 0))
	}
	must(t, os.Chmod(tree.Dir, 0o500))
	must(t, tree.Remove(t.Context()))
	must(t, tree.Remove(t.Context()))
	if entries, err := os.ReadDir(filepath.Dir(tree.Dir)); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
