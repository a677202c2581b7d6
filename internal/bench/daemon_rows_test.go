package bench

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/daemon"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// manyLoops measures a daemon with ten thousand loops: how late those fire that are due,
// and what it costs when none is.
func manyLoops(b *testing.B) []row {
	b.Helper()
	return append(daemonRows(b, "SQLite", ""), daemonRows(b, "PostgreSQL", pgtest.URL(b))...)
}

func daemonRows(b *testing.B, name, database string) []row {
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
	var mu sync.Mutex
	var fired, began []time.Duration
	d, err := s.d.Daemon(b.Context(), compose.DaemonOptions{Workers: 4, Notices: true, Tell: func(h daemon.Happened) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case h.Wrong != nil:
			b.Error(h.Wrong)
		case h.Fired != nil:
			fired = append(fired, h.Fired.Created.Sub(h.Fired.Planned))
		case h.Ended != nil:
			began = append(began, h.Ended.Started.Sub(h.Ended.Planned))
		}
	}})
	s.must(err)
	s.must(d.Start(b.Context()))
	before, used := s.d.Store().Commits(), cpu()
	time.Sleep(quiet)
	commits, spent := s.d.Store().Commits()-before, cpu()-used
	runtime.GC()
	memory := residentMB()
	start := time.Now().Add(2 * time.Second)
	s.planAll(func(i int) time.Time {
		if n := int(window.Seconds()) * perSecond; i >= n {
			return start.Add(time.Hour)
		}
		return start.Add(time.Duration(i) * time.Second / perSecond)
	})
	d.Reload() // What was planned is nearer now than it was.
	time.Sleep(time.Until(start.Add(window + 3*time.Second)))
	d.Stop(b.Context())
	slices.Sort(fired)
	slices.Sort(began)
	return []row{
		{
			fmt.Sprintf("%d loops, %s, %d due a second: fired late by, p50 / p99", loops, name, perSecond), quantile(fired, .5) + " / " + quantile(fired, .99), "p99 < 250 ms",
			fmt.Sprintf("%d fired; their runs began late by %s / %s", len(fired), quantile(began, .5), quantile(began, .99)), "",
		},
		{
			fmt.Sprintf("the same, nothing due for %s: commits a second", quiet), fmt.Sprintf("%.2f", float64(commits)/quiet.Seconds()), "≤ 0.3",
			fmt.Sprintf("%.2f %% of a core, %.0f MB; all registered in %s", 100*spent.Seconds()/quiet.Seconds(), memory, millis(registered)), "",
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
	s.must(s.d.Store().Update(s.b.Context(), func(tx *store.Tx) error {
		ids, err := tx.WorkspaceIDs(s.b.Context())
		if err != nil {
			return err
		}
		var list []loop.Loop
		for _, id := range ids {
			of, err := tx.Loops(s.b.Context(), id)
			if err != nil {
				return err
			}
			list = append(list, of...)
		}
		for i, l := range list {
			at := when(i).Truncate(time.Millisecond)
			if err := tx.PlanNext(s.b.Context(), l.ID, at, at, l.Ticked); err != nil {
				return err
			}
		}
		return nil
	}))
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
