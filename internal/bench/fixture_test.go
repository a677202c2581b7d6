package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// builtVersion is what a program says that buildPawl has made: another version reads all
// definitions again.
const builtVersion = "dev"

// fixture is a repository with loops, and the composition that runs them.
type fixture struct {
	b    *testing.B
	root string
	home string
	d    *compose.Parts
	svc  *api.Workspace
	live func(loop.Event) // sees the events of runs; may be nil
}

func newFixture(b *testing.B, files int, database string) *fixture {
	b.Helper()
	s := &fixture{b: b, root: b.TempDir(), home: b.TempDir()}
	for i := range files {
		s.write(fmt.Sprintf("src/d%03d/f%05d.txt", i/100, i), fmt.Sprintf("file %d\n", i))
	}
	s.git("init", "-q", "-b", "main")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "first")
	settings, err := config.Load(config.Settings{Home: s.home, Database: database}, nil)
	s.must(err)
	s.d, err = compose.New(b.Context(), compose.Options{Settings: settings, Environ: os.Environ(), Log: compose.Log(nil), Version: builtVersion})
	s.must(err)
	b.Cleanup(func() { s.must(s.d.Close()) })
	s.svc, err = s.d.Verbs(b.Context(), s.root)
	s.must(err)
	return s
}

func (s *fixture) must(err error) {
	s.b.Helper()
	if err != nil {
		s.b.Fatal(err)
	}
}

func (s *fixture) write(name, text string) {
	s.b.Helper()
	path := filepath.Join(s.root, name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(text), 0o644))
}

func (s *fixture) git(args ...string) {
	s.b.Helper()
	bareGit(s.b, s.root, args...)
}

// bareGit is git as a shell script would run it.
func bareGit(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@t", "-C", dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// loop defines a loop with extra lines of configuration.
func (s *fixture) loop(name, tier, extra string) {
	s.b.Helper()
	s.loopEvery(name, tier, "1h", extra)
}

func (s *fixture) loopEvery(name, tier, cadence, extra string) {
	s.b.Helper()
	s.write(".loops/"+name+"/loop.config.yaml", fmt.Sprintf(`name: %s
pattern: custom
tier: %s
cadence: %q
goal: Keep things right.
scope: ["src/**"]
verify: "true"
guard: "true"
permission_mode: dontAsk
worktree: true
escalation: anything else
budget_tokens: 200000
kill_switch: .loops/%s/PAUSED exists
land_via: human
%s
`, name, tier, cadence, name, extra))
}

// proposes is a run that proposes, and how often it committed to the store. What it
// proposes makes its proposal void, so that the next run has the same to do.
func (s *fixture) proposes(name string) (v runs.View, commits int64) {
	s.b.Helper()
	before := s.d.Store().Commits()
	v = s.run(s.b.Context(), name, loop.OutcomeProposed)
	commits = s.d.Store().Commits() - before
	s.void(v.Approval)
	return v, commits
}

func (s *fixture) void(approval string) {
	s.b.Helper()
	s.must(s.d.Store().Update(s.b.Context(), func(tx *store.Tx) error {
		_, err := tx.VoidApproval(s.b.Context(), approval, "the next run makes it again")
		return err
	}))
}

func (s *fixture) run(ctx context.Context, name string, want loop.Outcome) runs.View {
	s.b.Helper()
	plan, err := s.svc.Runs.Prepare(ctx, runs.StartRequest{Loop: name, Live: s.live})
	s.must(err)
	v, err := s.svc.Runs.Start(ctx, plan)
	s.must(err)
	if v.Outcome != want {
		s.b.Fatalf("run %s = %s %s %q, want %s", name, v.Outcome, v.Reason, v.Detail, want)
	}
	return v
}
