package plan

import (
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

var firstStep = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// lived are rules with a budget for a whole life.
var lived = Rules{
	MaxIterations: 8, MaxItems: 8, MaxWallClock: time.Hour, Life: &loop.Life{Iterations: 8, Tokens: 1000, Wall: time.Hour}, OnError: loop.PauseAndLog,
	GiveUp: []loop.GiveUpRule{{Repeat: loop.RepeatGate, Times: 9, Then: loop.ThenEscalate}},
}

func TestOnlyAPersonBeginsTheBudgetOfALifeAnew(t *testing.T) {
	for state, want := range map[loop.StepState]loop.Reason{loop.StepEscalated: loop.ReasonStepEscalated, loop.StepDone: loop.ReasonStepDone} {
		step := loop.Step{ID: "st_1", Key: "goal", Title: "goal", State: state, Attempts: 8, Tokens: 1000, Begun: firstStep, Inputs: "before", Feedback: "8 of 8 iterations are used"}
		s := Snapshot{Candidates: []Candidate{{Step: step, Inputs: "after"}}, Rules: lived, News: true, Started: firstStep}
		if d := Next(s, firstStep); d.Choice != nil || d.Spent != nil || d.Reason != want {
			t.Errorf("%s, and its inputs have changed: %+v, want %s", state, d, want)
		}
		s.Rules.Life = nil
		if d := Next(s, firstStep); d.Choice == nil || d.Choice.Step.Attempts != 0 {
			t.Errorf("%s without a budget for its life, and its inputs have changed: %+v, want it worked on as new", state, d)
		}
	}
}

func TestAStepWhoseLifeIsUsedUpIsGivenUpBeforeItIsWorkedOn(t *testing.T) {
	now := firstStep.Add(time.Hour)
	for name, c := range map[string]struct {
		step  loop.Step
		spent bool
	}{
		"it has not begun":                           {loop.Step{State: loop.StepOpen}, false},
		"a moment is left":                           {loop.Step{State: loop.StepOpen, Begun: firstStep.Add(1)}, false},
		"its time is over":                           {loop.Step{State: loop.StepOpen, Begun: firstStep}, true},
		"its iterations are used, and it failed":     {loop.Step{State: loop.StepFailed, Attempts: 8}, true},
		"its tokens are used, and it is blocked":     {loop.Step{State: loop.StepBlocked, Tokens: 1000}, true},
		"this run has it, and its time is over":      {loop.Step{State: loop.StepClaimed, RunID: "run_1", Begun: firstStep}, true},
		"a person has answered what it waits for":    {loop.Step{State: loop.StepWaiting, Begun: firstStep}, false},
		"it was given up, and waits for an answer":   {loop.Step{State: loop.StepEscalated, Begun: firstStep}, false},
		"it is done, and nobody asks for it again":   {loop.Step{State: loop.StepDone, Begun: firstStep}, false},
		"it rests, and nothing was found to be done": {loop.Step{State: loop.StepOpen, Begun: firstStep, Key: "nothing"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := Snapshot{Candidates: []Candidate{{Step: c.step, Answered: true}}, Rules: lived, RunID: "run_1", Run: 9, Started: firstStep}
			if c.step.Key == "nothing" {
				s.Nothing = loop.ReasonSensedNothing
			}
			d := Next(s, now)
			if got := d.Spent != nil && d.Choice == nil && d.Ends == loop.OutcomeGaveUp && d.Reason == loop.ReasonLifeBudget; got != c.spent {
				t.Errorf("decision = %+v, want it given up: %v", d, c.spent)
			}
			if !c.spent {
				return
			}
			e := EndLife(*d.Spent, d.Detail)
			if e.Step.State != loop.StepEscalated || e.Step.Tried.GaveUp != loop.ReasonLifeBudget || !e.Report || e.Outcome != loop.OutcomeGaveUp {
				t.Errorf("settled as %+v, want what an attempt comes to that uses up the life", e)
			}
		})
	}
}

func TestAnAttemptThatFoundNothingTakesNoTimeOfALife(t *testing.T) {
	began, ended := firstStep.Add(time.Hour), firstStep.Add(2*time.Hour)
	quiet := Attempt{Verdict: loop.VerdictFail, Gate: AgentGate, Reason: loop.ReasonAgentQuiet, Began: began, Ended: ended}
	for name, c := range map[string]struct{ begun, want time.Time }{
		"the first attempt":     {began, time.Time{}},
		"an attempt of several": {firstStep, began},
		"a step without one":    {time.Time{}, time.Time{}},
	} {
		if s := Settle(loop.Step{Begun: c.begun}, quiet, 1, lived); !s.Step.Begun.Equal(c.want) || s.Outcome != loop.OutcomeQuiet {
			t.Errorf("%s: begun %s, outcome %s; want %s", name, s.Step.Begun, s.Outcome, c.want)
		}
	}
}

func TestAnErrorThatUsesUpALifeGivesUpInsteadOfPausing(t *testing.T) {
	failed := Attempt{Verdict: loop.VerdictFail, Gate: AgentGate, Reason: loop.ReasonAgentTimeout, Ended: firstStep.Add(time.Hour)}
	if s := Settle(loop.Step{Begun: firstStep}, failed, 1, lived); s.Outcome != loop.OutcomeGaveUp || s.Halt || s.Step.Tried.GaveUp != loop.ReasonLifeBudget || !s.Report {
		t.Errorf("the error that uses up the time is settled as %+v, want it given up", s)
	}
	if s := Settle(loop.Step{Begun: firstStep.Add(1)}, failed, 1, lived); s.Outcome != loop.OutcomeFailed || !s.Halt || s.Step.Tried.GaveUp != "" {
		t.Errorf("an error before that is settled as %+v, want the loop paused", s)
	}
}

func TestWhetherAStepWasGivenUpIsInItsRow(t *testing.T) {
	rule := func(then loop.Consequence) Rules {
		return Rules{GiveUp: []loop.GiveUpRule{{Repeat: loop.RepeatGate, Times: 1, Then: then}}}
	}
	fail := Attempt{Verdict: loop.VerdictFail, Gate: "g", Reason: loop.ReasonGateFailed, Tree: "t"}
	for then, want := range map[loop.Consequence]struct {
		gaveUp loop.Reason
		report bool
	}{
		loop.ThenEscalate: {loop.ReasonGiveUp, true}, loop.ThenStop: {loop.ReasonGiveUp, false}, loop.ThenPause: {"", false},
	} {
		if s := Settle(loop.Step{}, fail, 1, rule(then)); s.Step.Tried.GaveUp != want.gaveUp || s.Report != want.report {
			t.Errorf("→ %s: %+v, want it given up with %q and a question: %v", then, s, want.gaveUp, want.report)
		}
	}
	handed := Attempt{Verdict: loop.VerdictFail, Gate: AgentGate, Reason: loop.ReasonAgentEscalated}
	if s := Settle(loop.Step{}, handed, 1, rule(loop.ThenEscalate)); s.Step.State != loop.StepEscalated || s.Step.Tried.GaveUp != "" {
		t.Errorf("a step that its agent hands over is settled as %+v, want it not given up", s)
	}
}
