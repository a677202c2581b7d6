//go:build unix

package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestNothingThatConfigurationNamesIsEverStarted(t *testing.T) {
	dir, marker := gittest.Hostile(t)
	for _, args := range [][]string{{"status"}, {"-c", "protocol.allow=never", "cat-file", "-e", strings.Repeat("7", 40)}} {
		_, _ = gittest.Try(t.Context(), dir, args...)
		if err := os.Remove(marker); err != nil {
			t.Fatalf("plain git %v started nothing, so this test proves nothing: %v", args, err)
		}
	}
	index := readFile(t, filepath.Join(dir, ".git", "index"))
	gittest.Write(t, dir, map[string]string{"f": "changed\n"})

	callEveryVerb(t, dir)
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
	if readFile(t, filepath.Join(dir, ".git", "index")) != index {
		t.Error("the index of the checkout was written")
	}
	if readFile(t, filepath.Join(dir, "f")) != "changed\n" {
		t.Error("the checkout was written")
	}
}

func callEveryVerb(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	r := open(t, dir)
	b := base(t, r)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	_, err := r.Dirty(ctx)
	must(err)
	_, err = r.List(ctx, b.Tree)
	must(err)
	c, err := r.Candidate(ctx, object.Draft{Base: b.Commit, Message: "m", When: when, Changes: []object.FileChange{
		{Path: "f", Mode: object.ModeFile, From: filepath.Join(dir, "f")}, {Path: "crlf", Delete: true},
	}})
	must(err)
	d, err := r.Commit(ctx, c.Tree, []string{b.Commit}, "m", when)
	must(err)
	must(r.UpdateRef(ctx, "refs/heads/other", c.Commit, ""))
	must(r.UpdateRef(ctx, "refs/heads/other", d, c.Commit))
	must(r.DeleteRef(ctx, "refs/heads/other", d))
	_, _, err = r.Ref(ctx, "refs/heads/main")
	must(err)
	_, err = r.Diff(ctx, b.Tree, c.Tree)
	must(err)
	_, _, _, err = r.DiffStat(ctx, b.Tree, c.Tree)
	must(err)
	_, err = r.Show(ctx, c.Commit, "f")
	must(err)
	callNewVerbs(t, r, b, c)
	_, err = r.Base(ctx, "nope")
	wantFault(t, err, 3, "main")
	missing := strings.Repeat("7", 40)
	if _, err := r.List(ctx, missing); err == nil {
		t.Error("a missing tree was listed")
	}
	if _, err := r.Show(ctx, missing, "f"); err == nil {
		t.Error("a file of a missing commit was shown")
	}
	readEverything(t, r, b, missing)
}

// callNewVerbs lands, replays, pushes and scans. It leaves the checkout and the
// index alone: main only moves while it is not checked out.
func callNewVerbs(t *testing.T, r *Repo, b Base, c object.Candidate) {
	t.Helper()
	ctx := t.Context()
	must(t, r.UpdateRef(ctx, "refs/heads/landing", b.Commit, ""))
	must(t, r.Advance(ctx, Advance{Branch: "landing", Onto: b.Commit, Commit: c.Commit}))
	_, _, err := r.Unfinished(ctx)
	must(t, err)
	_, _, err = r.Rebase(ctx, Replay{Commit: c.Commit, Onto: b.Commit, When: when})
	must(t, err)
	to := bareRemote(t)
	must(t, r.Push(ctx, Push{To: to, Commit: c.Commit, Ref: pushed}))
	_, _, err = r.RemoteRef(ctx, to, pushed)
	must(t, err)
	if _, err = r.RemoteURL("no-such"); err == nil {
		t.Error("a remote that is not there has an address")
	}
	_, err = hazard.Scan(ctx, r.Dirs)
	must(t, err)
	_, err = r.Parent(ctx, c.Commit)
	must(t, err)
	_, err = r.Changed(ctx, b.Commit, c.Commit)
	must(t, err)
	rules := r.Ignores(ctx, filepath.Join(t.TempDir(), "rules"), func(string) error { return nil })
	rules.Ignored([]string{"f"})
	must(t, rules.Close())
}

func readEverything(t *testing.T, r *Repo, b Base, missing string) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	_, entries, err := blobs.Tree(b.Commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := blobs.Read(e.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := blobs.Read(missing); err == nil {
		t.Error("a missing blob was read")
	}
}

func TestAttributesOfTheCheckoutCannotHideADiff(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "one\n", ".gitattributes": "* -diff\n"})
	r := open(t, dir)
	b := base(t, r)
	gittest.Write(t, dir, map[string]string{"f": "two\n"})
	c, err := r.Candidate(t.Context(), object.Draft{Base: b.Commit, Message: "m", When: when, Changes: []object.FileChange{
		{Path: "f", Mode: object.ModeFile, From: filepath.Join(dir, "f")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Diff(t.Context(), b.Tree, c.Tree)
	if err != nil || !strings.Contains(string(out), "-one\n+two\n") {
		t.Errorf("diff = %v\n%s\nwant both lines", err, out)
	}
}
