package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestIgnoredPathsAreToldByTheRulesThatWereGiven(t *testing.T) {
	top := t.TempDir()
	gittest.Run(t, top, "init", "-q")
	repo, err := Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	ask := repo.Ignores(t.Context(), filepath.Join(t.TempDir(), "rules"), func(dir string) error {
		for name, content := range map[string]string{".gitignore": "node_modules/\n*.log\n!keep.log\n", "sub/.gitignore": "out\n*\n!a\n"} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	for path, want := range map[string]bool{
		"node_modules/": true, "a.log": true, "keep.log": false, "sub/out": true, "out": false, "sub/a": false, "sub/.gitignore": false, "deep/node_modules/": true, "has space and\nnewline.log": true,
	} {
		if got := ask.Ignored([]string{path})[0]; got != want {
			t.Errorf("Ignored(%q) = %v, want %v", path, got, want)
		}
	}
	if ask.Ignored([]string{"node_modules"})[0] {
		t.Error("a file with the name of an ignored directory is ignored")
	}
	many, want := make([]string, 0, 20_000), 0
	for i := range cap(many) {
		name := fmt.Sprintf("some/long/folder/name/%d.txt", i)
		if i%3 == 0 {
			name, want = fmt.Sprintf("some/%d.log", i), want+1
		}
		many = append(many, name)
	}
	ignored := 0
	for i, is := range ask.Ignored(many) {
		if is != strings.HasSuffix(many[i], ".log") {
			t.Fatalf("Ignored(%q) = %v in a list", many[i], is)
		}
		if is {
			ignored++
		}
	}
	if ignored != want {
		t.Errorf("%d of %d are ignored, want %d", ignored, len(many), want)
	}
	if err := ask.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

func TestWithoutRulesNothingIsIgnoredAndNoProcessStarts(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string // below the repository, or below the folder of the rules
		ignored    bool
	}{
		"no rules":                      {"README.md", "text\n", false},
		"comments":                      {".git/info/exclude", "# *.log\n\n   \n", false},
		"a rule of the repository":      {".git/info/exclude", "# comment\n*.log\n", true},
		"a file of the configuration":   {".git/config", "[core]\n\trepositoryformatversion = 0\n\texcludesFile = ROOT/more\n", true},
		"an include":                    {".git/config", "[core]\n\trepositoryformatversion = 0\n[include]\n\tpath = ROOT/other\n", true},
		"a rule of a folder of the run": {"rules/deep/.gitignore", "*.log\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			top := gittest.Repo(t, nil)
			gittest.Write(t, top, map[string]string{
				"more": "*.log\n", "other": "[core]\n\texcludesFile = " + top + "/more\n", c.file: strings.ReplaceAll(c.text, "ROOT", top),
			})
			count := &gittest.Counting{}
			repo, err := OpenWith(t.Context(), count, top)
			must(t, err)
			count.Verbs = nil
			ask := repo.Ignores(t.Context(), filepath.Join(top, "rules"), func(string) error { return nil })
			got := ask.Ignored([]string{"deep/a.log", "deep/a.txt"})
			must(t, ask.Close())
			if got[0] != c.ignored || got[1] || (len(count.Verbs) > 0) != c.ignored {
				t.Errorf("ignored %v, and git was started for %v", got, count.Verbs)
			}
		})
	}
}
