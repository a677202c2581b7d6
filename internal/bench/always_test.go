package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/daemon"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

const (
	minutesEnv = "PAWL_BENCH_MINUTES" // how long BenchmarkAlways lets loops fire, and then nothing be due, instead of 10
	loopsEnv   = "PAWL_BENCH_LOOPS"   // how many loops it has instead of 10,000
)

func setting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return usual
}

// BenchmarkAlways lets ten thousand loops of mixed cadences fire for ten minutes on both
// stores, and then be due never: how late they fire, and what that costs.
func BenchmarkAlways(b *testing.B) {
	var rows []row
	defer func() { report(b, "always", rows) }() // Also of one that fails on its way.
	long, loops := time.Duration(setting(minutesEnv, 10))*time.Minute, setting(loopsEnv, 10_000)
	rows = append(rows, alwaysRows(b, "SQLite", "", loops, long)...)
	rows = append(rows, alwaysRows(b, "PostgreSQL", pgtest.URL(b), loops, long)...)
}

// mixedCadences are those of the loops, in turns. A minute of jitter spreads those that are
// due in the same one.
var mixedCadences = []string{"H/5 * * * *", "H/10 * * * *", "H/30 * * * *", "H */2 * * *", "H H * * *"}

func alwaysRows(b *testing.B, name, database string, loops int, long time.Duration) []row {
	b.Helper()
	s := newFixture(b, 5, database)
	byName := map[string]loop.Definition{}
	for i := range loops {
		d := loop.Definition{Name: fmt.Sprintf("l%05d", i), Cadence: mixedCadences[i%len(mixedCadences)], Jitter: time.Minute}
		byName[d.Name] = d
		s.loopEvery(d.Name, "L1", d.Cadence, "jitter: 1m\nagent: command\nagent_command: 'true'")
	}
	registered := timed(func() {
		_, err := s.svc.Loops.Register(b.Context())
		s.must(err)
	})
	dueOf := func(name string, planned time.Time) time.Time {
		next, err := schedule.Next(byName[name], time.Time{}, planned.Add(-time.Millisecond))
		s.must(err)
		return next.Due
	}
	var mu sync.Mutex
	var fired, began []time.Duration
	d, err := s.d.Daemon(b.Context(), compose.DaemonOptions{Workers: 8, Notices: true, Tell: func(h daemon.Happened) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case h.Wrong != nil:
			b.Error(h.Wrong)
		case h.Fired != nil:
			fired = append(fired, h.Fired.Created.Sub(dueOf(h.Loop, h.Fired.Planned)))
		case h.Ended != nil:
			began = append(began, h.Ended.Started.Sub(dueOf(h.Loop, h.Ended.Planned)))
		}
	}})
	s.must(err)
	size := func() int64 {
		if database != "" {
			return postgresSize(b, database)
		}
		return fileSize(b, filepath.Join(s.home, "pawl.db")) + fileSize(b, filepath.Join(s.home, "pawl.db-wal"))
	}
	s.must(d.Start(b.Context()))
	bytes, before, used := size(), s.d.Store().Commits(), cpu()
	time.Sleep(long)
	commits, spent, grown := s.d.Store().Commits()-before, cpu()-used, size()-bytes
	mu.Lock()
	slices.Sort(fired)
	slices.Sort(began)
	text := []string{quantile(fired, .5), quantile(fired, .99), quantile(began, .5), quantile(began, .99)}
	count, runs := len(fired), max(1, len(began))
	mu.Unlock()
	memory := residentMB()
	s.planAll(func(int) time.Time { return time.Now().Add(1000 * time.Hour) })
	d.Reload()
	for d.Working() > 0 {
		time.Sleep(100 * time.Millisecond)
	}
	runtime.GC()
	quiet, usedQuiet, woken := s.d.Store().Commits(), cpu(), wakeUps()
	time.Sleep(long)
	quiet, usedQuiet, woken = s.d.Store().Commits()-quiet, cpu()-usedQuiet, wakeUps()-woken
	idle := residentMB()
	d.Stop(b.Context())
	what := fmt.Sprintf("%d loops of mixed cadences for %s, %s", loops, long, name)
	return []row{
		{what + ": fired late by, p50 / p99", text[0] + " / " + text[1], "p99 < 250 ms", fmt.Sprintf("%d fired; %d runs began late by %s / %s", count, runs, text[2], text[3]), ""},
		{"  memory", fmt.Sprintf("%.0f MB", memory), "< 100 MB", fmt.Sprintf("all registered in %s", millis(registered)), ""},
		{"  CPU, runs included that act in this process", fmt.Sprintf("%.1f %% of a core", 100*spent.Seconds()/long.Seconds()), "", millis(spent/time.Duration(runs)) + " a run", ""},
		{"  commits and bytes a run", fmt.Sprintf("%.1f, %d", float64(commits)/float64(runs), grown/int64(runs)), "≤ 6 commits", "", ""},
		{
			fmt.Sprintf("the same, nothing due for %s: commits a second", long), fmt.Sprintf("%.2f", float64(quiet)/long.Seconds()), "≤ 0.3",
			fmt.Sprintf("%.2f %% of a core (target < 0.5), %.0f wake-ups a second, %.0f MB", 100*usedQuiet.Seconds()/long.Seconds(), float64(woken)/long.Seconds(), idle), "",
		},
	}
}

// wakeUps is how often threads of this process have gone on after they waited; 0 where
// nobody says. Threads that have ended do not count.
func wakeUps() (n int64) {
	files, _ := filepath.Glob("/proc/self/task/*/status")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // The thread has ended.
		}
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				more, _ := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
				n += more
			}
		}
	}
	return n
}
