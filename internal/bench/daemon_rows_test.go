package bench

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/daemon"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// manyLoops measures a daemon with ten thousand loops: how late those fire that are due,
// and what it costs when none is.
func manyLoops(b *testing.B) []row {
	b.Helper()
	bin := buildPawl(b)
	return append(daemonRows(b, bin, "SQLite", ""), daemonRows(b, bin, "PostgreSQL", pgtest.URL(b))...)
}

func daemonRows(b *testing.B, bin, name, database string) []row {
	b.Helper()
	const loops, perSecond, window, quiet = 10_000, 50, 20 * time.Second, 15 * time.Second
	s := newFixture(b, 5, database)
	for i := range loops {
		s.loop(fmt.Sprintf("l%05d", i), "L1", "agent: command\nagent_command: 'true'")
	}
	registered := timed(func() {
		_, err := s.svc.Loops.Register(b.Context())
		s.must(err)
	})
	s.planAll(func(int) time.Time { return time.Now().Add(time.Hour) })
	d := s.up(bin, database)
	before := d.used()
	time.Sleep(quiet)
	spent := d.used().since(before)
	memory := d.memory()
	start := time.Now().Add(2 * time.Second)
	s.planAll(func(i int) time.Time {
		if n := int(window.Seconds()) * perSecond; i >= n {
			return start.Add(time.Hour)
		}
		return start.Add(time.Duration(i) * time.Second / perSecond)
	})
	s.must(daemon.Reload(d.running)) // What was planned is nearer now than it was.
	time.Sleep(time.Until(start.Add(window + 3*time.Second)))
	d.settle()
	d.end()
	fired, began := s.lateness(start, func(run loop.Run) time.Time { return run.Planned })
	return []row{
		{
			fmt.Sprintf("%d loops, %s, %d due a second: fired late by, p50 / p99", loops, name, perSecond), quantile(fired, .5) + " / " + quantile(fired, .99), "p99 < 250 ms",
			fmt.Sprintf("%d fired; their runs began late by %s / %s", len(fired), quantile(began, .5), quantile(began, .99)), "",
		},
		{
			fmt.Sprintf("the same, nothing due for %s: commits a second", quiet), fmt.Sprintf("%.2f", spent.commits/quiet.Seconds()), "≤ 0.3",
			fmt.Sprintf("%.2f %% of a core, %s; all registered in %s", 100*spent.cpu.Seconds()/quiet.Seconds(), memory, millis(registered)), "",
		},
	}
}

// quantile is what a part of a sorted list does not exceed.
func quantile(list []time.Duration, part float64) string {
	if len(list) == 0 {
		return "none"
	}
	return millis(list[min(len(list)-1, int(float64(len(list))*part))])
}

// planAll says when each loop of the fixture fires next.
func (s *fixture) planAll(when func(i int) time.Time) {
	s.b.Helper()
	i := 0
	s.eachLoop(func(tx *store.Tx, l loop.Loop) error {
		at := when(i).Truncate(time.Millisecond)
		i++
		return tx.PlanNext(s.b.Context(), l.ID, at, at, l.Ticked)
	})
}

// eachLoop calls fn for all loops of the fixture, in one transaction.
func (s *fixture) eachLoop(fn func(*store.Tx, loop.Loop) error) {
	s.b.Helper()
	s.must(s.d.Store().Update(s.b.Context(), func(tx *store.Tx) error {
		ids, err := tx.WorkspaceIDs(s.b.Context())
		if err != nil {
			return err
		}
		for _, id := range ids {
			list, err := tx.Loops(s.b.Context(), id)
			if err != nil {
				return err
			}
			for _, l := range list {
				if err := fn(tx, l); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// lateness is how long after they were due the runs of the fixture fired that were due from a
// time on, and how late those began that have ended, sorted.
func (s *fixture) lateness(from time.Time, due func(loop.Run) time.Time) (fired, began []time.Duration) {
	s.b.Helper()
	s.must(s.d.Store().View(s.b.Context(), func(r *store.Reader) error {
		ids, err := r.WorkspaceIDs(s.b.Context())
		for _, id := range ids {
			runs, err := r.WorkspaceRuns(s.b.Context(), id, 0, math.MaxInt32)
			if err != nil {
				return err
			}
			for _, run := range runs {
				at := due(run)
				if at.Before(from) {
					continue
				}
				fired = append(fired, run.Created.Sub(at))
				if run.State == loop.RunEnded {
					began = append(began, run.Started.Sub(at))
				}
			}
		}
		return err
	}))
	slices.Sort(fired)
	slices.Sort(began)
	return fired, began
}

// residentMB returns how much memory this process has now, in MB; 0 where nobody says.
func residentMB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	var size, resident int
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return float64(resident*os.Getpagesize()) / 1e6
}
