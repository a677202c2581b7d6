package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/formats/boot/bootlink"
	"github.com/pawl-run/pawl/internal/formats/boot/bootrepo"
	"github.com/pawl-run/pawl/internal/formats/boot/bootstate"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

// bootAgent is what the agent of a boot workspace does, and a shell beside it.
const bootAgent = `date +%s%N > src/new.txt; echo "{\"outcome\":\"done\"}" > "$PAWL_REPORT"`

// bootFixture is a fixture that follows the boot protocol, with nothing to do; if it has a
// remote, that is a bare repository beside it.
func bootFixture(b *testing.B, remote bool) *fixture {
	b.Helper()
	s := newFixture(b, 20, "")
	boot := b.TempDir()
	now := time.Now()
	for name, text := range bootrepo.Scaffold(now) {
		path := filepath.Join(boot, name)
		s.must(os.MkdirAll(filepath.Dir(path), 0o755))
		s.must(os.WriteFile(path, text, 0o644))
	}
	bareGit(b, boot, "init", "-q", "-b", "main")
	bareGit(b, boot, "add", "-A")
	bareGit(b, boot, "commit", "-q", "-m", "contract")
	bareGit(b, boot, "tag", "v1.0.0")
	s.write("AGENT_LINK.md", bootlink.Render(bootlink.Link{
		Repository: boot, Reference: "v1.0.0", Version: bootrepo.ScaffoldVersion,
		State: bootlink.DefaultState, Tasks: bootlink.DefaultTasks, Changelog: bootlink.DefaultChangelog, Directories: bootlink.DefaultDirectories,
	}))
	s.write(bootlink.DefaultState, string(bootstate.NewState("bench", now).Encode()))
	s.write(bootlink.DefaultTasks, string(bootstate.NewTodo(now).Encode()))
	s.write(bootlink.DefaultChangelog, "# Changelog\n")
	s.write(".gitignore", "/scratch/\n")
	s.write(".loops/boot/loop.config.yaml", "scope: [\"src/**\"]\nagent: command\nagent_command: '"+bootAgent+"'\n")
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "a boot workspace")
	if remote {
		origin := b.TempDir()
		bareGit(b, origin, "init", "-q", "--bare", "-b", "main")
		s.git("remote", "add", "origin", origin)
		s.git("push", "-q", "-u", "origin", "main")
	}
	return s
}

// bootRows measure steps 1 to 4 of the boot protocol and its whole run, next to plain git
// that makes the same commit and the push after the same command.
func bootRows(b *testing.B) []row {
	b.Helper()
	var rows []row
	for _, remote := range []bool{false, true} {
		s := bootFixture(b, remote)
		name := "boot start-up (steps 1 to 4), warm cache, no remote"
		if remote {
			name = "boot start-up (steps 1 to 4), warm cache, with a remote"
		}
		rows = append(rows, row{name, millis(median(s.bootStarts(21))), "< 50 ms", "", ""})
	}
	return append(rows, bootRuns(b)...)
}

// bootStarts are how long runs were in rehydrate that find nothing to do.
func (s *fixture) bootStarts(rounds int) (took []time.Duration) {
	s.b.Helper()
	var mu sync.Mutex
	var events []loop.Event
	s.live = func(e loop.Event) { mu.Lock(); events = append(events, e); mu.Unlock() }
	for range rounds + 1 { // The first one fetches the boot repository.
		events = nil
		s.run(s.b.Context(), "boot", loop.OutcomeQuiet)
		shares := map[loop.Phase]time.Duration{}
		addShares(shares, events)
		took = append(took, shares[loop.PhaseRehydrate])
	}
	return took[1:]
}

func bootRuns(b *testing.B) []row {
	b.Helper()
	s := bootFixture(b, true)
	bare := bootFixture(b, true)
	var mu sync.Mutex
	var events []loop.Event
	s.live = func(e loop.Event) { mu.Lock(); events = append(events, e); mu.Unlock() }
	shares := map[loop.Phase]time.Duration{}
	const rounds = 21
	var took, plain []time.Duration
	for i := range rounds + 1 {
		events = nil
		p, err := s.svc.Runs.Prepare(b.Context(), runs.StartRequest{Loop: "boot", Request: fmt.Sprintf("Write it for the time %d", i), Live: s.live})
		s.must(err)
		v, err := s.svc.Runs.Start(b.Context(), p)
		s.must(err)
		if v.Outcome != loop.OutcomeDone || v.Detail != "" {
			b.Fatalf("run = %s %s %q, want it done", v.Outcome, v.Reason, v.Detail)
		}
		git := timed(func() { bare.bareSession(i) })
		if i == 0 {
			continue // It makes the base.
		}
		addShares(shares, events)
		took, plain = append(took, toDuration(v.MS.Total)), append(plain, git)
	}
	ours, git := median(took), median(plain)
	return []row{
		{"boot run with its commit and its push, full, 20 files", millis(ours), "< 1.50 ×", "plain git and the same command " + millis(git), ratio(ours, git)},
		{"  where its time goes", shareText(shares, rounds), "", "", ""},
	}
}

// bareSession does with plain git what a boot run leaves: the work and the memory in one
// commit, and its push.
func (s *fixture) bareSession(i int) {
	s.b.Helper()
	cmd := exec.CommandContext(s.b.Context(), "sh", "-c", bootAgent)
	cmd.Dir, cmd.Env = s.root, append(slices.Clone(os.Environ()), "PAWL_REPORT="+filepath.Join(s.home, "report"))
	s.must(cmd.Run())
	for _, name := range []string{bootlink.DefaultState, bootlink.DefaultTasks, bootlink.DefaultChangelog, "audits/today.md"} {
		s.write(name, fmt.Sprintf("%d\n", i))
	}
	s.git("add", "-A")
	s.git("commit", "-q", "-m", "agent: a session")
	s.git("push", "-q", "origin", "main")
}
