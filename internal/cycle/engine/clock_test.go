package engine_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAClockThatIsSetBackMakesNoDurationNegative(t *testing.T) {
	var back time.Duration // what somebody has set the wall clock back by
	r := newRigAt(t, databases["sqlite"](t), func() time.Time { return time.Now().Add(-back).Round(0) })
	target := r.worker(loop.TierAssisted, nil)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		back = 2 * time.Hour
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		return says(t, req, `{"outcome":"done"}`)
	}
	run := r.run(target, engine.Firing{})
	for _, it := range r.iterations(run.ID) {
		if it.Ended.Before(it.Started) {
			t.Errorf("iteration %d ended %s before it began", it.N, it.Started.Sub(it.Ended))
		}
	}
	if run.Spent.Total < 0 || run.Spent.Overhead() < 0 {
		t.Errorf("spent = %+v", run.Spent)
	}
}

func TestTimeInWhichNobodyHeldTheRunIsNotCounted(t *testing.T) {
	var ahead atomic.Int64
	r := newRigAt(t, databases["sqlite"](t), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
		ahead.Store(int64(5 * time.Second))
		return says(t, req, `{"outcome":"done"}`)
	}
	target := r.worker(loop.TierAssisted, nil)
	r.lostAt(target, "engine.verify.before", 1)
	ahead.Store(int64(time.Hour))
	rec, err := r.engine.Recover(t.Context(), target)
	if err != nil || rec == nil {
		t.Fatalf("recover = %+v, %v", rec, err)
	}
	if got := rec.Run.Spent.Total; got < 5*time.Second || got > 30*time.Minute {
		t.Errorf("the run took %v, want the 5 s until its last event and a little", got)
	}
}
