//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestNothingMovesThatIsNotConfirmed(t *testing.T) {
	g := newGiven(t)
	r := open(t, g.dir)
	paused := errors.New("the loop is paused")
	refuse := func(context.Context) error { return paused }
	if err := r.Advance(t.Context(), Advance{Branch: "main", Onto: g.base.Commit, Commit: g.next, Confirm: refuse}); !errors.Is(err, paused) {
		t.Errorf("Advance = %v, want what Confirm said", err)
	}
	if tip, _, err := r.Ref(t.Context(), "refs/heads/main"); err != nil || tip != g.base.Commit {
		t.Errorf("main is at %s, %v, want that it stays at %s", tip, err, g.base.Commit)
	}
	to := Remote{URL: g.remote, Local: true, Environ: os.Environ()}
	if err := r.Push(t.Context(), Push{To: to, Commit: g.next, Ref: pushed, Confirm: refuse}); !errors.Is(err, paused) {
		t.Errorf("Push = %v, want what Confirm said", err)
	}
	if id, there, err := r.RemoteRef(t.Context(), to, pushed); err != nil || there {
		t.Errorf("%s of the remote is %s, %v, want that it is not there", pushed, id, err)
	}
}

func TestOfManyFilesInTheWayOnlySomeAreNamed(t *testing.T) {
	files, now := map[string]string{}, version{}
	for i := range 12 {
		files[fmt.Sprintf("f%02d", i)], now[fmt.Sprintf("f%02d", i)] = "1", "2"
	}
	dir := gittest.Repo(t, files)
	r := open(t, dir)
	b := base(t, r)
	next := commitOf(t, r, b.Commit, now)
	for name := range files {
		gittest.Write(t, dir, map[string]string{name: "mine"})
	}
	err := r.CanAdvance(t.Context(), Advance{Branch: "main", Onto: b.Commit, Commit: next})
	if err == nil || !strings.Contains(err.Error(), `"f09" and 2 more`) || strings.Contains(err.Error(), "f10") {
		t.Errorf("CanAdvance = %v, want ten of the files and how many more", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.CanAdvance(ctx, Advance{Branch: "main", Onto: b.Commit, Commit: next}); !errors.Is(err, context.Canceled) {
		t.Errorf("CanAdvance = %v, want that it was canceled", err)
	}
}

func TestNamesThatGitWouldTakeForSomethingElseAreRefused(t *testing.T) {
	g := newGiven(t)
	r := open(t, g.dir)
	for _, ref := range []string{"", "main", "refs/tags/x", "refs/heads/-x", "refs/heads/HEAD", "refs/heads/" + strings.Repeat("x", 1025-len("refs/heads/"))} {
		if _, _, err := r.Ref(t.Context(), ref); err == nil {
			t.Errorf("Ref(%.40q) = no error", ref)
		}
		if _, _, err := r.RemoteRef(t.Context(), Remote{URL: g.remote, Local: true, Environ: os.Environ()}, ref); err == nil {
			t.Errorf("RemoteRef(%.40q) = no error", ref)
		}
	}
	if err := CheckRef("refs/heads/" + strings.Repeat("x", 1024-len("refs/heads/"))); err != nil {
		t.Errorf("CheckRef of the longest name = %v", err)
	}
	for _, path := range []string{"", "../f", "/f", ".git/config"} {
		if text, err := r.Show(t.Context(), g.next, path); err == nil {
			t.Errorf("Show(%q) = %q", path, text)
		}
	}
	if paths, err := r.Changed(t.Context(), g.next, g.next); err != nil || paths != nil {
		t.Errorf("Changed from a commit to itself = %q, %v", paths, err)
	}
}

func TestRulesThatCannotBeWrittenIgnoreNothingAndAreAnError(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	full := errors.New("the disk is full")
	ignores := r.Ignores(t.Context(), filepath.Join(t.TempDir(), "rules"), func(string) error { return full })
	if err := ignores.Close(); err != nil {
		t.Errorf("Close without a question = %v", err)
	}
	for range 2 {
		if got := ignores.Ignored([]string{"a", "b/"}); !slices.Equal(got, []bool{false, false}) {
			t.Errorf("ignored = %v, want nothing", got)
		}
	}
	if err := ignores.Close(); !errors.Is(err, full) {
		t.Errorf("Close = %v, want why the rules could not be written", err)
	}
}

func TestFilesWithinSomeFoldersAreListedAndSaidToBeSome(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"top": "1", "a/x": "1", "a/b/y": "1", "c/z": "1", "d/w": "1"})
	r := open(t, dir)
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	defer blobs.Close() // Its process ends with the last question, which is an error.
	commit := base(t, r).Commit
	for name, c := range map[string]struct {
		most  int
		enter func(string) bool
		want  string
		all   bool
	}{
		"everything":           {10, func(string) bool { return true }, "a/b/y a/x c/z d/w top", true},
		"exactly so many":      {4, func(string) bool { return true }, "a/b/y a/x c/z d/w top", true},
		"one folder too many":  {3, func(string) bool { return true }, "a/x c/z d/w top", false},
		"fewer than the first": {1, func(string) bool { return true }, "a/x top", false},
		"no folder":            {10, func(string) bool { return false }, "top", true},
		"one, and none below":  {10, func(dir string) bool { return dir == "a" }, "a/x top", true},
	} {
		files, all, err := blobs.Within(commit, c.most, c.enter)
		var paths []string
		for _, f := range files {
			paths = append(paths, f.Path)
		}
		slices.Sort(paths)
		if got := strings.Join(paths, " "); err != nil || got != c.want || all != c.all {
			t.Errorf("%s: %q, all %v, %v, want %q, %v", name, got, all, err, c.want, c.all)
		}
	}
	top := gittest.Run(t, dir, "rev-parse", "HEAD:top")
	if tree, err := blobs.TreeOf(top); err == nil {
		t.Errorf("the tree of a file is %s", tree)
	}
	if err := object.CheckPath(strings.Repeat("a", object.MaxPath)); err != nil {
		t.Errorf("the longest path = %v", err)
	}
}
