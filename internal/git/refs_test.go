//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}

func TestUpdateRefMovesOnlyFromTheExpectedValue(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	r := open(t, dir)
	ctx := t.Context()
	b := base(t, r)
	next, err := r.Commit(ctx, b.Tree, []string{b.Commit}, "next", when)
	must(t, err)
	const ref = "refs/pawl/test/x"
	must(t, r.UpdateRef(ctx, ref, b.Commit, ""))
	if err := r.UpdateRef(ctx, ref, next, ""); !errors.Is(err, ErrRefMoved) {
		t.Errorf("create over an existing ref = %v, want ErrRefMoved", err)
	}
	if err := r.UpdateRef(ctx, ref, next, next); !errors.Is(err, ErrRefMoved) {
		t.Errorf("update from a stale value = %v, want ErrRefMoved", err)
	}
	if err := r.UpdateRef(ctx, "refs/pawl/none", next, next); !errors.Is(err, ErrRefMoved) {
		t.Errorf("update of a missing ref = %v, want ErrRefMoved", err)
	}
	if err := r.UpdateRef(ctx, ref, strings.Repeat("1", 40), b.Commit); err == nil || errors.Is(err, ErrRefMoved) {
		t.Errorf("update to a missing object = %v, want another error", err)
	}
	must(t, r.UpdateRef(ctx, ref, next, b.Commit))
	if err := r.DeleteRef(ctx, ref, b.Commit); !errors.Is(err, ErrRefMoved) {
		t.Errorf("delete from a stale value = %v, want ErrRefMoved", err)
	}
	if id, ok, err := r.Ref(ctx, ref); id != next || !ok || err != nil {
		t.Errorf("Ref = %s, %v, %v, want %s", id, ok, err, next)
	}
	must(t, r.DeleteRef(ctx, ref, next))
	if id, ok, err := r.Ref(ctx, ref); id != "" || ok || err != nil {
		t.Errorf("Ref = %s, %v, %v, want none", id, ok, err)
	}
}

func TestRefsListsBelowAPrefixOnly(t *testing.T) {
	dir := gittest.Repo(t, nil)
	r := open(t, dir)
	b := base(t, r)
	for _, ref := range []string{"refs/pawl/s/2", "refs/pawl/s/1", "refs/pawl/sx/3"} {
		must(t, r.UpdateRef(t.Context(), ref, b.Commit, ""))
	}
	refs, err := r.Refs(t.Context(), "refs/pawl/s/")
	if err != nil || len(refs) != 2 || refs[0] != (Ref{"refs/pawl/s/1", b.Commit}) {
		t.Errorf("Refs = %v, %v, want the two below s", refs, err)
	}
	if _, err := r.Refs(t.Context(), "--all/"); err == nil {
		t.Error("an option was taken for a prefix")
	}
}

func TestCheckRefAgreesWithGit(t *testing.T) {
	dir := gittest.Repo(t, nil)
	sample.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		ref := "refs/pawl/" + rapid.StringMatching(`([a-z./@{~^:?*\[\\ \x7f-]|\.lock){1,6}`).Draw(rt, "name")
		_, gitErr := gittest.Try(t.Context(), dir, "check-ref-format", ref)
		if err := CheckRef(ref); (err == nil) != (gitErr == nil) {
			rt.Fatalf("CheckRef(%q) = %v, git says %v", ref, err, gitErr)
		}
	})
}

func TestCheckRefRefusesForeignNames(t *testing.T) {
	for _, ref := range []string{"", "HEAD", "main", "refs/tags/x", "refs/notes/x", "refs/heads/", "refs/heads/HEAD", "refs/heads/-f", "refs/pawl", "refs/heads/a\x00b"} {
		if CheckRef(ref) == nil {
			t.Errorf("CheckRef(%q) allowed it", ref)
		}
	}
}

func TestDiffNamesBinaryFilesAndIsBounded(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1\n2\n", "bin": "\x00a"})
	r := open(t, dir)
	b := base(t, r)
	gittest.Write(t, dir, map[string]string{"a": "1\n3\n4\n", "bin": "\x00b", "big": strings.Repeat("line of text\n", 500_000)})
	var changes []object.FileChange
	for _, name := range []string{"a", "bin", "big"} {
		changes = append(changes, object.FileChange{Path: name, Mode: object.ModeFile, From: filepath.Join(dir, name)})
	}
	c, err := r.Candidate(t.Context(), object.Draft{Base: b.Commit, Changes: changes, When: when})
	must(t, err)
	files, added, removed, err := r.DiffStat(t.Context(), b.Commit, c.Commit)
	if err != nil || files != 3 || added != 500_002 || removed != 1 {
		t.Errorf("DiffStat = %d, %d, %d, %v, want 3 files, +500002 -1", files, added, removed, err)
	}
	out, err := r.Diff(t.Context(), b.Tree, c.Tree)
	must(t, err)
	if len(out) > MaxDiff+100 || !strings.HasSuffix(string(out), "bytes]\n") || !strings.Contains(string(out), "-2\n+3\n+4\n") {
		t.Errorf("diff has %d bytes and ends with %q", len(out), out[max(0, len(out)-80):])
	}
	for _, bad := range []string{"HEAD", "--output=x", ""} {
		if _, err := r.Diff(t.Context(), bad, c.Tree); err == nil {
			t.Errorf("Diff(%q) was run", bad)
		}
	}
}

func TestShowReadsOneFileOfARevision(t *testing.T) {
	dir := gittest.Repo(t, gittest.OddlyNamed("x"))
	r := open(t, dir)
	for _, rev := range []string{"HEAD", "refs/heads/main", base(t, r).Commit, base(t, r).Tree} {
		for name, content := range gittest.OddlyNamed("x") {
			if got, err := r.Show(t.Context(), rev, name); err != nil || string(got) != content {
				t.Errorf("Show(%s, %q) = %q, %v", rev, name, got, err)
			}
		}
		for _, name := range []string{"none", "a"} {
			if _, err := r.Show(t.Context(), rev, name); !errors.Is(err, loop.ErrNotFound) {
				t.Errorf("Show(%s, %q) = %v, want not found", rev, name, err)
			}
		}
	}
	if _, err := r.Show(t.Context(), "HEAD~1", "a"); err == nil {
		t.Error("a revision expression was taken")
	}
	if _, err := r.Show(t.Context(), strings.Repeat("1", 40), "a"); !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("missing revision = %v, want not found", err)
	}
}

func TestCommandsEndWithTheirContext(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := fmt.Errorf("kill switch")
	cancel(why)
	if _, err := r.Base(ctx, ""); !errors.Is(err, why) {
		t.Errorf("Base = %v, want the cause", err)
	}
	if _, err := r.Candidate(ctx, object.Draft{When: when}); !errors.Is(err, why) {
		t.Errorf("Candidate = %v, want the cause", err)
	}
}

func TestTheReflogNamesWhoMovedABranch(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	r := open(t, dir)
	b := base(t, r)
	must(t, r.UpdateRef(t.Context(), "refs/heads/by-pawl", b.Commit, ""))
	must(t, r.MovedBy("run_1 fence 2").UpdateRef(t.Context(), "refs/heads/by-run", b.Commit, ""))
	for branch, want := range map[string]string{"by-pawl": "pawl", "by-run": "pawl: run_1 fence 2"} {
		if got := gittest.Run(t, dir, "reflog", "show", "--format=%gs", branch); got != want {
			t.Errorf("the reflog of %s says %q, want %q", branch, got, want)
		}
	}
}
