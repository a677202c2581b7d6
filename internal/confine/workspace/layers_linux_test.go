package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// layeredTrees are trees of layers with a cache and a root of their own.
func layeredTrees(tb testing.TB, repo *git.Repo, limits Limits) *Trees {
	tb.Helper()
	dir := tb.TempDir()
	return New(filepath.Join(dir, "trees"), repo, Options{Kind: Layered, Cache: filepath.Join(dir, "cache"), Limits: limits})
}

func newLayers(t *testing.T, files map[string]string) (*Tree, *git.Repo) {
	t.Helper()
	_, repo, base := newRepo(t, files)
	tree, err := layeredTrees(t, repo, Limits{}).Make(t.Context(), "act", base.Commit)
	must(t, err)
	return tree, repo
}

// layerNames lists the layers of the cache.
func layerNames(t *testing.T, trees *Trees) []string {
	t.Helper()
	entries, err := os.ReadDir(trees.layerCache().layersDir())
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// listFiles describes everything below dir but the top's .git.
func listFiles(t failer, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		if rel == ".git" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return nil
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			got[rel] = "link " + target
			return err
		}
		text, err := os.ReadFile(path)
		got[rel] = fmt.Sprintf("%o %q", info.Mode().Perm(), text)
		return err
	}))
	return got
}

func TestTheMountedLayersAreTheTree(t *testing.T) {
	files := map[string]string{
		"a": "1", "d/b": "2", "d/c": "3", "d/e/f": "4", "file": "5", "dir/x": "6", "dir/y/z": "7", "gone/1": "8", "gone/2/3": "9", "-": "10",
	}
	for name, change := range map[string]string{
		"nothing":                       "",
		"a file written":                "echo new > a",
		"a file added":                  "echo new > d/new",
		"a folder added":                "mkdir -p n/e/w; echo new > n/e/w/x",
		"a file deleted":                "rm d/b",
		"a folder deleted":              "rm -r gone",
		"a folder deleted below one":    "rm -r gone/2",
		"everything deleted":            "rm -r -- *; echo x > one",
		"a file becomes a folder":       "rm file; mkdir file; echo x > file/x",
		"a folder becomes a file":       "rm -r dir; echo x > dir",
		"a folder becomes a link":       "rm -r dir; ln -s d dir",
		"a file becomes a link":         "rm a; ln -s d a",
		"a link that has the name":      "mkdir -p sub; ln -s ../a sub/x",
		"a mode":                        "chmod +x a d/b",
		"a folder emptied and refilled": "rm -r dir; mkdir dir; echo x > dir/new",
		"a folder becomes a submodule":  "git rm -rq dir; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),dir",
		"a file becomes a submodule":    "git rm -q a; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),a",
		"a submodule goes":              "git update-index --force-remove mod",
		"a submodule becomes a folder":  "git update-index --force-remove mod; mkdir -p mod; echo x > mod/x; git add mod/x",
	} {
		t.Run(name, func(t *testing.T) {
			dir, repo, _ := newRepo(t, files)
			plainGit(t, t, dir, "update-index", "--add", "--cacheinfo", "160000,"+plainGit(t, t, dir, "rev-parse", "HEAD")+",mod")
			plainGit(t, t, dir, "commit", "-qm", "mod")
			base, err := repo.Base(t.Context(), "")
			must(t, err)
			trees := layeredTrees(t, repo, Limits{})
			first, err := trees.Make(t.Context(), "first", base.Commit)
			must(t, err)
			shell(t, dir, change+"\ngit diff --cached --quiet && git add -A . || true\nmkdir -p mod")
			plainGit(t, t, dir, "commit", "-q", "--allow-empty", "-m", "x")
			now, err := repo.Base(t.Context(), "")
			must(t, err)
			tree, err := trees.Make(t.Context(), "act", now.Commit)
			must(t, err)
			if n := len(layersOf(tree).lower); change != "" && n != 2 {
				t.Errorf("%d layers, want a delta over a base", n)
			}
			plain, err := New(t.TempDir(), repo, Options{}).Make(t.Context(), "x", now.Commit)
			must(t, err)
			m := mount(t, t, tree, bindObjects(t, trees))
			if d := cmp.Diff(listFiles(t, plain.Dir), listFiles(t, m.dir)); d != "" {
				t.Error(d)
			}
			if out := m.run(t, "git status --porcelain"); out != "" {
				t.Errorf("status: %s", out)
			}
			if out := m.run(t, "git rev-parse HEAD; git write-tree"); out != now.Commit+"\n"+now.Tree {
				t.Errorf("git says %s, want %+v", out, now)
			}
			m.close()
			if c, p := changes(t, tree); len(c)+len(p) > 0 {
				t.Errorf("changes %s, problems %v, want none", short(c), p)
			}
			if d := cmp.Diff(plain.EntriesNamed("x"), tree.EntriesNamed("x")); d != "" {
				t.Error(d)
			}
			if slices.ContainsFunc(tree.EntriesNamed("x"), func(e object.Entry) bool { return e.Mode == object.ModeSymlink }) {
				t.Errorf("links are listed: %+v", tree.EntriesNamed("x"))
			}
			must(t, first.Remove(t.Context()))
		})
	}
}

// bindObjects is where object directories have to be seen. With no path of
// their own that is where they are.
func bindObjects(t *testing.T, trees *Trees) map[string]string {
	t.Helper()
	list, err := trees.Stores()
	must(t, err)
	bind := map[string]string{}
	for _, s := range list {
		if s.Host != s.Inside {
			bind[s.Host] = s.Inside
		}
	}
	return bind
}

// shell runs a script in a checkout.
func shell(t *testing.T, dir, script string) {
	t.Helper()
	script = "exec 2>&1; cd '" + dir + "'; " + script
	cmd := quietShell(t, script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func TestChangesOfLayersNameWhatAnAgentDid(t *testing.T) {
	for name, c := range map[string]struct {
		do       string
		changes  string
		problems []Problem
	}{
		"nothing":                             {"", "", nil},
		"a new file":                          {"mkdir -p n/e; touch n/e/w", "M n/e/w", nil},
		"an edit of the same size":            {"printf 2 > a", "M a", nil},
		"written again with the same content": {"printf 1 > a; touch d/b", "", nil},
		"a deletion":                          {"rm d/b", "D d/b", nil},
		"a deleted folder":                    {"rm -r d", "D d/b, D d/c/e", nil},
		"a deleted folder, made again":        {"rm -r d; mkdir d; touch d/n", "D d/b, D d/c/e, M d/n", nil},
		"a deleted folder, made again alike":  {"rm -r d; mkdir d; printf 2 > d/b", "D d/c/e", nil},
		"a folder within one made again":      {"rm -r d; mkdir -p d/c; printf 3 > d/c/e", "D d/b", nil},
		"a new file deleted":                  {"touch n; rm n", "", nil},
		"a rename":                            {"mv a z", "D a, M z", nil},
		"a folder's rename":                   {"mv d g", "D d/b, D d/c/e, M g/b, M g/c/e", nil},
		"an executable bit":                   {"chmod 755 a", "X a", nil},
		"a group's executable bit":            {"chmod 654 a", "", nil},
		"a set-user-id bit":                   {"chmod 6755 a", "X a", nil},
		"a file for a folder":                 {"rm -r d; printf x > d", "M d, D d/b, D d/c/e", nil},
		"a folder for a file":                 {"rm a; mkdir a; touch a/x", "D a, M a/x", nil},
		"an empty folder for a file":          {"rm a; mkdir a", "D a", nil},
		"an empty folder":                     {"mkdir e", "", nil},
		"everything deleted":                  {"rm -r a d s", "D a, D d/b, D d/c/e, D s", nil},
		"a link inside":                       {"ln -s ../a d/l", "L d/l", nil},
		"a link outside":                      {"ln -s ../../a d/l", "", []Problem{{"d/l", RuleEscape}}},
		"an absolute link":                    {"ln -s /etc/passwd l", "", []Problem{{"l", RuleEscape}}},
		"a link for a folder":                 {"rm -r d; ln -s / d", "D d/b, D d/c/e", []Problem{{"d", RuleEscape}}},
		"a FIFO":                              {"mkfifo f", "", []Problem{{"f", RuleSpecial}}},
		"a FIFO for a file is not a deletion": {"rm a; mkfifo a", "", []Problem{{"a", RuleSpecial}}},
		"a FIFO in a folder made again":       {"rm -r d; mkdir d; mkfifo d/b", "D d/c/e", []Problem{{"d/b", RuleSpecial}}},
		"a hard link":                         {"ln a h", "", []Problem{{"a", RuleHardLink}, {"h", RuleHardLink}}},
		"a changed link":                      {"rm s; ln -s d s", "L s", nil},
		"the same link":                       {"rm s; ln -s a s", "", nil},
		"its own git directory":               {"echo x >> .git/config; git add -A; rm -rf .git", "", nil},
		"a nested git directory":              {"mkdir d/.git; touch d/.git/config .GIT", "", []Problem{{".GIT", RuleGitDir}, {"d/.git", RuleGitDir}}},
		"control characters":                  {"touch 'x\ny'", "", []Problem{{"x\ny", RuleName}}},
		"modes that keep everybody out":       {"mkdir new; printf 1 > new/x; chmod 0 new/x new d", "M new/x", nil},
		"marks of an overlay by hand":         {"mknod w c 0 0 2>/dev/null || true; setfattr -n user.overlay.opaque -v y d 2>/dev/null || true", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plainGit(t, t, dir, "init", "-q")
			write(t, dir, map[string]string{"a": "1", "d/b": "2", "d/c/e": "3"})
			must(t, os.Symlink("a", filepath.Join(dir, "s")))
			_, repo, base := commitAll(t, dir)
			trees := layeredTrees(t, repo, Limits{})
			tree, err := trees.Make(t.Context(), "act", base.Commit)
			must(t, err)
			m := mount(t, t, tree, nil)
			m.run(t, c.do)
			m.close()
			adopted, err := trees.Adopt(t.Context(), "act", base.Commit)
			must(t, err)
			for who, tree := range map[string]*Tree{"its maker": tree, "another process": adopted} {
				got, problems := changes(t, tree)
				if short(got) != c.changes {
					t.Errorf("%s: changes = %q, want %q", who, short(got), c.changes)
				}
				if d := cmp.Diff(c.problems, problems); d != "" {
					t.Errorf("%s: %s", who, d)
				}
			}
		})
	}
}

func TestLayersAndACopyHaveTheSameChanges(t *testing.T) {
	dir, repo, _ := newRepo(t, nil)
	layered, plain := layeredTrees(t, repo, Limits{}), New(t.TempDir(), repo, Options{})
	n := 0
	sample.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		for range rapid.IntRange(1, 8).Draw(rt, "before") {
			edit(rt, dir)
		}
		plainGit(t, rt, dir, "add", "-A")
		plainGit(t, rt, dir, "commit", "-q", "--allow-empty", "-m", "x")
		base, err := repo.Base(t.Context(), "")
		must(rt, err)
		tree, err := layered.Make(t.Context(), fmt.Sprint("t", n), base.Commit)
		must(rt, err)
		copied, err := plain.Make(t.Context(), fmt.Sprint("t", n), base.Commit)
		must(rt, err)
		sameAfterEdits(t, rt, repo, tree, copied)
		must(rt, errors.Join(tree.Remove(t.Context()), copied.Remove(t.Context())))
	})
}

// sameAfterEdits edits the mounted layers, makes the copy look like them, and
// compares what both say.
func sameAfterEdits(t *testing.T, rt *rapid.T, repo *git.Repo, tree, copied *Tree) {
	t.Helper()
	m := mount(t, rt, tree, nil)
	defer m.close()
	if d := cmp.Diff(listFiles(rt, copied.Dir), listFiles(rt, m.dir)); d != "" {
		rt.Fatal("before any edit", d)
	}
	for range rapid.IntRange(1, 10).Draw(rt, "after") {
		edit(rt, m.dir)
	}
	must(rt, sandbox.RemoveTree(copied.Dir))
	must(rt, os.CopyFS(copied.Dir, withoutGit{os.DirFS(m.dir)}))
	for path, is := range listFiles(rt, m.dir) {
		if strings.HasPrefix(is, "755") {
			must(rt, os.Chmod(filepath.Join(copied.Dir, path), 0o755))
		}
	}
	m.close()
	want, wantProblems, err := copied.Changes(t.Context())
	must(rt, err)
	got, problems, err := tree.Changes(t.Context())
	must(rt, err)
	if short(got) != short(want) || !slices.Equal(problems, wantProblems) {
		rt.Fatalf("layers: %s %v, copy: %s %v", short(got), problems, short(want), wantProblems)
	}
	c, err := repo.Candidate(t.Context(), object.Draft{Base: tree.Base, Changes: got, When: when})
	must(rt, err)
	if want := plainTree(t, rt, repo.Root, copied.Dir); c.Tree != want {
		rt.Fatalf("candidate %s, want %s", c.Tree, want)
	}
}

// withoutGit hides the top's .git from a copy.
type withoutGit struct{ fs.FS }

func (w withoutGit) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return name == "." && e.Name() == ".git" }), err
}

func (w withoutGit) ReadLink(name string) (string, error)   { return fs.ReadLink(w.FS, name) }
func (w withoutGit) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(w.FS, name) }

func layersOf(tree *Tree) *layers { return tree.form.(*layers) }
