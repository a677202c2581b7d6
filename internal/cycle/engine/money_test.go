package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// What a loop without a past reserves: the table's numbers of the pattern custom.
const (
	usualTokens = 38_000
	usualMicro  = 30_000 + 8_000*5
)

func TestFiftyConcurrentRunsOnABudgetForTenSpendNoMoreThanIt(t *testing.T) {
	for name, c := range map[string]struct {
		most   loop.Amount
		used   func(loop.Amount) int64
		what   string
		output int64 // of each call
	}{
		"of tokens": {loop.Amount{Tokens: 10 * usualTokens}, func(a loop.Amount) int64 { return a.Tokens }, "tokens", usualTokens / 5},
		"of money":  {loop.Amount{MicroUSD: 10 * usualMicro}, func(a loop.Amount) int64 { return a.MicroUSD }, "USD", usualMicro / 5 / 5},
	} {
		if name == "of tokens" && !sample.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
				p.writes.Store(c.output)
				p.budget(all, loop.WindowDay, c.most)
				p.agent = p.spends(10, int(c.output))
				runs := fifty(t, p)
				var sum loop.Amount
				refused := 0
				for _, run := range runs {
					sum = sum.Add(loop.Amount{Tokens: run.Usage.ChargedTokens(), MicroUSD: run.Cost.MicroUSD})
					if run.Usage.Source == loop.UsageEstimated {
						t.Errorf("run %s: usage = %+v, want it metered", run.ID, run.Usage)
					}
					if run.Outcome == loop.OutcomeProposed {
						continue
					}
					refused++
					if run.Outcome != loop.OutcomeBudget || run.Outcome.Meaning().Exit != loop.ExitBudget || run.Reason != loop.ReasonBudget {
						t.Errorf("run = %s %s %q, want budget", run.Outcome, run.Reason, run.Detail)
					}
					for _, want := range []string{"the day budget of everything has ", c.what + " left of ", "the next window opens at ", "00:00 UTC"} {
						if !strings.Contains(run.Detail, want) {
							t.Errorf("detail = %q, want %q in it", run.Detail, want)
						}
					}
				}
				most, total := c.used(c.most), p.model.Total()
				used := c.used(sum)
				if used > most || used < most*7/10 || refused < 40 {
					t.Errorf("%d of %d are used and %d of 50 runs refused, want most of it and at least 40", used, most, refused)
				}
				if got := total.Input + total.Output; got != sum.Tokens {
					t.Errorf("the model said %d tokens, the runs have %d", got, sum.Tokens)
				}
				st := p.standing(all)
				if got := c.used(st.Used); got != used || !st.Reserved.Zero() {
					t.Errorf("the window has %d used and %+v reserved, the runs %d and nothing", got, st.Reserved, used)
				}
			})
		})
	}
}

// fifty runs fifty loops at once, on five engines that share a store.
func fifty(t *testing.T, p *meteredRig) []loop.Run {
	t.Helper()
	engines := make([]*engine.Engine, 5)
	for i := range engines {
		deps := p.deps
		deps.Home = t.TempDir()
		engines[i] = engine.New(deps)
	}
	runs := make([]loop.Run, 50)
	var together sync.WaitGroup
	for i := range runs {
		target := apart(p.calls(fmt.Sprint("l", i), nil))
		together.Go(func() {
			run, err := engines[i%len(engines)].Run(t.Context(), target, engine.Firing{Trigger: "manual"})
			if err != nil {
				t.Errorf("run %d: %v", i, err)
			}
			runs[i] = run
		})
	}
	together.Wait()
	return runs
}

// A cap on money bounded nothing for a program of which pawl knows no model: each
// run reserved and was charged a millionth of a dollar.
func TestMoneyCannotPayForAProgramThatNamesNoModel(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.budget(all, loop.WindowDay, loop.Amount{MicroUSD: 3_000_000})
		p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
			p.turns.Add(1)
			gittest.WriteFile(t, r.Dir+"/src/a.txt", "two\n")
			return ended(nil)
		}
		program := func(model string) func(*loop.Definition) {
			return func(d *loop.Definition) { d.Agent, d.Model, d.BaseURL = "command", model, "" }
		}
		run := p.run(p.calls("w", program("")), engine.Firing{})
		if run.Outcome != loop.OutcomeBlocked || run.Reason != loop.ReasonPriceUnknown || !strings.Contains(run.Detail, "name one that has a price") || p.turns.Load() != 0 {
			t.Errorf("run = %s %s %q after %d turns, want it refused", run.Outcome, run.Reason, run.Detail, p.turns.Load())
		}
		if st := p.standing(all); !st.Used.Zero() || !st.Reserved.Zero() {
			t.Errorf("standing = %+v, want nothing", st)
		}
		if run := p.run(p.calls("w", program(cheap)), engine.Firing{}); run.Outcome != loop.OutcomeProposed {
			t.Errorf("with a model: run = %s %s %q", run.Outcome, run.Reason, run.Detail)
		}
		if st := p.standing(all); st.Used.MicroUSD != usualMicro {
			t.Errorf("with a model: standing = %+v, want what was reserved charged", st)
		}
	})
}

// A file of prices that nobody can read ended runs as failed, which cost the loop
// its readiness, 20 at a time.
func TestARunDoesNotStartWithPricesThatCannotBeRead(t *testing.T) {
	r := newRig(t, databases["sqlite"](t))
	broken := &loop.Fault{Exit: loop.ExitUnreadable, What: "read prices prices.json", Why: "line 3: models: not an object {…}", Fix: "remove it"}
	r.deps.Prices = func() (price.Table, error) { return price.Table{}, broken }
	target := r.target("u", pinned{}, until("grep -q two src/a.txt", "u", []string{"src/**"}))
	_, err := engine.New(r.deps).Run(t.Context(), target, engine.Firing{Trigger: "manual"})
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f != broken {
		t.Errorf("Run = %v, want the fault of the prices", err)
	}
	r.view(func(rd *store.Reader) error {
		if _, err := rd.LoopNamed(t.Context(), "ws", loop.ProtocolSpine, "u"); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("the loop is there: %v", err)
		}
		return nil
	})
}
