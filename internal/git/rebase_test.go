//go:build unix

package git

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// version is the files of a tree; a name that ends with * is executable, one
// with @ a link to the content.
type version map[string]string

// commitOf writes files on top of a parent, without any checkout.
func commitOf(t *testing.T, r *Repo, parent string, files version) string {
	t.Helper()
	empty := gittest.Run(t, r.Root, "hash-object", "-t", "tree", "-w", "/dev/null")
	dir := t.TempDir()
	var changes []object.FileChange
	for _, name := range slices.Sorted(maps.Keys(files)) {
		from := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		path, mode := name, uint32(object.ModeFile)
		if p, ok := strings.CutSuffix(name, "*"); ok {
			path, mode = p, object.ModeExec
		}
		if p, ok := strings.CutSuffix(name, "@"); ok {
			path, mode = p, object.ModeSymlink
			must(t, os.Symlink(files[name], from))
		} else {
			must(t, os.WriteFile(from, []byte(files[name]), 0o600))
		}
		changes = append(changes, object.FileChange{Path: path, Mode: mode, From: from})
	}
	c, err := r.Candidate(t.Context(), object.Draft{Tree: empty, Changes: changes, Message: "m", When: when})
	must(t, err)
	if parent == "" {
		return c.Commit
	}
	id, err := r.Commit(t.Context(), c.Tree, []string{parent}, "the change", when)
	must(t, err)
	return id
}

// contentsOf reads a tree back as a version.
func contentsOf(t *testing.T, r *Repo, commit string) version {
	t.Helper()
	entries, err := r.List(t.Context(), commit)
	must(t, err)
	files := version{}
	for _, e := range entries {
		text, err := r.Show(t.Context(), commit, e.Path)
		must(t, err)
		files[e.Path+map[uint32]string{object.ModeFile: "", object.ModeExec: "*", object.ModeSymlink: "@"}[e.Mode]] = string(text)
	}
	return files
}

const lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func edited(from, to string) string { return strings.ReplaceAll(lines, from, to) }

func TestRebaseMakesAChangeAgain(t *testing.T) {
	cases := map[string]struct {
		base, theirs, onto version
		want               version
		conflicts          []string
	}{
		"apart":                                  {version{"a": "1", "b": "1"}, version{"a": "2", "b": "1", "n": "n"}, version{"a": "1", "b": "3"}, version{"a": "2", "b": "3", "n": "n"}, nil},
		"two places in one file":                 {version{"f": lines}, version{"f": edited("2", "x")}, version{"f": edited("8", "y")}, version{"f": strings.ReplaceAll(edited("2", "x"), "8", "y")}, nil},
		"one place in one file":                  {version{"f": lines}, version{"f": edited("5", "x")}, version{"f": edited("5", "y")}, nil, []string{"f"}},
		"the same on both sides":                 {version{"f": lines, "g": "g"}, version{"f": edited("5", "x")}, version{"f": edited("5", "x")}, version{"f": edited("5", "x")}, nil},
		"deleted here, changed there":            {version{"f": "1"}, version{}, version{"f": "2"}, nil, []string{"f"}},
		"changed here, deleted there":            {version{"f": "1"}, version{"f": "2"}, version{}, nil, []string{"f"}},
		"added on both sides, the same":          {version{}, version{"f": "1"}, version{"f": "1"}, version{"f": "1"}, nil},
		"added on both sides, not the same":      {version{}, version{"f": "1"}, version{"f": "2"}, nil, []string{"f"}},
		"a mode here, content there":             {version{"f": "1"}, version{"f*": "1"}, version{"f": "2"}, version{"f*": "2"}, nil},
		"a mode there, content here":             {version{"f": "1"}, version{"f": "2"}, version{"f*": "1"}, version{"f*": "2"}, nil},
		"a mode on both sides, content on both":  {version{"f": lines}, version{"f*": edited("2", "x")}, version{"f*": edited("8", "y")}, version{"f*": strings.ReplaceAll(edited("2", "x"), "8", "y")}, nil},
		"added with two modes":                   {version{}, version{"f*": "1"}, version{"f": "1"}, nil, []string{"f"}},
		"a link here, content there":             {version{"f": "1"}, version{"f@": "x"}, version{"f": "2"}, nil, []string{"f"}},
		"a link changed on both sides":           {version{"f@": "1"}, version{"f@": "2"}, version{"f@": "3"}, nil, []string{"f"}},
		"binary on both sides":                   {version{"f": "\x00" + lines}, version{"f": "\x00" + edited("2", "x")}, version{"f": "\x00" + edited("8", "y")}, nil, []string{"f"}},
		"a file where there is a directory":      {version{}, version{"d": "1"}, version{"d/f": "2"}, nil, []string{"d"}},
		"a directory where there is a file":      {version{}, version{"d/f": "1"}, version{"d": "2"}, nil, []string{"d/f"}},
		"a directory becomes a file":             {version{"d/f": "1", "k": "k"}, version{"d": "2", "k": "k"}, version{"d/f": "1", "k": "l"}, version{"d": "2", "k": "l"}, nil},
		"a directory that grew becomes a file":   {version{"d/f": "1"}, version{"d": "2"}, version{"d/f": "1", "d/g": "3"}, nil, []string{"d"}},
		"line ends differ":                       {version{"f": lines}, version{"f": strings.ReplaceAll(lines, "\n", "\r\n")}, version{"f": edited("5", "x")}, nil, []string{"f"}},
		"no end of line":                         {version{"f": lines}, version{"f": strings.TrimSuffix(lines, "\n")}, version{"f": edited("1", "x")}, version{"f": strings.TrimSuffix(edited("1", "x"), "\n")}, nil},
		"all conflicts are named":                {version{"a": "1", "b": "1", "c": "1"}, version{"a": "2", "b": "2", "c": "2"}, version{"a": "3", "b": "3", "c": "1"}, nil, []string{"a", "b"}},
		"nothing is left":                        {version{"f": "1"}, version{"f": "2"}, version{"f": "2", "g": "3"}, version{"f": "2", "g": "3"}, nil},
		"names that look like options and lines": {version{"-o": lines}, version{"-o": edited("2", "x"), "n\nl": "1"}, version{"-o": edited("8", "y")}, version{"-o": strings.ReplaceAll(edited("2", "x"), "8", "y"), "n\nl": "1"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := open(t, gittest.Repo(t, nil))
			b := commitOf(t, r, "", c.base)
			commit, onto := commitOf(t, r, b, c.theirs), commitOf(t, r, b, c.onto)
			refs := gittest.Run(t, r.Root, "for-each-ref")
			got, conflicts, err := r.Rebase(t.Context(), Replay{Commit: commit, Onto: onto, When: when})
			if err != nil || !slices.Equal(conflicts, c.conflicts) {
				t.Fatalf("Rebase = %+v, %q, %v, want the conflicts %q", got, conflicts, err, c.conflicts)
			}
			if gittest.Run(t, r.Root, "for-each-ref") != refs {
				t.Error("refs were written")
			}
			if c.conflicts != nil {
				if got != (object.Candidate{}) {
					t.Errorf("candidate = %+v beside conflicts", got)
				}
				return
			}
			if d := cmp.Diff(c.want, contentsOf(t, r, got.Commit)); d != "" {
				t.Error(d)
			}
			if parent, err := r.Parent(t.Context(), got.Commit); err != nil || parent.Commit != onto {
				t.Errorf("parent = %+v, %v, want %s", parent, err, onto)
			}
			if got := gittest.Run(t, r.Root, "log", "-1", "--format=%B", got.Commit); got != "the change" {
				t.Errorf("message = %q", got)
			}
		})
	}
}

// Git's own merge uses another line diff than merge-file, so one of the two may
// find a conflict where the other finds none.
func TestRebaseAgreesWithPlainGitWhereNeitherFindsAConflict(t *testing.T) {
	r := open(t, gittest.Repo(t, nil))
	text := rapid.SampledFrom([]string{lines, edited("1", "x"), edited("5", "y"), edited("9", "z"), edited("3", ""), "other\n", ""})
	files := rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c/d"}), text, 0, 3), func(m map[string]string) version { return m })
	sample.Checks(t, 25) // Each is a dozen processes.
	rapid.Check(t, func(rt *rapid.T) {
		before, theirs, ours := files.Draw(rt, "base"), files.Draw(rt, "theirs"), files.Draw(rt, "onto")
		b := commitOf(t, r, "", before)
		commit, onto := commitOf(t, r, b, theirs), commitOf(t, r, b, ours)
		want, gitErr := gittest.Try(t.Context(), r.Root, "-c", "merge.renames=false", "merge-tree", "--write-tree", onto, commit)
		got, conflicts, err := r.Rebase(t.Context(), Replay{Commit: commit, Onto: onto, Message: "m", When: when})
		if err != nil {
			rt.Fatal(err)
		}
		if gitErr == nil && conflicts == nil && got.Tree != want {
			rt.Errorf("Rebase = %s, git has %s", got.Tree, want)
		}
		same := func(a, b version, name string) bool {
			x, inA := a[name]
			y, inB := b[name]
			return x == y && inA == inB
		}
		for _, name := range conflicts {
			if same(before, theirs, name) || same(before, ours, name) || same(theirs, ours, name) {
				rt.Errorf("%s is in conflict, and only one side changed it", name)
			}
		}
	})
}

func TestAttack028NoMergeDriverRuns(t *testing.T) {
	dir, marker := gittest.Hostile(t)
	r := open(t, dir)
	tip := base(t, r).Commit
	other := commitOf(t, r, tip, version{"f": edited("2", "x"), ".gitattributes": "* merge=evil\n"})
	b := commitOf(t, r, tip, version{"f": lines, ".gitattributes": "* merge=evil\n"})
	commit := commitOf(t, r, b, version{"f": edited("8", "y"), ".gitattributes": "* merge=evil\n"})
	got, conflicts, err := r.Rebase(t.Context(), Replay{Commit: commit, Onto: other, When: when})
	if err != nil || conflicts != nil || contentsOf(t, r, got.Commit)["f"] != strings.ReplaceAll(edited("2", "x"), "8", "y") {
		t.Errorf("Rebase = %+v, %q, %v", got, conflicts, err)
	}
	if trace, err := os.ReadFile(marker); err == nil {
		t.Errorf("these programs were started:\n%s", trace)
	}
}

// Settings of a repository can make `git merge-file` fail, which is not a conflict.
func TestRebaseMergesLinesWhateverTheRepositorySays(t *testing.T) {
	dir := gittest.Repo(t, nil)
	r := open(t, dir)
	first := commitOf(t, r, "", version{"f": lines})
	change, onto := commitOf(t, r, first, version{"f": edited("2", "x")}), commitOf(t, r, first, version{"f": edited("8", "y")})
	gittest.Run(t, dir, "config", "merge.conflictStyle", "none-that-git-knows")
	c, conflicts, err := r.Rebase(t.Context(), Replay{Commit: change, Onto: onto, When: when})
	if err != nil || len(conflicts) > 0 {
		t.Fatalf("Rebase = %v, %v, want a merge", conflicts, err)
	}
	if got, want := contentsOf(t, r, c.Commit)["f"], strings.ReplaceAll(edited("2", "x"), "8", "y"); got != want {
		t.Errorf("f = %q, want %q", got, want)
	}
}

func TestWithoutATemporaryFolderNothingIsMergedOrPushed(t *testing.T) {
	g := newGiven(t)
	r := open(t, g.dir)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if c, conflicts, err := r.Rebase(t.Context(), Replay{Commit: g.next, Onto: g.nextTo, When: when}); err == nil {
		t.Errorf("Rebase = %v, %v, want an error", c, conflicts)
	}
	for _, name := range []string{"Push", "RemoteRef"} {
		if err := verbs[name](t.Context(), r, g); err == nil {
			t.Errorf("%s = no error", name)
		}
	}
}
