package engine_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/fakemodel"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func faulty(f fakemodel.Fault) fakemodel.Script {
	return fakemodel.Script{Turns: []fakemodel.Turn{{Say: "so it is", Usage: usage(10, 10), Fault: &f}}}
}

// once asks the model once, and fails as programs do: without a word on why.
func (p *meteredRig) once(ctx context.Context, r agent.Request) (agent.Result, error) {
	if status, _ := ask(ctx, p.t, r, 1000); status != http.StatusOK {
		return ended(&loop.Failure{Class: loop.FailureCrash})
	}
	gittest.WriteFile(p.t, r.Dir+"/src/a.txt", "two\n")
	return ended(nil)
}

func TestALimitWithAResetParksEveryLoopOfTheAccountUntilThenAndCountsAsNoFailure(t *testing.T) {
	onBothMetered(t, faulty(fakemodel.Fault{Status: http.StatusTooManyRequests, RetryAfter: 40 * 60, Times: 1}), func(t *testing.T, p *meteredRig) {
		p.agent = p.once
		began := time.Now() // The vendor's clock, which is not put past midnight as that of the runs may be.
		first := p.run(p.calls("a", nil), engine.Firing{})
		if first.Outcome != loop.OutcomeBlocked || first.Reason != loop.FailureRateLimit {
			t.Fatalf("run = %s %s %q, want blocked by the limit", first.Outcome, first.Reason, first.Detail)
		}
		holds := p.holds()
		if len(holds) != 1 || !strings.HasPrefix(holds[0].Subject, "account:anthropic:") || holds[0].Reason != loop.FailureRateLimit {
			t.Fatalf("holds = %+v", holds)
		}
		if after := holds[0].Until.Sub(began); after < 40*time.Minute || after > 43*time.Minute {
			t.Errorf("the account rests for %s, want 40 minutes and a little", after)
		}
		if until := holds[0].Until.UTC().Format(time.RFC3339); !strings.Contains(first.Detail, until) {
			t.Errorf("detail = %q, want %s in it", first.Detail, until)
		}
		p.wantOpen("lp_a", 0)
		for _, name := range []string{"a", "b"} {
			parked := p.run(p.calls(name, nil), engine.Firing{})
			if parked.Outcome != loop.OutcomeBlocked || parked.Reason != loop.FailureRateLimit || !parked.Usage.Zero() || len(p.turnRows(parked.ID)) != 0 {
				t.Errorf("run of %s = %s %s, %+v, want blocked without a turn", name, parked.Outcome, parked.Reason, parked.Usage)
			}
			if until := holds[0].Until.UTC().Format(time.RFC3339); !strings.Contains(parked.Detail, until) {
				t.Errorf("detail = %q, want %s in it", parked.Detail, until)
			}
		}
		if n := p.turns.Load(); n != 1 {
			t.Errorf("%d turns, want 1", n)
		}
		p.later(43 * time.Minute)
		if run := p.run(p.calls("a", nil), engine.Firing{}); run.Outcome != loop.OutcomeProposed || p.turns.Load() != 2 {
			t.Errorf("after the reset: run = %s %s %q after %d turns, want exactly one more", run.Outcome, run.Reason, run.Detail, p.turns.Load())
		}
		if holds := p.holds(); len(holds) != 0 {
			t.Errorf("holds after a turn that went well = %+v", holds)
		}
	})
}

func TestLimitsWithoutAResetAddUp(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), faulty(fakemodel.Fault{Status: http.StatusTooManyRequests}))
	p.agent = p.once
	for i, least := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute} {
		began := p.now()
		run := p.run(p.calls("a", nil), engine.Firing{})
		holds := p.holds()
		if run.Reason != loop.FailureRateLimit || len(holds) != 1 {
			t.Fatalf("run %d = %s %q, holds %+v", i+1, run.Reason, run.Detail, holds)
		}
		if rest := holds[0].Until.Sub(began); rest < least || rest > least+3*time.Minute {
			t.Errorf("limit %d in a row: the account rests for %s, want %s and up to 2m", i+1, rest, least)
		}
		p.later(holds[0].Until.Sub(p.now()) + time.Second)
	}
	p.wantOpen("lp_a", 0)
}

func TestWhatTimeDoesNotHelpRestsUntilSomebodyResumes(t *testing.T) {
	for name, c := range map[string]struct {
		fault   fakemodel.Fault
		reason  loop.Reason
		subject string
	}{
		"an account that is used up": {fakemodel.Fault{Kind: fakemodel.FaultQuota}, loop.FailureQuota, "account:"},
		"a key that is refused":      {fakemodel.Fault{Status: http.StatusUnauthorized}, loop.FailureAuth, "account:"},
		"a thing that is forbidden":  {fakemodel.Fault{Status: http.StatusForbidden}, loop.FailureAuth, "loop:"},
		"a model that is not known":  {fakemodel.Fault{Status: http.StatusNotFound, Text: "model: no-such-model"}, loop.FailureRequest, "loop:"},
	} {
		t.Run(name, func(t *testing.T) {
			c.fault.Times = 1
			p := newMeteredRig(t, databases["sqlite"](t), faulty(c.fault))
			p.agent = p.once
			if run := p.run(p.calls("a", nil), engine.Firing{}); run.Outcome != loop.OutcomeBlocked || run.Reason != c.reason {
				t.Fatalf("run = %s %s %q, want blocked by %s", run.Outcome, run.Reason, run.Detail, c.reason)
			}
			holds := p.holds()
			if len(holds) != 1 || !strings.HasPrefix(holds[0].Subject, c.subject) || !holds[0].Until.IsZero() {
				t.Fatalf("holds = %+v", holds)
			}
			p.later(30 * 24 * time.Hour)
			parked := p.run(p.calls("a", nil), engine.Firing{})
			if parked.Outcome != loop.OutcomeBlocked || parked.Reason != c.reason || !strings.Contains(parked.Detail, "until somebody resumes") || p.turns.Load() != 1 {
				t.Errorf("a month later: run = %s %s %q after %d turns", parked.Outcome, parked.Reason, parked.Detail, p.turns.Load())
			}
			p.wantOpen("lp_a", 0)
		})
	}
}

// A run said that it rests until somebody resumes it, and until a time beside that.
func TestAResetThatIsNotWaitedForIsNotSaidToBeTheEndOfARest(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), faulty(fakemodel.Fault{Status: http.StatusTooManyRequests, RetryAfter: 35 * 24 * 60 * 60, Times: 1}))
	p.agent = p.once
	first := p.run(p.calls("a", nil), engine.Firing{})
	later := p.run(p.calls("b", nil), engine.Firing{})
	for _, run := range []loop.Run{first, later} {
		if run.Outcome != loop.OutcomeBlocked || run.Reason != loop.FailureRateLimit || !strings.Contains(run.Detail, "until somebody resumes it") {
			t.Errorf("run = %s %s %q, want it to wait for somebody", run.Outcome, run.Reason, run.Detail)
		}
		if !strings.Contains(run.Detail, "; the reset that was stated, 20") || strings.Contains(run.Detail, "until 20") {
			t.Errorf("detail = %q, want the reset as one that is not waited for", run.Detail)
		}
	}
}

func TestAServerThatFailsIsAskedAgainInTheRun(t *testing.T) {
	onBothMetered(t, faulty(fakemodel.Fault{Status: http.StatusInternalServerError, Times: 2}), func(t *testing.T, p *meteredRig) {
		p.agent = p.once
		run := p.run(p.calls("a", nil), engine.Firing{})
		if run.Outcome != loop.OutcomeProposed || p.turns.Load() != 3 || len(p.slept) != 2 {
			t.Errorf("run = %s %s %q after %d turns and waits of %v, want the third turn proposed", run.Outcome, run.Reason, run.Detail, p.turns.Load(), p.slept)
		}
		rows := p.turnRows(run.ID)
		if len(rows) != 3 || rows[0].Failure == nil || rows[0].Failure.Class != loop.FailureServer || rows[2].Failure != nil {
			t.Errorf("turns = %+v", rows)
		}
		if its := p.iterations(run.ID); len(its) != 1 {
			t.Errorf("%d iterations, want 1", len(its))
		}
	})
}

func TestThreeErrorsInARowLetALoopCoolOffAndATurnThatGoesWellForgetsThem(t *testing.T) {
	onBothMetered(t, says200(10, 10), func(t *testing.T, p *meteredRig) {
		bad := func(context.Context, agent.Request) (agent.Result, error) {
			return agent.Result{Ended: proc.Exited, Exit: 1, Took: time.Millisecond, Usage: loop.Usage{Input: 1, Source: loop.UsageReported}, Failure: &loop.Failure{Class: loop.FailureMalformed, Text: "no end"}}, nil
		}
		target := p.calls("a", func(d *loop.Definition) { d.MaxIterations = 1 })
		p.agent = bad
		p.run(target, engine.Firing{})
		p.run(target, engine.Firing{})
		p.agent = p.once
		if run := p.run(target, engine.Firing{}); run.Outcome != loop.OutcomeProposed || len(p.holds()) != 0 {
			t.Fatalf("run = %s %q, holds %+v, want the errors forgotten", run.Outcome, run.Detail, p.holds())
		}
		target = p.calls("b", func(d *loop.Definition) { d.MaxIterations = 1 })
		p.agent = bad
		for range 3 {
			p.run(target, engine.Firing{})
		}
		turns, began := p.turns.Load(), p.now()
		cool := p.run(target, engine.Firing{})
		if cool.Outcome != loop.OutcomeBlocked || cool.Reason != loop.ReasonCoolOff || !strings.Contains(cool.Detail, "3 turns in a row") || p.turns.Load() != turns {
			t.Fatalf("run = %s %s %q, want it to cool off", cool.Outcome, cool.Reason, cool.Detail)
		}
		if holds := p.holds(); len(holds) != 1 || holds[0].Subject != engine.LoopHold("lp_b") || holds[0].Until.Sub(began) < 14*time.Minute {
			t.Errorf("holds = %+v", holds)
		}
		p.later(18 * time.Minute)
		p.agent = p.once
		if run := p.run(target, engine.Firing{}); run.Outcome != loop.OutcomeProposed || len(p.holds()) != 0 {
			t.Errorf("after it cooled off: run = %s %q, holds %+v", run.Outcome, run.Detail, p.holds())
		}
	})
}

func TestAgentsWhoseRequestsPawlRefusesRestNeitherTheirLoopNorTheirAccount(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), fakemodel.Script{})
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		const body = `{"model":"m","max_tokens":9,"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Models.URL+"/v1/messages", strings.NewReader(body))
		if err != nil {
			return agent.Result{}, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return agent.Result{}, err
		}
		if err := resp.Body.Close(); err != nil {
			return agent.Result{}, err
		}
		return ended(&loop.Failure{Class: loop.FailureAuth, Text: "403", Typed: true})
	}
	for range 5 {
		run := p.run(p.calls("a", nil), engine.Firing{})
		if !strings.Contains(run.Detail, loop.FailureDenied.Sentence()) || !strings.Contains(run.Detail, "model_tools: [web_search]") || !run.Usage.Zero() {
			t.Errorf("run = %s %s %q, %+v, want one that names the key and costs nothing", run.Outcome, run.Reason, run.Detail, run.Usage)
		}
		if holds := p.holds(); len(holds) != 0 {
			t.Fatalf("holds = %+v", holds)
		}
	}
	if n := len(p.model.Log()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// Some programs try again for hours without a word.
func TestATurnEndsWhenTheVendorTakesNoMoreCalls(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), faulty(fakemodel.Fault{Status: http.StatusUnauthorized}))
	p.agent = func(ctx context.Context, r agent.Request) (agent.Result, error) {
		for range 3 {
			ask(ctx, t, r, 1000)
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Error("the turn goes on although its vendor turns every call down")
		}
		return agent.Result{Ended: proc.Canceled, Exit: 143}, nil
	}
	if run := p.run(p.calls("w", nil), engine.Firing{}); run.Reason != loop.FailureAuth {
		t.Errorf("run = %s %s %q, want that the credential is not taken", run.Outcome, run.Reason, run.Detail)
	}
}

// A wait that is longer than a turn is not waited for in the run.
func TestALimitThatLastsLongerThanATurnParksTheAccount(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		holds  int
	}{
		"a limit of the account": {http.StatusTooManyRequests, 1},
		"an error of the vendor": {http.StatusServiceUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newMeteredRig(t, databases["sqlite"](t), faulty(fakemodel.Fault{Status: c.status, RetryAfter: 20}))
			p.agent = p.once
			run := p.run(p.calls("a", func(d *loop.Definition) { d.MaxStepTimeout = 5 * time.Second }), engine.Firing{})
			holds := slices.DeleteFunc(p.holds(), func(h loop.Hold) bool { return h.Until.IsZero() })
			if n := p.turns.Load(); len(holds) != c.holds || run.Outcome.IsSuccess() || c.holds > 0 && n != 1 {
				t.Errorf("run = %s %s %q after %d turns, holds %+v", run.Outcome, run.Reason, run.Detail, n, p.holds())
			}
		})
	}
}

func TestALoopIsHeldUnderItsAccountOnlyIfItHasOne(t *testing.T) {
	p := newMeteredRig(t, databases["sqlite"](t), says200(1, 1))
	with := p.calls("a", nil)
	subjects := p.engine.HoldSubjects(t.Context(), with.Loop.ID, with.Definition)
	if len(subjects) != 2 || subjects[0] != "loop:lp_a" || !strings.HasPrefix(subjects[1], "account:anthropic:") {
		t.Errorf("with a key: %q, want the loop and its account", subjects)
	}
	without := one(t)
	target := without.worker(loop.TierAssisted, nil)
	if got := without.engine.HoldSubjects(t.Context(), target.Loop.ID, target.Definition); !slices.Equal(got, []string{"loop:lp_w"}) {
		t.Errorf("with a command: %q, want the loop", got)
	}
}
