//go:build unix

package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
)

var when = time.Unix(1_700_000_000, 0)

// plainGit runs git as a user would, without pawl's protections, but with
// nobody's personal configuration.
func plainGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryPlainGit(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func tryPlainGit(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	var out, stderr bytes.Buffer
	res, err := proc.Plain{}.Run(t.Context(), proc.Spec{
		Argv: append([]string{"git", "-c", "safe.directory=*", "-c", "init.defaultBranch=main"}, args...),
		Dir:  dir,
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost",
		},
		Stdout: &out, Stderr: &stderr, Timeout: time.Minute, Grace: time.Second,
	})
	if err == nil && res.Exit != 0 {
		err = errors.New(stderr.String())
	}
	return strings.TrimSpace(out.String()), err
}

// newRepo makes a repository with the files committed on main.
func newRepo(t *testing.T, files map[string]string, initArgs ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	plainGit(t, dir, append([]string{"init", "-q"}, initArgs...)...)
	writeFiles(t, dir, files)
	plainGit(t, dir, "add", "-A")
	plainGit(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	return dir
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir string) *Repo {
	t.Helper()
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("Open(%s) = %v", dir, err)
	}
	return r
}

func base(t *testing.T, r *Repo) Base {
	t.Helper()
	b, err := r.Base(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantFault fails unless err is a fault with this exit status and a fix.
func wantFault(t *testing.T, err error, exit int, fix string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || !strings.Contains(f.Fix, fix) {
		t.Fatalf("error = %#v, want a fault with exit %d and a fix that says %q", err, exit, fix)
	}
}

// counting counts the processes that are started.
type counting struct {
	mu    sync.Mutex
	verbs []string
}

func (c *counting) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	c.mu.Lock()
	c.verbs = append(c.verbs, s.Argv[len(overrides)+1])
	c.mu.Unlock()
	return proc.Plain{}.Run(ctx, s)
}
