//go:build unix

package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

// beyond is what Added lists, sorted.
func beyond(t *testing.T, s Store, rev, base string) ([]string, bool) {
	t.Helper()
	blobs, err := s.Blobs(t.Context())
	must(t, err)
	ids, ok, err := blobs.Added(rev, base)
	must(t, err)
	must(t, blobs.Close())
	slices.Sort(ids)
	return ids, ok
}

func TestAddedListsWhatACommitHasAndItsBaseHasNot(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		dir := gittest.Repo(t, map[string]string{"a": "1\n", "d/b": "2\n", "d/e/c": "3\n", "keep/x": "4\n", "was": "5\n"}, "--object-format="+format)
		s := open(t, dir)
		base := base(t, s).Commit
		for _, step := range []string{
			"echo two >a", "rm -r d/e; echo file >d/e", "rm was; mkdir -p was/deep; echo six >was/deep/y", "rm -r d keep", "ln -s a link; chmod +x a", "true",
		} {
			gittest.Run(t, dir, "-c", "alias.x=!"+step, "x")
			gittest.Run(t, dir, "add", "-A")
			gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", step)
			head := gittest.Run(t, dir, "rev-parse", "HEAD")
			want := strings.Fields(gittest.Run(t, dir, "rev-list", "--objects", "--no-object-names", head, "^"+base))
			got, ok := beyond(t, s, head, base)
			missing := slices.DeleteFunc(want, func(id string) bool { return slices.Contains(got, id) })
			if !ok || len(missing) > 0 {
				t.Errorf("%s, %s: missing %v of %v, %v", format, step, missing, got, ok)
			}
			tree, ok := beyond(t, s, gittest.Run(t, dir, "rev-parse", "HEAD^{tree}"), base)
			if !ok || len(tree) > len(got) {
				t.Errorf("%s, %s: its tree adds %d objects, the commit %d, %v", format, step, len(tree), len(got), ok)
			}
		}
		if ids, ok := beyond(t, s, base, base); !ok || len(ids) > 0 {
			t.Errorf("a commit adds %v to itself, %v", ids, ok)
		}
	}
}

func TestAddedLeavesCommitsThatDoNotLeadStraightToTheBase(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1\n"})
	s := open(t, dir)
	root := base(t, s).Commit
	gittest.Run(t, dir, "checkout", "-q", "-b", "side")
	gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "side")
	side := gittest.Run(t, dir, "rev-parse", "HEAD")
	gittest.Run(t, dir, "checkout", "-q", "main")
	gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "main")
	ahead := gittest.Run(t, dir, "rev-parse", "HEAD")
	gittest.Run(t, dir, "merge", "-q", "-m", "merge", "side")
	merge := gittest.Run(t, dir, "rev-parse", "HEAD")
	for i := range maxChain {
		gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", fmt.Sprint(i))
	}
	for _, pair := range [][2]string{{merge, root}, {root, side}, {side, ahead}, {gittest.Run(t, dir, "rev-parse", "HEAD"), merge}} {
		if ids, ok := beyond(t, s, pair[0], pair[1]); ok {
			t.Errorf("from %s to %s: %v", pair[0], pair[1], ids)
		}
	}
}

func TestWriteLooseWritesWhatGitReads(t *testing.T) {
	for _, format := range []string{SHA1, SHA256} {
		dir := gittest.Repo(t, map[string]string{"a": "1\n", "d/b": strings.Repeat("long ", 1<<18), "empty": ""}, "--object-format="+format)
		ids := strings.Fields(gittest.Run(t, dir, "rev-list", "--objects", "--no-object-names", "HEAD"))
		to := gittest.Repo(t, nil, "--object-format="+format)
		blobs, err := open(t, dir).Blobs(t.Context())
		must(t, err)
		made := 0
		must(t, blobs.WriteLoose(ids, filepath.Join(to, ".git/objects"), func(path string) error {
			made++
			_, err := os.Lstat(path)
			return err
		}))
		must(t, blobs.Close())
		gittest.Run(t, to, "fsck", "--strict", gittest.Run(t, dir, "rev-parse", "HEAD"))
		if made < len(ids) {
			t.Errorf("told of %d files, want at least %d", made, len(ids))
		}
		if err := writeAgain(t, dir, ids[:1], filepath.Join(to, ".git/objects")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("an object is written over one that is there: %v", err)
		}
	}
}

func TestNothingIsAddedByACommitThatIsNotThere(t *testing.T) {
	s := open(t, gittest.Repo(t, map[string]string{"a": "1\n"}))
	missing, first := strings.Repeat("1", 40), base(t, s).Commit
	for _, pair := range [][2]string{{missing, first}, {first, missing}} {
		blobs, err := s.Blobs(t.Context())
		must(t, err)
		if ids, ok, err := blobs.Added(pair[0], pair[1]); err == nil || ok {
			t.Errorf("Added from %s to %s = %v, %v, %v, want an error", pair[0], pair[1], ids, ok, err)
		}
		_ = blobs.Close() // Its process ended with the error.
	}
}

// Whoever removes what was made must know of all of it, and of nothing else.
func TestWriteLooseTellsOfWhatItMakesAndOfNothingElse(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1\n", "b": "2\n"})
	ids := strings.Fields(gittest.Run(t, dir, "rev-list", "--objects", "--no-object-names", "HEAD"))
	write := func(to string, done func(path string) error) error {
		blobs, err := open(t, dir).Blobs(t.Context())
		must(t, err)
		defer blobs.Close() // Its process may have ended with the error.
		return blobs.WriteLoose(ids, to, done)
	}
	to := t.TempDir()
	had := filepath.Join(to, ids[0][:2])
	must(t, os.Mkdir(had, 0o755))
	var told, made []string
	must(t, write(to, func(path string) error {
		told = append(told, path)
		return nil
	}))
	must(t, filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		if path != to && path != had {
			made = append(made, path)
		}
		return err
	}))
	slices.Sort(told)
	if !slices.Equal(told, made) {
		t.Errorf("told of %q, made %q", told, made)
	}
	full := errors.New("the disk is full")
	for i := range len(told) + 1 { // The folder that was there is made too.
		left := i
		err := write(t.TempDir(), func(string) error {
			if left--; left < 0 {
				return full
			}
			return nil
		})
		if !errors.Is(err, full) {
			t.Errorf("when number %d could not be kept: %v, want that error", i, err)
		}
	}
}

func writeAgain(t *testing.T, dir string, ids []string, to string) error {
	t.Helper()
	blobs, err := open(t, dir).Blobs(t.Context())
	must(t, err)
	err = blobs.WriteLoose(ids, to, func(string) error { return nil })
	_ = blobs.Close() // Its process ended with the error.
	return err
}
