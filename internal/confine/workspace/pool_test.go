//go:build linux || darwin

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/sample"
)

func pooledTrees(tb testing.TB, repo *git.Repo) *Trees {
	tb.Helper()
	dir := tb.TempDir()
	return New(filepath.Join(dir, "trees"), repo, Options{Kind: Pooled, Cache: filepath.Join(dir, "cache")})
}

// parkedUnits lists the copies that wait.
func parkedUnits(t failer, trees *Trees) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(trees.layerCache().parkedDir(), "*"))
	must(t, err)
	return list
}

func TestAParkedCopyShowsNothingOfItsEarlierUse(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"edits and new files": func(t *testing.T, d string) {
			write(t, d, map[string]string{"a": "x", "new/file": "x", "d/b": "22"})
		},
		"ignored files":      func(t *testing.T, d string) { write(t, d, map[string]string{"out/x": "x", "d/out": "x"}) },
		"deletions":          func(t *testing.T, d string) { must(t, os.RemoveAll(filepath.Join(d, "d"))) },
		"modes":              func(t *testing.T, d string) { must(t, os.Chmod(filepath.Join(d, "a"), 0o700)) },
		"modes of a folder":  func(t *testing.T, d string) { must(t, os.Chmod(filepath.Join(d, "d"), 0o2700)) },
		"a folder locked up": func(t *testing.T, d string) { must(t, os.Chmod(filepath.Join(d, "d"), 0)) },
		"a time set back": func(t *testing.T, d string) {
			info, err := os.Stat(filepath.Join(d, "a"))
			must(t, err)
			write(t, d, map[string]string{"a": "2"})
			must(t, os.Chtimes(filepath.Join(d, "a"), info.ModTime(), info.ModTime()))
		},
		"a file swapped for its like": func(t *testing.T, d string) {
			write(t, d, map[string]string{"tmp": "2"})
			must(t, os.Rename(filepath.Join(d, "tmp"), filepath.Join(d, "a")))
		},
		"a link out for a folder": func(t *testing.T, d string) {
			must(t, os.RemoveAll(filepath.Join(d, "d")))
			must(t, os.Symlink(os.TempDir(), filepath.Join(d, "d")))
		},
		"a link out for a file": func(t *testing.T, d string) {
			must(t, os.Remove(filepath.Join(d, "a")))
			must(t, os.Symlink("/etc/passwd", filepath.Join(d, "a")))
		},
		"a second name":        func(t *testing.T, d string) { must(t, os.Link(filepath.Join(d, "a"), filepath.Join(d, "h"))) },
		"a FIFO":               func(t *testing.T, d string) { must(t, syscall.Mkfifo(filepath.Join(d, "d/fifo"), 0o644)) },
		"attributes of a file": func(t *testing.T, d string) { attributed(t, filepath.Join(d, "a")) },
		"attributes of folders": func(t *testing.T, d string) {
			attributed(t, filepath.Join(d, "d"))
			attributed(t, d)
		},
		"a file for a folder": func(t *testing.T, d string) {
			must(t, os.RemoveAll(filepath.Join(d, "d")))
			write(t, d, map[string]string{"d": "x"})
		},
		"commits in its git": func(t *testing.T, d string) {
			plainGit(t, t, d, "commit", "-q", "--allow-empty", "-m", "secret")
			write(t, d, map[string]string{".git/hooks/x": "x", ".git/secret": "x"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, repo, first := newRepo(t, map[string]string{"a": "1", "d/b": "2", "d/c/e": "3", "k/x": "4", ".gitignore": "out\n"})
			trees := pooledTrees(t, repo)
			tree, err := trees.Make(t.Context(), "one", first.Commit)
			must(t, err)
			do(t, tree.Dir)
			must(t, tree.Remove(t.Context()))
			if got := parkedUnits(t, trees); len(got) != 1 {
				t.Fatalf("parked %v", got)
			}
			must(t, os.RemoveAll(filepath.Join(dir, "k")))
			write(t, dir, map[string]string{"a": "new", "k": ""})
			_, _, now := commitAll(t, dir)
			for _, base := range []git.Base{first, now} {
				tree, err := trees.Make(t.Context(), "two", base.Commit)
				must(t, err)
				if got := parkedUnits(t, trees); len(got) != 0 {
					t.Errorf("parked %v", got)
				}
				wantCopy(t, repo, tree)
				must(t, tree.Remove(t.Context()))
			}
		})
	}
}

// wantCopy compares a pooled tree with a plain one in everything that a program
// can see.
func wantCopy(t *testing.T, repo *git.Repo, tree *Tree) {
	t.Helper()
	plain, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "plain", tree.Base)
	must(t, err)
	if d := cmp.Diff(everything(t, plain.Dir), everything(t, tree.Dir)); d != "" {
		t.Error(d)
	}
	if c, p := changes(t, tree); len(c)+len(p) > 0 {
		t.Errorf("changes %s, problems %v, want none", short(c), p)
	}
	if got := plainGit(t, t, tree.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
	if got := plainGit(t, t, tree.Dir, "log", "--format=%H %s"); got != tree.Base+" first" && !strings.HasPrefix(got, tree.Base+" first\n") {
		t.Errorf("log %q, want %s", got, tree.Base)
	}
}

func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		must(t, err)
		rel, _ := filepath.Rel(dir, path)
		if rel == ".git" {
			return filepath.SkipDir
		}
		got[rel] = fmt.Sprint(info.Mode(), " ", linkCount(info) > 1 && !info.IsDir())
		if info.IsDir() {
			bare, err := hasNoAttributes(path)
			must(t, err)
			got[rel] += fmt.Sprint(" ", bare)
		} else if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			must(t, err)
			got[rel] += string(text)
		}
		return nil
	}))
	return got
}

func TestAPooledTreeIsACopyAfterAnyEdits(t *testing.T) {
	dir, repo, _ := newRepo(t, nil)
	trees := pooledTrees(t, repo)
	n := 0
	sample.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		for range 2 {
			for range rapid.IntRange(0, 5).Draw(rt, "before") {
				edit(rt, dir)
			}
			plainGit(t, rt, dir, "add", "-A")
			plainGit(t, rt, dir, "commit", "-q", "--allow-empty", "-m", "first")
			base, err := repo.Base(t.Context(), "")
			must(rt, err)
			tree, err := trees.Make(t.Context(), "x", base.Commit)
			must(rt, err)
			if got := plainTree(t, rt, dir, tree.Dir); got != base.Tree {
				rt.Fatalf("made %s, want %s", got, base.Tree)
			}
			if c, p, err := tree.Changes(t.Context()); len(c)+len(p) > 0 || err != nil {
				rt.Fatalf("changes %s, problems %v, %v", short(c), p, err)
			}
			for range rapid.IntRange(0, 8).Draw(rt, "after") {
				edit(rt, tree.Dir)
			}
			must(rt, tree.Remove(t.Context()))
		}
	})
}

func TestAPooledTreeRewritesOnlyWhatDiffers(t *testing.T) {
	dir, repo, base := newRepo(t, map[string]string{"a": "1", "d/b": "2"})
	trees := pooledTrees(t, repo)
	var was stamp
	for made := 0; was == (stamp{}); made++ { // On a coarse clock the first marks may prove nothing.
		tree, err := trees.Make(t.Context(), "x", base.Commit)
		must(t, err)
		if m := markOf(tree, "d/b"); m.sure {
			was = m.stamp
		} else if made == 1000 {
			t.Fatal("no mark is sure")
		}
		must(t, tree.Remove(t.Context()))
	}
	write(t, dir, map[string]string{"a": "new"})
	_, _, base = commitAll(t, dir)
	tree, err := trees.Make(t.Context(), "x", base.Commit)
	must(t, err)
	info, err := os.Stat(filepath.Join(tree.Dir, "d/b"))
	must(t, err)
	if now, _ := stampOf(info); now != was {
		t.Errorf("d/b was written again: %v, %v", was, now)
	}
}

func TestACopyThatCannotBeTrustedIsThrownAway(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, unit string){
		"no marks":      func(t *testing.T, u string) { must(t, os.Remove(filepath.Join(u, unitMarks))) },
		"damaged marks": func(t *testing.T, u string) { must(t, os.WriteFile(filepath.Join(u, unitMarks), []byte("x"), 0o600)) },
		"cut marks": func(t *testing.T, u string) {
			info, err := os.Stat(filepath.Join(u, unitMarks))
			must(t, err)
			must(t, os.Truncate(filepath.Join(u, unitMarks), info.Size()/2))
		},
		"marks of another start of the machine": func(t *testing.T, u string) {
			text, err := os.ReadFile(filepath.Join(u, unitMarks))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(u, unitMarks), append([]byte("0"), text...), 0o600))
		},
		"no directory": func(t *testing.T, u string) { must(t, os.RemoveAll(filepath.Join(u, unitTree))) },
		"a link for the directory": func(t *testing.T, u string) {
			must(t, os.RemoveAll(filepath.Join(u, unitTree)))
			must(t, os.Symlink(t.TempDir(), filepath.Join(u, unitTree)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, repo, base := newRepo(t, map[string]string{"a": "1", "d/b": "2"})
			trees := pooledTrees(t, repo)
			tree, err := trees.Make(t.Context(), "x", base.Commit)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(tree.Dir, "a"), []byte("secret"), 0o644))
			must(t, tree.Remove(t.Context()))
			harm(t, parkedUnits(t, trees)[0])
			tree, err = trees.Make(t.Context(), "x", base.Commit)
			must(t, err)
			wantCopy(t, repo, tree)
		})
	}
}

func TestPooledTreesAreKeptAdoptedAndLeftAsCopies(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	trees := pooledTrees(t, repo)
	tree, err := trees.Make(t.Context(), "x", base.Commit)
	must(t, err)
	write(t, tree.Dir, map[string]string{"a": "work"})
	adopted, err := trees.Adopt(t.Context(), "x", base.Commit)
	must(t, err)
	if c, p := changes(t, adopted); short(c) != "M a" || p != nil {
		t.Errorf("changes %s, %v", short(c), p)
	}
	to, err := adopted.KeepAs("kept")
	must(t, err)
	must(t, trees.Remove(t.Context(), "x"))
	if text, err := os.ReadFile(filepath.Join(to, "a")); string(text) != "work" || err != nil {
		t.Errorf("kept %q, %v", text, err)
	}
	if left, err := trees.TreeNames(); err != nil || !slices.Equal(left, []string{"kept"}) {
		t.Errorf("Left = %v, %v", left, err)
	}
	if got := parkedUnits(t, trees); len(got) > 0 {
		t.Errorf("parked %v", got)
	}
	if _, err := trees.Adopt(t.Context(), "x", base.Commit); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("Adopt = %v", err)
	}
}

func TestThePoolStaysSmallAndSurvivesFaults(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1"})
	trees := pooledTrees(t, repo)
	for _, point := range []string{"workspace.make.before", "workspace.make.after", "workspace.park.before", "workspace.park.after", "workspace.remove.before"} {
		plan, err := fault.Parse(point + "=EIO")
		must(t, err)
		ctx := fault.With(t.Context(), plan)
		tree, err := trees.Make(ctx, "x", base.Commit)
		if err == nil {
			err = tree.Remove(ctx)
		}
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v, want EIO", point, err)
		}
		must(t, trees.Remove(t.Context(), "x"))
	}
	var all []*Tree
	for i := range maxParked + 3 {
		tree, err := trees.Make(t.Context(), fmt.Sprint("t", i), base.Commit)
		must(t, err)
		wantCopy(t, repo, tree)
		all = append(all, tree)
	}
	for _, tree := range all {
		must(t, tree.Remove(t.Context()))
	}
	if got := parkedUnits(t, trees); len(got) != maxParked {
		t.Errorf("parked %d, want %d", len(got), maxParked)
	}
	if left, err := trees.TreeNames(); err != nil || left != nil {
		t.Errorf("Left = %v, %v", left, err)
	}
	n, err := trees.Collect(t.Context(), Policy{Now: time.Now(), Age: time.Hour, Count: 1})
	if got := parkedUnits(t, trees); n != maxParked-1 || len(got) != 1 || err != nil {
		t.Errorf("collected %d, parked %d, %v", n, len(got), err)
	}
}
