//go:build unix

package runenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/confine/workspace/filled"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// lfs puts content into a store of git LFS, and returns the pointer to it.
func lfs(t *testing.T, store, content string) (pointer string) {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	oid := hex.EncodeToString(sum[:])
	gittest.Write(t, store, map[string]string{filepath.Join("objects", oid[:2], oid[2:4], oid): content})
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content))
}

// partial is the run environment of a repository with a submodule in another one, and files of
// git LFS in the repository and in a submodule, all of which is in the clone.
func partial(t *testing.T) Env {
	t.Helper()
	const attributes = "*.dat filter=lfs diff=lfs merge=lfs -text\n"
	inner := gittest.Repo(t, map[string]string{"i": "inner\n"})
	outer := gittest.Repo(t, map[string]string{
		"o": "outer\n", "d/run.sh": "echo run\n", ".gitattributes": attributes, ".gitignore": "*.o\n", "big.dat": lfs(t, t.TempDir(), "of the library\n"),
	})
	submodule := []string{"-c", "protocol.file.allow=always", "submodule", "--quiet", "add"}
	gittest.Run(t, outer, append(submodule, "--name", "in/ner", inner, "deps/inner")...)
	gittest.Run(t, outer, "commit", "-qm", "inner")
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n", ".gitattributes": attributes, "bin/x.dat": lfs(t, t.TempDir(), "full text\n"), "plain.dat": "no pointer\n"})
	lfs(t, filepath.Join(s.Root, ".git/lfs"), "full text\n")
	gittest.Run(t, s.Root, append(submodule, "--name", "lib", outer, "vendor/lib")...)
	gittest.Run(t, s.Root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
	lfs(t, filepath.Join(s.Root, ".git/modules/lib/lfs"), "of the library\n")
	gittest.Run(t, s.Root, "commit", "-qm", "lib")
	return s
}

var whole = map[string]string{
	"a.txt": "one\n", "plain.dat": "no pointer\n", "bin/x.dat": "full text\n", "vendor/lib/o": "outer\n", "vendor/lib/big.dat": "of the library\n",
	"vendor/lib/d/run.sh": "echo run\n", "vendor/lib/deps/inner/i": "inner\n",
}

func wantFiles(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name := range want {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		got[name] = string(text)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEveryCopyHasWhatItsTreeOnlyNames(t *testing.T) {
	s := partial(t)
	var said []string
	s.Say = func(text string) { said = append(said, text) }
	for _, purpose := range []Purpose{ForBase, ForAct, ForGate, forGuard, ForRetry} {
		k, err := s.Copy(t.Context(), purpose, s.head(t))
		if err != nil {
			t.Fatal(err)
		}
		wantFiles(t, k.Dir, whole)
		if changes, problems, err := k.Changes(t.Context()); len(changes)+len(problems) > 0 || err != nil {
			t.Errorf("%s: changes %v, problems %v, %v", purpose, changes, problems, err)
		}
		if out := gittest.Run(t, k.Dir, "status", "--porcelain"); out != "" {
			t.Errorf("%s: git status says %q", purpose, out)
		}
		if err := k.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if d := cmp.Diff([]string{"filled from this clone: 2 submodules and 2 files of git LFS (once for these versions)"}, said); d != "" {
		t.Error(d)
	}
	if layers := layersIn(t, s); len(layers) != 1 {
		t.Errorf("layers %v, want one", layers)
	}
}

// layersIn are the names of what trees were filled with.
func layersIn(t *testing.T, s Env) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(s.Host.filledDir().Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestWhatAnAgentWritesToFilledFilesIsNoChangeButAProblem(t *testing.T) {
	s := partial(t)
	k, err := s.Copy(t.Context(), ForAct, s.head(t))
	if err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, k.Dir, map[string]string{
		"a.txt": "two\n", "bin/x.dat": "other text\n", "bin/new.dat": "new\n", "plain.dat": "changed\n", "new.txt": "new\n",
		"vendor/lib/o": "changed\n", "vendor/lib/built.o": "ignored by the library\n", "vendor/lib/deps/inner/new": "new\n",
	})
	changes, problems, err := k.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	if d := cmp.Diff([]string{"a.txt", "new.txt", "plain.dat"}, paths); d != "" {
		t.Error(d)
	}
	want := []workspace.Problem{
		{Path: "bin/x.dat", Rule: workspace.RuleLFS},
		{Path: "vendor/lib/deps/inner/new", Rule: workspace.RuleSubmodule},
		{Path: "vendor/lib/o", Rule: workspace.RuleSubmodule},
		{Path: "bin/new.dat", Rule: workspace.RuleLFS},
	}
	if d := cmp.Diff(want, problems); d != "" {
		t.Error(d)
	}
	if err := k.Remove(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotInTheCloneIsNamedWithItsFix(t *testing.T) {
	object := func(dir string) string {
		found, _ := filepath.Glob(filepath.Join(dir, "objects/*/*/*"))
		return strings.Join(found, " ")
	}
	for name, c := range map[string]struct {
		do        func(t *testing.T, root string)
		text, fix string
	}{
		"a submodule": {
			func(t *testing.T, root string) {
				gittest.Run(t, root, "submodule", "--quiet", "deinit", "-f", "vendor/lib")
				must(t, os.RemoveAll(filepath.Join(root, ".git/modules/lib")))
			}, "vendor/lib (submodule)", "git submodule update --init --recursive vendor/lib",
		},
		"a submodule in another one": {
			func(t *testing.T, root string) {
				must(t, os.RemoveAll(filepath.Join(root, ".git/modules/lib/modules")))
			}, "vendor/lib/deps/inner (submodule)", "git submodule update --init --recursive vendor/lib",
		},
		"a file of git LFS": {
			func(t *testing.T, root string) { must(t, os.RemoveAll(filepath.Join(root, ".git/lfs"))) },
			"bin/x.dat (git LFS)", "git lfs pull",
		},
		"a file of git LFS with another size": {
			func(t *testing.T, root string) {
				must(t, os.WriteFile(object(filepath.Join(root, ".git/lfs")), []byte("x"), 0o600))
			},
			"bin/x.dat (git LFS)", "git lfs pull",
		},
		"a file of git LFS with other content": {
			func(t *testing.T, root string) {
				must(t, os.WriteFile(object(filepath.Join(root, ".git/lfs")), []byte("fuLL text\n"), 0o600))
			},
			"bin/x.dat (git LFS, damaged)", "git lfs fsck --objects; git lfs pull",
		},
		"a file of git LFS in a submodule": {
			func(t *testing.T, root string) { must(t, os.RemoveAll(filepath.Join(root, ".git/modules/lib/lfs"))) },
			"vendor/lib/big.dat (git LFS)", "git submodule foreach --recursive 'git lfs pull'",
		},
		"everything": {
			func(t *testing.T, root string) {
				must(t, os.RemoveAll(filepath.Join(root, ".git/lfs")))
				must(t, os.RemoveAll(filepath.Join(root, ".git/modules")))
			}, "vendor/lib (submodule), bin/x.dat (git LFS)", "git submodule update --init --recursive vendor/lib && git lfs pull",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := partial(t)
			c.do(t, s.Root)
			_, err := s.Copy(t.Context(), ForAct, s.head(t))
			missing, ok := errors.AsType[*filled.MissingError](err)
			if !ok {
				t.Fatalf("Copy = %v", err)
			}
			if want := "files of the base are not in this clone: " + c.text; missing.Error() != want || missing.Fix() != c.fix {
				t.Errorf("%q, fix %q\nwant %q, fix %q", missing, missing.Fix(), want, c.fix)
			}
			if left := append(s.trees(t), layersIn(t, s)...); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheStoreOfGitLFSIsWhereTheConfigurationSays(t *testing.T) {
	for name, setting := range map[string]string{"in the git directory": "elsewhere", "anywhere": filepath.Join(t.TempDir(), "lfs"), "in the user's home": "~/lfs"} {
		t.Run(name, func(t *testing.T) {
			s := partial(t)
			home := t.TempDir()
			s.Environ = proc.WithVariables(s.Environ, "HOME="+home, "XDG_CONFIG_HOME=")
			to := map[string]string{"elsewhere": filepath.Join(s.Root, ".git/elsewhere"), "~/lfs": filepath.Join(home, "lfs")}[setting]
			if to == "" {
				to = setting
			}
			must(t, os.Rename(filepath.Join(s.Root, ".git/lfs"), to))
			if strings.HasPrefix(setting, "~") {
				gittest.Write(t, home, map[string]string{".gitconfig": "[lfs]\n\tstorage = " + setting + "\n"})
				// The user's store is for all repositories, submodules too.
				lfs(t, to, "of the library\n")
			} else {
				gittest.Run(t, s.Root, "config", "lfs.storage", setting)
			}
			k, err := s.Copy(t.Context(), ForAct, s.head(t))
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, k.Dir, whole)
		})
	}
}

func TestASetUpKeepsWhatItBuildsInASubmoduleAndNoneOfItsFiles(t *testing.T) {
	s := partial(t)
	s.Definition.Setup = "mkdir vendor/lib/built && cat vendor/lib/o bin/x.dat >vendor/lib/built/out && echo changed >vendor/lib/o && echo changed >bin/x.dat"
	k, err := s.Copy(t.Context(), ForAct, s.head(t))
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, k.Dir, whole)
	wantFiles(t, k.Dir, map[string]string{"vendor/lib/built/out": "outer\nfull text\n"})
	if changes, problems, err := k.Changes(t.Context()); len(changes)+len(problems) > 0 || err != nil {
		t.Errorf("changes %v, problems %v, %v", changes, problems, err)
	}
}

func TestARepositoryThatHoldsAllOfItselfStartsNoProcessAndHasNoLayers(t *testing.T) {
	s := newEnv(t, loop.Definition{}, map[string]string{"a.txt": "one\n", ".gitattributes": "* text=auto\n"})
	count := &gittest.Counting{}
	repo, err := git.OpenWith(t.Context(), count, s.Root)
	must(t, err)
	s.Repo = repo
	count.Verbs = nil
	k, err := s.Copy(t.Context(), ForGate, s.head(t))
	must(t, err)
	must(t, k.Remove(t.Context()))
	if len(count.Verbs) > 0 {
		t.Errorf("git was started for %v", count.Verbs)
	}
	if _, err := os.Stat(s.Host.filledDir().Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a folder for what trees name: %v", err)
	}
}

func TestWhatTreesWereFilledWithIsCollected(t *testing.T) {
	s := partial(t)
	must(t, os.MkdirAll(filepath.Join(s.Home, "layers"), 0o700))
	k, err := s.Copy(context.WithoutCancel(t.Context()), ForAct, s.head(t))
	must(t, err)
	must(t, k.Remove(t.Context()))
	for i := range leastFilled {
		gittest.Write(t, s.Host.filledDir().Dir, map[string]string{fmt.Sprint("newer", i, "/tree/x"): ""})
	}
	old := layersIn(t, s)[0]
	must(t, os.Chtimes(filepath.Join(s.Host.filledDir().Dir, old), now, now.Add(-keepFilled-time.Minute)))
	must(t, s.Collect(t.Context(), s.Repo))
	if got := layersIn(t, s); slices.Contains(got, old) || len(got) != leastFilled {
		t.Errorf("after the collection there are %v", got)
	}
}
