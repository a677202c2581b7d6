package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

func fails(gate, tree string) plan.Attempt {
	return plan.Attempt{Verdict: loop.VerdictFail, Reason: loop.ReasonGateFailed, Gate: gate, Tree: tree, Words: gate + " says no"}
}

func says(r loop.Reason) plan.Attempt {
	return plan.Attempt{Verdict: loop.VerdictFail, Reason: r, Gate: "agent", Tree: "t1", Words: "the agent says so"}
}

var passes = plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Tree: "t1", Words: "put it right"}

func claimed() loop.Step {
	return loop.Step{Key: "a", Title: "a", State: loop.StepClaimed, RunID: "run_7", WaitsFor: "ap_1", Snapshot: "refs/pawl/snapshots/l/6"}
}

// after gives up after that many failures of one gate on one tree.
func after(times int) []loop.GiveUpRule {
	return []loop.GiveUpRule{{Repeat: loop.RepeatGateAndTree, Times: times}}
}

func rules(onBlocked, onFailure string) plan.Rules {
	r := roomy
	r.OnBlocked, r.OnFailure = onBlocked, onFailure
	return r
}

func TestWhatBecomesOfAStepAfterOneAttempt(t *testing.T) {
	type end struct {
		State   loop.StepState
		Outcome loop.Outcome
		Again   bool
		Halt    bool
	}
	cases := map[string]struct {
		attempt plan.Attempt
		rules   plan.Rules
		want    end
	}{
		"it passed; the tier decides about the run":          {passes, roomy, end{loop.StepDone, "", false, false}},
		"the agent found nothing":                            {says(loop.ReasonAgentQuiet), roomy, end{loop.StepOpen, loop.OutcomeQuiet, false, false}},
		"the agent handed it over":                           {says(loop.ReasonAgentEscalated), roomy, end{loop.StepEscalated, loop.OutcomeEscalated, false, false}},
		"blocked, log_and_skip":                              {says(loop.ReasonAgentBlocked), rules("log_and_skip", ""), end{loop.StepBlocked, loop.OutcomeBlocked, false, false}},
		"blocked, escalate":                                  {says(loop.ReasonAgentBlocked), rules("escalate", ""), end{loop.StepBlocked, loop.OutcomeEscalated, false, false}},
		"blocked, retry_next_cycle":                          {says(loop.ReasonAgentBlocked), rules("retry_next_cycle", ""), end{loop.StepBlocked, loop.OutcomeBlocked, false, false}},
		"blocked, halt":                                      {says(loop.ReasonAgentBlocked), rules("halt", ""), end{loop.StepBlocked, loop.OutcomeBlocked, false, true}},
		"blocked, halt on failure only":                      {says(loop.ReasonAgentBlocked), rules("log_and_skip", "halt"), end{loop.StepBlocked, loop.OutcomeBlocked, false, false}},
		"a gate failed, log_skip_continue":                   {fails("verify", "t1"), rules("", "log_skip_continue"), end{loop.StepFailed, loop.OutcomeFailed, true, false}},
		"a gate failed, escalate_and_skip":                   {fails("verify", "t1"), rules("", "escalate_and_skip"), end{loop.StepFailed, loop.OutcomeEscalated, true, false}},
		"a gate failed, retry_once leaves it open":           {fails("verify", "t1"), rules("", "retry_once"), end{loop.StepOpen, loop.OutcomeFailed, true, false}},
		"a gate failed, halt":                                {fails("verify", "t1"), rules("", "halt"), end{loop.StepFailed, loop.OutcomeFailed, true, true}},
		"a gate failed, halt on a block only":                {fails("verify", "t1"), rules("halt", "log_skip_continue"), end{loop.StepFailed, loop.OutcomeFailed, true, false}},
		"the account is limited":                             {says(loop.FailureRateLimit), rules("", "halt"), end{loop.StepOpen, loop.OutcomeBlocked, false, false}},
		"no credential":                                      {says(loop.FailureAuth), roomy, end{loop.StepOpen, loop.OutcomeBlocked, false, false}},
		"the budget is used up":                              {says(loop.ReasonBudget), roomy, end{loop.StepOpen, loop.OutcomeBudget, false, false}},
		"the agent's program crashed":                        {says(loop.FailureCrash), roomy, end{loop.StepFailed, loop.OutcomeFailed, true, false}},
		"the agent failed":                                   {says(loop.ReasonAgentFailed), roomy, end{loop.StepFailed, loop.OutcomeFailed, true, false}},
		"the report could not be read":                       {says(loop.ReasonReportMalformed), roomy, end{loop.StepFailed, loop.OutcomeFailed, true, false}},
		"a first failure gives up when one is enough":        {fails("verify", "t1"), plan.Rules{GiveUp: after(1)}, end{loop.StepEscalated, loop.OutcomeGaveUp, false, false}},
		"giving up pauses the loop too where failures do so": {fails("verify", "t1"), plan.Rules{GiveUp: after(1), OnFailure: "halt"}, end{loop.StepEscalated, loop.OutcomeGaveUp, false, true}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := claimed()
			s := plan.Settle(before, c.attempt, 7, c.rules)
			if diff := cmp.Diff(c.want, end{s.Step.State, s.Outcome, s.Again, s.Halt}); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
			attempts := 1
			if c.attempt.Reason.IsExternal() {
				attempts = 0
			}
			if s.Step.Attempts != attempts || s.Step.WaitsFor != "" {
				t.Errorf("attempts = %d, waits for %q; want %d and nothing", s.Step.Attempts, s.Step.WaitsFor, attempts)
			}
			if s.Step.Key != before.Key || s.Step.RunID != before.RunID {
				t.Errorf("step = %+v, want the one that was settled", s.Step)
			}
			if wasBlocked := s.Step.State == loop.StepBlocked; wasBlocked && s.Step.BlockedAt != 7 {
				t.Errorf("blocked at run %d, want 7", s.Step.BlockedAt)
			}
		})
	}
}

func TestAPassLeavesNothingOfEarlierFailures(t *testing.T) {
	step := claimed()
	step.Tried.Gates, step.Feedback = map[string]loop.Streak{"verify": {Failed: 2, Tree: "t1", SameTree: 2}}, "verify says no"
	s := plan.Settle(step, passes, 7, roomy).Step
	if s.Tried.Gates != nil || s.Snapshot != "" {
		t.Errorf("step = %+v, want no streak and no snapshot", s)
	}
	// What a step is left with is what its next attempt is told to do
	// differently. A daily goal that passed yesterday is not to be done
	// differently today.
	for name, a := range map[string]plan.Attempt{"a pass": passes, "finding nothing": says(loop.ReasonAgentQuiet)} {
		if got := plan.Settle(step, a, 7, roomy); got.Step.Feedback != "" || got.Detail != a.Words {
			t.Errorf("%s leaves the feedback %q and says %q, want none and %q", name, got.Step.Feedback, got.Detail, a.Words)
		}
	}
}

func TestWhatNeededNoChangeRemembersItsInputs(t *testing.T) {
	unchanged := passes
	unchanged.Reason = loop.ReasonNoChange
	for want, a := range map[string]plan.Attempt{"": passes, "inputs": unchanged} {
		step := claimed()
		step.Inputs = "inputs"
		if got := plan.Settle(step, a, 7, roomy).Step.Inputs; got != want {
			t.Errorf("%s: inputs %q, want %q", a.Reason, got, want)
		}
	}
}

func TestAFailureLeavesItsWordsAndItsSnapshotToTheNextAttempt(t *testing.T) {
	for _, a := range []plan.Attempt{fails("verify", "t1"), says(loop.ReasonAgentBlocked), says(loop.ReasonAgentEscalated), says(loop.ReasonAgentFailed)} {
		s := plan.Settle(claimed(), a, 7, roomy)
		if s.Step.Feedback != a.Words || s.Step.Snapshot != claimed().Snapshot || s.Reason != a.Reason || s.Detail != a.Words {
			t.Errorf("%s: step = %+v, reason %s, detail %q", a.Reason, s.Step, s.Reason, s.Detail)
		}
	}
}

func TestRetryOnceLeavesAStepOpenForOneMoreCycleOnly(t *testing.T) {
	step := claimed()
	for i, want := range []loop.StepState{loop.StepOpen, loop.StepFailed, loop.StepFailed} {
		step = plan.Settle(step, fails("verify", string(rune('a'+i))), int64(i), rules("", "retry_once")).Step
		if step.State != want {
			t.Errorf("after failure %d the step is %s, want %s", i+1, step.State, want)
		}
	}
}

func TestGivingUpSaysWhatFailedAndHowOften(t *testing.T) {
	step := claimed()
	var s plan.Settlement
	for range 3 {
		s = plan.Settle(step, fails("guard", "t1"), 7, roomy)
		step = s.Step
	}
	if s.Reason != loop.ReasonGiveUp || s.Outcome != loop.OutcomeGaveUp || s.Again {
		t.Fatalf("settlement = %+v, want given up", s)
	}
	for _, word := range []string{"guard", "3 times", "guard says no"} {
		if !strings.Contains(s.Detail, word) {
			t.Errorf("detail = %q, want %q in it", s.Detail, word)
		}
	}
}

func TestABlockedAttemptNeverCountsTowardsGivingUp(t *testing.T) {
	step := claimed()
	for run := range int64(20) {
		s := plan.Settle(step, says(loop.ReasonAgentBlocked), run, roomy)
		if s.Step.State != loop.StepBlocked || s.Step.Tried.Gates != nil {
			t.Fatalf("after %d blocked attempts: %+v", run+1, s.Step)
		}
		step = s.Step
	}
}

// keptIn is a step as it comes back from where it was kept between two runs.
func keptIn(t *rapid.T, s loop.Step) loop.Step {
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back loop.Step
	if err := json.Unmarshal(body, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestGivingUpComesExactlyWhenOneGateFailsSoOftenOnOneTree(t *testing.T) {
	attempts := rapid.Custom(func(t *rapid.T) plan.Attempt {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return passes
		case 1:
			return says(loop.ReasonAgentBlocked)
		case 2:
			return says(loop.ReasonAgentQuiet)
		}
		return fails(rapid.SampledFrom([]string{"verify", "verify", "verify", "guard"}).Draw(t, "gate"),
			rapid.SampledFrom([]string{"t1", "t1", "t1", "t2"}).Draw(t, "tree"))
	})
	rapid.Check(t, func(t *rapid.T) {
		r := roomy
		most := rapid.IntRange(1, 4).Draw(t, "give up after")
		r.GiveUp = after(most)
		step := loop.Step{Key: "a", State: loop.StepOpen}
		var last plan.Attempt // that failed
		inARow, run := 0, int64(1)
		for i, a := range rapid.SliceOfN(attempts, 1, 30).Draw(t, "attempts") {
			if rapid.Bool().Draw(t, "another run") {
				run++
				step = keptIn(t, step)
			}
			step.State = loop.StepClaimed
			s := plan.Settle(step, a, run, r)
			switch {
			case a.Verdict == loop.VerdictPass:
				inARow = 0
			case a.Reason != loop.ReasonGateFailed:
			case inARow > 0 && a.Gate == last.Gate && a.Tree == last.Tree:
				inARow++
			default:
				inARow, last = 1, a
			}
			if want := a.Reason == loop.ReasonGateFailed && inARow >= most; (s.Outcome == loop.OutcomeGaveUp) != want {
				t.Fatalf("attempt %d, %s on %s, %d in a row of %d: outcome %s", i+1, a.Gate, a.Tree, inARow, most, s.Outcome)
			}
			if got := s.Step.Tried.Gates[last.Gate].SameTree; got != inARow || s.Step.Attempts != step.Attempts+1 {
				t.Fatalf("attempt %d: streak %d and %d attempts, want %d and %d", i+1, got, s.Step.Attempts, inARow, step.Attempts+1)
			}
			step = s.Step
			if s.Outcome == loop.OutcomeGaveUp {
				step, inARow = loop.Step{Key: "a"}, 0 // A human put it back.
			}
		}
	})
}
