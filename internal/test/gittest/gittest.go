// Package gittest gives tests repositories to work on, and git as a user runs
// it: without pawl's protections, but with nobody's personal configuration.
//
// It never imports what is tested, and nothing but tests imports it.
package gittest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pawl-run/pawl/internal/ground/proc"
)

// Run runs git in dir and returns its standard output, trimmed.
func Run(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	out, err := Try(tb.Context(), dir, args...)
	if err != nil {
		tb.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// Try is Run for a command that may fail. The error is git's standard error. Commits
// have the dates of GIT_AUTHOR_DATE and GIT_COMMITTER_DATE, if they are set.
func Try(ctx context.Context, dir string, args ...string) (string, error) {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost",
	}
	for _, name := range []string{"GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"} {
		if date, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+date)
		}
	}
	var out, stderr bytes.Buffer
	res, err := proc.Plain{}.Run(ctx, proc.Spec{
		Argv: append([]string{"git", "-c", "safe.directory=*", "-c", "init.defaultBranch=main"}, args...),
		Dir:  dir, Env: env,
		Stdout: &out, Stderr: &stderr, Timeout: time.Minute, Grace: time.Second,
	})
	if err == nil && res.Exit != 0 {
		err = errors.New(stderr.String())
	}
	return strings.TrimSpace(out.String()), err
}

// Repo makes a repository with the files committed on main.
func Repo(tb testing.TB, files map[string]string, initArgs ...string) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "repo")
	if err := os.Mkdir(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	key := fmt.Sprintf("%q %q %q %q", files, initArgs, os.Getenv("GIT_AUTHOR_DATE"), os.Getenv("GIT_COMMITTER_DATE"))
	if made, ok := repos.Load(key); ok {
		if err := os.CopyFS(dir, made.(fs.FS)); err != nil {
			tb.Fatal(err)
		}
		Run(tb, dir, "update-index", "-q", "--refresh") // The index knows the files by their times too.
		return dir
	}
	Run(tb, dir, append([]string{"init", "-q"}, initArgs...)...)
	Write(tb, dir, files)
	Run(tb, dir, "add", "-A")
	Run(tb, dir, "commit", "-q", "--allow-empty", "-m", "first")
	made := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		file := &fstest.MapFile{Mode: info.Mode()}
		if !e.IsDir() {
			file.Data, err = os.ReadFile(name)
		}
		rel, relErr := filepath.Rel(dir, name)
		made[filepath.ToSlash(rel)] = file
		return errors.Join(err, relErr)
	})
	if err != nil {
		tb.Fatal(err)
	}
	repos.Store(key, made)
	return dir
}

// repos are the repositories that Repo has made, by what they were made of: git needs
// ten times as long for one as it takes to write its files.
var repos sync.Map

// Write writes files below dir, with the folders that they need.
func Write(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, content := range files {
		WriteFile(tb, filepath.Join(dir, name), content)
	}
}

// WriteFile writes one file, with the folders that it needs.
func WriteFile(tb testing.TB, path, content string) {
	tb.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		tb.Fatal(err)
	}
}

// Counting starts processes and records the git verb of each.
type Counting struct {
	mu    sync.Mutex
	Verbs []string
}

// Run starts one process, as proc.Plain does.
func (c *Counting) Run(ctx context.Context, s proc.Spec) (proc.Result, error) {
	c.mu.Lock()
	c.Verbs = append(c.Verbs, gitVerb(s.Argv))
	c.mu.Unlock()
	return proc.Plain{}.Run(ctx, s)
}

// gitVerb returns the first argument that is neither an option nor the value of one.
func gitVerb(argv []string) string {
	for i := 1; i < len(argv); i++ {
		if argv[i] == "-c" {
			i++
		} else if argv[i][0] != '-' {
			return argv[i]
		}
	}
	return ""
}
