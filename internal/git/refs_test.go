//go:build unix

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git/gittest"
	"github.com/pawl-run/pawl/internal/loop"
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

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func sameContents(t *testing.T, r *Repo, entries []Entry, want map[string]string) {
	t.Helper()
	blobs, err := r.Blobs(t.Context())
	must(t, err)
	defer blobs.Close()
	err = blobs.Each(idsOf(entries), func(i int, _ int64, body io.Reader) error {
		got, err := io.ReadAll(body)
		if string(got) != want[entries[i].Path] {
			t.Errorf("%s = %q, want %q", entries[i].Path, got, want[entries[i].Path])
		}
		return err
	})
	must(t, err)
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
	rapid.Check(t, func(rt *rapid.T) {
		ref := "refs/pawl/" + rapid.StringMatching(`([a-z./@{~^:?*\[\\ \x7f-]|\.lock){1,6}`).Draw(rt, "name")
		_, gitErr := gittest.Try(t.Context(), dir, "check-ref-format", ref)
		if err := CheckRef(ref); (err == nil) != (gitErr == nil) {
			rt.Fatalf("CheckRef(%q) = %v, git says %v", ref, err, gitErr)
		}
	})
}

func TestCheckRefRefusesForeignNames(t *testing.T) {
	for _, ref := range []string{"", "HEAD", "main", "refs/tags/x", "refs/remotes/o/m", "refs/heads/", "refs/heads/HEAD", "refs/heads/-f", "refs/pawl", "refs/heads/a\x00b"} {
		if CheckRef(ref) == nil {
			t.Errorf("CheckRef(%q) allowed it", ref)
		}
	}
}

func TestCleanMessageAlwaysGivesOneSafeText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(rt, "bytes"))
		in = strings.Repeat(in, rapid.IntRange(1, 200).Draw(rt, "times"))
		out := CleanMessage(in)
		if len(out) > MaxMessage || !utf8.ValidString(out) || strings.ContainsAny(out, "\x00\r\x1b\u202e") || !strings.HasSuffix(out, "\n") || strings.TrimSpace(out) == "" {
			rt.Fatalf("CleanMessage(%q) = %q", in, out)
		}
		if again := CleanMessage(out); again != out {
			rt.Fatalf("cleaned twice: %q, then %q", out, again)
		}
	})
	if got := CleanMessage("a\u202eb\r\n\x07c\n\n"); got != "ab\nc\n" {
		t.Errorf("got %q", got)
	}
}

func TestDiffNamesBinaryFilesAndIsBounded(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1\n2\n", "bin": "\x00a"})
	r := open(t, dir)
	b := base(t, r)
	gittest.Write(t, dir, map[string]string{"a": "1\n3\n4\n", "bin": "\x00b", "big": strings.Repeat("line of text\n", 500_000)})
	c, err := r.Candidate(t.Context(), Draft{Base: b.Commit, Changes: whole(t, dir), When: when})
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
	dir := gittest.Repo(t, odd("x"))
	r := open(t, dir)
	for _, rev := range []string{"HEAD", "refs/heads/main", base(t, r).Commit, base(t, r).Tree} {
		for _, name := range oddNames {
			if got, err := r.Show(t.Context(), rev, name); err != nil || string(got) != "x"+name {
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

func TestHashFileDoesNotFollowLinksOrBlock(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	mkfifo(t, fifo)
	if _, _, err := r.HashFile(fifo, ModeFile, 1<<20); err == nil {
		t.Error("a FIFO was hashed")
	}
	gittest.Write(t, dir, map[string]string{"f": "12345"})
	if _, _, err := r.HashFile(filepath.Join(dir, "f"), ModeFile, 4); err == nil {
		t.Error("a file over the limit was hashed")
	}
	if id, n, err := r.HashFile(filepath.Join(dir, "f"), ModeFile, 5); err != nil || n != 5 || id != r.HashBytes([]byte("12345")) {
		t.Errorf("HashFile = %s, %d, %v", id, n, err)
	}
	if err := os.Symlink("f", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if id, _, err := r.HashFile(filepath.Join(dir, "link"), ModeFile, 5); err == nil {
		t.Errorf("a link was followed: %s", id)
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
	if _, err := r.Candidate(ctx, Draft{When: when}); !errors.Is(err, why) {
		t.Errorf("Candidate = %v, want the cause", err)
	}
}

func TestCheckPathRefusesEveryDisguiseOfAGitDirectory(t *testing.T) {
	for _, p := range []string{".git", "a/.GiT/x", ".git ", ".git.", "git~1", ".git::$INDEX_ALLOCATION", ".g\u200cit", "", ".", "..", "../x", "a/../b", "a//b", "/a", "a/", "a\x00", strings.Repeat("a", MaxPath+1)} {
		if CheckPath(p) == nil {
			t.Errorf("CheckPath(%q) allowed it", p)
		}
	}
	for _, p := range []string{".gitignore", ".github/x", "agit", "..a", "a..b/c", "git~10"} {
		if err := CheckPath(p); err != nil {
			t.Errorf("CheckPath(%q) = %v", p, err)
		}
	}
}
