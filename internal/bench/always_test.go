package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/schedule"
	"github.com/pawl-run/pawl/internal/surface/daemon"
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

// afterWork is how long a daemon rests before it counts as one that has nothing to do: it
// looks at its definitions, and the memory of its runs is given back.
const afterWork = 35 * time.Second

// BenchmarkAlways lets ten thousand loops of mixed cadences fire for ten minutes on both
// stores, and then be due never: how late they fire, and what that costs.
func BenchmarkAlways(b *testing.B) {
	var rows []row
	defer func() { report(b, "always", rows) }() // Also of one that fails on its way.
	long, loops := time.Duration(setting(minutesEnv, 10))*time.Minute, setting(loopsEnv, 10_000)
	bin := buildPawl(b)
	rows = append(rows, alwaysRows(b, bin, "SQLite", "", loops, long)...)
	rows = append(rows, alwaysRows(b, bin, "PostgreSQL", pgtest.URL(b), loops, long)...)
}

// mixedCadences are those of the loops, in turns. A minute of jitter spreads those that are
// due in the same one.
var mixedCadences = []string{"H/5 * * * *", "H/10 * * * *", "H/30 * * * *", "H */2 * * *", "H H * * *"}

func alwaysRows(b *testing.B, bin, name, database string, loops int, long time.Duration) []row {
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
	byID := map[string]loop.Definition{}
	s.eachLoop(func(_ *store.Tx, l loop.Loop) error {
		byID[l.ID] = byName[l.Name]
		return nil
	})
	dueOf := func(run loop.Run) time.Time {
		next, err := schedule.Next(byID[run.LoopID], time.Time{}, run.Planned.Add(-time.Millisecond))
		s.must(err)
		return next.Due
	}
	size := func() int64 {
		if database != "" {
			return postgresSize(b, database)
		}
		return fileSize(b, filepath.Join(s.home, "pawl.db")) + fileSize(b, filepath.Join(s.home, "pawl.db-wal"))
	}
	d := s.up(bin, database)
	start, bytes, before := time.Now(), size(), d.used()
	time.Sleep(long)
	spent, grown := d.used().since(before), size()-bytes
	fired, began := s.lateness(start, dueOf)
	runs := max(1, len(began))
	memory := d.memory()
	s.planAll(func(int) time.Time { return time.Now().Add(1000 * time.Hour) })
	s.must(daemon.Reload(d.running))
	d.settle()
	time.Sleep(afterWork)
	quiet := d.used()
	time.Sleep(long)
	quiet = d.used().since(quiet)
	idle := d.memory()
	d.end()
	what := fmt.Sprintf("%d loops of mixed cadences for %s, %s", loops, long, name)
	return []row{
		{what + ": fired late by, p50 / p99", quantile(fired, .5) + " / " + quantile(fired, .99), "p99 < 250 ms", fmt.Sprintf("%d fired; %d runs began late by %s / %s", len(fired), len(began), quantile(began, .5), quantile(began, .99)), ""},
		{"  memory of pawl up", memory, "< 100 MB", fmt.Sprintf("all registered in %s", millis(registered)), ""},
		{"  CPU of pawl up, without the programs of runs", fmt.Sprintf("%.1f %% of a core", 100*spent.cpu.Seconds()/long.Seconds()), "", millis(spent.cpu/time.Duration(runs)) + " a run", ""},
		{"  commits and bytes a run", fmt.Sprintf("%.1f, %d", spent.commits/float64(runs), grown/int64(runs)), "≤ 6 commits", "", ""},
		{fmt.Sprintf("the same, nothing due for %s: CPU", long), fmt.Sprintf("%.2f %% of a core", 100*quiet.cpu.Seconds()/long.Seconds()), "< 0.5 %", fmt.Sprintf("%.0f wake-ups a second", quiet.woken/long.Seconds()), ""},
		{"  commits a second", fmt.Sprintf("%.2f", quiet.commits/long.Seconds()), "≤ 0.3", "", ""},
		{"  memory", idle, "< 100 MB", "", ""},
	}
}
