package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// waits is a protocol whose memory never opens: its runs live until they are stopped.
type waits struct {
	idle

	live chan<- struct{}
	over chan<- time.Time // when the run saw that it is to stop
}

func (w waits) Open(ctx context.Context, _ engine.View) (engine.Session, error) {
	if ctx.Done() == nil { // The run is over, and says so in the memory.
		return idle{}, nil
	}
	w.live <- struct{}{}
	<-ctx.Done()
	w.over <- time.Now()
	return nil, errors.New("it was stopped")
}

// manyLiveRuns measures what a process spends on watching a thousand live runs, and how
// long one takes to see that it is to stop.
func manyLiveRuns(b *testing.B) []row {
	b.Helper()
	return append(watchRuns(b, "SQLite", ""), watchRuns(b, "PostgreSQL", pgtest.URL(b))...)
}

func watchRuns(b *testing.B, name, database string) []row {
	b.Helper()
	const runs, stops, window = 1000, 200, 10 * time.Second
	s := newFixture(b, 5, database)
	repo, err := git.Open(b.Context(), s.root)
	s.must(err)
	var all sync.WaitGroup
	live, over := make(chan struct{}, runs), make([]chan time.Time, runs)
	loopID := func(i int) string { return fmt.Sprintf("lp%s%d", s.root, i) }
	for i := range runs {
		over[i] = make(chan time.Time, 1)
		t := engine.Target{
			Workspace: loop.Workspace{ID: "ws" + s.root, Root: s.root}, Repo: repo, Protocol: waits{live: live, over: over[i]},
			Loop:       loop.Loop{ID: loopID(i), WorkspaceID: "ws" + s.root, Name: fmt.Sprintf("waits-%d", i), Protocol: loop.ProtocolBoard},
			Definition: loop.Definition{Name: fmt.Sprintf("waits-%d", i), Protocol: loop.ProtocolBoard, Tier: loop.TierReport},
		}
		all.Go(func() {
			if _, err := s.d.Engine().Run(b.Context(), t, engine.Firing{Trigger: "bench"}); err != nil {
				b.Error(err)
			}
		})
	}
	for range runs {
		<-live
	}
	time.Sleep(2 * time.Second) // Until what they wrote at their start is behind them.
	before, used := s.d.Store().Commits(), cpu()
	time.Sleep(window)
	commits, spent := s.d.Store().Commits()-before, cpu()-used
	took := make([]time.Duration, stops)
	for i := range runs {
		s.must(s.d.Store().Update(b.Context(), func(tx *store.Tx) error {
			r, err := tx.Live(b.Context(), loopID(i))
			if err == nil {
				_, err = tx.Cancel(b.Context(), r.ID, "bench")
			}
			return err
		}))
		if asked := time.Now(); i < stops { // One after the other: their ends are not measured.
			took[i] = (<-over[i]).Sub(asked)
		}
	}
	all.Wait()
	slices.Sort(took)
	return []row{{
		fmt.Sprintf("%d live runs in one process, %s: time to see a request to stop, p50 / p99", runs, name), millis(took[stops/2]) + " / " + millis(took[stops*99/100-1]), "p99 < 500 ms",
		fmt.Sprintf("%.1f writing transactions/s, at most 10 queries/s, %.1f %% of a core", float64(commits)/window.Seconds(), 100*spent.Seconds()/window.Seconds()), "",
	}}
}

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
