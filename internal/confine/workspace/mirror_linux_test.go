package workspace

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/mirror"
	"github.com/pawl-run/pawl/internal/git/object"
)

// mirrored are trees whose git sees what the base reaches.
func mirrored(t *testing.T, repo *git.Repo, base string, alone bool) *Trees {
	t.Helper()
	o := t.TempDir()
	m, err := mirror.Cache{Dir: filepath.Join(o, "m"), Now: time.Now}.Open(t.Context(), RepositoryKey(repo), repo, base, alone)
	must(t, err)
	t.Cleanup(m.Release)
	return New(filepath.Join(o, "t"), repo, Options{Kind: Layered, Cache: filepath.Join(o, "c"), Mirror: m, Objects: t.TempDir()})
}

// all is what git in a tree finds in its object stores.
const all = "git cat-file --batch-all-objects --batch-check='%(objectname)'"

func TestGitInATreeFindsWhatTheMirrorHoldsAndWhatTheTreeAdds(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		dir, repo, first := newRepo(t, map[string]string{"a": "1\n", "d/b": "2\n"}, "--object-format="+format)
		write(t, dir, map[string]string{"canary": "of a stash\n"})
		plainGit(t, t, dir, "stash", "-q", "-u")
		write(t, dir, map[string]string{"a": "2\n"})
		_, _, base := commitAll(t, dir)
		trees := mirrored(t, repo, base.Commit, false)
		work, err := trees.Make(t.Context(), "act", base.Commit)
		must(t, err)
		write(t, layersOf(work).upper, map[string]string{"d/b": "changed\n", "n/new": "new\n"})
		list, _, err := work.Changes(t.Context())
		must(t, err)
		c, err := repo.Candidate(t.Context(), object.Draft{Base: base.Commit, Changes: list, Message: "candidate", When: when})
		must(t, err)
		for name, rev := range map[string]string{"base": base.Commit, "candidate": c.Commit, "tree": c.Tree} {
			tree, err := trees.Make(t.Context(), name, rev)
			must(t, err)
			m := mount(t, t, tree, bindObjects(t, trees))
			reached := []string{"rev-list", "--objects", "--no-object-names", base.Commit, rev}
			if got, want := strings.Fields(m.run(t, all)), strings.Fields(plainGit(t, t, dir, reached...)); len(got) != len(want) {
				t.Errorf("%s %s: git finds %d objects, want %d", format, name, len(got), len(want))
			}
			if got := m.run(t, "git status --porcelain; git fsck --no-dangling 2>&1 | grep -v notice || true"); got != "" && name != "tree" {
				t.Errorf("%s %s: git says %q", format, name, got)
			}
			m.close()
		}
		gate, err := trees.Make(t.Context(), "gate", c.Commit)
		must(t, err)
		m := mount(t, t, gate, bindObjects(t, trees))
		for script, want := range map[string]string{
			"git log --format=%H":             c.Commit + "\n" + base.Commit + "\n" + first.Commit,
			"git diff --stat HEAD~ | tail -1": " 2 files changed, 2 insertions(+), 1 deletion(-)",
			"git show HEAD:d/b":               "changed",
			"git blame -s HEAD -- a | cut -d' ' -f1 | tr -d ^ | cut -c1-7": base.Commit[:7],
		} {
			if got := m.run(t, script); got != want {
				t.Errorf("%s: %s = %q, want %q", format, script, got, want)
			}
		}
		m.close()
	}
}

func TestACommitThatIsNotAheadOfTheMirrorIsReadAllTheSame(t *testing.T) {
	dir, repo, first := newRepo(t, map[string]string{"a": "1\n"})
	plainGit(t, t, dir, "checkout", "-q", "-b", "side")
	write(t, dir, map[string]string{"b": "2\n"})
	_, _, side := commitAll(t, dir)
	plainGit(t, t, dir, "checkout", "-q", "-B", "main", first.Commit)
	write(t, dir, map[string]string{"c": "3\n"})
	_, _, base := commitAll(t, dir)
	trees := mirrored(t, repo, base.Commit, false)
	tree, err := trees.Make(t.Context(), "x", side.Commit)
	must(t, err)
	m := mount(t, t, tree, bindObjects(t, trees))
	if got := m.run(t, "git status --porcelain; git log --format=%H; git show HEAD:b"); got != side.Commit+"\n"+first.Commit+"\n2" {
		t.Errorf("got %q", got)
	}
}

func TestABaseAloneHasAHistoryOfOneCommit(t *testing.T) {
	dir, repo, _ := newRepo(t, map[string]string{"a": "old\n"})
	write(t, dir, map[string]string{"a": "new\n"})
	_, _, base := commitAll(t, dir)
	trees := mirrored(t, repo, base.Commit, true)
	tree, err := trees.Make(t.Context(), "x", base.Commit)
	must(t, err)
	m := mount(t, t, tree, bindObjects(t, trees))
	got := m.run(t, "git log --format=%H; git rev-parse --is-shallow-repository; "+all+" | wc -l; git status --porcelain; echo x >a; git add a; git commit -qm x; git log --format=%s")
	if want := base.Commit + "\ntrue\n3\nx\nfirst"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
