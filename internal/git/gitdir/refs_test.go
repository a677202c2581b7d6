package gitdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestRefsAreReadAsGitReadsThem(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "one"})
	git := func(args ...string) string { t.Helper(); return gittest.Run(t, dir, args...) }
	one := git("rev-parse", "HEAD")
	git("tag", "v1")
	git("tag", "deep/v2")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	git("commit", "-q", "--allow-empty", "-m", "two")
	two := git("rev-parse", "HEAD")
	branch := git("symbolic-ref", "HEAD")
	check := func(when string) {
		t.Helper()
		got, err := open(t, dir).Refs(branch, "refs/tags/*", "refs/remotes/origin/main", "refs/remotes/origin/HEAD", "refs/heads/none", "refs/none/*")
		want := map[string]string{
			branch: two, "refs/tags/v1": one, "refs/tags/deep/v2": one, "refs/remotes/origin/main": one, "refs/remotes/origin/HEAD": one,
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", when, err, diff)
		}
	}
	check("as files")
	git("pack-refs", "--all")
	check("packed")
	git("update-ref", branch, one)
	git("update-ref", branch, two)
	check("packed, and moved since")
	linked := filepath.Join(t.TempDir(), "linked")
	git("worktree", "add", "-q", "-b", "other", linked)
	got, err := open(t, linked).Refs("refs/heads/other")
	if err != nil || got["refs/heads/other"] != two {
		t.Errorf("in a linked worktree it is %v, %v", got, err)
	}
}

func TestABrokenRefIsNotThereAndARefOutsideOfTheRepositoryIsNotRead(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "one"})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789012345678901234567890123456789\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "cut": "0123", "away": "ref: refs/../../../" + secret, "self": "ref: refs/heads/self", "odd": "ref: HEAD",
	} {
		if err := os.WriteFile(filepath.Join(dir, ".git/refs/heads", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := open(t, dir).Refs("refs/heads/empty", "refs/heads/cut", "refs/heads/away", "refs/heads/self", "refs/heads/odd")
	if err != nil || len(got) > 0 {
		t.Errorf("they are %v, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git/reftable"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir).Refs("refs/heads/empty"); !errors.Is(err, ErrRefStorage) {
		t.Errorf("with another storage it is %v", err)
	}
}

// A ref that git packs while refs are read moves from one file to another one. It is never
// missing in between.
func TestARefThatIsPackedMeanwhileIsNeverMissing(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "one"})
	dirs := open(t, dir)
	one := gittest.Run(t, dir, "rev-parse", "HEAD")
	packed := filepath.Join(dirs.CommonDir, "packed-refs")
	var lines strings.Builder
	for i := range 300 {
		name := fmt.Sprintf("refs/heads/moves/%d", i)
		loose := filepath.Join(dirs.CommonDir, filepath.FromSlash(name))
		write(t, loose, one+"\n")
		fmt.Fprintf(&lines, "%s %s\n", one, name)
		write(t, packed+".lock", lines.String())
		done := make(chan struct{})
		go func() { // As git does it: the new file first.
			defer close(done)
			if err := errors.Join(os.Rename(packed+".lock", packed), os.Remove(loose)); err != nil {
				t.Error(err)
			}
		}()
		for more := true; more; {
			select {
			case <-done:
				more = false
			default:
			}
			for _, asked := range []string{name, "refs/heads/moves/*"} {
				if found, err := dirs.Refs(asked); err != nil || found[name] != one {
					t.Fatalf("%s: %s is %q, %v", asked, name, found[name], err)
				}
			}
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}
