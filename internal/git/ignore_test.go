package git

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/git/gittest"
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
		dir := path[len(path)-1] == '/'
		name := path
		if dir {
			name = path[:len(path)-1]
		}
		if got := ask.Ignored(name, dir); got != want {
			t.Errorf("Ignored(%q) = %v, want %v", path, got, want)
		}
	}
	if ask.Ignored("node_modules", false) {
		t.Error("a file with the name of an ignored directory is ignored")
	}
	if err := ask.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}
