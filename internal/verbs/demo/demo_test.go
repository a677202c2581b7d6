package demo_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/demo"
)

func TestTheRepositoryIsCleanAndOneOfItsTestsFails(t *testing.T) {
	t.Parallel()
	place, err := demo.Make(t.Context(), t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	if got := output(t, place.Repo, "git", "status", "--porcelain"); got != "" {
		t.Errorf("git status: %s", got)
	}
	if got, want := output(t, place.Repo, "git", "log", "--format=%an %s"), "pawl demo A package for addresses, with a test that fails"; got != want {
		t.Errorf("git log = %q, want %q", got, want)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir, cmd.Env = place.Repo, append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOTOOLCHAIN=local")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FAIL: TestMake") {
		t.Errorf("go test without a network = %v, want one failing test\n%s", err, out)
	}
}

func TestTheDefinitionHasNoFindings(t *testing.T) {
	t.Parallel()
	place, err := demo.Make(t.Context(), t.TempDir(), os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	doc, source, err := definition.Load(filepath.Join(place.Repo, ".loops", demo.Loop, "loop.config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := doc.Definition(demo.Loop)
	for _, f := range findings {
		t.Error(f.Render("loop.config.yaml", source))
	}
	if doc.Notice != "" {
		t.Error(doc.Notice)
	}
}

func TestMakeRefusesAndChangesNothing(t *testing.T) {
	t.Parallel()
	taken := t.TempDir()
	if err := os.Mkdir(filepath.Join(taken, "repo"), 0o755); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for name, c := range map[string]struct {
		dir     string
		environ []string
		exit    int
	}{
		"a folder that is taken":   {taken, os.Environ(), loop.ExitMissing},
		"a host without git or go": {empty, []string{"PATH=" + empty}, loop.ExitMissing},
		"a folder below a file":    {filepath.Join(os.Args[0], "x"), os.Environ(), loop.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := demo.Make(t.Context(), c.dir, c.environ)
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != c.exit || f.Fix == "" {
				t.Fatalf("Make = %#v, want a fault with exit status %d and a fix", err, c.exit)
			}
		})
	}
	for dir, want := range map[string]int{taken: 1, empty: 0} {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != want {
			t.Errorf("%s holds %v (%v), want %d entries", dir, entries, err, want)
		}
	}
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}
