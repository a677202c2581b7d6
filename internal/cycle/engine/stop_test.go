package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

// worker is a target with one task and a scope.
func (r *rig) worker(tier loop.Tier, more func(*loop.Definition)) engine.Target {
	d := loop.Definition{Protocol: loop.ProtocolBoard, Tier: tier, Scope: []string{"src/**"}, AgentCommand: "x"}
	if more != nil {
		more(&d)
	}
	return r.target("w", boardLike{nil, []string{"the task"}}, d)
}

// untilStopped is an agent that writes something and then waits to be stopped.
func untilStopped(t *testing.T, started func()) func(context.Context, agent.Request) (agent.Result, error) {
	t.Helper()
	return func(ctx context.Context, req agent.Request) (agent.Result, error) {
		gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "half\n")
		started()
		<-ctx.Done()
		return agent.Result{Ended: proc.Canceled, Exit: 143}, nil
	}
}

func TestASwitchThatAppearsDuringActStopsTheRunAndKeepsItsWork(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, r *rig){
		"for all loops": func(t *testing.T, r *rig) {
			t.Helper()
			gittest.WriteFile(t, filepath.Join(r.root, ".loops/PAUSED"), "")
		},
		"for this loop": func(t *testing.T, r *rig) {
			t.Helper()
			gittest.WriteFile(t, filepath.Join(r.root, ".loops/w/PAUSED"), "")
		},
		"a dangling link": func(t *testing.T, r *rig) {
			t.Helper()
			if err := errors.Join(os.MkdirAll(filepath.Join(r.root, ".loops"), 0o755), os.Symlink("nowhere", filepath.Join(r.root, ".loops/PAUSED"))); err != nil {
				t.Fatal(err)
			}
		},
		"a folder": func(t *testing.T, r *rig) {
			t.Helper()
			if err := os.MkdirAll(filepath.Join(r.root, ".loops/w/PAUSED"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"nobody can tell: a file in the place of the folder": func(t *testing.T, r *rig) {
			t.Helper()
			gittest.WriteFile(t, filepath.Join(r.root, ".loops"), "")
		},
		"nobody can tell: a folder that leads to itself": func(t *testing.T, r *rig) {
			t.Helper()
			if err := os.Symlink(".loops", filepath.Join(r.root, ".loops")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.SQLite(t))
			r.agent = untilStopped(t, func() { set(t, r) })
			run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
			if run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonKillSwitch || !strings.Contains(run.Detail, "PAUSED") {
				t.Errorf("run = %s %s %q, want paused and the switch named", run.Outcome, run.Reason, run.Detail)
			}
			if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "half" {
				t.Errorf("kept a.txt = %q", got)
			}
			_, err := r.engine.Run(t.Context(), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
			if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitPaused {
				t.Errorf("the next run = %v, want a fault with exit status 15", err)
			}
		})
	}
}

// setSwitch sets the switch of a workspace, or of the whole store if the id is empty.
func (r *rig) setSwitch(workspace string) {
	r.t.Helper()
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		_, err := tx.SetSwitch(r.t.Context(), loop.Actor{Who: "ann"}, workspace, "deploy")
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}

func TestASwitchOfTheStoreStopsTheRunAndKeepsItsWork(t *testing.T) {
	for name, workspace := range map[string]string{"of the workspace": "ws", "of the store": ""} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				r.agent = untilStopped(t, func() { r.setSwitch(workspace) })
				run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
				command := map[string]string{"ws": "`pawl pause --all`", "": "`pawl pause --everywhere`"}[workspace]
				if run.Outcome != loop.OutcomePaused || run.Reason != loop.ReasonKillSwitch || run.Detail != command {
					t.Errorf("run = %s %s %q, want paused by %s", run.Outcome, run.Reason, run.Detail, command)
				}
				if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "half" {
					t.Errorf("kept a.txt = %q", got)
				}
				_, err := r.engine.Run(t.Context(), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
				if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitPaused || !strings.Contains(f.Why, command+", set by ann at ") || !strings.HasSuffix(f.Why, ": deploy") {
					t.Errorf("the next run = %v, want a fault with exit status 15 that says who set it", err)
				}
			})
		})
	}
}

func TestASwitchOfTheStoreIsReadRightBeforeAnEffect(t *testing.T) {
	for _, point := range []string{"engine.conclude.commit.after", "engine.effect.commit.before", "engine.effect.apply.before"} {
		t.Run(point, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				deps := r.deps
				deps.WatchGap = time.Hour // The watcher is kept from seeing it first.
				r.engine = engine.New(deps)
				r.agent = worksOnce(t, func() {})
				plan := (&fault.Plan{}).Do(point, 1, func(context.Context) error { r.setSwitch("ws"); return nil })
				run, err := r.engine.Run(fault.With(t.Context(), plan), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
				if err != nil || run.Outcome != loop.OutcomePaused || run.Branch != "" || !run.Cause.Switch.StopsAll() {
					t.Fatalf("run = %s %q on %q, %v, want paused without a branch", run.Outcome, run.Detail, run.Branch, err)
				}
				if refs := gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl"); refs != "" {
					t.Errorf("a branch was made: %s", refs)
				}
			})
		})
	}
}

// Whoever kills does not have to wait until the work of a large tree is kept.
func TestAHolderSaysThatARunIsStoppedBeforeItHasKeptItsWork(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = untilStopped(t, func() { r.setSwitch("") })
		plan := (&fault.Plan{}).Do("engine.conclude.commit.before", 1, func(ctx context.Context) error {
			for {
				held, err := r.store.HeldRuns(ctx, "", "")
				if err != nil || len(held) != 1 || held[0].Stopped {
					return err
				}
			}
		})
		run, err := r.engine.Run(fault.With(t.Context(), plan), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
		if err != nil || run.Outcome != loop.OutcomePaused || run.Snapshot == "" {
			t.Errorf("run = %s, kept %q, %v", run.Outcome, run.Snapshot, err)
		}
	})
}

func TestNoEffectHappensAfterTheSwitchIsSet(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.worker(loop.TierAssisted, func(d *loop.Definition) {
			d.Verify = "if grep -q two src/a.txt; then mkdir -p '" + filepath.Join(r.root, ".loops") + "' && touch '" + filepath.Join(r.root, ".loops/PAUSED") + "'; fi"
		})
		// The watcher is kept from seeing it first: the check before the effect must.
		deps := r.deps
		deps.WatchGap = time.Hour
		r.engine = engine.New(deps)
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run := r.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomePaused || run.Branch != "" {
			t.Fatalf("run = %s on %q, want paused without a branch", run.Outcome, run.Branch)
		}
		if refs := gittest.Run(t, r.root, "for-each-ref", "refs/heads/pawl"); refs != "" {
			t.Errorf("a branch was made: %s", refs)
		}
		if got := gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt"); got != "two" {
			t.Errorf("kept a.txt = %q", got)
		}
	})
}

func TestARunThatIsAskedToStopEndsInterrupted(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = untilStopped(t, func() {
			err := r.store.Update(t.Context(), func(tx *store.Tx) error {
				live, err := tx.Live(t.Context(), "lp_w")
				if err != nil {
					return err
				}
				_, err = tx.Cancel(t.Context(), live.ID, "ann wants it")
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		run := r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
		if run.Outcome != loop.OutcomeInterrupted || run.Reason != loop.ReasonStopped || run.Detail != "ann wants it" || run.Snapshot == "" {
			t.Errorf("run = %s %s %q %q", run.Outcome, run.Reason, run.Detail, run.Snapshot)
		}
	})
}

func TestACanceledContextEndsTheRunInterrupted(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		r.agent = untilStopped(t, cancel)
		run, err := r.engine.Run(ctx, r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
		if err != nil || run.Outcome != loop.OutcomeInterrupted || run.Reason != loop.ReasonCanceled || run.State != loop.RunEnded {
			t.Errorf("run = %s %s %s, %v", run.State, run.Outcome, run.Reason, err)
		}
	})
}

func TestTwoRunsOfOneLoopAtOnceTheSecondIsToldWhoHoldsIt(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(t.Context())
		var second error
		r.agent = untilStopped(t, func() {
			_, second = r.engine.Run(t.Context(), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
			cancel()
		})
		if _, err := r.engine.Run(ctx, r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"}); err != nil {
			t.Fatal(err)
		}
		held, ok := errors.AsType[*loop.HeldError](second)
		if !ok || held.Holder.PID != os.Getpid() || held.Run != "w#1" {
			t.Errorf("the second run = %v, want who holds w#1", second)
		}
	})
}

func TestAHolderThatLostItsLeaseStopsAndWritesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		thief := loop.Holder{PID: 1, Host: "elsewhere"}
		r.agent = untilStopped(t, func() { r.steal("lp_w", thief) })
		run, err := r.engine.Run(t.Context(), r.worker(loop.TierAssisted, nil), engine.Firing{Trigger: "manual"})
		if !errors.Is(err, loop.ErrLeaseLost) {
			t.Fatalf("run = %v, want ErrLeaseLost", err)
		}
		if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Exit != loop.ExitHeld || f.Why != "process 1 on elsewhere took it over" || !strings.Contains(f.Advice().String(), "pawl show w#1") {
			t.Errorf("error = %#v, want who took the run over", err)
		}
		var row loop.Run
		r.view(func(rd *store.Reader) (err error) {
			row, err = rd.Run(t.Context(), run.ID)
			return err
		})
		if row.Holder != thief || row.State != loop.RunRunning || row.Outcome != "" {
			t.Errorf("the row is %+v, want the thief's and untouched", row)
		}
		if trees, _ := os.ReadDir(filepath.Join(r.home, "trees")); len(trees) == 0 {
			t.Error("the tree that the new holder needs was removed")
		}
	})
}

// Timers are of the bubble, the database keeps its own time: what can be seen
// is how often the lease was extended.
func TestALongTurnKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, storetest.SQLite(t))
		var extended int64
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			before := r.store.Commits()
			time.Sleep(10 * store.Lease)
			extended = r.store.Commits() - before
			return says(t, req, `{"outcome":"done","no_change":true}`)
		}
		target := r.worker(loop.TierReport, func(d *loop.Definition) { d.MaxStepTimeout, d.MaxWallClock = time.Hour, time.Hour })
		if run := r.run(target, engine.Firing{}); run.Outcome != loop.OutcomeReported {
			t.Errorf("run = %s %q", run.Outcome, run.Detail)
		}
		if extended < 25 || extended > 40 {
			t.Errorf("in ten leases there were %d commits, want about three extensions for each", extended)
		}
	})
}

func TestAnAgentThatHangsIsStoppedAndItsGoodWorkIsJudged(t *testing.T) {
	r := newRig(t, storetest.SQLite(t))
	deps := r.deps
	deps.Drivers = map[string]turn.Driver{"command": command.Driver{}}
	deps.Exec = proc.Tree{}
	r.engine = engine.New(deps)
	target := r.worker(loop.TierAssisted, func(d *loop.Definition) {
		d.AgentCommand = "echo three > src/a.txt; trap '' TERM; while :; do sleep 1; done"
		d.MaxStepTimeout, d.Verify = 300*time.Millisecond, "grep -q three src/a.txt"
	})
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeProposed {
		t.Fatalf("run = %s %s %q, want proposed", run.Outcome, run.Reason, run.Detail)
	}
	if its := r.iterations(run.ID); !strings.Contains(its[0].Acted, "stopped after") {
		t.Errorf("acted = %q, want it to say that the agent was stopped", its[0].Acted)
	}
}

func TestWhatPassedGoesItsWayWhenTheProcessDiesInALaterItem(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		thief := loop.Holder{PID: 1, Start: 1, Host: r.deps.Self.Host}
		r.deps.HolderState = deadIf(thief)
		r.engine = engine.New(r.deps)
		target := r.target("w", boardLike{nil, []string{"first", "second"}}, loop.Definition{
			Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x", MaxItems: 2,
		})
		stolen := untilStopped(t, func() { r.steal("lp_w", thief) })
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			if strings.HasSuffix(variable(req, "PAWL_STEP"), "second") {
				return stolen(ctx, req)
			}
			gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "first\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		if _, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
			t.Fatalf("run = %v, want a lost lease", err)
		}
		rec, err := r.engine.Recover(t.Context(), target)
		if err != nil || rec == nil {
			t.Fatalf("recover = %+v, %v", rec, err)
		}
		if rec.Run.Outcome != loop.OutcomeInterrupted || rec.Run.State != loop.RunEnded || rec.Run.Branch != "pawl/w/1" {
			t.Errorf("recovered run = %s %s on %q", rec.Run.State, rec.Run.Outcome, rec.Run.Branch)
		}
		if got := gittest.Run(t, r.root, "show", "pawl/w/1:src/a.txt"); got != "first" {
			t.Errorf("proposed a.txt = %q", got)
		}
		if got := gittest.Run(t, r.root, "show", rec.Run.Snapshot+":src/a.txt"); got != "half" {
			t.Errorf("kept a.txt = %q", got)
		}
	})
}

func TestTextThatNoDatabaseCanStoreIsStoredAllTheSame(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
			return says(t, req, `{"outcome":"blocked","reason":"a\u0000b","summary":"c\u0000d","item":"k=\u0000"}`)
		}
		target := r.worker(loop.TierReport, nil)
		run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual", Request: "e\x00\xff"})
		if err != nil || run.Outcome != loop.OutcomeBlocked {
			t.Errorf("run = %s %q, %v", run.Outcome, run.Detail, err)
		}
	})
}
