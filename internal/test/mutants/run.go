package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// run is one process of a test binary.
type run struct {
	File     string
	Args     []string
	Dir      string
	Limit    uint64   // says which mutant is on
	Writable []string // all that it may change, beside Tmp
	Tmp      string   // what it sees as /tmp; empty is /tmp itself, unchangeable
	Root     string   // the checkout, which stays in sight if it is below /tmp
}

// runner starts runs.
type runner struct {
	root    string   // the checkout
	work    string   // what outlives a run
	scratch string   // what does not; a short path, because sockets are made below it
	env     []string // of the go command
	keep    []string // directories of the go command that tests fill
}

// newRunner asks the go command where it keeps things, because a run has
// another home.
func newRunner(ctx context.Context, root, work, scratch string) (*runner, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "GOSUMDB").Output()
	if err != nil {
		return nil, fmt.Errorf("ask go env: %w", err)
	}
	values := strings.Split(string(out), "\n")
	r := &runner{root: root, work: work, scratch: scratch}
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOFLAGS", "GOSUMDB"} {
		r.env = append(r.env, name+"="+values[i])
	}
	r.keep = []string{values[0], filepath.Join(work, "records"), filepath.Join(work, "cache")}
	for _, dir := range r.keep {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// outcome is what a run said.
type outcome struct {
	passed bool
	hung   bool
	said   string
	took   time.Duration
	used   time.Duration        // by the processors; unknown of what was killed
	begun  map[string]time.Time // when each top-level test began, with -test.v
}

// start runs tests of a binary in directories of their own, and waits for the
// end of every process of them.
func (r *runner) start(ctx context.Context, b binary, limit uint64, patience time.Duration, args ...string) (outcome, error) {
	top, err := os.MkdirTemp(r.scratch, "")
	if err != nil {
		return outcome{}, err
	}
	defer func() {
		// Trees of tests can be read-only.
		if os.RemoveAll(top) != nil {
			_ = exec.CommandContext(context.WithoutCancel(ctx), "chmod", "-R", "u+rwX", top).Run()
			_ = os.RemoveAll(top)
		}
	}()
	home, tmp := filepath.Join(top, "home"), filepath.Join(top, "tmp")
	for _, dir := range []string{top, home, tmp, filepath.Join(home, ".cache")} {
		mode := os.FileMode(0o755)
		if dir == tmp {
			mode = 0o777 | os.ModeSticky
		}
		if err := errors.Join(os.MkdirAll(dir, mode), os.Chmod(dir, mode)); err != nil {
			return outcome{}, err
		}
	}
	// The template of a PostgreSQL cluster is made once.
	if err := os.Symlink(filepath.Join(r.work, "cache"), filepath.Join(home, ".cache", "pawl-pgtest")); err != nil {
		return outcome{}, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := tail{begun: map[string]time.Time{}}
	cmd := exec.CommandContext(limited, b.File)
	cmd.Env = append(os.Environ(), r.env...)
	seen := tmp
	if confined() {
		seen = "/tmp" // sandboxes are made there, whatever TMPDIR says
	}
	cmd.Env = append(cmd.Env, "HOME="+home, "TMPDIR="+seen, "XDG_CACHE_HOME=", "PAWL_HOME=", "PAWL_TEST_TROUBLES=all")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, 5*time.Second
	all := append([]string{"-test.paniconexit0", "-test.count=1", "-test.timeout=0"}, args...)
	order := run{File: b.File, Args: all, Dir: b.Dir, Limit: limit, Writable: append([]string{home}, r.keep...), Tmp: tmp, Root: r.root}
	if err := staged(cmd, order); err != nil {
		return outcome{}, err
	}
	begin := time.Now()
	err = cmd.Run()
	out := outcome{passed: err == nil, hung: limited.Err() != nil && ctx.Err() == nil, said: string(said.kept), took: time.Since(begin), begun: said.begun}
	if cmd.ProcessState != nil {
		out.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !out.hung && (!ok || exit.ExitCode() == 125) {
		return out, fmt.Errorf("run %s: %w\n%s", b.Name, err, out.said)
	}
	return out, nil
}

// tail keeps the end of what is written to it, and notes when tests began.
type tail struct {
	kept  []byte
	begun map[string]time.Time
}

func (t *tail) Write(p []byte) (int, error) {
	for _, found := range began.FindAllSubmatch(p, -1) {
		t.begun[string(found[1])] = time.Now()
	}
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - 1<<20; extra > 1<<20 {
		t.kept = bytes.Clone(t.kept[extra:])
	}
	return len(p), nil
}

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: ([^\s/]+)`)
	began   = regexp.MustCompile(`(?m)^=== RUN   ([^\s/]+)$`)
	turns   = regexp.MustCompile(`(?m)^(?:=== |--- )(RUN|CONT|PAUSE|PASS|SKIP)(?::)?\s+([^\s/]+)(?: \(|$)`)
	running = regexp.MustCompile(`(?m)^=== (?:RUN|CONT)\s+([^\s/]+)`)
)

// culprit is the test that failed, or the one that ran last.
func (o outcome) culprit() string {
	if found := failed.FindStringSubmatch(o.said); found != nil {
		return found[1]
	}
	if all := running.FindAllStringSubmatch(o.said, -1); len(all) > 0 {
		return all[len(all)-1][1]
	}
	return ""
}

// unfinished are those of the tests that had neither ended nor begun when the process was
// ended, or that were paused: they have had no turn yet.
func (o outcome) unfinished(names []string) (rest []string) {
	state := map[string]string{}
	for _, m := range turns.FindAllStringSubmatch(o.said, -1) {
		state[m[2]] = m[1]
	}
	for _, name := range names {
		if was := state[name]; was == "" || was == "PAUSE" {
			rest = append(rest, name)
		}
	}
	return rest
}
