package plan

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestAnErrorThatIsNotTheWorksEndsAsThePolicySays(t *testing.T) {
	for then, want := range map[loop.ErrorEnd]struct {
		state   loop.StepState
		outcome loop.Outcome
		halt    bool
	}{
		loop.PauseAndLog:  {loop.StepFailed, loop.OutcomeFailed, true},
		loop.HandOver:     {loop.StepEscalated, loop.OutcomeEscalated, false},
		loop.GiveUpAtOnce: {loop.StepEscalated, loop.OutcomeGaveUp, false},
	} {
		r := Rules{OnError: then, GiveUp: []loop.GiveUpRule{{Repeat: loop.RepeatGate, Times: 1}}}
		for _, reason := range []loop.Reason{loop.ReasonAgentExit, loop.ReasonAgentTimeout, loop.ReasonLimit, loop.FailureCrash, loop.FailureHang, loop.FailureMalformed} {
			s := Settle(loop.Step{State: loop.StepClaimed}, Attempt{Verdict: loop.VerdictFail, Gate: AgentGate, Reason: reason, Words: "why"}, 4, r)
			if s.Step.State != want.state || s.Outcome != want.outcome || s.Halt != want.halt || s.Again || s.Reason != reason || s.Step.Attempts != 1 || len(s.Step.Tried.Gates) > 0 {
				t.Errorf("%s, %s: settled as %+v", then, reason, s)
			}
		}
		for _, reason := range []loop.Reason{loop.ReasonAgentFailed, loop.ReasonReportMalformed} {
			if s := Settle(loop.Step{}, Attempt{Verdict: loop.VerdictFail, Gate: AgentGate, Reason: reason}, 4, r); !s.Again || s.Halt {
				t.Errorf("%s, %s: settled as %+v, want it tried again", then, reason, s)
			}
		}
		if s := Settle(loop.Step{}, Attempt{Verdict: loop.VerdictFail, Gate: "tests", Reason: loop.ReasonGateFailed}, 4, r); s.Outcome != loop.OutcomeGaveUp || s.Reason != loop.ReasonGiveUp {
			t.Errorf("%s, a gate: settled as %+v, want the give-up rule", then, s)
		}
	}
}

func TestAnErrorPolicyRetriesAsOftenAndAsLateAsItSays(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	once := loop.ErrorPolicy{Retries: 1, Wait: 1500 * time.Millisecond}
	thrice := loop.ErrorPolicy{Retries: 3, Wait: 1500 * time.Millisecond, Doubling: true}
	for _, class := range []loop.FailureClass{loop.FailureCrash, loop.FailureServer, loop.FailureHang, loop.FailureKilled, loop.FailureMalformed, loop.ReasonAgentExit, loop.ReasonAgentTimeout} {
		for _, c := range []struct {
			policy  loop.ErrorPolicy
			attempt int
			wait    time.Duration // below zero: it is not tried again
		}{{once, 1, 1500 * time.Millisecond}, {once, 2, -1}, {loop.ErrorPolicy{}, 1, -1}, {loop.ErrorPolicy{Retries: 1}, 1, 0}, {thrice, 1, 1500 * time.Millisecond}, {thrice, 2, 3 * time.Second}, {thrice, 3, 6 * time.Second}, {thrice, 4, -1}} {
			r := RetryBy(c.policy, class, c.attempt, time.Time{}, now, 7)
			if r.TryAgain != (c.wait >= 0) || r.Hold || r.Why == "" || r.TryAgain && r.At.Sub(now) != c.wait {
				t.Errorf("%s, attempt %d of %+v: %+v, want a wait of %s", class, c.attempt, c.policy, r, c.wait)
			}
		}
	}
	for _, class := range []loop.FailureClass{loop.FailureRateLimit, loop.FailureQuota, loop.FailureAuth, loop.FailureRequest, loop.FailureOverflow} {
		if got, want := RetryBy(thrice, class, 1, time.Time{}, now, 7), Retry(class, 1, time.Time{}, now, 7); got != want {
			t.Errorf("%s: %+v, want what holds without a policy: %+v", class, got, want)
		}
	}
}

func TestAStepWhoseWholeLifeIsUsedUpIsGivenUp(t *testing.T) {
	begun := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	life := &loop.Life{Iterations: 3, Tokens: 100, Wall: time.Hour}
	for name, c := range map[string]struct {
		step  loop.Step
		a     Attempt
		spent bool
	}{
		"one iteration is left":  {loop.Step{Attempts: 1}, Attempt{Gate: "g"}, false},
		"the last iteration":     {loop.Step{Attempts: 2}, Attempt{Gate: "g"}, true},
		"one token is left":      {loop.Step{Tokens: 50}, Attempt{Gate: "g", Tokens: 49}, false},
		"the last token":         {loop.Step{Tokens: 50}, Attempt{Gate: "g", Tokens: 50}, true},
		"a moment is left":       {loop.Step{Begun: begun}, Attempt{Gate: "g", Ended: begun.Add(time.Hour - 1)}, false},
		"the last moment":        {loop.Step{Begun: begun}, Attempt{Gate: "g", Ended: begun.Add(time.Hour)}, true},
		"cut for want of tokens": {loop.Step{}, Attempt{Gate: AgentGate, Reason: loop.ReasonLifeBudget, Tokens: 90}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.a.Verdict = loop.VerdictFail
			s := Settle(c.step, c.a, 1, Rules{Life: life, OnError: loop.PauseAndLog, GiveUp: []loop.GiveUpRule{{Repeat: loop.RepeatGate, Times: 9}}})
			if gave := s.Outcome == loop.OutcomeGaveUp && s.Reason == loop.ReasonLifeBudget && s.Step.State == loop.StepEscalated && !s.Again; gave != c.spent {
				t.Errorf("settled as %+v, want it given up: %v", s, c.spent)
			}
			c.a.Verdict, c.a.Reason = loop.VerdictPass, loop.ReasonGatesPass
			if s := Settle(c.step, c.a, 1, Rules{Life: life}); s.Step.State != loop.StepDone {
				t.Errorf("a pass is settled as %+v", s)
			}
		})
	}
}
