package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// queue fires a run of the target without executing it. An unknown loop is
// introduced first.
func (r *rig) queue(t engine.Target, f engine.Firing) (run loop.Run) {
	r.t.Helper()
	fire := func() error {
		return r.store.Update(r.t.Context(), func(tx *store.Tx) (err error) {
			run, err = r.engine.Fire(r.t.Context(), tx, t, f)
			return err
		})
	}
	err := fire()
	if errors.Is(err, engine.ErrNewLoop) {
		if t, err = r.engine.Introduce(r.t.Context(), t); err == nil {
			err = fire()
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

func (r *rig) runRow(id string) (run loop.Run) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) { run, err = rd.Run(r.t.Context(), id); return err })
	return run
}

func TestAQueuedRunDoesWhatWasFiredThoughTheFileHasChanged(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		gittest.Run(t, r.root, "branch", "pawl/fix/7-of-an-earlier-store")
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done","summary":"changed it"}`)
		}
		d := until("grep -q two src/a.txt", "fix", []string{"src/**"})
		target := r.target("fix", pinned{}, d)
		nine := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
		queued := r.queue(target, engine.Firing{Trigger: "cron", Key: "cron/fix/1", Planned: nine, Event: "push main", Request: "make it two", Overrides: loop.Overrides{MaxIterations: 2}})
		if queued.State != loop.RunQueued || queued.N != 8 || queued.Fence != 0 {
			t.Errorf("the fired run is %s, number %d, fence %d; want it queued as number 8", queued.State, queued.N, queued.Fence)
		}
		changed := d
		changed.Goal = "something else"
		// Another engine of another process, which has only the row.
		other := engine.New(r.deps)
		run, err := other.Execute(t.Context(), r.target("fix", pinned{}, changed), queued.ID)
		if err != nil {
			t.Fatal(err)
		}
		if run.Outcome != loop.OutcomeProposed || run.Definition != queued.Definition || run.Request != "make it two" || run.Trigger != "cron" {
			t.Errorf("the run = %s %s, of definition %s, for %q by %s", run.Outcome, run.Detail, run.Definition, run.Request, run.Trigger)
		}
		if !run.Planned.Equal(nine) || run.Event != "push main" {
			t.Errorf("the run was planned for %v, by %q", run.Planned, run.Event)
		}
		if d := cmp.Diff(queued.Overrides, run.Overrides); d != "" {
			t.Errorf("overrides (-fired +executed):\n%s", d)
		}
		if _, err := other.Execute(t.Context(), target, queued.ID); !errors.Is(err, loop.ErrLeaseLost) {
			t.Errorf("a run that has ended is executed again: %v", err)
		}
		err = r.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := r.engine.Fire(t.Context(), tx, target, engine.Firing{Trigger: "cron", Key: "cron/fix/1"})
			return err
		})
		if !errors.Is(err, loop.ErrDuplicateKey) {
			t.Errorf("a key that fired is fired again: %v", err)
		}
	})
}

func TestARunWaitsInTheQueueForTheSwitchAndForTheLiveRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done","summary":"changed it"}`)
		}
		target := r.target("fix", pinned{}, until("grep -q two src/a.txt", "fix", []string{"src/**"}))
		queued := r.queue(target, engine.Firing{Trigger: "cron"})
		waits := func(why string, is func(error) bool) {
			t.Helper()
			if _, err := r.engine.Execute(t.Context(), target, queued.ID); !is(err) {
				t.Errorf("%s: %v", why, err)
			}
			if row := r.runRow(queued.ID); row.State != loop.RunQueued || row.Fence != 0 {
				t.Errorf("%s: the run is %s with fence %d, want it queued as before", why, row.State, row.Fence)
			}
		}
		paused := func(err error) bool {
			f, ok := errors.AsType[*loop.Fault](err)
			return ok && f.Exit == loop.ExitPaused
		}
		pause := filepath.Join(r.root, ".loops", "fix", "PAUSED")
		gittest.WriteFile(t, pause, "")
		waits("a file says pause", paused)
		if err := os.Remove(pause); err != nil {
			t.Fatal(err)
		}
		r.switchTo(target.Loop.ID, true)
		waits("the store says pause", paused)
		r.switchTo(target.Loop.ID, false)

		act := r.agent
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			waits("a run is live", func(err error) bool { _, ok := errors.AsType[*loop.HeldError](err); return ok })
			return act(ctx, req)
		}
		if live := r.run(target, engine.Firing{}); live.Outcome != loop.OutcomeProposed {
			t.Fatalf("the run beside it = %s %s", live.Outcome, live.Detail)
		}
		r.agent = act
		run, err := r.engine.Execute(t.Context(), target, queued.ID)
		if err != nil || run.State != loop.RunEnded || run.N != queued.N {
			t.Errorf("in the end it is %s as number %d: %v", run.State, run.N, err)
		}
	})
}

func TestAnAnswerThatIsQueuedIsGivenAtOnceAndCarriedOutLater(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		target, a := r.proposes("fix")
		queued := r.queue(target, engine.Yes(a.ID, loop.Answer{By: "Ada", From: "test"}))
		if got := r.approval(a.ID); got.State != loop.ApprovalLanding || gittest.Run(t, r.root, "rev-parse", "main") == a.Action.Commit {
			t.Errorf("the approval is %s, and main is %s: want a yes, and nothing landed", got.State, gittest.Run(t, r.root, "rev-parse", "main"))
		}
		run, err := r.engine.Execute(t.Context(), target, queued.ID)
		if err != nil || run.Outcome != loop.OutcomeLanded || gittest.Run(t, r.root, "rev-parse", "main") != a.Action.Commit {
			t.Errorf("run = %s %s: %v", run.Outcome, run.Detail, err)
		}
		if got := r.approval(a.ID).State; got != loop.ApprovalApproved {
			t.Errorf("the approval is %s, want it approved", got)
		}
	})
}

func TestAProposalIsQueuedToBeMadeAgainOnABaseThatMoved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		target, a := r.proposes("fix")
		gittest.WriteFile(t, filepath.Join(r.root, "README.md"), "moved\n")
		gittest.Run(t, r.root, "commit", "-qam", "moved")
		if run := r.run(target, engine.Yes(a.ID, loop.Answer{By: "Ada", From: "test"})); run.Outcome == loop.OutcomeLanded {
			t.Fatalf("a proposal landed on a base that moved")
		}
		queued := r.queue(target, engine.Again(a.ID, loop.Answer{By: "Ada", From: "test"}))
		run, err := r.engine.Execute(t.Context(), target, queued.ID)
		if err != nil || run.Outcome != loop.OutcomeProposed || run.Approval == "" || run.Approval == a.ID {
			t.Errorf("run = %s %s, asking %q: %v", run.Outcome, run.Detail, run.Approval, err)
		}
		if base := gittest.Run(t, r.root, "rev-parse", "main"); run.BaseCommit != base {
			t.Errorf("it is made on %s, want %s", run.BaseCommit, base)
		}
	})
}

// A loop may be in the store because its file was looked at: then nobody has looked yet
// which numbers branches, snapshots and its memory hold.
func TestRunsOfALoopThatWasOnlyRegisteredAreNumberedOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		gittest.Run(t, r.root, "branch", "pawl/queued/7-of-an-earlier-store")
		gittest.Run(t, r.root, "branch", "pawl/direct/41-of-an-earlier-store")
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			return says(t, req, `{"outcome":"quiet"}`)
		}
		queued := r.target("queued", pinned{}, until("false", "queued", []string{"src/**"}))
		direct := r.target("direct", pinned{}, until("false", "direct", []string{"src/**"}))
		err := r.store.Update(t.Context(), func(tx *store.Tx) error {
			err := tx.AddWorkspace(t.Context(), queued.Workspace)
			return errors.Join(err, tx.RegisterLoops(t.Context(), []loop.Loop{queued.Loop, direct.Loop}))
		})
		if err != nil {
			t.Fatal(err)
		}
		for want := range 2 {
			if run := r.queue(queued, engine.Firing{Trigger: "cron"}); run.N != int64(8+want) {
				t.Errorf("a queued run has number %d, want %d", run.N, 8+want)
			}
			if run, err := r.engine.Run(t.Context(), direct, engine.Firing{Trigger: "manual"}); err != nil || run.N != int64(42+want) {
				t.Errorf("a run has number %d, want %d (%v)", run.N, 42+want, err)
			}
		}
	})
}
