package compose_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/confine/sandbox"
	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/test/pgtest"
	"github.com/pawl-run/pawl/internal/test/sample"
	"github.com/pawl-run/pawl/internal/test/storetest"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// childEnv makes this test binary a pawl that recovers and then runs the loop
// in the current folder once, and prints what it came to as JSON.
const childEnv = "PAWL_TEST_CHILD"

// leaseEnv is how long the claims of a child last.
const leaseEnv = "PAWL_TEST_LEASE"

// requestEnv is what the run of a child is asked for; empty: nothing.
const requestEnv = "PAWL_TEST_REQUEST"

func TestMain(m *testing.M) {
	if status, ran := compose.RunBuiltInAgent(context.Background(), os.Args[1:], os.Stdin, os.Stdout); ran {
		os.Exit(status)
	}
	if status, ran := playPart(context.Background(), os.Args[1:]); ran {
		os.Exit(status)
	}
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	// Half of these tests wait for a lease, a process or a look at files most of their time.
	flag.Parse()
	if given := flag.Lookup("test.parallel"); given.Value.String() == given.DefValue {
		if err := given.Value.Set(strconv.Itoa(2*runtime.GOMAXPROCS(0) + 1)); err != nil {
			panic(err)
		}
	}
	os.Exit(pgtest.Main(m, "fsync=off"))
}

// told is what a child prints.
type told struct {
	Recovered []string // "fix#1 act interrupted refs/…"
	Lost      string   // what recovery could not keep
	Run       runs.View
	Landing   loop.EffectState // of the newest land effect, if there is one
	States    []string         // of fix#1, as ls, show, runs and why have it
}

func child() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	settings, err := config.Load(config.Settings{}, os.Environ())
	if err != nil {
		return fail(err)
	}
	o := compose.Options{Settings: settings, Environ: os.Environ(), Log: compose.Log(os.Environ())}
	if o.Now, err = shiftedClock(os.Getenv(clockEnv)); err != nil {
		return fail(err)
	}
	if text := os.Getenv(leaseEnv); text != "" {
		if o.Lease, err = time.ParseDuration(text); err != nil {
			return fail(err)
		}
	}
	switch open := func() (*compose.Parts, error) { return compose.New(ctx, o) }; os.Getenv(childEnv) {
	case "work":
		work(ctx, open)
	case "up", "worker":
		return serve(ctx, open, os.Getenv(childEnv) == "up")
	case "call":
		return carryOut(ctx, open)
	}
	o.ReadOnly = os.Getenv(childEnv) == "look"
	d, err := compose.New(ctx, o)
	if err != nil {
		return fail(err)
	}
	s, err := d.Verbs(ctx, ".")
	if err != nil {
		return fail(err)
	}
	var out told
	if o.ReadOnly {
		if out.States, err = statesOf(ctx, s); err != nil {
			return fail(err)
		}
		return say(out, d)
	}
	name := cmp.Or(os.Getenv(loopEnv), "fix")
	if os.Getenv(childEnv) == "kill" { // As `pawl kill` does it: before anything is recovered.
		if _, err := s.Loops.Kill(ctx, ann, name, ""); err != nil {
			return fail(err)
		}
	}
	found, err := s.Runs.Recover(ctx)
	if err != nil {
		return fail(err)
	}
	for _, rec := range found {
		out.Recovered = append(out.Recovered, fmt.Sprintf("%s#%d %s %s %s", rec.Loop, rec.Run.N, rec.Died, rec.Run.Outcome, rec.Run.Snapshot))
		out.Lost += rec.Lost
	}
	if os.Getenv(childEnv) == "run" {
		plan, err := s.Runs.Prepare(ctx, runs.StartRequest{Loop: name, Request: os.Getenv(requestEnv)})
		if err != nil {
			return fail(err)
		}
		if out.Run, err = s.Runs.Start(ctx, plan); err != nil {
			return fail(err)
		}
	}
	if os.Getenv(childEnv) == "approve" {
		if out.Run, err = s.Approvals.Approve(ctx, "fix#1", loop.Answer{By: "somebody", From: "test"}); err != nil {
			return fail(err)
		}
	}
	if os.Getenv(childEnv) == "resume" {
		if _, err = s.Loops.Resume(ctx, ann, name); err != nil {
			return fail(err)
		}
	}
	if out.Landing, err = landing(context.WithoutCancel(ctx), d, s, name); err != nil {
		return fail(err)
	}
	return say(out, d)
}

// say prints what a child came to, and ends it.
func say(out told, d *compose.Parts) int {
	if err := errors.Join(json.NewEncoder(os.Stdout).Encode(out), d.Close()); err != nil {
		return fail(err)
	}
	return 0
}

// statesOf are the states of fix#1 as each verb that shows one has it.
func statesOf(ctx context.Context, s *api.Workspace) ([]string, error) {
	row, rowErr := s.Loops.Show(ctx, "fix")
	view, viewErr := s.Runs.Show(ctx, "fix#1")
	list, listErr := s.Runs.List(ctx, "fix", 1)
	why, whyErr := s.Runs.Why(ctx, "fix#1")
	if err := errors.Join(rowErr, viewErr, listErr, whyErr); err != nil || len(list) != 1 {
		return nil, fmt.Errorf("%d runs: %w", len(list), err)
	}
	return []string{row.State, view.State, list[0].State, why.State}, nil
}

// landing is the state of the newest land effect of the loop, or nothing.
func landing(ctx context.Context, d *compose.Parts, s *api.Workspace, name string) (state loop.EffectState, err error) {
	runs, err := s.Runs.List(ctx, name, 10)
	if err != nil {
		return "", err
	}
	err = d.Store().View(ctx, func(r *store.Reader) error {
		for _, run := range slices.Backward(runs) {
			effects, err := r.Effects(ctx, run.ID)
			if err != nil {
				return err
			}
			for _, e := range effects {
				if e.Kind == effect.KindLand {
					state = e.State
				}
			}
		}
		return nil
	})
	return state, err
}

func fail(err error) int {
	if errors.Is(err, loop.ErrLeaseLost) && !strings.Contains(err.Error(), loop.ErrLeaseLost.Error()) {
		err = fmt.Errorf("%w: %w", loop.ErrLeaseLost, err) // The parent tries again with a longer one.
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

const fixConfig = `name: fix
pattern: custom
tier: L2
cadence: 1h
goal: Make a.txt say three; change nothing else.
scope: ["src/**"]
verify: grep -q three src/a.txt || { echo a.txt lacks three; exit 7; }
guard: "true"
permission_mode: dontAsk
worktree: true
escalation: anything else
budget_tokens: 200000
kill_switch: .loops/fix/PAUSED exists
land_via: human
agent: command
agent_command: 'n=two; grep -q "^a.txt lacks three" "$PAWL_PROMPT" && n=three; echo "$n" > src/a.txt; printf "{\"outcome\":\"done\",\"summary\":\"says $n\"}" > "$PAWL_REPORT"'
`

// fixture is one workspace with one home.
type fixture struct {
	t          *testing.T
	root, home string
	database   string
	host       string   // that its children believe to be on; empty: this one
	loop       string   // that its children run; empty: fix
	collected  bool     // by git gc
	environ    []string // of its children; nil: that of this process
}

// tierFor is the tier of a fixture's loop. What dies on PostgreSQL is to show what
// the store does about it; on SQLite the sandbox dies with it, where there is one.
func tierFor(t *testing.T, database string) string {
	t.Helper()
	if database == "" && confines(t) {
		return full
	}
	return bare
}

// hostTested is what the sandbox keeps of a self-test of this host, which is made once
// for all homes.
var hostTested = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "pawl-tested-")
	if err != nil {
		return nil
	}
	defer func() { _ = sandbox.RemoveTree(dir) }()
	if sandbox.Check(context.Background(), dir, sandbox.Full) != nil {
		return nil // Each home says for itself what is wrong.
	}
	text, _ := os.ReadFile(filepath.Join(dir, "sandbox.json"))
	return text
})

// newHome is a home of pawl's with a new store, on a host whose sandbox was tested.
func newHome(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(storetest.SQLite(t))
	if text := hostTested(); text != nil {
		if err := os.WriteFile(filepath.Join(dir, "sandbox.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newFixture(t *testing.T, database string) *fixture {
	t.Helper()
	s := &fixture{t: t, root: t.TempDir(), home: newHome(t), database: database}
	for name, text := range map[string]string{
		"src/a.txt": "one\n", "README.md": "hello\n", ".loops/fix/loop.config.yaml": fixConfig + "sandbox: " + tierFor(t, database) + "\n",
		".loops/fix/STATE.md": "# fix — STATE\n_Updated: 2026-01-01T00:00:00Z · run #0 · readiness 100/100_\n\n" +
			"## Priority   (act on these next)\n- [P1] a.txt is wrong\n  a note by hand\n\n## Watch\n- (none yet)\n\n## Noise\n- (none yet)\n",
	} {
		path := filepath.Join(s.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.git("init", "-q", "-b", "main")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	return s
}

// proposedFixture is a fixture whose first run proposed a branch.
func proposedFixture(t *testing.T, database string) *fixture {
	t.Helper()
	return proposed(t, newFixture(t, database))
}

// proposed makes the first run of a fixture, which proposes a branch.
func proposed(t *testing.T, s *fixture) *fixture {
	t.Helper()
	if v := s.pawl("run"); v == nil || v.Run.Outcome != loop.OutcomeProposed || v.Run.Approval == "" {
		t.Fatalf("the run before = %+v, want proposed with an approval", v)
	}
	return s
}

func (s *fixture) git(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-C", s.root}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// pawl runs a child that must succeed. A killed child returns nil.
func (s *fixture) pawl(verb string, env ...string) *told {
	s.t.Helper()
	v, stderr := s.try(verb, env...)
	if stderr != "" {
		s.t.Fatalf("child: %s", stderr)
	}
	return v
}

// try runs a child and returns what it said, or what it failed with.
func (s *fixture) try(verb string, env ...string) (*told, string) {
	s.t.Helper()
	cmd := s.command(verb, env...)
	return s.told(cmd, cmd.Run())
}

// told is what a child said that has ended with err.
func (s *fixture) told(cmd *exec.Cmd, err error) (*told, string) {
	s.t.Helper()
	out, stderr := cmd.Stdout.(*strings.Builder).String(), cmd.Stderr.(*strings.Builder).String()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == syscall.SIGKILL {
		return nil, ""
	}
	if err != nil {
		return nil, err.Error() + ": " + stderr
	}
	var v told
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		s.t.Fatalf("child said %q: %v", out, err)
	}
	return &v, ""
}

// command is a child that was not started yet.
func (s *fixture) command(verb string, env ...string) *exec.Cmd {
	argv := []string{os.Args[0]}
	if s.host != "" {
		unshare := []string{"unshare", "--uts"}
		if os.Geteuid() != 0 {
			unshare = append(unshare, "--map-root-user")
		}
		argv = append(append(unshare, "sh", "-c", `hostname "$0" && exec "$1"`, s.host), argv...)
	}
	cmd := exec.CommandContext(s.t.Context(), argv[0], argv[1:]...)
	cmd.Dir = s.root
	cmd.Stdout, cmd.Stderr = new(strings.Builder), new(strings.Builder)
	if cmd.Env = os.Environ(); s.environ != nil {
		cmd.Env = slices.Clone(s.environ)
	}
	cmd.Env = append(cmd.Env, append([]string{
		childEnv + "=" + verb, config.EnvHome + "=" + s.home, config.EnvDatabase + "=" + s.database, clockEnv + "=" + s.clockFile(), loopEnv + "=" + s.loop,
	}, env...)...)
	return cmd
}

func readHits(t *testing.T, trace string) (list []string) {
	t.Helper()
	seen := map[string]int{}
	for name := range strings.Lines(readFile(t, trace)) {
		name = strings.TrimSpace(name)
		seen[name]++
		list = append(list, fmt.Sprintf("%s:%d", name, seen[name]))
	}
	return list
}

// spread is a sample of points that lies evenly over all of them, or all points
// where every one is wanted. The n-th sample holds others than the first.
func spread(points []string, most, n int) (list []string) {
	if sample.All() || most >= len(points) {
		return points
	}
	first := (n%6 + 1) * len(points) / (max(1, most) * 6)
	for i := range most {
		list = append(list, points[(first+i*len(points)/most)%len(points)])
	}
	return list
}

// The process that recovers may die as well, at any point.
func TestKilledWhileItRecoversTheNextCommandPutsItRight(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"engine.act.after:1", "engine.effect.apply.after:1"} {
		trace := filepath.Join(t.TempDir(), "trace")
		s := newFixture(t, "")
		s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+first)
		s.pawl("recover", "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace)
		points := readHits(t, trace)
		if len(points) < 8 {
			t.Fatalf("recovery after %s hits only %v", first, points)
		}
		for _, at := range spread(points, 2, 0) {
			t.Run(first+" then "+at, func(t *testing.T) {
				s := newFixture(t, "")
				s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+first)
				if v := s.pawl("recover", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at); v != nil {
					t.Fatalf("recovery was not killed: %+v", v)
				}
				s.checkRecovered(s.pawl("recover").Recovered)
				s.nothingLeft()
				s.checkRuns(s.pawl("run").Run)
				s.nothingLeft()
			})
		}
	}
}
