//go:build unix

package gitdir

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git/gittest"
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
	if text, err := open(t, third).Shallow(); text != nil || err != nil {
		t.Errorf("a complete repository ends at %q, %v", text, err)
	}
	gittest.Write(t, third, map[string]string{".git/shallow": "x\n"})
	if text, err := open(t, third).Shallow(); string(text) != "x\n" || err != nil {
		t.Errorf("Shallow = %q, %v", text, err)
	}
}
