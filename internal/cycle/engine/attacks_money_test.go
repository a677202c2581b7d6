package engine_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
	"github.com/pawl-run/pawl/internal/test/sample"
)

// streams is a turn that asks for streams until it is refused or cut.
func (p *meteredRig) streams(times int) func(context.Context, agent.Request) (agent.Result, error) {
	return func(ctx context.Context, r agent.Request) (agent.Result, error) {
		for range times {
			if status, _ := askModel(ctx, p.t, r, 200_000, cheap, true); status != http.StatusOK {
				return ended(&loop.Failure{Class: loop.FailureServer})
			}
		}
		gittest.WriteFile(p.t, filepath.Join(r.Dir, "src/a.txt"), "two\n")
		return ended(nil)
	}
}

func TestAttack095InARunOneTokenIsReportedForAHundredThousand(t *testing.T) {
	script := fakemodel.Script{Turns: []fakemodel.Turn{{Say: "so it is", Flood: 100_000, Repeat: true, Lie: &fakemodel.Lie{Output: "1", Input: "1"}}}}
	onBothMetered(t, script, func(t *testing.T, p *meteredRig) {
		const most = 50_000
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: most})
		p.agent = p.streams(10)
		run := p.run(p.calls("w", nil), engine.Firing{})
		if run.Outcome != loop.OutcomeBudget || run.Usage.Source != loop.UsageEstimated {
			t.Errorf("run = %s %s %q, %+v, want it cut and its tokens estimated", run.Outcome, run.Reason, run.Detail, run.Usage)
		}
		if n := run.Usage.ChargedTokens(); n < most/2 || n > most+100_000 {
			t.Errorf("charged %d tokens, want those that were streamed, up to the budget and one answer", n)
		}
		if n := len(p.model.Log()); n != 1 {
			t.Errorf("%d calls reached the model, want 1", n)
		}
		if st := p.standing(all); st.Used.Tokens < run.Usage.ChargedTokens() || !st.Reserved.Zero() {
			t.Errorf("standing = %+v", st)
		}
	})
}

func TestAttack097InARunNumbersThatAreNoneAreChargedPessimistically(t *testing.T) {
	for name, lie := range map[string]fakemodel.Lie{
		"less than nothing": {Output: "-1"}, "more than an int64": {Output: "9223372036854775808"}, "more than a float": {Output: "1e309"},
		"a text": {Output: `"NaN"`}, "nothing at all": {Missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), fakemodel.Script{Turns: []fakemodel.Turn{{Say: strings.Repeat("word ", 400), Lie: &lie}}})
			p.budget(all, loop.WindowDay, loop.Amount{Tokens: 100_000})
			p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
				ask(ctx, t, r, 1000)
				gittest.WriteFile(t, filepath.Join(r.Dir, "src/a.txt"), "two\n")
				return ended(nil)
			}
			run := p.run(p.calls("w", nil), engine.Firing{})
			if n := run.Usage.ChargedTokens(); n < 100 || n > 3000 || run.Usage.Source != loop.UsageEstimated {
				t.Errorf("charged %+v, want an estimate of what was written or more", run.Usage)
			}
			if st := p.standing(all); st.Used.Tokens != run.Usage.ChargedTokens() {
				t.Errorf("standing = %+v, want %d", st, run.Usage.ChargedTokens())
			}
			if told := p.told(run.ID); !lie.Missing && !strings.Contains(told, "bad_usage") {
				t.Errorf("nobody is told: %s", told)
			}
		})
	}
}

func TestTokensThatNobodyCountedAreChargedAsTheyWereReserved(t *testing.T) {
	for name, u := range map[string]loop.Usage{"no usage": {}, "an estimate": {Input: 12, Output: 3, Source: loop.UsageEstimated}} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), says200(1, 1))
			p.budget(all, loop.WindowDay, loop.Amount{Tokens: 100_000})
			p.agent = func(_ context.Context, r agent.Request) (agent.Result, error) {
				gittest.WriteFile(t, filepath.Join(r.Dir, "src/a.txt"), "two\n")
				return agent.Result{Ended: proc.Exited, Claims: true, Took: 1, Usage: u}, nil
			}
			run := p.run(p.worker(loop.TierAssisted, nil), engine.Firing{})
			if st := p.standing(all); run.Outcome != loop.OutcomeProposed || st.Used.Tokens != usualTokens || !st.Reserved.Zero() {
				t.Errorf("run = %s %q, standing %+v, want the reservation charged", run.Outcome, run.Detail, st)
			}
		})
	}
}

func TestARunStoresWhatItCostAndThePricesThatWereUsed(t *testing.T) {
	onBothMetered(t, fakemodel.Script{}, func(t *testing.T, p *meteredRig) {
		p.writes.Store(1000)
		p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
			ask(ctx, t, r, 1000)
			askModel(ctx, t, r, 1000, "nobodys-model", false)
			gittest.WriteFile(t, filepath.Join(r.Dir, "src/a.txt"), "two\n")
			return ended(nil)
		}
		run := p.run(p.calls("w", nil), engine.Firing{})
		if run.Cost.MicroUSD != 10+5*1000 || len(run.Cost.Prices) != 1 || run.Cost.Prices[0].Model != cheap || run.Cost.Prices[0].Input != 1 || run.Cost.Prices[0].CacheRead != 0.1 || run.Cost.AsOf == "" {
			t.Errorf("cost = %+v, want 5010 millionths at the prices of %s", run.Cost, cheap)
		}
		if len(run.Cost.Unpriced) != 1 || run.Cost.Unpriced[0] != "nobodys-model" {
			t.Errorf("unpriced = %v", run.Cost.Unpriced)
		}
		rows := p.turnRows(run.ID)
		if len(rows) != 1 || rows[0].Cost.MicroUSD != run.Cost.MicroUSD || len(rows[0].Models) != 2 {
			t.Errorf("turns = %+v", rows)
		}
	})
}

// asking is a driver whose program asks a model of its own choice.
type asking struct {
	caller

	model string
}

func (a asking) Profile() agent.Profile {
	return agent.Profile{Name: "asking", Program: "sh", Providers: []string{"anthropic"}, Asks: map[string]string{"anthropic": a.model}}
}

// The class of such a call was bad_request, for which the loop rested until a
// person came.
func TestAModelWithoutAPriceIsRefusedWhereMoneyHasACap(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		asks   string // by the driver's program, as its profile says
		named  string // by the definition
		turns  int64
		advice string
	}{
		"one that the definition names":           {"caller", "", "nobodys-model", 0, "add one, name another model"},
		"one that the program is known to ask":    {"asking", "nobodys-model", "", 0, "add one, name another model"},
		"one that the program is first seen with": {"caller", "", "", 1, "add a price, or name a model that has one"},
		"one that it asks beside a priced one":    {"asking", cheap, "", 1, "add a price, or name a model that has one"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), says200(10, 10))
			p.deps.Drivers["asking"] = asking{caller{p}, c.asks}
			p.engine = engine.New(p.deps)
			p.budget(all, loop.WindowDay, loop.Amount{MicroUSD: 1_000_000})
			p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
				if status, _ := askModel(ctx, t, r, 1000, "nobodys-model", false); status == http.StatusOK {
					t.Error("the model was asked")
				}
				return ended(&loop.Failure{Class: loop.FailureAuth, Typed: true})
			}
			target := p.calls("w", func(d *loop.Definition) { d.Agent, d.Model = c.driver, c.named })
			run := p.run(target, engine.Firing{})
			if run.Outcome != loop.OutcomeBlocked || run.Outcome.Meaning().Exit != 11 || run.Reason != loop.ReasonPriceUnknown {
				t.Errorf("run = %s %s, want price_unknown, exit 11", run.Outcome, run.Reason)
			}
			for _, want := range []string{`the model "nobodys-model" has no price`, c.advice} {
				if !strings.Contains(run.Detail, want) {
					t.Errorf("detail = %q, want %q in it", run.Detail, want)
				}
			}
			if n := p.turns.Load(); n != c.turns || len(p.model.Log()) != 0 {
				t.Errorf("%d turns, %d calls", n, len(p.model.Log()))
			}
			if st := p.standing(all); st.Used.MicroUSD > 1 || !st.Reserved.Zero() {
				t.Errorf("standing = %+v", st)
			}
			if rests := p.holds(); len(rests) != 0 {
				t.Errorf("the loop rests: %+v", rests)
			}
		})
	}
}

// Without a budget in money nobody has to know what a model costs.
func TestAModelWithoutAPriceRunsWhereMoneyHasNoCap(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), says200(10, 10))
	p.budget(all, loop.WindowDay, loop.Amount{Tokens: 1_000_000})
	p.agent = p.spends(1, 1000)
	run := p.run(p.calls("w", func(d *loop.Definition) { d.Model = "nobodys-model" }), engine.Firing{})
	if run.Outcome != loop.OutcomeDone && run.Outcome != loop.OutcomeProposed || len(run.Cost.Unpriced) != 1 {
		t.Errorf("run = %s %s %q, cost %+v", run.Outcome, run.Reason, run.Detail, run.Cost)
	}
}

// An agent's program asked a newer model than any table had, and each of its runs ended
// before it began.
func TestAnUnpricedModelOfAKnownFamilyRunsByAnAssumedPriceUnderTheCap(t *testing.T) {
	for name, c := range map[string]struct {
		refuse bool
		cap    int64
		want   loop.Outcome
		reason loop.Reason
	}{
		"within the cap":         {false, 10_000_000, loop.OutcomeProposed, loop.ReasonNoGate},
		"the cap is too low":     {false, 1, loop.OutcomeBudget, loop.ReasonBudget},
		"nothing may be assumed": {true, 10_000_000, loop.OutcomeBlocked, loop.ReasonPriceUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			p := newMeteredRig(t, databases["sqlite"](t), says200(10, 10))
			table := price.BuiltIn()
			table.NoAssumed = c.refuse
			p.deps.Prices = func() (price.Table, error) { return table, nil }
			p.deps.Drivers["asking"] = asking{caller{p}, "gpt-6.2-sol"}
			p.engine = engine.New(p.deps)
			p.budget(all, loop.WindowDay, loop.Amount{MicroUSD: c.cap})
			p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
				if status, _ := askModel(ctx, t, r, 1000, "gpt-6.2-sol", false); status != http.StatusOK {
					t.Errorf("the model answers %d", status)
				}
				gittest.WriteFile(p.t, filepath.Join(r.Dir, "src/a.txt"), "two\n")
				return ended(nil)
			}
			run := p.run(p.calls("w", func(d *loop.Definition) { d.Agent, d.Model = "asking", "" }), engine.Firing{})
			if run.Outcome != c.want || run.Reason != c.reason {
				t.Fatalf("run = %s %s %q, want %s %s", run.Outcome, run.Reason, run.Detail, c.want, c.reason)
			}
			if assumed := run.Cost.Assumed(); slices.Contains(assumed, "gpt-6.2-sol") != (c.want == loop.OutcomeProposed) {
				t.Errorf("the prices of %q are assumed: %+v", assumed, run.Cost)
			}
		})
	}
}

// A sub-agent whose model has no price is refused, and the run goes on: what it
// was refused is an event, from which why tells it.
func TestACallOfASubAgentThatIsRefusedIsTold(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), says200(10, 10))
	p.budget(all, loop.WindowDay, loop.Amount{MicroUSD: 10_000_000})
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		askModel(ctx, t, r, 1000, "nobodys-model", false)
		return p.spends(1, 1000)(ctx, r)
	}
	run := p.run(p.calls("w", nil), engine.Firing{})
	if run.Outcome != loop.OutcomeDone && run.Outcome != loop.OutcomeProposed {
		t.Errorf("run = %s %s %q", run.Outcome, run.Reason, run.Detail)
	}
	if told := p.told(run.ID); !strings.Contains(told, `refused: the run has a budget in money and the model "nobodys-model" has no price`) {
		t.Errorf("told:\n%s", told)
	}
}

func TestAPathThatIsNoModelCallIsToldOncePerTurn(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), says200(10, 10))
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		for _, path := range []string{"/api/hello", "/api/hello", "/api/hello", "/telemetry"} {
			req, err := http.NewRequestWithContext(ctx, http.MethodHead, r.Models.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		return p.once(ctx, r)
	}
	told := p.told(p.run(p.calls("w", nil), engine.Firing{}).ID)
	if strings.Count(told, "/api/hello") != 1 || strings.Count(told, "/telemetry") != 1 {
		t.Errorf("told: %s", told)
	}
}

func TestEarlyWakesStartNoAgentAndReserveNothing(t *testing.T) {
	onBothMetered(t, says200(1, 1), func(t *testing.T, p *meteredRig) {
		p.budget(all, loop.WindowDay, loop.Amount{Tokens: 100_000})
		p.agent = func(context.Context, agent.Request) (agent.Result, error) {
			t.Error("an agent is started")
			return ended(nil)
		}
		target := p.calls("w", nil)
		target.Protocol = boardLike{}
		for range sample.Size(20, 1000) {
			run := p.run(target, engine.Firing{})
			if run.Outcome != loop.OutcomeQuiet || !run.Usage.Zero() {
				t.Fatalf("run %d = %s %s %+v, want quiet", run.N, run.Outcome, run.Reason, run.Usage)
			}
		}
		if st := p.standing(all); !st.Used.Zero() || !st.Reserved.Zero() {
			t.Errorf("standing = %+v", st)
		}
	})
}
