package engine_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func says200(input, output int64) fakemodel.Script {
	return fakemodel.Script{Turns: []fakemodel.Turn{{Say: "so it is", Usage: usage(input, output)}}}
}

// cutAfter changes a file and then asks until the turn is ended.
func (p *meteredRig) cutAfter(name, text string) func(context.Context, agent.Request) (agent.Result, error) {
	return func(ctx context.Context, r agent.Request) (agent.Result, error) {
		gittest.WriteFile(p.t, r.Dir+"/"+name, text)
		for ctx.Err() == nil {
			if status, _ := ask(ctx, p.t, r, 1000); status != http.StatusOK {
				<-ctx.Done() // As a program that tries again and again.
			}
		}
		return agent.Result{Ended: proc.Canceled, Exit: 143, Took: time.Second}, nil
	}
}

func TestARunThatIsCutInMidActKeepsWhatPassesAndTheNextOneWaitsForTheWindow(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.writes.Store(1000)
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: usualTokens})
		target := p.calls("w", func(d *loop.Definition) { d.Verify = "grep -q good src/a.txt" })
		target.Protocol = boardLike{nil, []string{"the task", "another"}}
		p.agent = p.cutAfter("src/a.txt", "good\n")
		run := p.run(target, engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || run.Reason != loop.ReasonGatesPass {
			t.Fatalf("run = %s %s %q, want what passes proposed", run.Outcome, run.Reason, run.Detail)
		}
		if got := gittest.Run(t, p.root, "show", run.Branch+":src/a.txt"); got != "good" {
			t.Errorf("proposed a.txt = %q", got)
		}
		if total := p.model.Total(); run.Usage.ChargedTokens() != total.Input+total.Output || run.Usage.ChargedTokens() > usualTokens {
			t.Errorf("charged %d, the model said %+v", run.Usage.ChargedTokens(), total)
		}
		if st := p.standing(all); st.Used.Tokens != run.Usage.ChargedTokens() || !st.Reserved.Zero() {
			t.Errorf("standing = %+v", st)
		}
		turns := p.turns.Load()
		again := p.run(target, engine.Firing{})
		if again.Outcome != loop.OutcomeBudget || !strings.Contains(again.Detail, "the next window opens at ") || again.Usage.ChargedTokens() != 0 || p.turns.Load() != turns {
			t.Errorf("the next run = %s %q, %d tokens, want budget and no turn", again.Outcome, again.Detail, again.Usage.ChargedTokens())
		}
		if its := p.iterations(again.ID); len(its) != 0 {
			t.Errorf("a refused run has iterations: %+v", its)
		}
		if list := p.firingEvents("lp_w"); len(list) != 0 {
			t.Errorf("without a file there are the events %+v", list)
		}
		if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.SaveRegistration(t.Context(), "lp_w", loop.Registration{Source: "s", Good: "d"})
		}); err != nil {
			t.Fatal(err)
		}
		p.run(target, engine.Firing{})
		p.run(target, engine.Firing{}) // It waits for the same day.
		tomorrow := loop.WindowDay.End(p.store.Now())
		if list := p.firingEvents("lp_w"); len(list) != 1 || list[0].Source != loop.OnBudget || list[0].Verdict != loop.FiringWaits || !list[0].NotBefore.Equal(tomorrow) {
			t.Errorf("the events that wait for the budget of %s are %+v", tomorrow, list)
		}
		p.later(25 * time.Hour)
		if next := p.run(target, engine.Firing{}); p.turns.Load() != turns+1 || next.Usage.ChargedTokens() == 0 {
			t.Errorf("the next day's run = %s %q", next.Outcome, next.Detail)
		}
	})
}

func TestACutRunWhoseWorkDoesNotPassEndsWithItsBudgetAndCountsNoAttempt(t *testing.T) {
	for name, file := range map[string]string{"work that does not pass": "src/a.txt", "no work": ""} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), says200(10, 1000))
			p.budget(all, loop.WindowDay, loop.Amount{Tokens: usualTokens})
			p.agent = p.cutAfter("src/a.txt", "bad\n")
			if file == "" {
				p.agent = p.cutAfter("src/a.txt", "one\n") // As it was.
			}
			run := p.run(p.calls("w", func(d *loop.Definition) { d.Verify, d.MaxIterations = "grep -q good src/a.txt", 3 }), engine.Firing{})
			if run.Outcome != loop.OutcomeBudget || run.Reason != loop.ReasonBudget || !strings.Contains(run.Detail, "the day budget of everything") {
				t.Errorf("run = %s %s %q, want budget", run.Outcome, run.Reason, run.Detail)
			}
			if n := p.turns.Load(); n != 1 {
				t.Errorf("%d turns, want 1: nothing is left for another", n)
			}
			if file != "" && run.Snapshot == "" {
				t.Error("the work is not kept")
			}
			p.wantOpen("lp_w", 0)
		})
	}
}

// wantOpen checks that a loop's only step is open after so many attempts.
func (r *rig) wantOpen(loopID string, attempts int) {
	r.t.Helper()
	r.view(func(rd *store.Reader) error {
		steps, err := rd.Steps(r.t.Context(), loopID)
		if len(steps) != 1 || steps[0].State != loop.StepOpen || steps[0].Attempts != attempts || len(steps[0].Tried.Gates) != 0 {
			r.t.Errorf("steps = %+v, want one that is open after %d attempts", steps, attempts)
		}
		return err
	})
}

func TestAProgramThatGivesUpWhenItIsRefusedEndsWithTheBudgetAndNotItsOwnWords(t *testing.T) {
	onBothMetered(t, says200(10, 1000), func(t *testing.T, p *meteredRig) {
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: usualTokens})
		p.agent = p.spends(100, 1000)
		run := p.run(p.calls("w", nil), engine.Firing{})
		if run.Outcome != loop.OutcomeBudget || run.Reason != loop.ReasonBudget {
			t.Errorf("run = %s %s %q, want budget", run.Outcome, run.Reason, run.Detail)
		}
		if holds := p.holds(); len(holds) != 0 {
			t.Errorf("holds = %+v: a refusal of pawl's own is none of the account", holds)
		}
	})
}

func TestCapsThatAreReservedAreObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		window loop.BudgetWindow
		most   loop.Amount
		fits   func(loop.Run) bool
		turns  int64
	}{
		"tokens of one run":    {loop.WindowRun, loop.Amount{Tokens: 5000}, func(r loop.Run) bool { return r.Usage.ChargedTokens() > 3000 && r.Usage.ChargedTokens() <= 5000 }, 1},
		"output tokens of day": {loop.WindowDay, loop.Amount{Output: 9000}, func(r loop.Run) bool { return r.Usage.Output > 7000 && r.Usage.Output <= 9000 }, 1},
		"output tokens of run": {loop.WindowRun, loop.Amount{Output: 3000}, func(r loop.Run) bool { return r.Usage.Output > 1000 && r.Usage.Output <= 3000 }, 1},
		"money of one run":     {loop.WindowRun, loop.Amount{MicroUSD: 20_000}, func(r loop.Run) bool { return r.Cost.MicroUSD > 14_000 && r.Cost.MicroUSD <= 20_000 }, 1},
		"iterations of day":    {loop.WindowDay, loop.Amount{Iterations: 2}, func(r loop.Run) bool { return true }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), fakemodel.Script{})
			p.writes.Store(1000)
			p.budget(all, c.window, c.most)
			p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
				for range 20 {
					if status, _ := ask(ctx, t, r, 1000); status != http.StatusOK {
						break
					}
				}
				gittest.WriteFile(t, r.Dir+"/src/a.txt", "bad\n")
				return ended(nil)
			}
			run := p.run(p.calls("w", func(d *loop.Definition) { d.Verify, d.MaxIterations = "false", 4 }), engine.Firing{})
			if !c.fits(run) || p.turns.Load() != c.turns {
				t.Errorf("run = %s %s %q, %+v, %d micro USD, %d turns", run.Outcome, run.Reason, run.Detail, run.Usage, run.Cost.MicroUSD, p.turns.Load())
			}
		})
	}
}
