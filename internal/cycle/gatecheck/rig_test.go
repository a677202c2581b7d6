package gatecheck_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gatecheck"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) {
	if home := os.Getenv(tryEnv); home != "" {
		os.Exit(tryForEver(home))
	}
	os.Exit(m.Run())
}

// rig is a checkout, and tries of its gates that hold process trees together, as
// in the product.
type rig struct {
	t     *testing.T
	root  string
	home  string
	repo  *git.Repo
	tries gatecheck.Checker
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, root: t.TempDir(), home: t.TempDir()}
	gittest.WriteFile(t, filepath.Join(r.root, "src/a.txt"), "one\n")
	gittest.WriteFile(t, filepath.Join(r.root, "README.md"), "hello\n")
	gittest.Run(t, r.root, "init", "-q", "-b", "main")
	gittest.Run(t, r.root, "add", "-A")
	gittest.Run(t, r.root, "commit", "-q", "-m", "first")
	var err error
	if r.repo, err = git.Open(t.Context(), r.root); err != nil {
		t.Fatal(err)
	}
	r.tries = tries(r.home, proc.Tree{})
	var ids atomic.Int64
	r.tries.NewID = func(prefix string) string { return fmt.Sprintf("%s_%04d", prefix, ids.Add(1)) }
	return r
}

func tries(home string, exec proc.Runner) gatecheck.Checker {
	return gatecheck.Checker{
		Host:    runenv.Host{Home: home, Environ: os.Environ(), Exec: exec, Now: clock.System{}.Now, Log: slog.New(slog.DiscardHandler)},
		NewID:   func(prefix string) string { return fmt.Sprintf("%s_child%d", prefix, os.Getpid()) },
		Survive: proc.KillTagged,
	}
}

func (r *rig) gates(verify, guard string) gatecheck.Subject {
	d := loop.Definition{Name: "w", Sandbox: "none", Scope: []string{"src/**"}, Verify: verify, Guard: guard, MaxWallClock: time.Hour}
	return gatecheck.Subject{Loop: "w", Root: r.root, Repo: r.repo, Definition: d}
}

// left lists what an engine has in a home.
func left(t *testing.T, home string) (names []string) {
	t.Helper()
	for _, dir := range []string{"trees", "runs"} {
		entries, err := os.ReadDir(filepath.Join(home, dir))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return names
}

// untouched holds that do changes nothing in checkout and repository,
// and leaves nothing in the home.
func (r *rig) untouched(do func()) {
	r.t.Helper()
	look := func() string {
		return gittest.Run(r.t, r.root, "status", "--porcelain", "--untracked-files=all", "--ignored") + "\n" +
			gittest.Run(r.t, r.root, "for-each-ref") + "\n" + gittest.Run(r.t, r.root, "worktree", "list") + "\n" +
			read(r.t, filepath.Join(r.root, ".git/index"))
	}
	before := look()
	do()
	if diff := cmp.Diff(before, look()); diff != "" {
		r.t.Errorf("checkout or repository changed (-before +after):\n%s", diff)
	}
	if names := left(r.t, r.home); len(names) > 0 {
		r.t.Errorf("left behind: %v", names)
	}
}

// onText calls do when the text was printed.
type onText struct {
	text string
	do   func()

	all strings.Builder
}

func (o *onText) Write(p []byte) (int, error) {
	before := strings.Contains(o.all.String(), o.text)
	o.all.Write(p)
	if !before && strings.Contains(o.all.String(), o.text) {
		o.do()
	}
	return len(p), nil
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
