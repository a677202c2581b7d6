package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// series settles attempts one after the other as a run does that never stops by
// itself, and returns the settlements.
func series(r plan.Rules, attempts ...plan.Attempt) (all []plan.Settlement) {
	step := loop.Step{Key: "a", State: loop.StepClaimed}
	for _, a := range attempts {
		s := plan.Settle(step, a, 1, r)
		step = s.Step
		step.State = loop.StepClaimed
		all = append(all, s)
	}
	return all
}

// gaveUpAt is the number of the first attempt after which the step was given up; 0: never.
func gaveUpAt(all []plan.Settlement) int {
	for i, s := range all {
		if s.Outcome == loop.OutcomeGaveUp {
			return i + 1
		}
	}
	return 0
}

// failing is an attempt at which some gates fail and others pass.
func failing(tree string, failed, passed []string, tests ...string) plan.Attempt {
	a := fails(failed[0], tree)
	a.Failed, a.Passed, a.Tests = failed, passed, tests
	return a
}

func finding(items ...string) plan.Attempt {
	a := passes
	a.Found = items
	return a
}

func list(names ...string) []string { return names }

func TestEachRuleGivesUpExactlyWhereItSaysSo(t *testing.T) {
	v, g := list("verify"), list("guard")
	cases := map[string]struct {
		repeat   loop.Repeat
		attempts []plan.Attempt
		at       int // 0: never
		reason   loop.Reason
		says     string
	}{
		"the same gate three times on the same tree": {
			loop.RepeatGateAndTree, []plan.Attempt{fails("verify", "t1"), fails("verify", "t1"), fails("verify", "t1")}, 3, loop.ReasonGiveUp, "verify failed 3 times in a row on the same tree",
		},
		"the same gate, another tree each time": {
			loop.RepeatGateAndTree, []plan.Attempt{fails("verify", "t1"), fails("verify", "t2"), fails("verify", "t3"), fails("verify", "t4")}, 0, "", "",
		},
		"another gate in between": {
			loop.RepeatGateAndTree, []plan.Attempt{fails("verify", "t1"), fails("guard", "t1"), fails("verify", "t1"), fails("verify", "t1")}, 0, "", "",
		},
		"two gates fail, and one of them goes on failing": {
			loop.RepeatGateAndTree,
			[]plan.Attempt{failing("t1", list("verify", "guard"), nil), failing("t1", list("verify", "guard"), nil), failing("t1", g, v)},
			3, loop.ReasonGiveUp, "guard failed 3 times",
		},
		"a gate that was spared neither fails nor passes": {
			loop.RepeatGateAndTree,
			[]plan.Attempt{failing("t1", list("review"), v), failing("t1", v, nil), failing("t1", list("review"), v), failing("t1", list("review"), v)},
			4, loop.ReasonGiveUp, "review failed 3 times",
		},
		"nothing changed in between": {
			loop.RepeatGateAndTree,
			[]plan.Attempt{fails("changes", "t1"), failing("t1", v, list("changes", "scope")), fails("changes", "t1"), failing("t1", v, list("changes")), fails("changes", "t1"), failing("t1", v, list("changes"))},
			0, "", "",
		},
		"the same gate three times, whatever the tree": {
			loop.RepeatGate, []plan.Attempt{fails("verify", "t1"), fails("verify", "t2"), fails("verify", "t3")}, 3, loop.ReasonGiveUp, "verify failed 3 times in a row: verify says no",
		},
		"a pass in between, whatever the tree": {
			loop.RepeatGate, []plan.Attempt{fails("verify", "t1"), fails("verify", "t2"), passes, fails("verify", "t3"), fails("verify", "t4")}, 0, "", "",
		},
		"the same test three times": {
			loop.RepeatTest,
			[]plan.Attempt{failing("t1", v, nil, "go TestA", "go TestB"), failing("t2", v, nil, "go TestA"), failing("t3", v, nil, "go TestA", "go TestC")},
			3, loop.ReasonSameTest, "go TestA failed 3 times",
		},
		"another test each time": {
			loop.RepeatTest,
			[]plan.Attempt{failing("t1", v, nil, "go TestA"), failing("t1", v, nil, "go TestB"), failing("t1", v, nil, "go TestA"), failing("t1", v, nil, "go TestB")},
			0, "", "",
		},
		"where no tests are named, the same gate": {
			loop.RepeatTest, []plan.Attempt{fails("verify", "t1"), fails("verify", "t2"), fails("verify", "t3")}, 3, loop.ReasonGiveUp, "verify failed 3 times",
		},
		"two trees in turn": {
			loop.RepeatTree,
			[]plan.Attempt{fails("verify", "a"), fails("guard", "b"), fails("verify", "a"), fails("guard", "b"), fails("verify", "a")},
			5, loop.ReasonOscillates,
			"3 attempts in a row came back to a tree that had failed before",
		},
		"three trees in turn": {
			loop.RepeatTree,
			[]plan.Attempt{fails("v", "a"), fails("v", "b"), fails("v", "c"), fails("v", "a"), fails("v", "b"), fails("v", "c")},
			6, loop.ReasonOscillates, "3 attempts in a row came back",
		},
		"the same tree again and again is not going back and forth": {
			loop.RepeatTree, []plan.Attempt{fails("v", "a"), fails("v", "a"), fails("v", "a"), fails("v", "a"), fails("v", "a")}, 0, "", "",
		},
		"a new tree in between": {
			loop.RepeatTree,
			[]plan.Attempt{fails("v", "a"), fails("v", "b"), fails("v", "a"), fails("v", "b"), fails("v", "c"), fails("v", "a"), fails("v", "b")},
			0, "", "",
		},
		"three reports without a new finding": {
			loop.RepeatFindings, []plan.Attempt{finding("x"), finding("X "), finding(), finding("x")}, 4, loop.ReasonNoFindings, "3 reports in a row had no new finding",
		},
		"a new finding each time": {
			loop.RepeatFindings, []plan.Attempt{finding("a"), finding("a", "b"), finding("c"), finding("c", "d"), finding("e")}, 0, "", "",
		},
		"an agent that failed neither counts nor breaks the row": {
			loop.RepeatGate, []plan.Attempt{fails("verify", "t1"), says(loop.ReasonAgentFailed), fails("verify", "t2"), says(loop.ReasonAgentExit), fails("verify", "t3")}, 5, loop.ReasonGiveUp, "verify failed 3 times",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, then := range []struct {
				rule  loop.GiveUpRule
				state loop.StepState
				halt  bool
				tells bool
			}{
				{loop.GiveUpRule{}, loop.StepEscalated, false, true},
				{loop.GiveUpRule{Then: loop.ThenEscalate}, loop.StepEscalated, false, true},
				{loop.GiveUpRule{Then: loop.ThenStop}, loop.StepEscalated, false, false},
				{loop.GiveUpRule{Then: loop.ThenPause}, loop.StepFailed, true, false},
				{loop.GiveUpRule{Then: loop.ThenPause, Report: true}, loop.StepFailed, true, true},
			} {
				t.Run(fmt.Sprintf("%s %v", then.rule.Then, then.rule.Report), func(t *testing.T) {
					then.rule.Repeat, then.rule.Times = c.repeat, 3
					r := roomy
					r.GiveUp = []loop.GiveUpRule{then.rule}
					all := series(r, c.attempts...)
					if got := gaveUpAt(all); got != c.at {
						t.Fatalf("given up after attempt %d, want %d", got, c.at)
					}
					if c.at == 0 {
						return
					}
					s := all[c.at-1]
					if s.Reason != c.reason || !strings.Contains(s.Detail, c.says) || s.Again {
						t.Errorf("%s %q, again %v; want %s with %q", s.Reason, s.Detail, s.Again, c.reason, c.says)
					}
					if s.Step.State != then.state || s.Halt != then.halt || s.Report != then.tells {
						t.Errorf("step %s, halt %v, report %v; want %s %v %v", s.Step.State, s.Halt, s.Report, then.state, then.halt, then.tells)
					}
				})
			}
		})
	}
}

func TestAStepThatPausedItsLoopIsTriedAsOftenAgain(t *testing.T) {
	r := roomy
	r.GiveUp = []loop.GiveUpRule{{Repeat: loop.RepeatGate, Times: 2, Then: loop.ThenPause}}
	all := series(r, fails("v", "a"), fails("v", "b"), fails("v", "c"), fails("v", "d"))
	var gaveUp []bool
	for _, s := range all {
		gaveUp = append(gaveUp, s.Outcome == loop.OutcomeGaveUp)
	}
	if diff := cmp.Diff([]bool{false, true, false, true}, gaveUp); diff != "" {
		t.Errorf("given up (-want +got):\n%s", diff)
	}
}

func TestTheFirstRuleThatIsMetCounts(t *testing.T) {
	r := roomy
	r.GiveUp = []loop.GiveUpRule{
		{Repeat: loop.RepeatTree, Times: 2, Then: loop.ThenStop}, {Repeat: loop.RepeatGate, Times: 4, Then: loop.ThenPause},
	}
	all := series(r, fails("v", "a"), fails("v", "b"), fails("v", "a"), fails("v", "b"))
	if s := all[3]; s.Reason != loop.ReasonOscillates || s.Halt {
		t.Errorf("settlement = %s, halt %v; want the first of two rules that are met", s.Reason, s.Halt)
	}
}

func TestAResultWaitsForAHumanIfNoGateDecidedOrTheDefinitionAsksForOne(t *testing.T) {
	undecided := plan.Attempt{Verdict: loop.VerdictPending, Reason: loop.ReasonUndecided, Tree: "t1", Words: "there is no critic"}
	for name, c := range map[string]struct {
		a     plan.Attempt
		gate  loop.HumanGate
		state loop.StepState
		out   loop.Outcome
	}{
		"a pass":                            {passes, "", loop.StepDone, ""},
		"a pass that is proposed":           {passes, loop.HumanGatePropose, loop.StepDone, ""},
		"a pass that a human decides about": {passes, loop.HumanGateDecide, loop.StepWaiting, loop.OutcomeWaiting},
		"a pass that a human accepts":       {passes, loop.HumanGateAccept, loop.StepWaiting, loop.OutcomeWaiting},
		"pending":                           {undecided, "", loop.StepWaiting, loop.OutcomeWaiting},
		"pending, with a human gate":        {undecided, loop.HumanGateKeep, loop.StepWaiting, loop.OutcomeWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			r := roomy
			r.HumanGate = c.gate
			s := plan.Settle(claimed(), c.a, 7, r)
			if s.Step.State != c.state || s.Outcome != c.out || s.Again || s.Step.Attempts != 1 {
				t.Errorf("step %s, outcome %q, again %v; want %s, %q", s.Step.State, s.Outcome, s.Again, c.state, c.out)
			}
		})
	}
}

func TestWhatIsRememberedOfAttemptsHasAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := roomy
		for _, repeat := range []loop.Repeat{loop.RepeatGateAndTree, loop.RepeatTest, loop.RepeatTree, loop.RepeatFindings} {
			r.GiveUp = append(r.GiveUp, loop.GiveUpRule{Repeat: repeat, Times: 1 << 30})
		}
		step := loop.Step{Key: "a", State: loop.StepClaimed}
		for i := range rapid.IntRange(1, 60).Draw(t, "attempts") {
			a := failing(fmt.Sprint("t", rapid.IntRange(0, 40).Draw(t, "tree")), list("verify"), nil)
			for n := range rapid.SampledFrom([]int{0, 3, 500}).Draw(t, "tests") {
				a.Tests = append(a.Tests, fmt.Sprint("Test", n))
			}
			a.Found = list(fmt.Sprint("finding ", i))
			before := keptIn(t, step)
			s := plan.Settle(step, a, 1, r)
			if diff := cmp.Diff(before, keptIn(t, step)); diff != "" {
				t.Fatalf("settling changed the step that it was given (-before +after):\n%s", diff)
			}
			step = s.Step
			step.State = loop.StepClaimed
			if got := step.Tried; len(got.Trees) > 20 || len(got.Tests) > 200 || len(got.Found) > 2000 || len(got.Gates) > 1 {
				t.Fatalf("remembered %d trees, %d tests, %d findings, %d gates", len(got.Trees), len(got.Tests), len(got.Found), len(got.Gates))
			}
		}
	})
}
