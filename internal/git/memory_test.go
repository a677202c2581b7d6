//go:build unix

package git

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// memoryOf is a checkout of main at a commit with a file of pawl's own, and a commit on top
// that gives it another content.
func memoryOf(t *testing.T, next string) (dir string, r *Repo, a Advance) {
	t.Helper()
	dir = gittest.Repo(t, map[string]string{"state": "old\n", "work": "w\n"})
	r = open(t, dir)
	onto := base(t, r).Commit
	c, err := r.Candidate(t.Context(), object.Draft{
		Base: onto, When: when, Message: "memory", Changes: []object.FileChange{{Path: "state", Mode: object.ModeFile, Content: []byte(next)}},
	})
	must(t, err)
	return dir, r, Advance{Branch: "main", Onto: onto, Commit: c.Commit, Memory: map[string]string{"state": r.Format.HashBytes([]byte("recorded\n"))}}
}

func TestAFileOfTheMemoryMayBeWhatWasRecorded(t *testing.T) {
	for name, c := range map[string]struct{ next, disk, want, status string }{
		"as it was":                      {"new\n", "old\n", "new\n", ""},
		"as recorded":                    {"new\n", "recorded\n", "new\n", ""},
		"recorded is what is committed":  {"recorded\n", "recorded\n", "recorded\n", ""},
		"edited over what is committed":  {"recorded\n", "recorded\nby hand\n", "recorded\nby hand\n", "M state"},
		"removed by hand, as committed":  {"recorded\n", "", "", "D state"},
		"it holds already what is to be": {"new\n", "new\n", "new\n", "refused"},
		"edited, and others committed":   {"new\n", "by hand\n", "by hand\n", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, r, a := memoryOf(t, c.next)
			file := filepath.Join(dir, "state")
			if c.disk == "" {
				must(t, os.Remove(file))
			} else {
				gittest.Write(t, dir, map[string]string{"state": c.disk})
			}
			err := r.Advance(t.Context(), a)
			if c.status == "refused" {
				wantFault(t, err, loop.ExitRefused, "commit or stash")
				if got := gittest.Run(t, dir, "rev-parse", "main"); got != a.Onto {
					t.Errorf("main is at %s, want %s", got, a.Onto)
				}
				return
			}
			must(t, err)
			if got, _ := os.ReadFile(file); string(got) != c.want {
				t.Errorf("state = %q, want %q", got, c.want)
			}
			if got := gittest.Run(t, dir, "status", "--porcelain"); got != c.status {
				t.Errorf("status = %q, want %q", got, c.status)
			}
		})
	}
}

func TestACommitThatIsMadeAgainReplacesTheFirst(t *testing.T) {
	dir, r, a := memoryOf(t, "new\n")
	must(t, r.Advance(t.Context(), a))
	again, err := r.Candidate(t.Context(), object.Draft{
		Base: a.Onto, When: when, Message: "again", Changes: []object.FileChange{{Path: "state", Mode: object.ModeFile, Content: []byte("newer\n")}},
	})
	must(t, err)
	second := Advance{Branch: "main", Onto: a.Commit, Commit: again.Commit}
	wantFault(t, r.Advance(t.Context(), second), loop.ExitRefused, "on top of main")
	second.Rewrites = true
	must(t, r.Advance(t.Context(), second))
	if got := gittest.Run(t, dir, "status", "--porcelain") + gittest.Run(t, dir, "show", "main:state"); got != "newer" {
		t.Errorf("status and state = %q", got)
	}
}

func TestTheHistoryOfAPathIsListedNewestFirst(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a/x": "1\n", "b": "1\n"})
	r := open(t, dir)
	var ids []string
	for _, c := range []struct{ path, text string }{{"a/x", "2\n"}, {"b", "2\n"}, {"a/x", "3\n"}} {
		gittest.Write(t, dir, map[string]string{c.path: c.text})
		gittest.Run(t, dir, "commit", "-q", "-a", "-m", c.path+" "+c.text+"\n\nbody")
		ids = append(ids, gittest.Run(t, dir, "rev-parse", "HEAD"))
	}
	for name, c := range map[string]struct {
		rev, not, path string
		most           int
		want           []string
	}{
		"of a path":         {"HEAD", "", "a/x", 2, []string{ids[2], ids[0]}},
		"of a folder":       {"refs/heads/main", "", "a", 1, []string{ids[2]}},
		"of everything":     {"HEAD", ids[0], "", 9, []string{ids[2], ids[1]}},
		"of another path":   {ids[0], "", "b", 9, []string{gittest.Run(t, dir, "rev-parse", "HEAD~3")}},
		"of what is not so": {"HEAD", "", "none", 9, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := r.History(t.Context(), c.rev, c.not, c.path, c.most)
			must(t, err)
			if len(list) != len(c.want) {
				t.Fatalf("%d commits, want %d: %v", len(list), len(c.want), list)
			}
			for i, got := range list {
				if got.ID != c.want[i] || got.When.IsZero() || got.Message == "" {
					t.Errorf("commit %d = %+v, want %s", i, got, c.want[i])
				}
			}
		})
	}
	if _, err := r.History(t.Context(), "--output=x", "", "", 1); err == nil {
		t.Error("an option was taken for a revision")
	}
}

func TestTwoHistoriesAreMergedWithWhatIsSettled(t *testing.T) {
	remote := gittest.Repo(t, map[string]string{"state": "0\n", "a": "0\n", "b": "0\n"})
	dir := t.TempDir()
	gittest.Run(t, dir, "clone", "-q", remote, ".")
	commit := func(at string, files map[string]string) string {
		gittest.Write(t, at, files)
		gittest.Run(t, at, "commit", "-q", "-a", "-m", "x")
		return gittest.Run(t, at, "rev-parse", "HEAD")
	}
	theirs := commit(remote, map[string]string{"state": "theirs\n", "a": "theirs\n"})
	r := open(t, dir)
	start := base(t, r).Commit
	ours := commit(dir, map[string]string{"state": "ours\n", "b": "ours\n"})
	from := Remote{URL: remote, Environ: os.Environ(), Local: true}
	got, err := r.Fetch(t.Context(), from, "refs/heads/main", ours)
	must(t, err)
	common, err := r.MergeBase(t.Context(), ours, got)
	must(t, err)
	if got != theirs || common != start {
		t.Fatalf("fetched %s with the common ancestor %s, want %s and %s", got, common, theirs, start)
	}
	merge := Replay{Base: common, Commit: ours, Onto: theirs, When: when, Message: "merge", Parents: []string{ours, theirs}}
	if _, conflicts, err := r.Rebase(t.Context(), merge); err != nil || len(conflicts) != 1 || conflicts[0] != "state" {
		t.Fatalf("conflicts = %q, %v, want state", conflicts, err)
	}
	merge.Settled = []object.FileChange{{Path: "state", Mode: object.ModeFile, Content: []byte("both\n")}}
	c, _, err := r.Rebase(t.Context(), merge)
	must(t, err)
	must(t, r.Advance(t.Context(), Advance{Branch: "main", Onto: ours, Commit: c.Commit}))
	if got := gittest.Run(t, dir, "log", "-1", "--format=%P") + readFile(t, filepath.Join(dir, "state")) + readFile(t, filepath.Join(dir, "a")) + readFile(t, filepath.Join(dir, "b")); got != ours+" "+theirs+"both\ntheirs\nours\n" {
		t.Errorf("merged = %q", got)
	}
	if out := gittest.Run(t, dir, "fsck", "--strict") + gittest.Run(t, dir, "status", "--porcelain"); out != "" {
		t.Errorf("fsck and status = %q", out)
	}
	if _, err := r.Fetch(t.Context(), from, "refs/heads/none", ""); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("a missing branch: %v", err)
	}
}
