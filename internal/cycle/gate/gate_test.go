//go:build unix

package gate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

const systemPath = "PATH=/usr/local/bin:/usr/bin:/bin"

func command(t *testing.T, line string) job {
	t.Helper()
	return newJob(line, gate.Input{Place: gate.Place{Dir: t.TempDir()}, Env: []string{systemPath}, Timeout: time.Minute})
}

func run(t *testing.T, c job) loop.GateResult {
	t.Helper()
	g, err := runJob(t.Context(), on(proc.Tree{}, c))
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != c.Name || g.Kind != "command" || g.Took <= 0 {
		t.Errorf("result = %+v, want a command gate named %s that took time", g, c.Name)
	}
	return g
}

func TestTheExitStatusOfAGateIsItsVerdict(t *testing.T) {
	type verdict struct {
		Pass     bool
		Exit     int
		Missing  bool
		Evidence string
	}
	cases := map[string]struct {
		line string
		want verdict
	}{
		"it passes":                         {"echo fine", verdict{true, 0, false, "fine"}},
		"it passes and says nothing":        {"true", verdict{true, 0, false, ""}},
		"it fails":                          {"echo broken; exit 7", verdict{false, 7, false, "broken"}},
		"it fails on standard error":        {"echo broken >&2; exit 1", verdict{false, 1, false, "broken"}},
		"both streams, in order":            {"echo one; echo two >&2; echo three; exit 1", verdict{false, 1, false, "one\ntwo\nthree"}},
		"its last program decides":          {"false; echo fine", verdict{true, 0, false, "fine"}},
		"it kills itself":                   {"kill -KILL $$", verdict{false, 128 + 9, false, ""}},
		"it reads an empty standard input":  {"cat; echo read", verdict{true, 0, false, "read"}},
		"words that only look like success": {"echo 'PASS ok exit status 0'; exit 1", verdict{false, 1, false, "PASS ok exit status 0"}},
		"words that only look like a miss":  {"echo 'command not found (127)'; exit 1", verdict{false, 1, false, "command not found (127)"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := run(t, command(t, c.line))
			if diff := cmp.Diff(c.want, verdict{g.Pass, g.Exit, gate.Missing(g), g.Evidence}); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGateThatCannotRunIsMissingAndNoPass(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		line string
		exit int
	}{
		"no such program":    {"no-such-program-anywhere", 127},
		"no such path":       {"./no/such/path", 127},
		"a file of text":     {script, 126},
		"a folder":           {"/", 126},
		"no such shell word": {"no_such_function; exit $?", 127},
	} {
		t.Run(name, func(t *testing.T) {
			g := run(t, command(t, c.line))
			if g.Pass || g.Exit != c.exit || !gate.Missing(g) || g.Evidence == "" {
				t.Errorf("result = %+v, want exit %d, missing, with the shell's words", g, c.exit)
			}
		})
	}
}

func TestAGateThatIsStoppedByItsTimeFailsAndSaysSo(t *testing.T) {
	for name, line := range map[string]string{
		"one that waits":              "echo started; sleep 60",
		"one that ignores every hint": "trap '' TERM INT HUP; echo started; while :; do sleep 1; done",
		"one that would pass on TERM": "trap 'exit 0' TERM; echo started; while :; do sleep 1; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := command(t, line)
			c.Timeout = 2 * time.Second // On a busy host it takes a while until it has started.
			g := run(t, c)
			if g.Pass || g.Exit != 124 || gate.Missing(g) {
				t.Errorf("result = %+v, want a failure with 124", g)
			}
			if want := "started\n(stopped after 2s)"; g.Evidence != want {
				t.Errorf("evidence = %q, want %q", g.Evidence, want)
			}
		})
	}
}

func TestAGateThatIsCanceledHasNotPassed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := command(t, "echo started; sleep 60")
	c.Output = writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	g, err := runJob(ctx, on(proc.Tree{}, c))
	if err != nil || g.Pass {
		t.Errorf("result = %+v, %v; want no pass", g, err)
	}
}

func TestAGateThatDidNotEndByItselfHasNotPassedWhateverItsStatus(t *testing.T) {
	for ended, pass := range map[proc.Ended]bool{
		proc.Exited: true, proc.Signaled: false, proc.TimedOut: false, proc.Canceled: false, proc.NotStarted: false,
	} {
		g, err := runJob(t.Context(), on(execFunc(func() (proc.Result, error) { return proc.Result{Exit: 0, Ended: ended}, nil }), command(t, "true")))
		if err != nil || g.Pass != pass {
			t.Errorf("%s with status 0: %+v, %v; want pass %v", ended, g, err, pass)
		}
	}
}

func TestAGateThatCannotBeStartedIsAnErrorThatNamesIt(t *testing.T) {
	for name, change := range map[string]func(*job){
		"its folder is gone":           func(c *job) { c.Dir = filepath.Join(c.Dir, "gone") },
		"its tag is not in its world":  func(c *job) { c.Tag = "PAWL_RUN=r1" },
		"its line holds a NUL":         func(c *job) { c.Line = "echo a\x00b" },
		"a variable of it holds a NUL": func(c *job) { c.Env = append(c.Env, "A=b\x00c") },
	} {
		t.Run(name, func(t *testing.T) {
			c := command(t, "true")
			change(&c)
			g, err := runJob(t.Context(), on(proc.Tree{}, c))
			if err == nil || !strings.Contains(err.Error(), "start verify gate") {
				t.Errorf("Run = %v, want an error that names the gate", err)
			}
			if g.Pass {
				t.Error("a gate that was not started has passed")
			}
		})
	}
	lost := errors.New("the host is out of processes")
	_, err := runJob(t.Context(), on(execFunc(func() (proc.Result, error) { return proc.Result{Ended: proc.NotStarted}, lost }), command(t, "true")))
	if !errors.Is(err, lost) {
		t.Errorf("Run = %v, want the cause", err)
	}
}

func TestOfALongOutputTheEndIsEvidenceAndAllIsStreamed(t *testing.T) {
	const lines = 40_000
	c := command(t, "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done; echo FAIL: 3 of 9 tests; exit 1")
	var all counter
	c.Output = &all
	g := run(t, c)
	if len(g.Evidence) > 4<<10+100 {
		t.Errorf("evidence has %d bytes", len(g.Evidence))
	}
	if !strings.HasSuffix(g.Evidence, "line 39999\nFAIL: 3 of 9 tests") || strings.Contains(g.Evidence, "line 0\n") {
		t.Errorf("evidence = …%q, want the end", g.Evidence[max(0, len(g.Evidence)-80):])
	}
	if !strings.Contains(g.Evidence, "bytes dropped") {
		t.Error("evidence does not say that something is missing")
	}
	if all.lines != lines+1 {
		t.Errorf("%d lines were streamed, want %d", all.lines, lines+1)
	}
}

func TestBytesThatAreNoTextDoNotBreakTheEvidence(t *testing.T) {
	g := run(t, command(t, `printf 'a\377b\n'; exit 1`))
	if g.Evidence != "a\uFFFDb" {
		t.Errorf("evidence = %q", g.Evidence)
	}
}

func TestAGateSeesItsFolderAndItsVariablesAndNothingElse(t *testing.T) {
	t.Setenv("PAWL_TEST_SECRET", "s3cret")
	c := command(t, "pwd; env")
	c.Env = []string{systemPath, "PAWL_RUN=r1", "EMPTY=", "LINES=a\tb"}
	c.Tag = "PAWL_RUN=r1"
	g := run(t, c)
	dir, env, _ := strings.Cut(g.Evidence, "\n")
	want, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if dir != want && dir != c.Dir {
		t.Errorf("it ran in %s, want %s", dir, want)
	}
	got := strings.Split(env, "\n")
	// Shells add these for themselves.
	got = slices.DeleteFunc(got, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"PWD", "OLDPWD", "SHLVL", "_"}, name)
	})
	slices.Sort(got)
	slices.Sort(c.Env)
	if diff := cmp.Diff(c.Env, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestFeedbackTellsTheNextAttemptWhatFailed(t *testing.T) {
	got := gate.Feedback(loop.GateResult{Name: "guard", Exit: 7, Evidence: "main.go:3: unused"})
	if want := "guard failed with exit status 7:\nmain.go:3: unused"; got != want {
		t.Errorf("feedback = %q, want %q", got, want)
	}
}

type execFunc func() (proc.Result, error)

func (f execFunc) Run(context.Context, proc.Spec) (proc.Result, error) { return f() }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// counter counts lines.
type counter struct{ lines int }

func (c *counter) Write(p []byte) (int, error) {
	c.lines += strings.Count(string(p), "\n")
	return len(p), nil
}

// job is one command gate with what it judges a tree with.
type job struct {
	gate.Command
	gate.Input
}

func newJob(line string, in gate.Input) job {
	return job{gate.Command{Name: "verify", Line: line, Fail: loop.ReasonGateFailed}, in}
}

func runJob(ctx context.Context, j job) (loop.GateResult, error) { return j.Run(ctx, j.Input) }

func on(exec proc.Runner, c job) job {
	c.Exec = exec
	return c
}
