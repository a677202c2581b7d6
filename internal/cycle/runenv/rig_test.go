package runenv

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

var now = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

// newEnv is the run environment of a run in a repository of one commit, for a definition
// that confines nothing.
func newEnv(t *testing.T, d loop.Definition, files map[string]string) Env {
	t.Helper()
	root := t.TempDir()
	gittest.Write(t, root, files)
	gittest.Run(t, root, "init", "-q", "-b", "main")
	gittest.Run(t, root, "add", "-A")
	gittest.Run(t, root, "commit", "-q", "-m", "first")
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
	return gittest.Run(t, s.Root, "rev-parse", "HEAD")
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
