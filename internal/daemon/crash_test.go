package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pawl-run/pawl/internal/config"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/daemon"
	"github.com/pawl-run/pawl/internal/effect"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/protocol/spine"
	"github.com/pawl-run/pawl/internal/sandbox"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/store/pgtest"
)

// childEnv makes this test binary a pawl that recovers and then runs the loop
// in the current folder once, and prints what it came to as JSON.
const childEnv = "PAWL_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	os.Exit(pgtest.Main(m, "fsync=off"))
}

// told is what a child prints.
type told struct {
	Recovered []string // "fix#1 act interrupted refs/…"
	Run       control.RunView
	Landing   loop.EffectState // of the newest land effect, if there is one
}

func child() int {
	ctx := context.Background()
	settings, err := config.Load(config.Settings{}, os.Environ())
	if err != nil {
		return fail(err)
	}
	d, err := daemon.New(ctx, daemon.Options{Settings: settings, Environ: os.Environ(), Log: daemon.Log(os.Environ())})
	if err != nil {
		return fail(err)
	}
	s, err := d.Control(ctx, ".")
	if err != nil {
		return fail(err)
	}
	var out told
	found, err := s.Recover(ctx)
	if err != nil {
		return fail(err)
	}
	for _, rec := range found {
		out.Recovered = append(out.Recovered, fmt.Sprintf("%s#%d %s %s %s", rec.Loop, rec.Run.N, rec.Died, rec.Run.Outcome, rec.Run.Snapshot))
	}
	if os.Getenv(childEnv) == "run" {
		plan, err := s.Prepare(ctx, control.RunRequest{Loop: "fix"})
		if err != nil {
			return fail(err)
		}
		if out.Run, err = s.Start(ctx, plan); err != nil {
			return fail(err)
		}
	}
	if os.Getenv(childEnv) == "approve" {
		if out.Run, err = s.Approve(ctx, "fix#1", loop.Answer{By: "somebody", From: "test"}); err != nil {
			return fail(err)
		}
	}
	if os.Getenv(childEnv) == "kill" {
		if _, err = s.Kill(ctx, "fix"); err != nil {
			return fail(err)
		}
	}
	if out.Landing, err = landing(ctx, d, s); err != nil {
		return fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return fail(err)
	}
	if err := d.Close(); err != nil {
		return fail(err)
	}
	return 0
}

// landing is the state of the newest land effect of the loop, or nothing.
func landing(ctx context.Context, d *daemon.Daemon, s *control.Service) (state loop.EffectState, err error) {
	runs, err := s.Runs(ctx, "fix", 10)
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

// site is one workspace with one home.
type site struct {
	t          *testing.T
	root, home string
	database   string
}

// tierFor is the tier of a site's loop. What dies on PostgreSQL is to show what
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
	defer func() { _ = sandbox.Discard(dir) }()
	if sandbox.Check(context.Background(), dir, sandbox.Full) != nil {
		return nil // Each home says for itself what is wrong.
	}
	text, _ := os.ReadFile(filepath.Join(dir, "sandbox.json"))
	return text
})

// newHome is a home of pawl's on a host whose sandbox was tested.
func newHome(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if text := hostTested(); text != nil {
		if err := os.WriteFile(filepath.Join(dir, "sandbox.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newSite(t *testing.T, database string) *site {
	t.Helper()
	s := &site{t: t, root: t.TempDir(), home: newHome(t), database: database}
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

func (s *site) git(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-C", s.root}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// pawl runs a child that must succeed. A killed child returns nil.
func (s *site) pawl(verb string, env ...string) *told {
	s.t.Helper()
	v, stderr := s.try(verb, env...)
	if stderr != "" {
		s.t.Fatalf("child: %s", stderr)
	}
	return v
}

// try runs a child and returns what it said, or what it failed with.
func (s *site) try(verb string, env ...string) (*told, string) {
	s.t.Helper()
	cmd := s.command(verb, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() && st.Signal() == syscall.SIGKILL {
		return nil, ""
	}
	if err != nil {
		return nil, err.Error() + ": " + stderr.String()
	}
	var v told
	if err := json.Unmarshal(out, &v); err != nil {
		s.t.Fatalf("child said %q: %v", out, err)
	}
	return &v, ""
}

// command is a child that was not started yet.
func (s *site) command(verb string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), os.Args[0])
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), append([]string{
		childEnv + "=" + verb, config.EnvHome + "=" + s.home, config.EnvDatabase + "=" + s.database,
	}, env...)...)
	return cmd
}

// hits runs the loop to its end and lists every hit of every fault point, in
// order, as name:k.
func hits(t *testing.T, database string) []string {
	t.Helper()
	s := newSite(t, database)
	trace := filepath.Join(t.TempDir(), "trace")
	if v := s.pawl("run", "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace); v == nil || v.Run.Outcome != loop.OutcomeProposed {
		t.Fatalf("an undisturbed run = %+v, want proposed", v)
	}
	return readHits(t, trace)
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

func TestKilledAtAnyPointTheNextCommandPutsItRight(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { t.Helper(); return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := database(t)
			points := hits(t, shared)
			if len(points) < 40 {
				t.Fatalf("only %d fault points were hit: %v", len(points), points)
			}
			for _, at := range points {
				t.Run(at, func(t *testing.T) { crashAt(t, newSite(t, shared), at) })
			}
		})
	}
}

// The process that recovers may die as well, at any point.
func TestKilledWhileItRecoversTheNextCommandPutsItRight(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"engine.act.after:1", "engine.effect.apply.after:1"} {
		trace := filepath.Join(t.TempDir(), "trace")
		s := newSite(t, "")
		s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+first)
		s.pawl("recover", "PAWL_FAULTS=1", "PAWL_FAULT_TRACE="+trace)
		points := readHits(t, trace)
		if len(points) < 8 {
			t.Fatalf("recovery after %s hits only %v", first, points)
		}
		for _, at := range points {
			t.Run(first+" then "+at, func(t *testing.T) {
				s := newSite(t, "")
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

// A disk that is full at one write must not lose what was written before it,
// and must not be taken for success.
func TestADiskThatIsFullAtAnyWriteLosesNothing(t *testing.T) {
	t.Parallel()
	for _, at := range hits(t, "") {
		t.Run(at, func(t *testing.T) { fullAt(t, newSite(t, ""), at) })
	}
}

func fullAt(t *testing.T, s *site, at string) {
	t.Helper()
	before := s.git("rev-parse", "HEAD", "main")
	v, stderr := s.try("run", "PAWL_FAULTS=1", "PAWL_FAIL_AT="+at+"=ENOSPC")
	if v == nil && !strings.Contains(stderr, "no space left on device") {
		t.Errorf("the child says %q, want the full disk", stderr)
	}
	if v != nil && v.Run.Outcome != loop.OutcomeProposed && !strings.Contains(v.Run.Detail, "no space left on device") {
		t.Errorf("the run is %s %q, want proposed or the full disk", v.Run.Outcome, v.Run.Detail)
	}
	if _, err := spine.ParseState(readFile(t, filepath.Join(s.root, ".loops/fix/STATE.md"))); err != nil {
		t.Errorf("STATE.md on the full disk: %v", err)
	}
	s.checkRecovered(s.pawl("recover").Recovered)
	s.nothingLeft()
	s.checkRuns(s.pawl("run").Run)
	s.nothingLeft()
	if now := s.git("rev-parse", "HEAD", "main"); now != before {
		t.Errorf("HEAD or main moved: %s", now)
	}
}

func crashAt(t *testing.T, s *site, at string) {
	t.Helper()
	before := s.git("rev-parse", "HEAD", "main") + s.git("stash", "list")
	index := readFile(t, filepath.Join(s.root, ".git/index"))
	if v := s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT="+at); v != nil {
		t.Fatalf("it was not killed: %+v", v)
	}
	// A state file is always a complete old or new version, before anything is mended.
	if _, err := spine.ParseState(readFile(t, filepath.Join(s.root, ".loops/fix/STATE.md"))); err != nil {
		t.Errorf("STATE.md after the crash: %v", err)
	}
	v := s.pawl("recover")
	if v == nil {
		t.Fatal("recovery was killed")
	}
	again := s.pawl("recover")
	if len(again.Recovered) != 0 {
		t.Errorf("a second recovery found %v", again.Recovered)
	}
	s.checkRecovered(v.Recovered)
	s.nothingLeft()
	last := s.pawl("run")
	s.checkRuns(last.Run)
	s.checkReported(at, v.Recovered)
	s.nothingLeft()
	if now := s.git("rev-parse", "HEAD", "main") + s.git("stash", "list"); now != before {
		t.Errorf("HEAD, main or stash moved: %s, was %s", now, before)
	}
	if readFile(t, filepath.Join(s.root, ".git/index")) != index {
		t.Error("the index was touched")
	}
	if status := s.git("status", "--porcelain", "--untracked-files=all"); strings.Contains(status, "src/") {
		t.Errorf("the checkout was touched:\n%s", status)
	}
}
