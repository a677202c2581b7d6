package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

// step returns the one step of loop w.
func (r *rig) step() (s loop.Step) {
	r.t.Helper()
	r.view(func(rd *store.Reader) error {
		list, err := rd.Steps(r.t.Context(), "lp_w")
		if err == nil && len(list) != 1 {
			r.t.Fatalf("steps = %+v, want one", list)
		}
		if err == nil {
			s = list[0]
		}
		return err
	})
	return s
}

// A daemon recovers each loop before it runs it, and may do so while the same
// process runs it already. The holder is this process itself then, which is
// alive, but whose being alive proves nothing about one of its runs.
func TestRecoveryLeavesARunAloneThatThisProcessDrives(t *testing.T) {
	onBoth(t, func(t *testing.T, r *rig) {
		target := r.worker(loop.TierAssisted, nil)
		var before, after loop.Run
		live := func(rd *store.Reader) (run loop.Run, err error) { return rd.Live(t.Context(), "lp_w") }
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			r.view(func(rd *store.Reader) (err error) { before, err = live(rd); return err })
			if rec, err := r.engine.Recover(ctx, target); rec != nil || err != nil {
				t.Errorf("recover in the middle of the run = %+v, %v", rec, err)
			}
			r.lapse("lp_w") // Whatever its lease says.
			if rec, err := r.engine.Recover(ctx, target); rec != nil || err != nil {
				t.Errorf("recover after the lease has lapsed = %+v, %v", rec, err)
			}
			r.view(func(rd *store.Reader) (err error) { after, err = live(rd); return err })
			gittest.WriteFile(t, req.Dir+"/src/a.txt", "two\n")
			return says(t, req, `{"outcome":"done"}`)
		}
		run, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
		if err != nil || run.Outcome != loop.OutcomeProposed {
			t.Fatalf("run = %s %q, %v", run.Outcome, run.Detail, err)
		}
		// A beat of the run's own may have written the phase between the two.
		if after.Fence != before.Fence || after.State != before.State || after.Phase != before.Phase && after.Phase != loop.PhaseAct {
			t.Errorf("the run was %+v and is %+v", before, after)
		}
	})
}

// dies lets the run of loop w lose its process in the middle of a turn, and
// recovers it.
func (r *rig) dies(target engine.Target, first func(context.Context, agent.Request) (agent.Result, error)) *engine.Recovered {
	r.t.Helper()
	gone := loop.Holder{PID: 7, Start: 1, Host: r.deps.Self.Host}
	deps := r.deps
	deps.HolderState = deadIf(gone)
	r.engine = engine.New(deps)
	stolen := untilStopped(r.t, func() { r.steal("lp_w", gone) })
	n := 0
	r.agent = stolen
	if first != nil {
		r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
			if n++; n == 1 {
				return first(ctx, req)
			}
			return stolen(ctx, req)
		}
	}
	if _, err := r.engine.Run(r.t.Context(), target, engine.Firing{Trigger: "manual"}); !errors.Is(err, loop.ErrLeaseLost) {
		r.t.Fatalf("run = %v, want a lost lease", err)
	}
	rec, err := r.engine.Recover(r.t.Context(), target)
	if err != nil || rec == nil || rec.Run.Outcome != loop.OutcomeInterrupted {
		r.t.Fatalf("recover = %+v, %v, want the run interrupted", rec, err)
	}
	return rec
}

func TestNoIterationStaysOpenWhenItsRunHasEnded(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, r *rig) loop.Run{
		"its process died": func(t *testing.T, r *rig) loop.Run {
			t.Helper()
			return r.dies(r.worker(loop.TierAssisted, nil), nil).Run
		},
		"the switch was set": func(t *testing.T, r *rig) loop.Run {
			t.Helper()
			r.agent = untilStopped(t, func() { gittest.WriteFile(t, r.root+"/.loops/PAUSED", "") })
			return r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				run := end(t, r)
				its := r.iterations(run.ID)
				if len(its) != 1 {
					t.Fatalf("iterations = %+v, want one", its)
				}
				if it := its[0]; it.N != 1 || it.Verdict != loop.VerdictFail || it.Reason != run.Reason || it.Feedback != run.Detail || it.Ended.IsZero() {
					t.Errorf("iteration = %s %s %q, ended %v, want what ended the run: %s %q", it.Verdict, it.Reason, it.Feedback, it.Ended, run.Reason, run.Detail)
				}
			})
		})
	}
}

// An iteration whose process died has worked on its step, and nobody knows what
// came of it: it counts as an attempt, once. One that a person or the switch
// stopped says nothing about the step and does not count. Neither is a failure
// of a gate, so that neither leads to giving up.
func TestAnAttemptCountsWhenItsProcessDiedAndNotWhenItWasStopped(t *testing.T) {
	type counted struct {
		Attempts, Streak int
		State            loop.StepState
		Run              string
	}
	check := func(t *testing.T, r *rig, want counted, feedback string) {
		t.Helper()
		s := r.step()
		if d := cmp.Diff(want, counted{s.Attempts, s.Tried.Gates[loop.GateVerify].Failed, s.State, s.RunID}); d != "" {
			t.Errorf("step (-want +got):\n%s", d)
		}
		if !strings.Contains(s.Feedback, feedback) {
			t.Errorf("the next attempt is told %q, want %q", s.Feedback, feedback)
		}
	}
	t.Run("its process died", func(t *testing.T) {
		onBoth(t, func(t *testing.T, r *rig) {
			target := r.worker(loop.TierAssisted, nil)
			r.dies(target, nil)
			check(t, r, counted{Attempts: 1, State: loop.StepOpen}, "process 7 died in")
			if again, err := r.engine.Recover(t.Context(), target); again != nil || err != nil {
				t.Errorf("a second recovery = %+v, %v", again, err)
			}
			check(t, r, counted{Attempts: 1, State: loop.StepOpen}, "process 7 died in")
		})
	})
	t.Run("its process died after an attempt of the same run had failed", func(t *testing.T) {
		onBoth(t, func(t *testing.T, r *rig) {
			r.dies(r.worker(loop.TierAssisted, func(d *loop.Definition) { d.Verify = "grep -q never src/a.txt" }), func(_ context.Context, req agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, req.Dir+"/src/a.txt", "first\n")
				return says(t, req, `{"outcome":"done"}`)
			})
			check(t, r, counted{Attempts: 2, Streak: 1, State: loop.StepOpen}, "process 7 died in")
		})
	})
	t.Run("the switch was set", func(t *testing.T) {
		onBoth(t, func(t *testing.T, r *rig) {
			r.agent = untilStopped(t, func() { gittest.WriteFile(t, r.root+"/.loops/PAUSED", "") })
			r.run(r.worker(loop.TierAssisted, nil), engine.Firing{})
			check(t, r, counted{State: loop.StepOpen}, "")
		})
	})
}

func TestABudgetOfIterationsOrItemsEndsTheWorkAndIsCharged(t *testing.T) {
	tasks := boardLike{nil, []string{"first", "second", "third"}}
	for name, c := range map[string]struct {
		most   loop.Amount
		passes bool
		want   loop.Amount // that is charged, of iterations and items
		full   bool        // nothing is left for a second run
	}{
		"items":                {loop.Amount{Items: 2}, true, loop.Amount{Iterations: 2, Items: 2}, true},
		"iterations that fail": {loop.Amount{Iterations: 2}, false, loop.Amount{Iterations: 2}, true},
		"neither, but time":    {loop.Amount{Wall: time.Hour}, true, loop.Amount{Iterations: 3, Items: 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, r *rig) {
				everything := loop.BudgetScope{Kind: loop.BudgetAll}
				err := r.store.Update(t.Context(), func(tx *store.Tx) error {
					return tx.SetBudget(t.Context(), loop.Budget{Scope: everything, Window: loop.WindowMonth, Cap: c.most, By: "ada"})
				})
				if err != nil {
					t.Fatal(err)
				}
				turns := 0
				r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
					turns++
					gittest.WriteFile(t, req.Dir+"/src/"+variable(req, "PAWL_STEP"), strings.Repeat("x\n", turns))
					return says(t, req, `{"outcome":"done"}`)
				}
				target := r.target("w", tasks, loop.Definition{
					Protocol: loop.ProtocolBoard, Tier: loop.TierAssisted, Scope: []string{"src/**"}, AgentCommand: "x",
					MaxItems: 5, MaxIterations: 5, GiveUpAfter: 9, Verify: map[bool]string{true: "true", false: "false"}[c.passes],
				})
				run := r.run(target, engine.Firing{})
				if int64(turns) != c.want.Iterations {
					t.Errorf("%d turns, want %d: %s %s %q", turns, c.want.Iterations, run.Outcome, run.Reason, run.Detail)
				}
				var standing []loop.Standing
				r.view(func(rd *store.Reader) (err error) {
					standing, err = rd.Standings(t.Context(), []loop.BudgetScope{everything}, nil, r.deps.Now())
					return err
				})
				if len(standing) != 1 || !standing[0].Reserved.Zero() || standing[0].Used.Iterations != c.want.Iterations || standing[0].Used.Items != c.want.Items {
					t.Errorf("standing = %+v, want %+v charged and nothing reserved", standing, c.want)
				}
				if !c.full {
					return
				}
				next, err := r.engine.Run(t.Context(), target, engine.Firing{Trigger: "manual"})
				if err != nil || next.Outcome != loop.OutcomeBudget || turns != int(c.want.Iterations) {
					t.Errorf("the next run = %s %s %q, %v, %d turns, want a budget without another turn", next.Outcome, next.Reason, next.Detail, err, turns)
				}
			})
		})
	}
}
