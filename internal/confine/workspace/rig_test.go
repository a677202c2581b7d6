//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

var when = time.Unix(1_700_000_000, 0)

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plainGit runs git as a user would, with nobody's personal configuration.
func plainGit(t *testing.T, f failer, dir string, args ...string) string {
	t.Helper()
	f.Helper()
	out, err := gittest.Try(t.Context(), dir, args...)
	if err != nil {
		f.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func write(t failer, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

// newRepo makes a repository with the files committed.
func newRepo(t *testing.T, files map[string]string, initArgs ...string) (string, *git.Repo, git.Base) {
	t.Helper()
	dir := t.TempDir()
	plainGit(t, t, dir, append([]string{"init", "-q"}, initArgs...)...)
	write(t, dir, files)
	return commitAll(t, dir)
}

func commitAll(t *testing.T, dir string) (string, *git.Repo, git.Base) {
	t.Helper()
	plainGit(t, t, dir, "add", "-A")
	plainGit(t, t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	repo, err := git.Open(t.Context(), dir)
	must(t, err)
	base, err := repo.Base(t.Context(), "")
	must(t, err)
	return dir, repo, base
}

func newTree(t *testing.T, files map[string]string) (*Tree, *git.Repo) {
	t.Helper()
	_, repo, base := newRepo(t, files)
	tree, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "act", base.Commit)
	must(t, err)
	return tree, repo
}

func changes(t *testing.T, tree *Tree) ([]object.FileChange, []Problem) {
	t.Helper()
	c, p, err := tree.Changes(t.Context())
	must(t, err)
	return c, p
}

// short writes changes as "M path", "D path" and "X path" for executables.
func short(changes []object.FileChange) string {
	var list []string
	for _, c := range changes {
		kind := map[uint32]string{object.ModeFile: "M ", object.ModeExec: "X ", object.ModeSymlink: "L "}[c.Mode]
		if c.Delete {
			kind = "D "
		}
		list = append(list, kind+c.Path)
	}
	return strings.Join(list, ", ")
}

// markOf is the mark of a file of a tree that is a directory.
func markOf(tree *Tree, path string) mark {
	files := tree.form.(*directory).checkout
	return files.marks[files.index[path]]
}
