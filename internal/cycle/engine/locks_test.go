package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// fixer is a loop that changes src/a.txt until it says its name.
func (r *rig) fixer(name string, priority int, change ...func(*loop.Definition)) engine.Target {
	d := until("grep -q "+name+" src/a.txt", name, []string{"src/**"})
	d.Priority = priority
	for _, fn := range change {
		fn(&d)
	}
	return r.target(name, pinned{}, d)
}

// whileLive runs the target, calls fn once while its agent is at work, and returns the
// run. Agents of other runs just do their work.
func (r *rig) whileLive(t engine.Target, fn func()) (run loop.Run) {
	r.t.Helper()
	var once sync.Once
	r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
		if variable(req, "PAWL_LOOP") == t.Loop.Name {
			once.Do(fn)
		}
		gittest.WriteFile(r.t, filepath.Join(req.Dir, "src/a.txt"), variable(req, "PAWL_LOOP")+"\n")
		return says(r.t, req, `{"outcome":"done","summary":"changed it"}`)
	}
	return r.run(t, engine.Firing{})
}

// tick fires a run as the clock does, and executes it.
func (r *rig) tick(t engine.Target) (loop.Run, error) {
	r.t.Helper()
	queued := r.queue(t, engine.Firing{Trigger: "cadence", Planned: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)})
	run, err := r.engine.Execute(r.t.Context(), t, queued.ID)
	if err != nil {
		return r.runRow(queued.ID), err
	}
	return run, nil
}

func (r *rig) wantLocked(err error, by, rule string) {
	r.t.Helper()
	locked, ok := errors.AsType[*loop.LockedError](err)
	if !ok || locked.By.Loop != by || string(locked.Why.Rule) != rule || locked.Why.Loop != by || locked.Why.Scope == "" {
		r.t.Errorf("it begins, or %v; want it to wait for %s because of %s", err, by, rule)
	}
}

func (r *rig) loopRow(t engine.Target) (l loop.Loop) {
	r.t.Helper()
	r.view(func(rd *store.Reader) (err error) { l, err = rd.Loop(r.t.Context(), t.Loop.ID); return err })
	return l
}

func TestTheLowerLoopGivesWayAndTheHigherOneWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.deps.WatchGap = time.Hour // The run that is live writes nothing by itself, however long the others take.
		r.engine = engine.New(r.deps)
		low, mid, high, other := r.fixer("low", 10), r.fixer("mid", 20), r.fixer("high", 30), r.fixer("other", 1, func(d *loop.Definition) { d.Scope = []string{"docs/**"} })
		scan := r.fixer("scan", 1, func(d *loop.Definition) { d.Tier, d.Verify = loop.TierReport, "" })
		var queued loop.Run
		live := r.whileLive(mid, func() {
			before := r.store.Commits()
			run, err := r.tick(low)
			if err != nil || run.Outcome != loop.OutcomeQuiet || run.Reason != loop.ReasonLockHigher || run.Usage.Input != 0 {
				t.Errorf("the lower one = %s %s %s, %v; want it quiet", run.Outcome, run.Reason, run.Detail, err)
			}
			if got := r.store.Commits() - before; got != 3 { // One of them fired it.
				t.Errorf("it took %d commits, want that of its firing and two", got)
			}
			to := r.runRow(run.ID).DeferredTo
			if to != run.DeferredTo || to.Loop != "mid" || to.N != 1 || to.Scope != "src/**" || to.Until.IsZero() || to.Rule != loop.ReasonLockHigher {
				t.Errorf("it deferred to %+v", to)
			}
			if !strings.Contains(run.Detail, "mid#1") || r.loopRow(low).Deferrals != 1 {
				t.Errorf("it says %q and has deferred %d times", run.Detail, r.loopRow(low).Deferrals)
			}
			run, err = r.tick(high)
			if r.wantLocked(err, "mid", "lock_held"); run.State != loop.RunQueued || run.Fence != 0 {
				t.Errorf("the higher one is %s with fence %d, want it queued", run.State, run.Fence)
			}
			queued = run
			// In the foreground nothing is recorded, whatever the priority is.
			for _, target := range []engine.Target{low, high} {
				n := r.loopRow(target).LastN
				_, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
				if r.wantLocked(err, "mid", "lock_held"); r.loopRow(target).LastN != n {
					t.Error("a run that did not begin has a number")
				}
			}
			if run, err := r.tick(other); err != nil || run.Outcome == loop.OutcomeQuiet {
				t.Errorf("a loop with another scope = %s %s, %v", run.Outcome, run.Detail, err)
			}
			if run, err := r.tick(scan); err != nil || run.DeferredTo != (loop.Deferral{}) {
				t.Errorf("a loop that reports = %s %s, %v", run.Outcome, run.Detail, err)
			}
		})
		if live.Outcome != loop.OutcomeProposed {
			t.Fatalf("the live run = %s %s", live.Outcome, live.Detail)
		}
		// The higher one is due: the lower one gives way again, and then goes.
		if run, err := r.tick(low); err != nil || run.Reason != loop.ReasonLockDue || run.DeferredTo.Loop != "high" || !run.DeferredTo.Until.IsZero() {
			t.Errorf("while the higher one is due, the lower one = %s %s, %v", run.Outcome, run.Detail, err)
		}
		if run, err := r.engine.Execute(t.Context(), high, queued.ID); err != nil || run.Outcome != loop.OutcomeProposed {
			t.Errorf("the higher one = %s %s, %v", run.Outcome, run.Detail, err)
		}
		if run, err := r.tick(low); err != nil || run.Outcome != loop.OutcomeProposed || r.loopRow(low).Deferrals != 0 {
			t.Errorf("in the end the lower one = %s %s, %v, and has deferred %d times", run.Outcome, run.Detail, err, r.loopRow(low).Deferrals)
		}
	})
}

func TestALoopThatDeferredOftenEnoughGoesFirst(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		low, high, third := r.fixer("low", 10, func(d *loop.Definition) { d.DeferBound = 2 }), r.fixer("high", 30), r.fixer("third", 40)
		var queued loop.Run
		r.whileLive(high, func() {
			for range 2 {
				if run, err := r.tick(low); err != nil || run.Outcome != loop.OutcomeQuiet {
					t.Errorf("the lower one = %s %s, %v", run.Outcome, run.Detail, err)
				}
			}
			var err error
			queued, err = r.tick(low)
			r.wantLocked(err, "high", "lock_held")
		})
		if run, err := r.tick(third); err != nil || run.Reason != loop.ReasonLockOverdue || run.DeferredTo.Run != queued.ID {
			t.Errorf("the highest one = %s %s, %v; want that it gives way", run.Outcome, run.Detail, err)
		}
		_, err := r.engine.Run(t.Context(), third, engine.Firing{Trigger: "manual"})
		r.wantLocked(err, "low", "lock_overdue")
		if run, err := r.engine.Execute(t.Context(), low, queued.ID); err != nil || run.Outcome != loop.OutcomeProposed {
			t.Errorf("the lower one = %s %s, %v", run.Outcome, run.Detail, err)
		}
		if run, err := r.tick(third); err != nil || run.Outcome != loop.OutcomeProposed {
			t.Errorf("the highest one = %s %s, %v", run.Outcome, run.Detail, err)
		}
	})
}

func TestAgentsOfOneGroupWorkAtOnceAndExcludeOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, databases["sqlite"](t))
	org := func(d *loop.Definition) { d.Group = "org" }
	ann, bob, fix := r.fixer("ann", 20, org), r.fixer("bob", 20, org), r.fixer("fix", 30)
	run := r.whileLive(ann, func() {
		if run, err := r.tick(bob); err != nil || run.Outcome != loop.OutcomeProposed {
			t.Errorf("another agent = %s %s, %v", run.Outcome, run.Detail, err)
		}
		_, err := r.tick(fix)
		r.wantLocked(err, "ann", "lock_held")
	})
	if run.Outcome != loop.OutcomeProposed {
		t.Errorf("the first agent = %s %s", run.Outcome, run.Detail)
	}
}

func TestWhatComesOnceWaitsAndNeverDefers(t *testing.T) {
	t.Parallel()
	r := newRig(t, databases["sqlite"](t))
	low, high := r.fixer("low", 10), r.fixer("high", 30)
	r.whileLive(high, func() {
		for name, f := range map[string]engine.Firing{
			"an event": {Trigger: "event", Event: "push main"}, "a request": {Trigger: "cadence", Request: "do it"}, "a person": {Trigger: "manual"},
		} {
			queued := r.queue(low, f)
			if _, err := r.engine.Execute(t.Context(), low, queued.ID); err == nil {
				t.Errorf("%s is lost", name)
			} else {
				r.wantLocked(err, "high", "lock_held")
			}
		}
	})
}

func TestOthersGiveWayToAQueuedRunOnlyAsLongAsSomebodyTriesIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		low, high := r.fixer("low", 10), r.fixer("high", 30)
		queued := r.queue(high, engine.Firing{Trigger: "cadence"})
		if run, err := r.tick(low); err != nil || run.DeferredTo.Run != queued.ID {
			t.Errorf("the lower one = %s %s, %v", run.Outcome, run.Detail, err)
		}
		r.switchTo(high.Loop.ID, true)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), variable(req, "PAWL_LOOP")+"\n")
			return says(t, req, `{"outcome":"done","summary":"changed it"}`)
		}
		if run, err := r.tick(low); err != nil || run.Outcome != loop.OutcomeProposed {
			t.Errorf("beside a paused one it is %s %s, %v", run.Outcome, run.Detail, err)
		}
		r.switchTo(high.Loop.ID, false)
		if err := r.exec(`UPDATE runs SET contends_until_ms = 1`); err != nil {
			t.Fatal(err)
		}
		low2 := r.fixer("low2", 10)
		var again loop.Contender
		r.whileLive(low2, func() {
			// Nobody has tried it for long. Whoever does so says that it still waits.
			contenders := func() (list []loop.Contender) {
				r.view(func(rd *store.Reader) (err error) { list, err = rd.Contenders(t.Context(), "ws"); return err })
				return list
			}
			if got := contenders(); len(got) != 1 || got[0].Loop != "low2" || !got[0].Live {
				t.Errorf("contenders are %+v", got)
			}
			_, err := r.engine.Execute(t.Context(), high, queued.ID)
			r.wantLocked(err, "low2", "lock_held")
			got := contenders()
			if len(got) != 2 {
				t.Errorf("contenders are %+v", got)
				return
			}
			again = got[0]
		})
		if again.Run != queued.ID || again.Live {
			t.Errorf("it contends as %+v", again)
		}
	})
}

func TestARunInTheForegroundWaitsIfItIsAskedTo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		t.Helper()
		first, second := r.fixer("first", 10), r.fixer("second", 30)
		type result struct {
			run loop.Run
			err error
		}
		waited, again := make(chan result, 1), make(chan result, 1)
		looked := make(chan bool)
		deps := r.deps
		deps.Sleep = func(ctx context.Context, _ time.Duration) error {
			select {
			case looked <- true: // The test wants to know that it waits.
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}
		e := engine.New(deps)
		r.engine = e
		started := func(target engine.Target, done chan result) {
			run, err := e.Run(t.Context(), target, engine.Firing{Trigger: "manual", Wait: true})
			done <- result{run, err}
		}
		r.whileLive(first, func() {
			go started(second, waited) // another loop
			<-looked
			go started(first, again) // the same loop
			<-looked
			select {
			case got := <-waited:
				t.Errorf("it has not waited: %s %v", got.run.Outcome, got.err)
			default:
			}
		})
		for name, done := range map[string]chan result{"second": waited, "first": again} {
			if got := <-done; got.err != nil || got.run.State != loop.RunEnded {
				t.Errorf("%s in the end = %s %s, %v", name, got.run.State, got.run.Outcome, got.err)
			}
		}
		// It waits no longer than it is wanted.
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("interrupted")
		r.whileLive(r.fixer("third", 1), func() {
			go func() {
				<-looked
				cancel(gone)
			}()
			if _, err := e.Run(ctx, second, engine.Firing{Trigger: "manual", Wait: true}); !errors.Is(err, gone) {
				t.Errorf("a run that nobody wants any more = %v", err)
			}
		})
	})
}

func TestAgentsReadWhatOthersTouch(t *testing.T) {
	t.Parallel()
	r := newRig(t, databases["sqlite"](t))
	first, second := r.fixer("first", 10), r.fixer("second", 30, func(d *loop.Definition) { d.Scope = []string{"*.md", "docs/**"} })
	var prompt string
	r.whileLive(first, func() {
		act := r.agent
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			prompt = req.Prompt
			return act(ctx, req)
		}
		r.run(second, engine.Firing{})
	})
	_, block, found := strings.Cut(prompt, "## Other loops are at work in this repository now; leave to them what they touch\n<<DATA ")
	if !found || !strings.Contains(block, "first#1, since ") || !strings.Contains(block, ` may change src/**; works on "goal"`) {
		t.Errorf("the prompt does not say who else is at work:\n%s", prompt)
	}
	r.run(second, engine.Firing{})
	if strings.Contains(prompt, "Other loops") {
		t.Errorf("alone, it reads of others:\n%s", prompt)
	}
}

func TestALandingWaitsForNoAgentAndNoAgentForIt(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		t.Helper()
		target, a := r.proposes("fix")
		r.whileLive(r.fixer("other", 90), func() {
			run, err := r.engine.Run(t.Context(), target, engine.Yes(a.ID, loop.Answer{By: "Ada", From: "test"}))
			if err != nil || run.Outcome != loop.OutcomeLanded {
				t.Errorf("the landing = %s %s, %v", run.Outcome, run.Detail, err)
			}
		})
	})
}

func TestTheLockOfADeadRunIsFreeBeforeItIsRecovered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		t.Helper()
		// A linked worktree is a workspace of its own: nobody who runs a loop here recovers its runs.
		tree := filepath.Join(t.TempDir(), "tree")
		gittest.Run(t, r.root, "worktree", "add", "-q", tree)
		dead := r.fixer("dead", 90)
		dead.Workspace = loop.Workspace{ID: "ws_tree", Root: tree, Repository: "ws"}
		dead.Loop.WorkspaceID = "ws_tree"
		fix := r.fixer("fix", 10)
		holder := loop.Holder{PID: 4242, Host: "elsewhere", Start: 7}
		var gone bool
		deps := r.deps
		deps.HolderState = func(loop.Holder) loop.HolderState {
			if gone {
				return loop.HolderDead
			}
			return loop.HolderRunning
		}
		e := engine.New(deps)
		queued := r.queue(dead, engine.Firing{Trigger: "cadence"})
		var taken loop.Run
		err := r.store.Update(t.Context(), func(tx *store.Tx) (err error) {
			taken, _, err = tx.Claim(t.Context(), queued.ID, queued.Fence, holder, loop.Holder{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Run(t.Context(), fix, engine.Firing{Trigger: "manual"})
		r.wantLocked(err, "dead", "lock_held")
		r.lapse(dead.Loop.ID)
		_, err = e.Run(t.Context(), fix, engine.Firing{Trigger: "manual"})
		r.wantLocked(err, "dead", "lock_held") // The process lives: it is only slow.
		gone = true
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), variable(req, "PAWL_LOOP")+"\n")
			// The run that has lost its lock cannot go on, and is recovered beside this one.
			err := r.store.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Enter(t.Context(), taken, loop.PhaseAct)
				return err
			})
			if !errors.Is(err, loop.ErrLeaseLost) {
				t.Errorf("the dead run goes on: %v", err)
			}
			rec, err := e.Recover(t.Context(), dead)
			if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
				t.Errorf("its recovery = %+v, %v", rec, err)
			}
			return says(t, req, `{"outcome":"done","summary":"changed it"}`)
		}
		run, err := e.Run(t.Context(), fix, engine.Firing{Trigger: "manual"})
		if err != nil || run.Outcome != loop.OutcomeProposed {
			t.Errorf("the run beside it = %s %s, %v", run.Outcome, run.Detail, err)
		}
	})
}
