package probe

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/policy"
)

// TestAManifestThatCannotBeUsedIsAProblemAndNoStack leaves the end of some
// messages to the libraries that write them.
func TestAManifestThatCannotBeUsedIsAProblemAndNoStack(t *testing.T) {
	for name, c := range map[string]struct {
		files tree
		want  []Problem
	}{
		"cut off":       {files: tree{"package.json": "{\n\"scripts\":"}, want: []Problem{{"package.json", "line 2: unexpected end of JSON input"}}},
		"empty":         {files: tree{"package.json": ""}, want: []Problem{{"package.json", "line 1: unexpected end of JSON input"}}},
		"another type":  {files: tree{"package.json": "{\n\"scripts\": {\"test\": 5}}"}, want: []Problem{{"package.json", "line 2: scripts"}}},
		"no object":     {files: tree{"package.json": "[]"}, want: []Problem{{"package.json", "line 1: the document is a JSON array"}}},
		"no UTF-8":      {files: tree{"composer.json": "{\"a\":\"\xff\"}"}, want: []Problem{{"composer.json", "not valid UTF-8"}}},
		"a directory":   {files: tree{"package.json/x": "", "a/Cargo.toml/x": ""}, want: []Problem{{"package.json", "not a regular file"}, {"a/Cargo.toml", "not a regular file"}}},
		"broken TOML":   {files: tree{"Cargo.toml": "[package]\n\n= 1\n"}, want: []Problem{{"Cargo.toml", "line 3: toml: "}}},
		"no modules":    {files: tree{"go.work": "go 1.26\n"}, want: []Problem{{"go.work", "it uses no module"}}},
		"a dead target": {files: tree{"Makefile": "test:\n\tx\n", "test/x": ""}, want: []Problem{{"Makefile", "target test never runs, because there is a directory test and it is not .PHONY"}}},
	} {
		t.Run(name, func(t *testing.T) {
			repo := surveyed(t, c.files)
			begins := cmp.Comparer(func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })
			if diff := cmp.Diff(c.want, repo.Problems, begins); diff != "" {
				t.Errorf("problems (-want +got)\n%s", diff)
			}
			if len(repo.Stacks) > 0 {
				t.Errorf("stacks %v, want none", drawn(repo.Stacks))
			}
		})
	}
}

func TestABrokenPyprojectLeavesTheRequirements(t *testing.T) {
	repo := surveyed(t, tree{"pyproject.toml": "[", "requirements.txt": "pytest\n"})
	if len(repo.Problems) != 1 || len(repo.Stacks) != 1 || repo.Stacks[0].Manifest != "requirements.txt" {
		t.Errorf("stacks %v, problems %v; want requirements.txt and one problem", drawn(repo.Stacks), repo.Problems)
	}
}

func TestAManifestOf50MegabytesIsNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "package.json")
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 50<<20); err != nil {
		t.Fatal(err)
	}
	want := Repo{Problems: []Problem{{"package.json", "larger than 1024 KiB"}}}
	if diff := cmp.Diff(want, Repository(opened(t, dir))); diff != "" {
		t.Errorf("repository (-want +got)\n%s", diff)
	}
}

func TestLinksLeadNeitherInCirclesNorOut(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "package.json")
	if err := os.WriteFile(secret, []byte(`{"scripts":{"test":"x"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, target := range map[string]string{
		"loop": ".", "self": "self", "package.json": secret, "Cargo.toml": "Cargo.toml", "out": outside, "go.mod": "real.mod", "CLAUDE.md": "README.md",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "real.mod"), []byte("module x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	repo := Repository(opened(t, dir))
	if diff := cmp.Diff([]string{"go . go.mod", "  test: go test ./...", "  typecheck: go vet ./...", "  build: go build ./..."}, drawn(repo.Stacks)); diff != "" {
		t.Errorf("stacks (-want +got)\n%s", diff)
	}
	var files []string
	for _, p := range repo.Problems {
		files = append(files, p.File)
	}
	if diff := cmp.Diff([]string{"package.json", "Cargo.toml"}, files); diff != "" {
		t.Errorf("problems (-want +got)\n%s", diff)
	}
	if repo.AgentsFile != "CLAUDE.md" {
		t.Errorf("file for agents %q, want CLAUDE.md", repo.AgentsFile)
	}
}

func TestARepositoryThatIsNotThereIsAProblem(t *testing.T) {
	repo := Repository(os.DirFS(filepath.Join(t.TempDir(), "none")))
	if len(repo.Problems) != 1 || repo.Problems[0].File != "." {
		t.Errorf("problems %v, want one about the root", repo.Problems)
	}
}

// counted counts what a survey opens.
type counted struct {
	fs.FS
	opens *int
}

func (c counted) Open(name string) (fs.File, error) {
	*c.opens++
	return c.FS.Open(name)
}

func TestASurveyIsBoundedHoweverLargeTheRepository(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 40 {
		for j := range 20 {
			files[fmt.Sprintf("d%02d/e%02d/Cargo.toml", i, j)] = &fstest.MapFile{Data: []byte("[package]\n")}
		}
	}
	for i := range maxEntries + 10 {
		files[fmt.Sprintf("f%05d", i)] = &fstest.MapFile{}
	}
	opens := 0
	repo := Repository(counted{files, &opens})
	if got, most := opens, maxFolders+2*maxStacks+len(detectors); got > most {
		t.Errorf("%d files and directories opened, want at most %d", got, most)
	}
	if len(repo.Stacks) != maxStacks {
		t.Errorf("%d stacks, want %d", len(repo.Stacks), maxStacks)
	}
	for _, want := range []string{"more than 5000 entries", "more than 300 directories", "more stacks than can be proposed"} {
		found := false
		for _, p := range repo.Problems {
			found = found || strings.Contains(p.Why, want)
		}
		if !found {
			t.Errorf("no problem says %q: %v", want, repo.Problems)
		}
	}
}

// TestAScopeIsNeverTheWholeTree holds for whatever stands at the root.
func TestAScopeIsNeverTheWholeTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z*?\[{}!. ]{1,6}(/[a-z*]{1,3}){0,2}\.(go|py|ts|md)`)
		files := tree{}
		for _, n := range rapid.SliceOf(name).Draw(t, "names") {
			if fs.ValidPath(n) {
				files[n] = ""
			}
		}
		scope := Repository(files.inMemory()).Proposal().Scope
		if _, err := policy.NewScope(scope, nil); err != nil {
			t.Fatalf("scope %q: %v", scope, err)
		}
		for _, glob := range scope {
			for _, other := range []string{"zzzz/zzzz.zz", "zzzz.zz", ".loops/x"} {
				if doublestar.MatchUnvalidated(glob, other) {
					t.Fatalf("%q covers %q", glob, other)
				}
			}
		}
	})
}

// TestAWordOfTheShellStaysOneWord asks a real shell.
func TestAWordOfTheShellStaysOneWord(t *testing.T) {
	for _, word := range []string{"a", "a b", "it's", "$(touch x)", "-rf", "`x`", "a;b", "a\\b", "*", "ä", `"`} {
		got := shellWords(t, Quoted(word))
		want := word
		if strings.HasPrefix(word, "-") {
			want = "./" + word
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%q becomes %s (-want +got)\n%s", word, Quoted(word), diff)
		}
	}
}

func FuzzRepository(f *testing.F) {
	for _, seed := range []struct{ name, text string }{
		{"package.json", `{"packageManager":"yarn@1.0.0","scripts":{"test":"jest"},"workspaces":["a"]}`},
		{"pyproject.toml", "[dependency-groups]\ndev=['pytest', {include-group='x'}]\n[tool.uv]\nworkspace={members=['a']}\n"},
		{"Cargo.toml", "[workspace]\n"},
		{"Makefile", "test: a\\\n b\n.PHONY: test\ndefine x\n"},
		{"justfile", "test a='b c' *d:\n"},
		{"Taskfile.yml", "tasks:\n  test:\n"},
		{"go.work", "use (\n./a\n)\n"},
		{"composer.json", `{"scripts":{"test":["a"]}}`},
		{"CMakePresets.json", `{"testPresets":[{"name":"a"}]}`},
		{"Pipfile", "[packages]\n"},
		{"deno.json", `{"tasks":{"test":{}}}`},
	} {
		f.Add(seed.name, []byte(seed.text))
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		if !fs.ValidPath(name) || name == "." || strings.Contains(name, "/") {
			return
		}
		files := fstest.MapFS{name: {Data: text}, "CMakeLists.txt": {}, "sub/" + name: {Data: text}, "yarn.lock": {Data: text}}
		repo := Repository(files)
		for _, s := range repo.Stacks {
			if s.Manifest != name && s.Manifest != "sub/"+name {
				t.Errorf("stack %s of %q, which is not %q", s.Name, s.Manifest, name)
			}
		}
		p := repo.Proposal()
		for _, c := range []Command{p.Verify, p.Guard, p.Setup} {
			if (c.Line == "") != (len(c.Needs) == 0) || strings.ContainsFunc(c.Line, func(r rune) bool { return r < ' ' }) {
				t.Errorf("command %q needs %v", c.Line, c.Needs)
			}
		}
		if diff := cmp.Diff(repo, Repository(files), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the same files give two answers\n%s", diff)
		}
	})
}
