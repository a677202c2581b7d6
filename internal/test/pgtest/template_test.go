//go:build unix

package pgtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filled runs fill for a new cluster and returns its directory.
func filled(t *testing.T) string {
	t.Helper()
	p, err := findPrograms(debian, os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	who, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	dir := shared(t)
	if err := who.giveFile(dir); err != nil {
		t.Fatal(err)
	}
	if err := makeData(t.Context(), p, who, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// identity is what initdb gives to each cluster at random.
func identity(t *testing.T, dir string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "data", "global", "pg_control"))
	if err != nil {
		t.Fatal(err)
	}
	return string(body[:8])
}

func TestTheTemplateOfTheFirstProcessIsUsedUntilItIsDamaged(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	first := filled(t)
	if identity(t, first) != identity(t, filled(t)) {
		t.Error("initdb ran twice")
	}
	p, err := findPrograms(debian, os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	name, err := templateName(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 1_000_000); err != nil {
		t.Fatal(err)
	}
	second := filled(t)
	if identity(t, first) == identity(t, second) {
		t.Error("the damaged template was used")
	}
	if third := filled(t); identity(t, third) != identity(t, second) {
		t.Error("the template was not made again")
	}
}

func TestAClusterNeedsNoHome(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	if identity(t, filled(t)) == "" {
		t.Error("no cluster")
	}
}

func TestTheNewestCompletePostgreSQLIsFound(t *testing.T) {
	root := t.TempDir()
	install := func(dir string, names ...string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(root, dir, name), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	install("9/bin", "initdb", "postgres")
	install("15/bin", "initdb", "postgres")
	install("17/bin", "initdb") // client programs only
	install("elsewhere", "initdb", "postgres")
	install("empty")
	pattern := filepath.Join(root, "*", "bin")
	path := strings.Join([]string{filepath.Join(root, "empty"), filepath.Join(root, "elsewhere")}, string(os.PathListSeparator))

	cases := map[string]struct{ pattern, path, want string }{
		"the newest by number":         {pattern, path, "15/bin"},
		"PATH when Debian has nothing": {filepath.Join(root, "none", "*"), path, "elsewhere"},
	}
	for name, c := range cases {
		got, err := findPrograms(c.pattern, c.path)
		if want := programs(filepath.Join(root, c.want)); err != nil || got != want {
			t.Errorf("%s: find = %q, %v, want %q", name, got, err, want)
		}
	}
	_, err := findPrograms(filepath.Join(root, "none", "*"), filepath.Join(root, "empty"))
	if err == nil || !strings.Contains(err.Error(), "fix: sudo apt-get install postgresql") {
		t.Errorf("find = %v, want an error with the fix", err)
	}
}
