package runenv

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

var now = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

// newEnv is the run environment of a run in a repository of one commit, for a definition
// that confines nothing.
func newEnv(t *testing.T, d loop.Definition, files map[string]string) Env {
	t.Helper()
	root := t.TempDir()
	write(t, root, files)
	runGit(t, root, "init", "-q", "-b", "main")
	runGit(t, root, "add", "-A")
	runGit(t, root, "commit", "-q", "-m", "first")
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if d.Sandbox == "" {
		d.Sandbox = "none"
	}
	return Env{
		Host: Host{
			Home: t.TempDir(), Environ: os.Environ(), Exec: proc.Plain{}, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		},
		ID: "run_1", Loop: "l", Root: root, Repo: repo, Definition: d.WithDefaults(), Started: now, Tools: &Tools{}, Say: func(string) {},
		Iteration: 1, Step: "st_1 mend it",
	}
}

func (s Env) head(t *testing.T) string {
	t.Helper()
	return runGit(t, s.Root, "rev-parse", "HEAD")
}

// trees are the names of the copies that there are.
func (s Env) trees(t *testing.T) []string {
	t.Helper()
	names, err := s.Trees(s.Repo, s.Tier()).TreeNames()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-C", dir}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
