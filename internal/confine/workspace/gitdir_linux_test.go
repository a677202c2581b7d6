package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/git/object"
)

func TestGitWorksInsideAndMeansNothing(t *testing.T) {
	for _, format := range []string{object.SHA1, object.SHA256} {
		t.Run(format, func(t *testing.T) {
			dir, repo, base := newRepo(t, map[string]string{"a": "1\n", "d/b": "2\n"}, "--object-format="+format)
			plainGit(t, t, dir, "branch", "secret")
			objects := t.TempDir()
			o := t.TempDir()
			trees := New(filepath.Join(o, "t"), repo, Options{Kind: Layered, Cache: filepath.Join(o, "c"), Objects: objects})
			tree, err := trees.Make(t.Context(), "act", base.Commit)
			must(t, err)
			m := mount(t, t, tree, bindObjects(t, trees))
			for script, want := range map[string]string{
				"git status --porcelain":           "",
				"git log --format=%H":              base.Commit,
				"git for-each-ref":                 "",
				"git remote":                       "",
				"git config user.email":            "agent@localhost",
				"git diff HEAD":                    "",
				"cat .git/objects/info/alternates": objects,
				"git fsck --no-dangling 2>&1 | grep -v notice || true": "",
			} {
				if got := m.run(t, script); got != want {
					t.Errorf("%s = %q, want %q", script, got, want)
				}
			}
			got := m.run(t, `
				echo more >> a; echo x > n
				git status --porcelain
				git stash -q; git status --porcelain; git stash pop -q
				git add -A; git commit -qm work; git status --porcelain; git log --format=%an -1; git diff HEAD~ --stat | tail -1`)
			if want := " M a\n?? n\n?? n\nagent\n 2 files changed, 2 insertions(+)"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			m.close()
			if c, p := changes(t, tree); short(c) != "M a, M n" || p != nil {
				t.Errorf("changes %s, %v", short(c), p)
			}
			if refs := plainGit(t, t, dir, "for-each-ref", "--format=%(refname)"); strings.Contains(refs, "agent") || strings.Count(refs, "\n") != 1 {
				t.Errorf("refs of the host: %s", refs)
			}
		})
	}
}

func TestATreeWithoutACommitHasAnUnbornBranch(t *testing.T) {
	_, repo, base := newRepo(t, map[string]string{"a": "1\n"})
	tree, err := layeredTrees(t, repo, Limits{}).Make(t.Context(), "x", base.Tree)
	must(t, err)
	if tree.Base != "" || tree.From != base.Tree {
		t.Errorf("base %q, from %q", tree.Base, tree.From)
	}
	m := mount(t, t, tree, nil)
	if got := m.run(t, "git status --porcelain; git commit -qm first; git log --format=%s"); got != "A  a\nfirst" {
		t.Errorf("got %q", got)
	}
	m.close()
	write(t, layersOf(tree).upper, map[string]string{"a": "2\n"})
	commit, err := tree.Snapshot(t.Context(), "refs/pawl/snapshots/x", "m", when)
	must(t, err)
	if got := plainGit(t, t, repo.Root, "show", commit+":a"); got != "2" {
		t.Errorf("the snapshot holds %q", got)
	}
}

func TestNobodyWorksInTreesThatRootMakes(t *testing.T) {
	if os.Geteuid() != 0 {
		// Only root can give files away; others own what they make.
		tree, _ := newLayers(t, map[string]string{"a": "1\n"})
		info, err := os.Stat(layersOf(tree).upper)
		must(t, err)
		if s := info.Sys().(*syscall.Stat_t); int(s.Uid) != os.Geteuid() {
			t.Errorf("upper belongs to %d", s.Uid)
		}
		return
	}
	const nobody = 65534
	dir, repo, base := newRepo(t, map[string]string{"a": "1\n", "d/b": "2\n"})
	o := t.TempDir()
	trees := New(filepath.Join(o, "t"), repo, Options{Kind: Layered, Cache: filepath.Join(o, "c"), UID: nobody, GID: nobody})
	_, err := trees.Make(t.Context(), "base", base.Commit)
	must(t, err)
	write(t, dir, map[string]string{"d/new": "x\n"})
	must(t, os.Remove(filepath.Join(dir, "a")))
	_, _, base = commitAll(t, dir)
	tree, err := trees.Make(t.Context(), "act", base.Commit)
	must(t, err)
	for _, top := range []string{layersOf(tree).upper, layersOf(tree).work, layersOf(tree).lower[0].filesDir(), layersOf(tree).lower[1].filesDir()} {
		must(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			must(t, err)
			info, err := d.Info()
			must(t, err)
			if s := info.Sys().(*syscall.Stat_t); s.Uid != nobody && !isWhiteout(info) {
				t.Errorf("%s belongs to %d", path, s.Uid)
			}
			return nil
		}))
	}
	m := mountAs(t, t, tree, nil, nobody)
	got := m.run(t, "id -u; git status --porcelain; echo y > d/b; rm d/new; echo z > z; git add -A; git commit -qm x; git status --porcelain; git log --format=%s")
	if want := "65534\nx\nfirst\nfirst"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	m.close()
	if c, p := changes(t, tree); short(c) != "M d/b, D d/new, M z" || p != nil {
		t.Errorf("changes %s, %v", short(c), p)
	}
}
