//go:build unix

package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/git/object"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestOpenFindsTheCheckoutFromASubdirectory(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a/b/c": "x"})
	r := open(t, filepath.Join(dir, "a", "b"))
	real, _ := filepath.EvalSymlinks(dir)
	if r.Root != real || r.GitDir != filepath.Join(real, ".git") || r.CommonDir != r.GitDir || r.Format != object.SHA1 {
		t.Errorf("got %+v, want the checkout at %s", r, real)
	}
	b := base(t, r)
	if want := gittest.Run(t, dir, "rev-parse", "HEAD"); b.Branch != "main" || b.Commit != want {
		t.Errorf("base = %+v, want main at %s", b, want)
	}
	if want := gittest.Run(t, dir, "rev-parse", "HEAD^{tree}"); b.Tree != want {
		t.Errorf("tree = %s, want %s", b.Tree, want)
	}
}

func TestOpenWorksInALinkedWorktree(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Run(t, dir, "worktree", "add", "-q", "-b", "side", linked)
	r := open(t, linked)
	if r.CommonDir != open(t, dir).GitDir || r.GitDir == r.CommonDir {
		t.Errorf("got %+v, want an own git directory and the shared one", r)
	}
	b := base(t, r)
	if b.Branch != "side" {
		t.Errorf("branch = %q, want side", b.Branch)
	}
	c, err := r.Candidate(t.Context(), object.Draft{Base: b.Commit, Message: "m", When: when})
	if err != nil || c.Tree != b.Tree {
		t.Errorf("candidate = %+v, %v, want the same tree", c, err)
	}
	if dirty, err := r.Dirty(t.Context()); dirty || err != nil {
		t.Errorf("Dirty = %v, %v, want clean", dirty, err)
	}
}

func TestOpenWorksInAWorktreeOfABareRepository(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	bare, linked := filepath.Join(t.TempDir(), "r.git"), filepath.Join(t.TempDir(), "w")
	gittest.Run(t, dir, "clone", "-q", "--bare", dir, bare)
	gittest.Run(t, bare, "worktree", "add", "-q", linked, "main")
	if b := base(t, open(t, linked)); b.Branch != "main" {
		t.Errorf("base = %+v, want main", b)
	}
}

func TestOpenRefusesWhatIsNoCheckout(t *testing.T) {
	empty := t.TempDir()
	bare := filepath.Join(t.TempDir(), "bare.git")
	gittest.Run(t, empty, "init", "-q", "--bare", bare)
	flagged := gittest.Repo(t, nil)
	gittest.Run(t, flagged, "config", "core.bare", "true")
	broken := t.TempDir()
	gittest.Write(t, broken, map[string]string{".git": "gitdir: /nowhere\n"})
	future := gittest.Repo(t, nil)
	gittest.Write(t, future, map[string]string{".git/config": "[core]\nrepositoryformatversion = 9\n"})

	for name, c := range map[string]struct {
		dir  string
		exit int
		fix  string
	}{
		"a plain directory":                 {empty, loop.ExitNotFound, "git init"},
		"a directory that does not exist":   {filepath.Join(empty, "no"), loop.ExitNotFound, "name a directory"},
		"a bare repository":                 {bare, loop.ExitError, "worktree add"},
		"inside a bare repository":          {filepath.Join(bare, "refs"), loop.ExitError, "worktree add"},
		"a checkout whose config says bare": {flagged, loop.ExitError, "worktree add"},
		"a .git file that points nowhere":   {broken, loop.ExitUnreadable, "git status"},
		"a repository of a later format":    {future, loop.ExitUnreadable, "git status"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), c.dir)
			wantFault(t, err, c.exit, c.fix)
		})
	}
}

func TestBaseOfARepositoryWithoutCommitsSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	gittest.Run(t, dir, "init", "-q")
	r := open(t, dir)
	for _, branch := range []string{"", "main"} {
		_, err := r.Base(t.Context(), branch)
		wantFault(t, err, loop.ExitNotFound, "make the first commit")
	}
	if dirty, err := r.Dirty(t.Context()); dirty || err != nil {
		t.Errorf("Dirty = %v, %v, want clean", dirty, err)
	}
}

func TestBaseNamesTheNearestBranches(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Run(t, dir, "branch", "feature/login")
	gittest.Run(t, dir, "branch", "unrelated-thing")
	r := open(t, dir)
	for _, name := range []string{"feature/logn", "no..such", "-x", "main~1", "a b"} {
		_, err := r.Base(t.Context(), name)
		wantFault(t, err, loop.ExitNotFound, "feature/login")
	}
	if b, err := r.Base(t.Context(), "refs/heads/feature/login"); err != nil || b.Branch != "feature/login" {
		t.Errorf("full name: %+v, %v", b, err)
	}
}

func TestBaseOfADetachedHeadHasNoBranch(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Run(t, dir, "checkout", "-q", "--detach")
	b := base(t, open(t, dir))
	if b.Branch != "" || b.Commit != gittest.Run(t, dir, "rev-parse", "HEAD") {
		t.Errorf("base = %+v, want HEAD without a branch", b)
	}
}

func TestABranchThatStandsForAnotherIsThatOne(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	gittest.Run(t, dir, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
	gittest.Run(t, dir, "symbolic-ref", "HEAD", "refs/heads/alias")
	r := open(t, dir)
	for _, pack := range []bool{false, true} {
		if pack {
			gittest.Run(t, dir, "pack-refs", "--all")
		}
		b, err := r.Base(t.Context(), "")
		must(t, err)
		if b.Branch != "main" || b.Commit != gittest.Run(t, dir, "rev-parse", "main") {
			t.Errorf("packed %v: base = %+v, want main", pack, b)
		}
	}
}

func TestBaseOfABranchWhoseRefIsPacked(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	gittest.Run(t, dir, "pack-refs", "--all")
	b := base(t, open(t, dir))
	if b.Branch != "main" || b.Tree != gittest.Run(t, dir, "rev-parse", "main^{tree}") {
		t.Errorf("base = %+v, want main with its tree", b)
	}
}

func TestAnUnbornBranchBesideOthersIsNamed(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Run(t, dir, "checkout", "-q", "--orphan", "fresh")
	_, err := open(t, dir).Base(t.Context(), "")
	wantFault(t, err, loop.ExitNotFound, "main")
}

func TestATagOfTheSameNameIsNotTheBranch(t *testing.T) {
	dir := gittest.Repo(t, nil)
	gittest.Run(t, dir, "tag", "topic")
	gittest.Run(t, dir, "checkout", "-q", "-b", "topic")
	gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
	b, err := open(t, dir).Base(t.Context(), "topic")
	if want := gittest.Run(t, dir, "rev-parse", "refs/heads/topic"); err != nil || b.Commit != want {
		t.Errorf("base = %+v, %v, want %s", b, err, want)
	}
}

func TestDirtySeesTrackedWorkAndLeavesTheIndexAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   bool
	}{
		"nothing":             {func(*testing.T, string) {}, false},
		"an untracked file":   {func(t *testing.T, d string) { gittest.Write(t, d, map[string]string{"new": ""}) }, false},
		"a changed file":      {func(t *testing.T, d string) { gittest.Write(t, d, map[string]string{"f": "other"}) }, true},
		"same size, new text": {func(t *testing.T, d string) { gittest.Write(t, d, map[string]string{"f": "y"}) }, true},
		"a removed file":      {func(t *testing.T, d string) { os.Remove(filepath.Join(d, "f")) }, true},
		"a touched file":      {func(t *testing.T, d string) { _ = os.Chtimes(filepath.Join(d, "f"), when, when) }, false},
		"a link in its place": {func(t *testing.T, d string) {
			must(t, os.Remove(filepath.Join(d, "f")))
			must(t, os.Symlink("x", filepath.Join(d, "f")))
		}, true},
		"a staged new file": {func(t *testing.T, d string) {
			gittest.Write(t, d, map[string]string{"n": ""})
			gittest.Run(t, d, "add", "n")
		}, true},
		"a staged change, file put back": {func(t *testing.T, d string) {
			gittest.Write(t, d, map[string]string{"f": "z"})
			gittest.Run(t, d, "add", "f")
			gittest.Write(t, d, map[string]string{"f": "x"})
		}, true},
		"staged, and no commit": {func(t *testing.T, d string) { gittest.Run(t, d, "update-ref", "-d", "HEAD") }, true},
		"nothing staged, and no commit": {func(t *testing.T, d string) {
			gittest.Run(t, d, "update-ref", "-d", "HEAD")
			gittest.Run(t, d, "rm", "-rq", "--cached", ".")
		}, false},
		"an intent to add": {func(t *testing.T, d string) {
			gittest.Write(t, d, map[string]string{"n": ""})
			gittest.Run(t, d, "add", "-N", "n")
		}, true},
	} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(name+" in index version "+version, func(t *testing.T) {
				dir := gittest.Repo(t, map[string]string{"f": "x", "dir/longer-name": "1", "dir/longer-names": "2"})
				gittest.Run(t, dir, "update-index", "--index-version", version)
				c.change(t, dir)
				before := readFile(t, filepath.Join(dir, ".git", "index"))
				got, err := open(t, dir).Dirty(t.Context())
				if got != c.want || err != nil {
					t.Errorf("Dirty = %v, %v, want %v", got, err, c.want)
				}
				if readFile(t, filepath.Join(dir, ".git", "index")) != before {
					t.Error("the index was written")
				}
			})
		}
	}
}

func TestWorkBelowAFolderCanBeLeftOut(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{".loops/x/STATE.md": "1", ".loopsy": "1", "f": "x"})
	gittest.Write(t, dir, map[string]string{".loops/x/STATE.md": "2"})
	for except, want := range map[string]bool{"": true, ".loops": false} {
		if got, err := open(t, dir).Dirty(t.Context(), except); got != want || err != nil {
			t.Errorf("Dirty except %q = %v, %v, want %v", except, got, err, want)
		}
	}
	gittest.Write(t, dir, map[string]string{".loopsy": "2"})
	if got, err := open(t, dir).Dirty(t.Context(), ".loops"); !got || err != nil {
		t.Errorf("Dirty beside the folder = %v, %v, want true", got, err)
	}
}

func TestTrackedIsWhatTheIndexHasAndWhatLiesAboveIt(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a/b/c": "x", "f": "x"})
	gittest.Write(t, dir, map[string]string{"staged": "", "new": "", "a/new": ""})
	gittest.Run(t, dir, "add", "staged")
	r := open(t, dir)
	for path, want := range map[string]bool{
		"f": true, "staged": true, "a": true, "a/b": true, "a/b/c": true, "a/b/c/d": false, "a/": false, "new": false, "a/new": false, "a/b/": false, "": false, "s": false,
	} {
		if got, err := r.Tracked(path); got != want || err != nil {
			t.Errorf("Tracked(%q) = %v, %v, want %v", path, got, err, want)
		}
	}
	must(t, os.Remove(filepath.Join(dir, ".git", "index")))
	if got, err := r.Tracked("f"); got || err != nil {
		t.Errorf("Tracked without an index = %v, %v, want false", got, err)
	}
	gittest.Write(t, dir, map[string]string{".git/index": "no index"})
	if got, err := r.Tracked("f"); got || err == nil {
		t.Errorf("Tracked with a damaged index = %v, %v, want an error", got, err)
	}
}

func TestDirtyAdmitsThatItCannotReadASplitOrLargeIndex(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"f": "x"})
	gittest.Run(t, dir, "update-index", "--split-index")
	if _, err := open(t, dir).Dirty(t.Context()); err == nil || !strings.Contains(err.Error(), "index") {
		t.Errorf("Dirty = %v, want an error about the index", err)
	}
	index := filepath.Join(dir, ".git", "index")
	must(t, os.Truncate(index, maxIndex+1))
	if dirty, err := open(t, dir).Dirty(t.Context()); err == nil {
		t.Errorf("Dirty = %v with an index that is too large", dirty)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Of a repository without extensions its own files say enough. What is not understood
// there is for git to say.
func TestGitIsAskedAboutARepositoryThatIsNotOrdinary(t *testing.T) {
	for name, c := range map[string]struct {
		config string // at its end
		asked  bool
	}{
		"ordinary":                 {"", false},
		"with other settings":      {"[user]\n\tname = x\n[remote \"origin\"]\n\turl = y\n", false},
		"of another version":       {"[core]\n\trepositoryformatversion = 1\n", true},
		"with an extension":        {"[extensions]\n\tworktreeConfig = true\n", true},
		"with an include":          {"[include]\n\tpath = other\n", true},
		"with a condition":         {"[includeIf \"gitdir:x\"]\n\tpath = other\n", true},
		"with a work tree":         {"[core]\n\tworktree = ..\n", true},
		"bare by a key alone":      {"[core]\n\tbare\n", true},
		"bare and not bare":        {"[core]\n\tbare = true\n\tbare = false\n", true},
		"that cannot be read":      {"[broken", true},
		"with a value that is odd": {"[core]\n\trepositoryformatversion = zero\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := gittest.Repo(t, map[string]string{"a": "1"})
			file := filepath.Join(dir, ".git/config")
			text, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, append(text, c.config...), 0o600))
			count := &gittest.Counting{}
			r, err := OpenWith(t.Context(), count, dir)
			if asked := slices.Contains(count.Verbs, "rev-parse"); asked != c.asked {
				t.Errorf("git was asked = %v, want %v", asked, c.asked)
			}
			if err == nil && r.Format != object.SHA1 {
				t.Errorf("format = %s", r.Format)
			}
		})
	}
}

func TestARefIsReadFromFilesAsGitHasIt(t *testing.T) {
	dir := gittest.Repo(t, map[string]string{"a": "1"})
	count := &gittest.Counting{}
	r, err := OpenWith(t.Context(), count, dir)
	must(t, err)
	for _, change := range [][]string{
		{"branch", "a/b"},
		{"pack-refs", "--all"},
		{"commit", "-q", "--allow-empty", "-m", "next"},
		{"branch", "-f", "a/b"},
		{"tag", "-a", "-m", "x", "v1"},
		{"pack-refs", "--all"},
		{"branch", "-D", "a/b"},
		{"branch", "b"},
	} {
		gittest.Run(t, dir, change...)
		for _, ref := range []string{"refs/heads/main", "refs/heads/a/b", "refs/heads/b", "refs/heads/none"} {
			want, _ := gittest.Try(t.Context(), dir, "rev-parse", "--verify", "-q", ref)
			if id, ok, err := r.Ref(t.Context(), ref); id != want || ok != (want != "") || err != nil {
				t.Errorf("after git %v: %s = %q, %v, %v, want %q", change, ref, id, ok, err, want)
			}
		}
	}
	if len(count.Verbs) > 0 {
		t.Errorf("git was started for %v", count.Verbs)
	}
	// Whatever is not a plain ref is asked of git.
	id := gittest.Run(t, dir, "rev-parse", "main")
	for name, text := range map[string]string{"symbolic": "ref: refs/heads/main\n", "odd": id + " and more\n", "empty": "", "zero": strings.Repeat("0", 40) + "\n"} {
		must(t, os.WriteFile(filepath.Join(dir, ".git/refs/heads", name), []byte(text), 0o600))
		count.Verbs = nil
		_, _, _ = r.Ref(t.Context(), "refs/heads/"+name)
		if !slices.Equal(count.Verbs, []string{"for-each-ref"}) {
			t.Errorf("%s: git was started for %v", name, count.Verbs)
		}
	}
}
