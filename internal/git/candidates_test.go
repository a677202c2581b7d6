//go:build unix

package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func candidateRepo(t *testing.T) (dir string, r *git.Repo, commit string) {
	t.Helper()
	dir = gittest.Repo(t, map[string]string{"a": "1\n"})
	r, err := git.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	commit, err = r.Commit(t.Context(), gittest.Run(t, dir, "rev-parse", "HEAD^{tree}"), nil, "candidate", time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	return dir, r, commit
}

func wantRuns(t *testing.T, r *git.Repo, want ...string) {
	t.Helper()
	if runs, err := r.CandidateRuns(t.Context()); err != nil || !slices.Equal(runs, want) {
		t.Errorf("candidates of %v, %v; want %v", runs, err, want)
	}
}

func TestACandidateThatIsHeldSurvivesGarbageCollectionAndOneThatIsDroppedDoesNot(t *testing.T) {
	dir, r, commit := candidateRepo(t)
	for i, run := range []string{"run_a", "run_a", "run_b"} {
		if err := r.HoldCandidate(t.Context(), run, i+1, commit); err != nil {
			t.Fatal(err)
		}
	}
	if got := gittest.Run(t, dir, "rev-parse", git.CandidatePrefix+"run_a/2"); got != commit {
		t.Errorf("git reads %s, want %s", got, commit)
	}
	wantRuns(t, r, "run_a", "run_b")
	gittest.Run(t, dir, "gc", "-q", "--prune=now") // It packs the refs as well.
	if _, err := os.Lstat(filepath.Join(dir, ".git", git.CandidatePrefix, "run_a", "1")); err == nil {
		t.Fatal("the refs were not packed")
	}
	gittest.Run(t, dir, "cat-file", "-e", commit)
	wantRuns(t, r, "run_a", "run_b")
	if err := r.HoldCandidate(t.Context(), "run_a", 4, commit); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, r, "run_a", "run_b") // One is held in a packed ref and in a file.
	for _, run := range []string{"run_a", "run_a", "run_b", "run_never"} {
		if err := r.DropCandidates(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	wantRuns(t, r)
	if refs := gittest.Run(t, dir, "for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("left behind: %s", refs)
	}
	gittest.Run(t, dir, "gc", "-q", "--prune=now")
	if _, err := gittest.Try(t.Context(), dir, "cat-file", "-e", commit); err == nil {
		t.Error("a candidate that nobody holds is still there")
	}
}

func TestDroppingCandidatesRemovesWhatADeadProcessLeft(t *testing.T) {
	dir, r, commit := candidateRepo(t)
	if err := r.HoldCandidate(t.Context(), "run_a", 1, commit); err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, dir, map[string]string{".git/" + git.CandidatePrefix + "run_a/2.lock": commit[:7]})
	if err := r.DropCandidates(t.Context(), "run_a"); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, r)
	if _, err := os.Lstat(filepath.Join(dir, ".git", git.CandidatePrefix)); err == nil {
		t.Error("an empty folder stays")
	}
}

func TestACandidateIsHeldBelowItsOwnPrefixOnly(t *testing.T) {
	dir, r, commit := candidateRepo(t)
	for _, run := range []string{"", "..", "../../heads", "a b", ".lock"} {
		if err := r.HoldCandidate(t.Context(), run, 1, commit); err == nil {
			t.Errorf("run %q: a ref was made", run)
		}
	}
	if err := r.HoldCandidate(t.Context(), "run_a", 1, "HEAD"); err == nil {
		t.Error("a candidate that is not an object name is held")
	}
	outside := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, ".git/refs/pawl"), 0o755), os.Symlink(outside, filepath.Join(dir, ".git/refs/pawl/candidates"))); err != nil {
		t.Fatal(err)
	}
	if err := r.HoldCandidate(t.Context(), "run_a", 1, commit); err == nil {
		t.Error("a link out of the repository was followed")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("written outside of the repository: %v", left)
	}
}

func TestARefToAnObjectThatIsGoneIsNotFound(t *testing.T) {
	dir, r, commit := candidateRepo(t)
	gittest.Run(t, dir, "gc", "-q", "--prune=now")
	if err := r.UpdateRef(t.Context(), "refs/heads/x", commit, ""); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("UpdateRef = %v, want that the object is not there", err)
	}
}

func TestCandidatesThatCannotBeListedAreAnError(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"the packed refs are a folder": func(dir string) error { return os.Mkdir(filepath.Join(dir, ".git/packed-refs"), 0o755) },
		"their folder is a file": func(dir string) error {
			folder := filepath.Join(dir, ".git", git.CandidatePrefix)
			return errors.Join(os.RemoveAll(folder), os.MkdirAll(filepath.Dir(folder), 0o755), os.WriteFile(folder, nil, 0o600))
		},
	} {
		dir, r, commit := candidateRepo(t)
		if err := r.HoldCandidate(t.Context(), "run_a", 1, commit); err != nil {
			t.Fatal(err)
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if runs, err := r.CandidateRuns(t.Context()); err == nil {
			t.Errorf("%s: runs = %q", name, runs)
		}
		if err := r.DropCandidates(t.Context(), "run_a"); err == nil {
			t.Errorf("%s: candidates were dropped", name)
		}
	}
}
