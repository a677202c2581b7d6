//go:build unix

package git

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// landing is a repository with main checked out and a commit to land on it.
type landing struct {
	dir  string
	repo *Repo
	a    Advance
}

var landBefore = map[string]string{
	"keep": "k\n", "edit": "one\n", "gone/deep/file": "x\n", "dir/a": "a\n", "dir/b": "b\n", "file": "f\n", "run": "#!/bin/sh\n",
}

// newLanding commits before on main, then every kind of change beside it.
func newLanding(t *testing.T, initArgs ...string) landing {
	t.Helper()
	dir := gittest.Repo(t, landBefore, initArgs...)
	r := open(t, dir)
	onto := base(t, r).Commit
	gittest.Run(t, dir, "checkout", "-q", "-b", "proposal")
	gittest.Run(t, dir, "rm", "-q", "-r", "gone", "dir", "file")
	gittest.Write(t, dir, map[string]string{"edit": "two\r\n", "dir": "now a file\n", "file/now": "a directory\n", "new/er/file": "n\n", "ex\ne": "#!/bin/sh\n"})
	must(t, os.Symlink("../keep", filepath.Join(dir, "new", "link")))
	must(t, os.Chmod(filepath.Join(dir, "ex\ne"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
	gittest.Run(t, dir, "add", "-A")
	gittest.Run(t, dir, "commit", "-q", "-m", "change")
	commit := gittest.Run(t, dir, "rev-parse", "HEAD")
	gittest.Run(t, dir, "checkout", "-q", "main")
	return landing{dir, r, Advance{Branch: "main", Onto: onto, Commit: commit, From: "proposal"}}
}

// landed fails unless main is at the commit and plain git finds no difference.
func (l landing) landed(t *testing.T) {
	t.Helper()
	if got := gittest.Run(t, l.dir, "rev-parse", "main"); got != l.a.Commit {
		t.Errorf("main is at %s, want %s", got, l.a.Commit)
	}
	if got := gittest.Run(t, l.dir, "status", "--porcelain", "--untracked-files=all"); got != "" {
		t.Errorf("plain git finds differences:\n%s", got)
	}
}

// snapshot is everything in a directory but the objects of git.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d.Name() == "objects" {
				return filepath.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := os.Lstat(p)
		must(t, err)
		if info.Mode().Type() == fs.ModeSymlink {
			all[rel], err = os.Readlink(p)
			return err
		}
		all[rel] = info.Mode().String() + readFile(t, p)
		return nil
	}))
	return all
}

func TestAdvanceBringsTheCheckoutAlong(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			l := newLanding(t, "--object-format="+format)
			gittest.Write(t, l.dir, map[string]string{"keep": "a person's own work\n", "untracked": "u\n"})
			must(t, l.repo.Advance(t.Context(), l.a))
			if got, want := gittest.Run(t, l.dir, "status", "--porcelain"), "M keep\n?? untracked"; got != want {
				t.Errorf("status = %q, want %q", got, want)
			}
			if _, err := os.Lstat(filepath.Join(l.dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the empty directory is still there: %v", err)
			}
			gittest.Run(t, l.dir, "checkout", "-q", "keep")
			must(t, os.Remove(filepath.Join(l.dir, "untracked")))
			l.landed(t)
			must(t, l.repo.Advance(t.Context(), l.a))
			l.landed(t)
		})
	}
}

func TestAdvanceMovesABranchThatNobodyHasCheckedOut(t *testing.T) {
	l := newLanding(t)
	gittest.Run(t, l.dir, "checkout", "-q", "-b", "other")
	before := snapshot(t, l.dir)
	must(t, l.repo.Advance(t.Context(), l.a))
	if got := gittest.Run(t, l.dir, "rev-parse", "main"); got != l.a.Commit {
		t.Errorf("main is at %s, want %s", got, l.a.Commit)
	}
	after := snapshot(t, l.dir)
	for _, m := range []map[string]string{before, after} {
		maps.DeleteFunc(m, func(name, _ string) bool { return strings.HasPrefix(name, ".git/") && name != ".git/index" })
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("the checkout was touched: %s", d)
	}
}

func TestAdvanceRefusesACheckoutThatIsNotCleanAndChangesNothing(t *testing.T) {
	in := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{name: "mine\n"}) }
	}
	git := func(args ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { gittest.Run(t, dir, args...) }
	}
	cases := map[string]struct {
		make func(*testing.T, string)
		says string
	}{
		"a touched file is edited":                    {in("edit"), `"edit"`},
		"a file that will be deleted is edited":       {in("gone/deep/file"), `"gone/deep/file"`},
		"a file that will be deleted is deleted":      {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "file"))) }, `"file"`},
		"a new path exists already":                   {in("new/er/file"), `"new/er/file"`},
		"a new path is a directory":                   {in("new/er/file/x"), `"new/er/file"`},
		"a directory to be a file holds more":         {in("dir/untracked"), `"dir"`},
		"a directory to be a file holds an empty one": {func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "dir", "e"), 0o755)) }, `"dir"`},
		"a new directory is a file":                   {in("new"), `"new/er/file"`},
		"a new directory is a link": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
			must(t, os.Symlink("real", filepath.Join(dir, "new")))
		}, `"new/er/file"`},
		"a parent became a link to the same content": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "gone"), filepath.Join(dir, "moved")))
			must(t, os.Symlink("moved", filepath.Join(dir, "gone")))
		}, `"gone/deep/file"`},
		"a file became a link to the same content": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "edit"), filepath.Join(dir, "edit2")))
			must(t, os.Symlink("edit2", filepath.Join(dir, "edit")))
		}, `"edit"`},
		"a file became a FIFO": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "edit")))
			mkfifo(t, filepath.Join(dir, "edit"))
		}, `"edit"`},
		"the executable bit differs": {func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "run"), 0o755)) }, `"run"`},
		"a change is staged and undone": {func(t *testing.T, dir string) {
			in("edit")(t, dir)
			git("add", "edit")(t, dir)
			gittest.Write(t, dir, map[string]string{"edit": "one\n"})
		}, `"edit"`},
		"a new path is staged only": {func(t *testing.T, dir string) {
			in("dir2")(t, dir)
			in("new/er/file")(t, dir)
			git("add", "new")(t, dir)
			must(t, os.RemoveAll(filepath.Join(dir, "new")))
		}, `"new/er/file"`},
		"below a new path is staged only": {func(t *testing.T, dir string) {
			in("new/er/file/x")(t, dir)
			git("add", "new")(t, dir)
			must(t, os.RemoveAll(filepath.Join(dir, "new")))
		}, `"new/er/file"`},
		"above a new path is staged only": {func(t *testing.T, dir string) {
			in("new")(t, dir)
			git("add", "new")(t, dir)
			must(t, os.Remove(filepath.Join(dir, "new")))
		}, `"new/er/file"`},
		"a touched file is hidden from status": {func(t *testing.T, dir string) {
			git("update-index", "--assume-unchanged", "edit")(t, dir)
			in("edit")(t, dir)
		}, `"edit"`},
		"a touched file is skipped":    {git("update-index", "--skip-worktree", "edit"), `"edit"`},
		"the index is sparse or split": {git("update-index", "--split-index"), "index"},
		"a merge is unfinished":        {func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{".git/MERGE_HEAD": "x"}) }, "merge"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLanding(t)
			c.make(t, l.dir)
			// A FIFO cannot be read for the comparison.
			fifo := strings.Contains(name, "FIFO")
			before := map[string]string{}
			if !fifo {
				before = snapshot(t, l.dir)
			}
			err := l.repo.Advance(t.Context(), l.a)
			fix := "git merge --ff-only proposal"
			if strings.Contains(name, "unfinished") {
				fix = "--abort"
			}
			wantFault(t, err, loop.ExitRefused, fix)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want it to name %s", err, c.says)
			}
			if fifo {
				return
			}
			after := snapshot(t, l.dir)
			delete(after, ".git/"+journalName)
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("something changed: %s", d)
			}
		})
	}
}

func TestAdvanceRefusesAFileThatAFilterChanged(t *testing.T) {
	l := newLanding(t)
	marker := filepath.Join(t.TempDir(), "marker")
	gittest.Run(t, l.dir, "config", "filter.f.smudge", "touch "+marker+"; tr a-z A-Z")
	gittest.Run(t, l.dir, "config", "filter.f.clean", "touch "+marker+"; tr A-Z a-z")
	gittest.Write(t, l.dir, map[string]string{".git/info/attributes": "edit filter=f\n", "edit": "ONE\n"})
	wantFault(t, l.repo.Advance(t.Context(), l.a), loop.ExitRefused, "git merge --ff-only proposal")
	if _, err := os.Lstat(marker); err == nil {
		t.Error("the filter was started")
	}
}

func TestAdvanceRefusesABranchOfAnotherWorktreeByName(t *testing.T) {
	l := newLanding(t)
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Run(t, l.dir, "worktree", "add", "-q", "-b", "side", linked, l.a.Onto)
	side := l.a
	side.Branch = "side"
	err := l.repo.Advance(t.Context(), side)
	wantFault(t, err, loop.ExitRefused, "git worktree prune")
	real, _ := filepath.EvalSymlinks(linked)
	if !strings.Contains(err.Error(), real) {
		t.Errorf("error = %v, want it to name %s", err, real)
	}
	// The other way round: the main checkout has what the linked one asks for.
	err = open(t, linked).Advance(t.Context(), l.a)
	wantFault(t, err, loop.ExitRefused, "switch that worktree")
	must(t, open(t, linked).Advance(t.Context(), side))
	if got := gittest.Run(t, linked, "status", "--porcelain"); got != "" {
		t.Errorf("the linked worktree did not follow:\n%s", got)
	}
}

func TestAttack037AForceMovedBranchIsNeverLandedOn(t *testing.T) {
	l := newLanding(t)
	elsewhere := gittest.Run(t, l.dir, "commit-tree", "-p", l.a.Onto, "-m", "moved", l.a.Onto+"^{tree}")
	plan := (&fault.Plan{}).Do("git.advance.ref.before", 1, func(context.Context) error {
		gittest.Run(t, l.dir, "update-ref", "refs/heads/main", elsewhere)
		return nil
	})
	if err := l.repo.Advance(fault.With(t.Context(), plan), l.a); !errors.Is(err, ErrRefMoved) {
		t.Errorf("Advance = %v, want ErrRefMoved", err)
	}
	if err := l.repo.Advance(t.Context(), l.a); !errors.Is(err, ErrRefMoved) {
		t.Errorf("Advance = %v, want ErrRefMoved", err)
	}
	if got := gittest.Run(t, l.dir, "status", "--porcelain"); got != "" {
		t.Errorf("the checkout was touched:\n%s", got)
	}
	back := Advance{Branch: "main", Onto: elsewhere, Commit: l.a.Onto}
	wantFault(t, l.repo.Advance(t.Context(), back), loop.ExitRefused, "on top of main")
}

func TestAttack041AnIndexLockIsRespectedAndNeverRemoved(t *testing.T) {
	l := newLanding(t)
	lock := filepath.Join(l.dir, ".git", "index.lock")
	gittest.Write(t, l.dir, map[string]string{".git/index.lock": ""})
	err := l.repo.Advance(t.Context(), l.a)
	wantFault(t, err, loop.ExitHeld, "remove "+l.repo.GitDir)
	if got := gittest.Run(t, l.dir, "rev-parse", "main"); got != l.a.Onto {
		t.Errorf("main is at %s although the index was locked", got)
	}
	if _, err := os.Lstat(lock); err != nil {
		t.Errorf("the lock of somebody else is gone: %v", err)
	}
	must(t, os.Remove(lock))
	plan := (&fault.Plan{}).Do("git.advance.index.before", 1, func(context.Context) error {
		gittest.Write(t, l.dir, map[string]string{".git/index.lock": ""})
		return nil
	})
	wantFault(t, l.repo.Advance(fault.With(t.Context(), plan), l.a), loop.ExitHeld, "remove")
	must(t, os.Remove(lock))
	must(t, l.repo.Advance(t.Context(), l.a))
	l.landed(t)
}

func TestAdvanceNeverWritesThroughALinkThatAppearsMeanwhile(t *testing.T) {
	l := newLanding(t)
	outside := t.TempDir()
	plan := (&fault.Plan{}).Do("git.advance.ref.after", 1, func(context.Context) error {
		return os.Symlink(outside, filepath.Join(l.dir, "new"))
	})
	must(t, l.repo.Advance(fault.With(t.Context(), plan), l.a))
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside holds %v, %v, want nothing", entries, err)
	}
}

func TestAdvanceAgreesWithPlainGitOnAnyTwoTrees(t *testing.T) {
	names := []string{"a", "a/b", "a/b/c", "b", "b/c", "d"}
	tree := rapid.Custom(func(rt *rapid.T) map[string]string {
		files := map[string]string{}
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID).Draw(rt, "names") {
			clash := slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(o string) bool {
				return strings.HasPrefix(o, n+"/") || strings.HasPrefix(n, o+"/")
			})
			if !clash {
				files[n] = rapid.SampledFrom([]string{"1\n", "2\n"}).Draw(rt, n)
			}
		}
		return files
	})
	dir := gittest.Repo(t, nil)
	r := open(t, dir)
	sample.Checks(t, 25) // Each is a dozen processes.
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		checks++
		from, to := tree.Draw(rt, "from"), tree.Draw(rt, "to")
		commits := make([]string, 2)
		gittest.Run(t, dir, "checkout", "-q", "--orphan", "x"+strings.Repeat("y", checks))
		for i, files := range []map[string]string{from, to} {
			gittest.Run(t, dir, "rm", "-q", "-r", "-f", "--ignore-unmatch", ".")
			gittest.Write(t, dir, files)
			gittest.Run(t, dir, "add", "-A")
			gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "m")
			commits[i] = gittest.Run(t, dir, "rev-parse", "HEAD")
		}
		gittest.Run(t, dir, "reset", "-q", "--hard", commits[0])
		branch := gittest.Run(t, dir, "symbolic-ref", "--short", "HEAD")
		if err := r.Advance(t.Context(), Advance{Branch: branch, Onto: commits[0], Commit: commits[1]}); err != nil {
			rt.Fatal(err)
		}
		if got := gittest.Run(t, dir, "status", "--porcelain", "-uall"); got != "" {
			rt.Fatalf("from %v to %v: %s", from, to, got)
		}
	})
}
