package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/git"
)

const pointerText = "version https://git-lfs.github.com/spec/v1\noid sha256:1111111111111111111111111111111111111111111111111111111111111111\nsize 9\n"

// filledTree is a tree of the kind that names a submodule and a file of git LFS,
// and has the content of both.
func filledTree(t *testing.T, kind Kind) *Tree {
	t.Helper()
	dir := t.TempDir()
	root, _, base := newRepo(t, map[string]string{"a": "1", "bin/x.dat": pointerText, "bin/plain": "2", ".gitattributes": "*.dat filter=lfs\n"})
	plainGit(t, t, root, "update-index", "--add", "--cacheinfo", "160000,"+base.Commit+",vendor/lib")
	plainGit(t, t, root, "commit", "-qm", "lib")
	repo, err := git.Open(t.Context(), root)
	must(t, err)
	base, err = repo.Base(t.Context(), "")
	must(t, err)
	trees := New(filepath.Join(dir, "trees"), repo, Options{Kind: kind, Cache: filepath.Join(dir, "cache")})
	tree, err := trees.Make(t.Context(), "act", base.Commit)
	must(t, err)
	if partial, err := tree.MayLackContent(); !partial || err != nil {
		t.Fatalf("Partial = %v, %v", partial, err)
	}
	layer := filepath.Join(dir, "filled")
	write(t, layer, map[string]string{"bin/x.dat": "full text", "vendor/lib/f": "lib", "vendor/lib/d/g": "deep", "vendor/lib/d/h": "deeper"})
	must(t, os.Symlink("d/g", filepath.Join(layer, "vendor/lib/link")))
	must(t, filepath.WalkDir(layer, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = setTime(path, when)
		}
		return err
	}))
	must(t, tree.Fill(t.Context(), layer))
	prepared := filepath.Join(dir, "prepared")
	write(t, prepared, map[string]string{"vendor/lib/built/o": "object", "deps/x": "dependency"})
	must(t, tree.Push(t.Context(), prepared))
	return tree
}

func TestOnlyWhatDiffersFromWhatATreeWasFilledWithIsAChange(t *testing.T) {
	in := func(paths ...string) (list []Problem) {
		for _, p := range paths {
			list = append(list, Problem{p, RuleSubmodule})
		}
		return list
	}
	for name, c := range map[string]struct {
		do       string
		changes  string
		problems []Problem
	}{
		"nothing":                             {"", "", nil},
		"what was there":                      {`test "$(cat bin/x.dat vendor/lib/f vendor/lib/link deps/x vendor/lib/built/o)" = "full textlibdeepdependencyobject"`, "", nil},
		"written again with the same content": {"printf 'full text' >bin/x.dat; touch vendor/lib/f; printf lib >vendor/lib/f", "", nil},
		"the pointer as it was":               {"git show HEAD:bin/x.dat >bin/x.dat", "", nil},
		"other content for a pointer":         {"echo more >>bin/x.dat", "", []Problem{{"bin/x.dat", RuleLFS}}},
		"other content of the same size":      {"printf 'fuLl text' >bin/x.dat", "", []Problem{{"bin/x.dat", RuleLFS}}},
		"the executable bit of a pointer":     {"chmod +x bin/x.dat", "X bin/x.dat", nil},
		"a pointer deleted":                   {"rm bin/x.dat", "D bin/x.dat", nil},
		"a link for a pointer":                {"ln -sf plain bin/x.dat", "L bin/x.dat", nil},
		"the folder of a pointer made again":  {"mkdir n; cp bin/* n; rm -r bin; mv n bin", "", nil},
		"a file of a submodule":               {"echo x >vendor/lib/d/g", "", in("vendor/lib/d/g")},
		"the executable bit in a submodule":   {"chmod +x vendor/lib/f", "", in("vendor/lib/f")},
		"a new file in a submodule":           {"echo x >vendor/lib/d/new", "", in("vendor/lib/d/new")},
		"a file of a submodule deleted":       {"rm vendor/lib/f", "", in("vendor/lib/f")},
		"a folder of a submodule deleted":     {"rm -r vendor/lib/d", "", in("vendor/lib/d")},
		"a folder of it made again in part":   {"rm -r vendor/lib/d; mkdir vendor/lib/d; printf deep >vendor/lib/d/g", "", in("vendor/lib/d/h")},
		"all of a submodule made again":       {"cp -a vendor/lib n; rm -r vendor; mkdir vendor; mv n vendor/lib", "", nil},
		"a submodule made again in part":      {"rm -r vendor; mkdir -p vendor/lib/d; printf deep >vendor/lib/d/g", "", in("vendor/lib/f", "vendor/lib/link", "vendor/lib/d/h")},
		"a link of a submodule led elsewhere": {"ln -sf f vendor/lib/link", "", in("vendor/lib/link")},
		"a file for a folder of a submodule":  {"rm -r vendor/lib/d; echo x >vendor/lib/d", "", in("vendor/lib/d")},
		"a folder for a file of a submodule":  {"rm vendor/lib/f; mkdir vendor/lib/f", "", in("vendor/lib/f")},
		"an empty folder in a submodule":      {"mkdir vendor/lib/e", "", nil},
		"a FIFO in a submodule":               {"mkfifo vendor/lib/p", "", in("vendor/lib/p")},
		"a git directory in a submodule":      {"mkdir vendor/lib/.git", "", []Problem{{"vendor/lib/.git", RuleGitDir}}},
		"a submodule deleted":                 {"rm -r vendor/lib", "D vendor/lib", nil},
		"what was prepared in it deleted":     {"rm -r vendor/lib/built deps", "", nil},
		"what was prepared in it changed":     {"echo x >vendor/lib/built/o", "", in("vendor/lib/built/o")},
		"git's view of them":                  {`test -z "$(git status --porcelain | grep -v deps/)"; git diff --quiet HEAD -- bin vendor`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []Kind{Pooled, Plain, Layered} {
				if kind == Plain && strings.Contains(c.do, "git ") {
					continue // There is no git in a plain copy.
				}
				tree := filledTree(t, kind)
				if kind == Layered {
					m := mount(t, t, tree, nil)
					m.run(t, c.do)
					m.close()
				} else {
					shell(t, tree.Dir, c.do)
				}
				adopted, err := tree.trees.Adopt(t.Context(), "act", tree.Base)
				must(t, err)
				for who, tree := range map[string]*Tree{"the same process": tree, "a later one": adopted} {
					got, problems := changes(t, tree)
					if short(got) != c.changes {
						t.Errorf("kind %d, %s: changes %q, want %q", kind, who, short(got), c.changes)
					}
					if d := cmp.Diff(c.problems, problems); d != "" {
						t.Errorf("kind %d, %s: %s", kind, who, d)
					}
				}
			}
		})
	}
}

func TestWhatACopyWasFilledWithIsGoneInItsNextUse(t *testing.T) {
	tree := filledTree(t, Pooled)
	must(t, tree.Remove(t.Context()))
	next, err := tree.trees.Make(t.Context(), "next", tree.Base)
	must(t, err)
	text, err := os.ReadFile(filepath.Join(next.Dir, "bin/x.dat"))
	must(t, err)
	entries, err := os.ReadDir(filepath.Join(next.Dir, "vendor/lib"))
	must(t, err)
	if string(text) != pointerText || len(entries) > 0 {
		t.Errorf("the next copy has %q and %v", text, entries)
	}
	if c, p := changes(t, next); len(c)+len(p) > 0 {
		t.Errorf("changes %s, problems %v", short(c), p)
	}
}

func TestATreeThatHoldsAllOfItselfIsNotPartial(t *testing.T) {
	for _, kind := range []Kind{Pooled, Plain, Layered} {
		dir := t.TempDir()
		root, repo, base := newRepo(t, map[string]string{"a": "1", ".gitattributes": "* text=auto\n", "not.gitattributes": "lfs\n"})
		trees := New(filepath.Join(dir, "trees"), repo, Options{Kind: kind, Cache: filepath.Join(dir, "cache")})
		partial := func(name, rev string) bool {
			t.Helper()
			tree, err := trees.Make(t.Context(), name, rev)
			must(t, err)
			got, err := tree.MayLackContent()
			must(t, err)
			return got
		}
		if partial("whole", base.Commit) {
			t.Errorf("kind %d: a whole tree is partial", kind)
		}
		write(t, root, map[string]string{"d/.gitattributes": "*.x filter=lfs\n"})
		_, _, base = commitAll(t, root)
		if !partial("attributes", base.Commit) {
			t.Errorf("kind %d: a tree of git LFS is whole", kind)
		}
		plainGit(t, t, root, "rm", "-q", "d/.gitattributes")
		plainGit(t, t, root, "update-index", "--add", "--cacheinfo", "160000,"+base.Commit+",mod")
		if !partial("module", plainGit(t, t, root, "write-tree")) {
			t.Errorf("kind %d: a tree with a submodule is whole", kind)
		}
	}
}
