//go:build unix

package object

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

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

func TestHashFileDoesNotFollowLinksOrBlock(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	mkfifo(t, fifo)
	if _, _, err := r.Format.HashFile(fifo, ModeFile, 1<<20); err == nil {
		t.Error("a FIFO was hashed")
	}
	gittest.Write(t, dir, map[string]string{"f": "12345"})
	if _, _, err := r.Format.HashFile(filepath.Join(dir, "f"), ModeFile, 4); err == nil {
		t.Error("a file over the limit was hashed")
	}
	if id, n, err := r.Format.HashFile(filepath.Join(dir, "f"), ModeFile, 5); err != nil || n != 5 || id != r.Format.HashBytes([]byte("12345")) {
		t.Errorf("HashFile = %s, %d, %v", id, n, err)
	}
	if err := os.Symlink("f", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if id, _, err := r.Format.HashFile(filepath.Join(dir, "link"), ModeFile, 5); err == nil {
		t.Errorf("a link was followed: %s", id)
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
