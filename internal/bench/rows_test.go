package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// buildPawl makes the program as it is released.
func buildPawl(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "pawl")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "../../cmd/pawl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func coldStart(b *testing.B) []row {
	b.Helper()
	bin := buildPawl(b)
	start := func(name string, args ...string) []time.Duration {
		var took []time.Duration
		for range 31 {
			took = append(took, timed(func() {
				if err := exec.CommandContext(b.Context(), name, args...).Run(); err != nil {
					b.Fatal(err)
				}
			}))
		}
		return took
	}
	bare, cold := median(start("/bin/true")), median(start(bin, "version"))
	info, err := os.Stat(bin)
	if err != nil {
		b.Fatal(err)
	}
	return []row{
		{"cold start `pawl version`", millis(cold), "< 20 ms", "/bin/true " + millis(bare), ratio(cold, bare)},
		{"binary, stripped", fmt.Sprintf("%.1f MB", float64(info.Size())/1e6), "< 35 MB", "", ""},
	}
}

// quietRuns measures runs that find nothing to do: everything but the start of
// the process, files written and synced.
func quietRuns(b *testing.B) []row {
	b.Helper()
	s := newFixture(b, 20, "")
	s.loop("waits", "L1", "agent: command\nretry_blocked_after: 1000000\nagent_command: 'echo \"{\\\"outcome\\\":\\\"blocked\\\",\\\"reason\\\":\\\"x\\\"}\" > \"$PAWL_REPORT\"'")
	s.loop("looks", "L1", "agent: command\nagent_command: 'false'\nsense: 'true'")
	s.run(b.Context(), "waits", loop.OutcomeBlocked)
	var plain, sensed []time.Duration
	before, runs := s.d.Store().Commits(), int64(0)
	for range 41 {
		plain = append(plain, toDuration(s.run(b.Context(), "waits", loop.OutcomeQuiet).MS.Total))
		runs++
	}
	commits := s.d.Store().Commits() - before
	for range 21 {
		v := s.run(b.Context(), "looks", loop.OutcomeQuiet)
		sensed = append(sensed, toDuration(v.MS.Total))
	}
	return []row{
		{"quiet run, 0 tokens", millis(median(plain)), "< 5 ms", fmt.Sprintf("%.1f commits", float64(commits)/float64(runs)), ""},
		{"quiet run with a sense command", millis(median(sensed)), "+ one start", "", ""},
	}
}

func toDuration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

const writes = "agent: command\nagent_command: 'date +%s%N > src/new.txt; echo \"{\\\"outcome\\\":\\\"done\\\"}\" > \"$PAWL_REPORT\"'"

func wholeRunSmall(b *testing.B) []row { b.Helper(); return wholeRun(b, 20, 21, "< 50 ms, < 1.50 ×") }

func wholeRunLarge(b *testing.B) []row {
	b.Helper()
	return wholeRun(b, 50_000, 3, "< 250 ms (4 of 12)")
}

// wholeRun measures a proposing run next to plain git making two worktrees,
// committing in one and removing both.
func wholeRun(b *testing.B, files, rounds int, target string) []row {
	b.Helper()
	var mu sync.Mutex
	var events []loop.Event
	s := newFixture(b, files, "")
	s.live = func(e loop.Event) { mu.Lock(); events = append(events, e); mu.Unlock() }
	s.loop("works", "L2", writes)
	begun, _ := s.proposes("works")
	first := toDuration(begun.MS.Overhead)
	var overhead, baseline []time.Duration
	shares := map[loop.Phase]time.Duration{}
	var committed int64
	for i := range rounds {
		events = nil
		v, commits := s.proposes("works")
		committed += commits
		overhead = append(overhead, toDuration(v.MS.Overhead))
		addShares(shares, events)
		baseline = append(baseline, timed(func() { plainGit(s, i) }))
	}
	commits := float64(committed) / float64(rounds)
	over, bare := median(overhead), median(baseline)
	name := fmt.Sprintf("whole run outside agent and gates, full, %d files", files)
	return []row{
		{name + ", the first one", millis(first), "", "writes the base", ""},
		{name, millis(over), target, "plain git " + millis(bare), ratio(over, bare)},
		{"  commits of that run", fmt.Sprintf("%.1f", commits), "≤ 6", "", ""},
		{"  where its time goes", shareText(shares, rounds), "", "", ""},
	}
}

// wholeProcess measures what somebody sees who starts `pawl run` from cron: the whole
// process of a proposing run, in turns with plain git, and how many processes it starts
// beside its agent and its gates.
func wholeProcess(b *testing.B) []row {
	b.Helper()
	bin := buildPawl(b)
	s := newFixture(b, 20, "")
	s.loop("works", "L2", writes)
	run := func(before ...string) time.Duration {
		b.Helper()
		argv := append(before, bin, "run", "works")
		cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = s.root, append(os.Environ(), config.EnvHome+"="+s.home)
		took := timed(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %v\n%s", argv, err, out)
			}
		})
		made, err := s.svc.Runs.List(b.Context(), "works", 1)
		s.must(err)
		if made[0].Outcome != loop.OutcomeProposed {
			b.Fatalf("the run is %s %s, want it to propose", made[0].Outcome, made[0].Reason)
		}
		s.void(made[0].Approval)
		return took
	}
	run() // It makes the base.
	var took, baseline []time.Duration
	for i := range 21 {
		took = append(took, run())
		baseline = append(baseline, timed(func() { plainGit(s, i) }))
	}
	ours, bare := median(took), median(baseline)
	processes := "strace is not installed"
	if _, err := exec.LookPath("strace"); err == nil {
		trace := filepath.Join(b.TempDir(), "trace")
		run("strace", "-f", "-qq", "-e", "trace=execve", "-o", trace)
		processes = startedProcesses(b, trace)
	}
	return []row{
		{"`pawl run` as a whole process, from outside, full, 20 files", millis(ours), "< 1.50 ×", "plain git in pairs " + millis(bare), ratio(ours, bare)},
		{"  processes beside agent and gates", processes, "≤ 8", "", ""},
	}
}

// startedProcesses counts the programs in what strace wrote, by name. The first is pawl
// itself; a shell and date are the agent and the gates.
func startedProcesses(b *testing.B, trace string) string {
	b.Helper()
	text, err := os.ReadFile(trace)
	if err != nil {
		b.Fatal(err)
	}
	count, all := map[string]int{}, 0
	var names []string
	for line := range strings.Lines(string(text)) {
		_, call, found := strings.Cut(line, "execve(")
		args := strings.Split(call, `"`)
		if !found || len(args) < 4 || strings.Contains(call, "ENOENT") {
			continue
		}
		name := filepath.Base(args[1])
		if name == "exe" { // pawl, for a purpose
			name = args[len(args)-2]
		}
		if name == "sh" || name == "date" || name == "pawl" {
			continue
		}
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
		all++
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", strings.TrimPrefix(name, "__pawl-"), count[name])
	}
	return fmt.Sprintf("%d (%s)", all, strings.Join(names, ", "))
}

// longHistory measures what a history costs a run: the first packs it, and the
// next ones are to be as fast as those in a repository without one.
func longHistory(b *testing.B) []row {
	b.Helper()
	const commits = 100_000
	short, long := newFixture(b, 20, ""), newFixture(b, 20, "")
	long.history(commits)
	overhead := func(s *fixture) time.Duration {
		v, _ := s.proposes("works")
		return toDuration(v.MS.Overhead)
	}
	var first, moved time.Duration
	var bare, over []time.Duration
	for _, s := range []*fixture{short, long} {
		s.loop("works", "L2", writes)
		first = overhead(s)
	}
	for range 21 { // In turns, so that what else the machine does strikes both alike.
		bare, over = append(bare, overhead(short)), append(over, overhead(long))
	}
	long.git("commit", "-q", "--allow-empty", "-m", "next")
	moved = overhead(long)
	without, with := median(bare), median(over)
	name := fmt.Sprintf("whole run outside agent and gates, full, %d commits", commits)
	return []row{
		{name + ", the first one", millis(first), "", "packs what the base reaches", ""},
		{name, millis(with), "< 1.10 ×", "1 commit " + millis(without), ratio(with, without)},
		{"  after one more commit", millis(moved), "", "adds what is new", ""},
	}
}

// history puts commits on main, each of which changes one file.
func (s *fixture) history(commits int) {
	s.b.Helper()
	var in strings.Builder
	for i := range commits {
		text := fmt.Sprintf("commit %d", i)
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter t <t@t> %d +0000\ndata %d\n%s\n", 1_500_000_000+60*i, len(text), text)
		if i == 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		fmt.Fprintf(&in, "M 100644 inline old/d%d/f%d.txt\ndata %d\n%s\n", i%7, i%100, len(text), text)
	}
	cmd := exec.CommandContext(s.b.Context(), "git", "-C", s.root, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		s.b.Fatalf("git fast-import: %v\n%s", err, out)
	}
	s.git("reset", "-q", "--hard")
}

func plainGit(s *fixture, i int) {
	a, c := filepath.Join(s.home, "wt-a"), filepath.Join(s.home, "wt-b")
	branch := fmt.Sprintf("bare/%d", i)
	s.git("worktree", "add", "-q", "-b", branch, a)
	s.must(os.WriteFile(filepath.Join(a, "src/new.txt"), []byte(branch), 0o644))
	bareGit(s.b, a, "add", "-A")
	bareGit(s.b, a, "commit", "-q", "-m", "change")
	s.git("worktree", "add", "-q", "--detach", c, branch)
	s.git("worktree", "remove", "--force", a)
	s.git("worktree", "remove", "--force", c)
}

// addShares adds the time from the start of each phase to the next one.
func addShares(shares map[loop.Phase]time.Duration, events []loop.Event) {
	var phase loop.Phase
	var since time.Time
	for _, e := range events {
		if e.Kind != loop.EventPhase {
			continue
		}
		if phase != "" {
			shares[phase] += e.At.Sub(since)
		}
		phase, since = e.Phase, e.At
	}
}

func shareText(shares map[loop.Phase]time.Duration, rounds int) string {
	var parts []string
	for _, p := range loop.Phases {
		if d := shares[p] / time.Duration(rounds); d >= 500*time.Microsecond {
			parts = append(parts, fmt.Sprintf("%s %.1f", p, float64(d.Microseconds())/1000))
		}
	}
	return strings.Join(parts, " · ") + " (with agent and gates)"
}

// runsPerSecond fires quiet runs of several loops at once, as a daemon would.
func runsPerSecond(b *testing.B) []row {
	b.Helper()
	var rows []row
	for _, db := range []struct{ name, url, target string }{
		{"SQLite", "", "> 300/s"}, {"PostgreSQL", pgtest.URL(b), "> 1,000/s"},
	} {
		rate, commits := noOps(b, db.url)
		rows = append(rows, row{"durable no-op runs, " + db.name, fmt.Sprintf("%.0f/s", rate), db.target, fmt.Sprintf("%.1f commits each", commits), ""})
	}
	return rows
}
