//go:build unix

package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// paths are few, so that edits meet each other: a file where a directory was,
// and the other way round.
var paths = rapid.SampledFrom([]string{"a", "b", "a/x", "a/x/y", "b/z", "c/d/e/f", "c/d", "sp ace", "ü/ö", "c/-", "quote\""})

// edit is one thing that a person or an agent does to a directory.
func edit(rt *rapid.T, dir string) {
	path := filepath.Join(dir, paths.Draw(rt, "path"))
	switch rapid.SampledFrom([]string{"write", "write", "remove", "mode", "rename", "link", "touch"}).Draw(rt, "what") {
	case "write":
		clearWay(path, dir)
		_ = os.RemoveAll(path)
		must(rt, os.MkdirAll(filepath.Dir(path), 0o755))
		must(rt, os.WriteFile(path, []byte(rapid.StringN(0, 4, -1).Draw(rt, "text")), 0o644))
	case "remove":
		_ = os.RemoveAll(path)
	case "mode":
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			must(rt, os.Chmod(path, info.Mode().Perm()^0o111))
		}
	case "rename":
		to := filepath.Join(dir, paths.Draw(rt, "to"))
		if filepath.Dir(to) == dir {
			_ = os.Rename(path, to)
		}
	case "link":
		clearWay(path, dir)
		_ = os.RemoveAll(path)
		must(rt, os.MkdirAll(filepath.Dir(path), 0o755))
		must(rt, os.Symlink("target", path))
	case "touch":
		_ = os.Chtimes(path, when, when)
	}
}

// clearWay removes files that stand where path needs a directory.
func clearWay(path, top string) {
	for dir := filepath.Dir(path); len(dir) > len(top); dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			_ = os.Remove(dir)
		}
	}
}

func TestACandidateIsWhatPlainGitWouldCommit(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			dir, repo, _ := newRepo(t, nil, "--object-format="+format)
			trees := New(t.TempDir(), repo, Options{})
			n := 0
			sample.Checks(t, 30)
			rapid.Check(t, func(rt *rapid.T) {
				n++
				roundTrip(t, rt, dir, repo, trees, fmt.Sprint("t", n))
			})
		})
	}
}

func roundTrip(t *testing.T, rt *rapid.T, dir string, repo *git.Repo, trees *Trees, name string) {
	t.Helper()
	for range rapid.IntRange(1, 8).Draw(rt, "before") {
		edit(rt, dir)
	}
	plainGit(t, rt, dir, "add", "-A")
	plainGit(t, rt, dir, "commit", "-q", "--allow-empty", "-m", "x")
	base, err := repo.Base(t.Context(), "")
	must(rt, err)
	tree, err := trees.Make(t.Context(), name, base.Commit)
	must(rt, err)
	defer func() { must(rt, tree.Remove(t.Context())) }()
	if c, p, err := tree.Changes(t.Context()); len(c)+len(p) > 0 || err != nil {
		rt.Fatalf("untouched: changes %s, problems %v, %v", short(c), p, err)
	}
	for range rapid.IntRange(1, 8).Draw(rt, "after") {
		edit(rt, tree.Dir)
	}
	changes, problems, err := tree.Changes(t.Context())
	must(rt, err)
	if len(problems) > 0 {
		rt.Fatalf("problems: %v", problems)
	}
	got, err := repo.Candidate(t.Context(), object.Draft{Base: base.Commit, Changes: changes, When: when})
	must(rt, err)
	if want := plainTree(t, rt, dir, tree.Dir); got.Tree != want {
		rt.Fatalf("candidate %s, want %s\n%s", got.Tree, want, plainGit(t, rt, dir, "diff-tree", "-r", want, got.Tree))
	}
	if (len(changes) == 0) != (got.Tree == base.Tree) {
		rt.Fatalf("changes %s for the trees %s and %s", short(changes), base.Tree, got.Tree)
	}
	wantAdopted(t, rt, trees, name, base.Commit, changes)
}

// plainTree is what `git add -A && git write-tree` says about a directory.
func plainTree(t *testing.T, rt *rapid.T, repo, dir string) string {
	t.Helper()
	args := []string{"--git-dir=" + filepath.Join(repo, ".git"), "--work-tree=" + dir}
	plainGit(t, rt, dir, append(args, "add", "-A")...)
	return plainGit(t, rt, dir, append(args, "write-tree")...)
}

// wantAdopted checks that a tree whose marks are lost says the same.
func wantAdopted(t *testing.T, rt *rapid.T, trees *Trees, name, rev string, want []object.FileChange) {
	t.Helper()
	adopted, err := trees.Adopt(t.Context(), name, rev)
	must(rt, err)
	got, _, err := adopted.Changes(t.Context())
	must(rt, err)
	if short(got) != short(want) {
		rt.Fatalf("adopted: changes %s, want %s", short(got), short(want))
	}
}
