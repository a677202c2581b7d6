//go:build unix

package gitdir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func open(t *testing.T, dir string) Dirs {
	t.Helper()
	d, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestObjectDirsAreAllThatARepositoryBorrowsFrom(t *testing.T) {
	dir, other, third := gittest.Repo(t, nil), gittest.Repo(t, nil), gittest.Repo(t, nil)
	gittest.Write(t, dir, map[string]string{".git/objects/info/alternates": "# note\n" + other + "/.git/objects\n/nowhere\n"})
	gittest.Write(t, other, map[string]string{".git/objects/info/alternates": filepath.Join("..", "..", "..", "..", "..") + "/nowhere\n" + third + "/.git/objects\n" + dir + "/.git/objects\n"})
	got, err := open(t, dir).ObjectDirs()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, d := range []string{dir, other, third} {
		want = append(want, filepath.Join(d, ".git", "objects"))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	unreadable := gittest.Repo(t, map[string]string{".git/objects/info/alternates/f": ""})
	if dirs, err := open(t, unreadable).ObjectDirs(); err == nil {
		t.Errorf("a folder in the place of the alternates: %v", dirs)
	}
	if text, err := open(t, third).Shallow(); text != nil || err != nil {
		t.Errorf("a complete repository ends at %q, %v", text, err)
	}
	gittest.Write(t, third, map[string]string{".git/shallow": "x\n"})
	if text, err := open(t, third).Shallow(); string(text) != "x\n" || err != nil {
		t.Errorf("Shallow = %q, %v", text, err)
	}
}

func TestTheCheckoutIsFoundByItsFilesAlone(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a/b": "x"})
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Run(t, dir, "worktree", "add", "-q", "-b", "side", linked)
	main, side := open(t, filepath.Join(dir, "a")), open(t, linked)
	dir, linked = Resolve("", dir), Resolve("", linked)
	if want := (Dirs{Root: dir, GitDir: filepath.Join(dir, ".git"), CommonDir: filepath.Join(dir, ".git")}); main != want {
		t.Errorf("found %+v, want %+v", main, want)
	}
	if want := (Dirs{Root: linked, GitDir: filepath.Join(dir, ".git", "worktrees", "linked"), CommonDir: main.GitDir}); side != want {
		t.Errorf("found %+v, want %+v", side, want)
	}
	if !main.Shared() || !side.Shared() || open(t, gittest.Repo(t, nil)).Shared() {
		t.Error("what shares its refs is mistaken")
	}
}

// A checkout whose .git leads nowhere is not taken for a part of the one above it.
func TestAGitFileThatLeadsNowhereIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"a place that is not there": "gitdir: /nowhere/.git\n", "no place": "hello\n", "far too much": "gitdir: " + strings.Repeat("x", 9<<10),
	} {
		dir := gittest.Repo(t, map[string]string{"sub/f": "x"})
		gittest.Write(t, dir, map[string]string{"sub/.git": text})
		d, err := Find(filepath.Join(dir, "sub"))
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitUnreadable || f.Fix == "" {
			t.Errorf("%s: found %+v, %v, want a fault with a fix", name, d, err)
		}
	}
}

func TestReadFollowsLinksToRegularFilesOfBoundedSize(t *testing.T) {
	dir := t.TempDir()
	gittest.Write(t, dir, map[string]string{"file": "text", "large": ""})
	link, large := filepath.Join(dir, "link"), filepath.Join(dir, "large")
	if err := errors.Join(os.Symlink("file", link), os.Truncate(large, MaxRead+1)); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(link); string(text) != "text" || err != nil {
		t.Errorf("Read = %q, %v", text, err)
	}
	for _, path := range []string{large, dir, filepath.Join(dir, "none")} {
		if _, err := Read(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

func TestAChainOfObjectStoresHasAnEnd(t *testing.T) {
	for stores, ok := range map[int]bool{10: true, 11: false} {
		dir := gittest.Repo(t, nil)
		for n, at := 1, filepath.Join(dir, ".git", "objects"); n < stores; n++ {
			next := filepath.Join(t.TempDir(), "objects")
			gittest.Write(t, at, map[string]string{"info/alternates": next + "\n"})
			if err := os.MkdirAll(next, 0o755); err != nil {
				t.Fatal(err)
			}
			at = next
		}
		if dirs, err := open(t, dir).ObjectDirs(); (err == nil) != ok || ok && len(dirs) != stores {
			t.Errorf("%d stores: %d were found, %v", stores, len(dirs), err)
		}
	}
}
