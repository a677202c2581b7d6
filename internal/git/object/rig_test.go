//go:build unix

package object

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git/program"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

var when = time.Unix(1_700_000_000, 0)

func open(t *testing.T, dir string) Store {
	t.Helper()
	return openWith(t, proc.Plain{}, dir)
}

func openWith(t *testing.T, run proc.Runner, dir string) Store {
	t.Helper()
	out := strings.Fields(gittest.Run(t, dir, "rev-parse", "--absolute-git-dir", "--show-object-format"))
	return At(program.New(run, out[0], out[0], out[0]), Format(out[1]), func() ([]string, error) { return []string{filepath.Join(out[0], "objects")}, nil })
}

// throughGit are the same objects, all of which git reads and writes.
func (s Store) throughGit() Store {
	s.dirs = func() ([]string, error) { return nil, nil }
	return s
}

// root is the checkout, where git has to be to use its index.
func root(s Store) string { return filepath.Dir(s.git.Dir) }

// head is the commit that is checked out.
type head struct{ Commit, Tree string }

// base reads the head through the process that blobs are read through.
func base(t *testing.T, s Store) head {
	t.Helper()
	blobs, err := s.Blobs(t.Context())
	must(t, err)
	found, err := blobs.Resolve("HEAD^{commit}", "HEAD^{tree}")
	must(t, err)
	must(t, blobs.Close())
	return head{found[0].ID, found[1].ID}
}

// list is what a tree holds.
func list(t *testing.T, s Store, tree string) []Entry {
	t.Helper()
	blobs, err := s.Blobs(t.Context())
	must(t, err)
	_, entries, err := blobs.Tree(tree)
	must(t, err)
	must(t, blobs.Close())
	return entries
}

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
