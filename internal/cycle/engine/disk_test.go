package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// Neither the agent nor the gate of this test ends by itself.
func TestARunThatFillsTheDiskEndsAndNamesTheFolders(t *testing.T) {
	fill := func(dir string) {
		for _, name := range []string{"one", "two", "three"} {
			gittest.WriteFile(t, filepath.Join(dir, "src/out/deep", name), strings.Repeat("x", 1<<20))
		}
	}
	cases := map[string]struct {
		agent  func(ctx context.Context, req agent.Request) (agent.Result, error)
		verify string
		folder string
	}{
		"the agent": {func(ctx context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
			fill(req.Dir)
			<-ctx.Done()
			return agent.Result{Ended: proc.Canceled, Exit: 143}, nil
		}, "true", "src/out ("},
		"a gate": {func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
			return says(t, req, `{"outcome":"done"}`)
		}, "if grep -q worked src/a.txt; then mkdir out && head -c 3145728 /dev/zero >out/x && exec sleep 300; fi", "gate: out ("},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			r.deps.DiskGap = 10 * time.Millisecond
			r.engine = engine.New(r.deps)
			r.agent = c.agent
			target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.MaxDisk, d.Verify = 2<<20, c.verify })
			run := r.run(target, engine.Firing{})
			if run.Outcome != loop.OutcomeBudget || run.Outcome.Meaning().Exit != loop.ExitBudget || run.Reason != loop.ReasonDisk {
				t.Fatalf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
			}
			for _, want := range []string{c.folder, "max_disk is 2.0 MiB"} {
				if !strings.Contains(run.Detail, want) {
					t.Errorf("detail = %q, want %q", run.Detail, want)
				}
			}
			if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "worked" {
				t.Errorf("kept a.txt = %q", got)
			}
			if left := left(t, r.home); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			r.view(func(rd *store.Reader) error {
				steps, err := rd.Steps(t.Context(), target.Loop.ID)
				if err == nil && (len(steps) != 1 || steps[0].State != loop.StepOpen || steps[0].Feedback != run.Detail) {
					t.Errorf("the next attempt gets %+v", steps)
				}
				return err
			})
		})
	}
}

func TestARunMayUseWhatMaxDiskAllowsAndTheBaseDoesNotCount(t *testing.T) {
	r := one(t)
	gittest.WriteFile(t, filepath.Join(r.root, "src/base"), strings.Repeat("x", 3<<20))
	gittest.Run(t, r.root, "add", "-A")
	gittest.Run(t, r.root, "commit", "-qm", "large")
	r.deps.DiskGap = time.Millisecond
	r.engine = engine.New(r.deps)
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/b.txt"), strings.Repeat("x", 1<<20))
		return says(t, req, `{"outcome":"done"}`)
	}
	target := r.worker(loop.TierAssisted, func(d *loop.Definition) { d.MaxDisk, d.Verify = 2<<20, "sleep 0.2" })
	if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeProposed {
		t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
}

func TestWhatIsTooLargeForASnapshotGoesWithARunThatFilledTheDisk(t *testing.T) {
	r := one(t)
	r.deps.DiskGap = 10 * time.Millisecond
	r.engine = engine.New(r.deps)
	const large = 65 << 20 // one file of a snapshot has less
	r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "worked\n")
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/large"), strings.Repeat("x", large))
		<-ctx.Done()
		return agent.Result{Ended: proc.Canceled, Exit: 143}, nil
	}
	run := r.run(r.worker(loop.TierAssisted, func(d *loop.Definition) { d.MaxDisk = large - 1 }), engine.Firing{})
	if run.Outcome != loop.OutcomeBudget || gittest.Run(t, r.root, "diff", "--name-only", "main", run.Snapshot) != "src/a.txt" {
		t.Errorf("run = %s %q, kept %q", run.Outcome, run.Detail, run.Snapshot)
	}
	if message := gittest.Run(t, r.root, "log", "-1", "--format=%b", run.Snapshot); !strings.Contains(message, "src/large") {
		t.Errorf("the snapshot does not say what it lacks: %q", message)
	}
	if left := left(t, r.home); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if kept, err := filepath.Glob(filepath.Join(r.home, "layers", "*", "parked", "*")); err != nil || len(kept) > 0 {
		t.Errorf("the copy is kept for the next run: %v, %v", kept, err)
	}
}
