package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

var noon = time.Date(2026, 9, 3, 12, 0, 0, 0, time.UTC)

// roomy are rules that stop nothing in the tests that are about something else.
var roomy = plan.Rules{
	MaxIterations: 9, MaxItems: 9, MaxWallClock: time.Hour, GiveUp: after(3), RetryBlockedAfter: 3,
	OnBlocked: "log_and_skip", OnFailure: "log_skip_continue",
}

func work(key string, state loop.StepState) plan.Candidate {
	return plan.Candidate{Step: loop.Step{Key: key, Title: key, Kind: loop.StepWork, State: state}}
}

func reply(key string, state loop.StepState) plan.Candidate {
	c := work(key, state)
	c.Step.Kind = loop.StepReply
	return c
}

// with changes a copy of a candidate.
func with(c plan.Candidate, change func(*plan.Candidate)) plan.Candidate {
	change(&c)
	return c
}

func open(keys ...string) []plan.Candidate {
	var list []plan.Candidate
	for _, key := range keys {
		list = append(list, work(key, loop.StepOpen))
	}
	return list
}

func snapshot(list ...plan.Candidate) plan.Snapshot {
	return plan.Snapshot{Candidates: list, Rules: roomy, Run: 7, RunID: "run_7", Started: noon}
}

func chosen(d plan.Decision) string {
	if d.Choice == nil {
		return ""
	}
	return d.Choice.Step.Key
}

func reasons(d plan.Decision) map[string]loop.Reason {
	all := map[string]loop.Reason{}
	for _, c := range d.Considered {
		all[c.Key] = c.Reason
	}
	return all
}

// nextReasons are the codes with which Next may answer, for a candidate or for
// the whole decision.
var nextReasons = []loop.Reason{
	loop.ReasonChosen, loop.ReasonOutranked, loop.ReasonStepDone, loop.ReasonStepWaiting, loop.ReasonStepEscalated, loop.ReasonStepBackoff,
	loop.ReasonStepClaimed, loop.ReasonNotEligible, loop.ReasonSensedNothing, loop.ReasonTriedThisRun, loop.ReasonNoCandidates, loop.ReasonUnchanged,
	loop.ReasonAllDropped, loop.ReasonMaxItems, loop.ReasonMaxIterations, loop.ReasonWallClock, loop.ReasonBudgetTokens,
}

// settled is a step that was settled with the inputs "same", and has these now.
func settled(state loop.StepState, inputs string) plan.Candidate {
	return with(work("s", state), func(c *plan.Candidate) { c.Step.Inputs, c.Step.Tried.Back, c.Inputs = "same", 2, inputs })
}

func pulls(c *plan.Candidate) { c.Drop, c.Detail = loop.ReasonPullRequest, "its pull request is open" }

func waits(c *plan.Candidate) { c.Proposed = "pawl/x/1 has no answer yet" }

func TestARunThatWaitsForAnswersNamesAQuestion(t *testing.T) {
	for want, steps := range map[string][]plan.Candidate{
		"pawl/x/1 has no answer yet": {with(work("a", loop.StepOpen), waits)},
		"pawl/x/1 has no answer yet, nor any of 2 other steps that wait for an answer": {
			with(work("a", loop.StepOpen), waits), with(work("b", loop.StepOpen), waits), with(work("c", loop.StepOpen), waits),
		},
		"its pull request is open; 1 other step waits for its own": {with(work("a", loop.StepOpen), pulls), with(work("b", loop.StepOpen), pulls)},
	} {
		if d := plan.Next(snapshot(steps...), noon); d.Detail != want {
			t.Errorf("%d steps: %q, want %q", len(steps), d.Detail, want)
		}
	}
}

func TestASettledStepWithOtherInputsStartsAfresh(t *testing.T) {
	for state, feedback := range map[loop.StepState]string{loop.StepDone: "", loop.StepEscalated: "it was too hard"} {
		c := with(settled(state, "changed"), func(c *plan.Candidate) { c.Step.Feedback, c.Step.Attempts = feedback, 3 })
		d := plan.Next(snapshot(c), noon)
		want := &plan.Choice{
			Step: loop.Step{Key: "s", Title: "s", Kind: loop.StepWork, State: loop.StepOpen, Feedback: feedback}, Reason: loop.ReasonChosen, Detail: "first in order",
			Inputs: "changed",
		}
		if diff := cmp.Diff(want, d.Choice); diff != "" {
			t.Errorf("%s (-want +got):\n%s", state, diff)
		}
	}
}

func TestAnEventMakesAStepWorkedOnAgainThatIsDoneAndNoOther(t *testing.T) {
	for state, chosen := range map[loop.StepState]bool{loop.StepDone: true, loop.StepEscalated: false} {
		same := settled(state, "inputs")
		same.Inputs = same.Step.Inputs
		for news, want := range map[bool]bool{true: chosen, false: false} {
			s := snapshot(same)
			s.News = news
			if d := plan.Next(s, noon); (d.Choice != nil) != want {
				t.Errorf("%s, an event: %v: chosen %+v", state, news, d.Choice)
			}
			s.Settled = map[string]bool{same.Step.Key: true}
			if d := plan.Next(s, noon); d.Choice != nil {
				t.Errorf("%s, an event: %v: the run works on it twice", state, news)
			}
		}
	}
}

func TestEveryCandidateGetsTheReasonThatDecidedAboutIt(t *testing.T) {
	limited := func(change func(*plan.Snapshot)) plan.Snapshot {
		s := snapshot(work("a", loop.StepOpen), work("b", loop.StepEscalated))
		change(&s)
		return s
	}
	limit := func(r loop.Reason) map[string]loop.Reason {
		return map[string]loop.Reason{"a": r, "b": loop.ReasonStepEscalated}
	}
	cases := map[string]struct {
		snapshot plan.Snapshot
		want     map[string]loop.Reason
		reason   loop.Reason // of the whole decision
	}{
		"nothing is there": {snapshot(), map[string]loop.Reason{}, loop.ReasonNoCandidates},
		"the first open step is chosen and the next outranked": {
			snapshot(open("a", "b")...),
			map[string]loop.Reason{"a": loop.ReasonChosen, "b": loop.ReasonOutranked},
			loop.ReasonChosen,
		},
		"every state that cannot be worked on says so": {
			snapshot(work("done", loop.StepDone), work("dropped", loop.StepDropped), work("waiting", loop.StepWaiting),
				work("escalated", loop.StepEscalated), work("odd", "odd"),
				with(work("blocked", loop.StepBlocked), func(c *plan.Candidate) { c.Step.BlockedAt = 6 }),
				with(work("claimed", loop.StepClaimed), func(c *plan.Candidate) { c.Step.RunID = "run_6" })),
			map[string]loop.Reason{
				"done": loop.ReasonStepDone, "dropped": loop.ReasonStepDone, "waiting": loop.ReasonStepWaiting, "escalated": loop.ReasonStepEscalated,
				"odd": loop.ReasonNotEligible, "blocked": loop.ReasonStepBackoff, "claimed": loop.ReasonStepClaimed,
			},
			loop.ReasonAllDropped,
		},
		"a step that needed no change rests while its inputs are the same": {
			snapshot(settled(loop.StepDone, "same"), with(work("w", loop.StepOpen), func(c *plan.Candidate) { c.Drop = loop.ReasonNotEligible })),
			map[string]loop.Reason{"s": loop.ReasonUnchanged, "w": loop.ReasonNotEligible},
			loop.ReasonUnchanged,
		},
		"an escalated step rests while its inputs are the same": {
			snapshot(settled(loop.StepEscalated, "same")), map[string]loop.Reason{"s": loop.ReasonStepEscalated}, loop.ReasonStepEscalated,
		},
		"a step waits for the answer to a proposal": {
			snapshot(with(work("a", loop.StepDone), waits), with(work("w", loop.StepOpen), func(c *plan.Candidate) { c.Drop = loop.ReasonNotEligible })),
			map[string]loop.Reason{"a": loop.ReasonStepWaiting, "w": loop.ReasonNotEligible},
			loop.ReasonStepWaiting,
		},
		"several steps wait for answers": {
			snapshot(with(work("a", loop.StepOpen), waits), with(work("b", loop.StepFailed), waits)),
			map[string]loop.Reason{"a": loop.ReasonStepWaiting, "b": loop.ReasonStepWaiting},
			loop.ReasonStepWaiting,
		},
		"several steps wait for pull requests": {
			snapshot(with(work("a", loop.StepOpen), pulls), with(work("b", loop.StepDone), pulls)),
			map[string]loop.Reason{"a": loop.ReasonPullRequest, "b": loop.ReasonPullRequest},
			loop.ReasonPullRequest,
		},
		"one step waits for a pull request and one was rejected": {
			snapshot(with(work("a", loop.StepOpen), pulls), with(work("b", loop.StepDone), func(c *plan.Candidate) { c.Drop = loop.ReasonRejected })),
			map[string]loop.Reason{"a": loop.ReasonPullRequest, "b": loop.ReasonRejected},
			loop.ReasonAllDropped,
		},
		"a step that waits for no answer goes on": {
			snapshot(with(work("a", loop.StepOpen), waits), work("b", loop.StepOpen)),
			map[string]loop.Reason{"a": loop.ReasonStepWaiting, "b": loop.ReasonChosen},
			loop.ReasonChosen,
		},
		"a settled step whose inputs have changed is chosen": {
			snapshot(settled(loop.StepEscalated, "changed")), map[string]loop.Reason{"s": loop.ReasonChosen}, loop.ReasonChosen,
		},
		"the protocol's own rule drops a step whatever its state": {
			snapshot(with(work("a", loop.StepOpen), func(c *plan.Candidate) { c.Drop, c.Detail = loop.ReasonNotEligible, "it is in Watch" })),
			map[string]loop.Reason{"a": loop.ReasonNotEligible},
			loop.ReasonAllDropped,
		},
		"a step that this run is through with is not tried again": {
			func() plan.Snapshot {
				s := snapshot(open("a", "b")...)
				s.Settled = map[string]bool{"a": true}
				return s
			}(),
			map[string]loop.Reason{"a": loop.ReasonTriedThisRun, "b": loop.ReasonChosen},
			loop.ReasonChosen,
		},
		"sensing nothing drops all, dropped by another rule or not": {
			func() plan.Snapshot {
				s := snapshot(work("a", loop.StepOpen), work("b", loop.StepEscalated), reply("c", loop.StepOpen),
					with(work("d", loop.StepOpen), func(c *plan.Candidate) { c.Drop = loop.ReasonNotEligible }))
				s.Nothing = loop.ReasonSensedNothing
				return s
			}(),
			map[string]loop.Reason{
				"a": loop.ReasonSensedNothing, "b": loop.ReasonSensedNothing, "c": loop.ReasonSensedNothing, "d": loop.ReasonSensedNothing,
			},
			loop.ReasonSensedNothing,
		},
		"the items are finished":          {limited(func(s *plan.Snapshot) { s.Items = 9 }), limit(loop.ReasonMaxItems), loop.ReasonMaxItems},
		"the iterations are used":         {limited(func(s *plan.Snapshot) { s.Iterations = 9 }), limit(loop.ReasonMaxIterations), loop.ReasonMaxIterations},
		"the time is over":                {limited(func(s *plan.Snapshot) { s.Started = noon.Add(-time.Hour) }), limit(loop.ReasonWallClock), loop.ReasonWallClock},
		"the output tokens are used":      {limited(func(s *plan.Snapshot) { s.Rules.BudgetTokens, s.Output = 5, 5 }), limit(loop.ReasonBudgetTokens), loop.ReasonBudgetTokens},
		"a limit ends a run without work": {func() plan.Snapshot { s := snapshot(); s.Items = 9; return s }(), map[string]loop.Reason{}, loop.ReasonMaxItems},
	}
	seen := map[loop.Reason]bool{}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := plan.Next(c.snapshot, noon)
			if diff := cmp.Diff(c.want, reasons(d)); diff != "" {
				t.Errorf("considered (-want +got):\n%s", diff)
			}
			if d.Reason != c.reason {
				t.Errorf("reason = %s, want %s", d.Reason, c.reason)
			}
			seen[d.Reason] = true
			for _, r := range reasons(d) {
				seen[r] = true
			}
		})
	}
	for _, r := range nextReasons {
		if !seen[r] {
			t.Errorf("no case ends with %s", r)
		}
	}
}

func TestWhatGoesFirst(t *testing.T) {
	own := with(work("own", loop.StepClaimed), func(c *plan.Candidate) { c.Step.RunID = "run_7" })
	cases := map[string]struct {
		list []plan.Candidate
		want string
	}{
		"the protocol's order":                              {open("b", "a"), "b"},
		"a reply before work":                               {[]plan.Candidate{work("w", loop.StepOpen), reply("r", loop.StepOpen)}, "r"},
		"a reply that failed before open work":              {[]plan.Candidate{work("w", loop.StepOpen), reply("r", loop.StepFailed)}, "r"},
		"open before failed":                                {[]plan.Candidate{work("f", loop.StepFailed), work("o", loop.StepOpen)}, "o"},
		"failed when nothing is open":                       {[]plan.Candidate{work("e", loop.StepEscalated), work("f", loop.StepFailed)}, "f"},
		"failed ones in the protocol's order":               {[]plan.Candidate{work("g", loop.StepFailed), work("f", loop.StepFailed)}, "g"},
		"a step that this run works on already":             {[]plan.Candidate{own, work("o", loop.StepOpen)}, "own"},
		"a waiting step whose human answered, in order":     {[]plan.Candidate{with(work("w", loop.StepWaiting), func(c *plan.Candidate) { c.Answered = true }), work("o", loop.StepOpen)}, "w"},
		"not a waiting step whose human has not":            {[]plan.Candidate{work("w", loop.StepWaiting), work("o", loop.StepOpen)}, "o"},
		"a step of no kind is work":                         {[]plan.Candidate{{Step: loop.Step{Key: "n", State: loop.StepOpen}}, reply("r", loop.StepOpen)}, "r"},
		"an answer to a step that waits for none is moot":   {[]plan.Candidate{with(work("e", loop.StepEscalated), func(c *plan.Candidate) { c.Answered = true })}, ""},
		"a blocked step whose time is over, like open ones": {[]plan.Candidate{with(work("b", loop.StepBlocked), func(c *plan.Candidate) { c.Step.BlockedAt = 4 }), work("o", loop.StepOpen)}, "b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := plan.Next(snapshot(c.list...), noon)
			if got := chosen(d); got != c.want {
				t.Errorf("chosen %q, want %q: %+v", got, c.want, d.Considered)
			}
			if d.Choice != nil && (d.Choice.Detail == "" || d.Detail != d.Choice.Detail) {
				t.Errorf("the choice says %q and the decision %q, want the same words", d.Choice.Detail, d.Detail)
			}
		})
	}
}

func TestALimitThatIsReachedExactlyStopsTheRun(t *testing.T) {
	cases := map[string]struct {
		set  func(s *plan.Snapshot, used int64) // with a limit of 3
		want loop.Reason
	}{
		"max_items":      {func(s *plan.Snapshot, n int64) { s.Rules.MaxItems, s.Items = 3, int(n) }, loop.ReasonMaxItems},
		"max_iterations": {func(s *plan.Snapshot, n int64) { s.Rules.MaxIterations, s.Iterations = 3, int(n) }, loop.ReasonMaxIterations},
		"max_wall_clock": {func(s *plan.Snapshot, n int64) {
			s.Rules.MaxWallClock, s.Started = 3, noon.Add(-time.Duration(n))
		}, loop.ReasonWallClock},
		"budget_tokens": {func(s *plan.Snapshot, n int64) { s.Rules.BudgetTokens, s.Output = 3, n }, loop.ReasonBudgetTokens},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for used, want := range []loop.Reason{loop.ReasonChosen, loop.ReasonChosen, loop.ReasonChosen, c.want, c.want} {
				s := snapshot(open("a")...)
				c.set(&s, int64(used))
				d := plan.Next(s, noon)
				if d.Reason != want {
					t.Errorf("%d of 3 used: %s, want %s", used, d.Reason, want)
				}
				if d.Detail == "" {
					t.Errorf("%d of 3 used: %s without words", used, d.Reason)
				}
			}
		})
	}
}

func TestABudgetOfZeroTokensIsNoCap(t *testing.T) {
	s := snapshot(open("a")...)
	s.Output = 1 << 60
	if d := plan.Next(s, noon); chosen(d) != "a" {
		t.Errorf("decision = %+v, want a", d)
	}
}

func TestAClockThatWentBackwardsEndsNoRun(t *testing.T) {
	s := snapshot(open("a")...)
	s.Started = noon.Add(24 * time.Hour)
	if d := plan.Next(s, noon); chosen(d) != "a" {
		t.Errorf("decision = %+v, want a", d)
	}
}

func TestABlockedStepIsEligibleFirstWhenItsRunsHavePassed(t *testing.T) {
	type run struct {
		at, retry, now int64
		policy         string
	}
	cases := map[string]struct {
		run  run
		want bool
	}{
		"blocked in run 1 with retry 3, run 2": {run{1, 3, 2, "log_and_skip"}, false},
		"run 3":                                {run{1, 3, 3, "log_and_skip"}, false},
		"run 4":                                {run{1, 3, 4, "log_and_skip"}, true},
		"run 5":                                {run{1, 3, 5, "log_and_skip"}, true},
		"blocked again in run 4, run 6":        {run{4, 3, 6, "log_and_skip"}, false},
		"run 7":                                {run{4, 3, 7, "log_and_skip"}, true},
		"escalate waits as long, run 3":        {run{1, 3, 3, "escalate"}, false},
		"escalate, run 4":                      {run{1, 3, 4, "escalate"}, true},
		"halt waits as long, run 3":            {run{1, 3, 3, "halt"}, false},
		"retry_next_cycle, the same run":       {run{1, 3, 1, "retry_next_cycle"}, false},
		"retry_next_cycle, the next run":       {run{1, 3, 2, "retry_next_cycle"}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot(with(work("a", loop.StepBlocked), func(cand *plan.Candidate) { cand.Step.BlockedAt = c.run.at }))
			s.Run, s.Rules.RetryBlockedAfter, s.Rules.OnBlocked = c.run.now, c.run.retry, c.run.policy
			if d := plan.Next(s, noon); (chosen(d) == "a") != c.want {
				t.Errorf("decision = %+v, want eligible %v", d, c.want)
			}
		})
	}
}

func TestRulesAreThoseOfTheDefinition(t *testing.T) {
	got := plan.DefinitionRules(loop.Definition{
		MaxIterations: 1, MaxItems: 2, MaxWallClock: 3, BudgetTokens: 4, GiveUpAfter: 5, RetryBlockedAfter: 6, OnBlocked: "b", OnFailure: "f",
		HumanGate: loop.HumanGateKeep,
	})
	want := plan.Rules{
		MaxIterations: 1, MaxItems: 2, MaxWallClock: 3, BudgetTokens: 4, RetryBlockedAfter: 6, OnBlocked: "b", OnFailure: "f", HumanGate: loop.HumanGateKeep,
		GiveUp: []loop.GiveUpRule{{Repeat: loop.RepeatGateAndTree, Times: 5, Then: loop.ThenEscalate}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestOneStepThatCannotBeWorkedOnIsNotCalledNoneOfOne(t *testing.T) {
	for want, steps := range map[string][]plan.Candidate{
		"the only step cannot be worked on now": {with(work("a", loop.StepOpen), func(c *plan.Candidate) { c.Drop = loop.ReasonNotEligible })},
		"none of 2 steps can be worked on now":  {work("a", loop.StepEscalated), work("b", loop.StepEscalated)},
	} {
		if d := plan.Next(snapshot(steps...), noon); d.Detail != want {
			t.Errorf("detail = %q, want %q", d.Detail, want)
		}
	}
}

func TestADroppedCandidateMaySayHowTheRunEnds(t *testing.T) {
	spent := with(work("s", loop.StepOpen), func(c *plan.Candidate) {
		c.Drop, c.Detail, c.Ends = loop.ReasonBudget, "8 of 8 iterations are used", loop.OutcomeGaveUp
	})
	decide := func(s plan.Snapshot) plan.Decision {
		s.Rules, s.Run, s.RunID, s.Started = roomy, 2, "run_2", noon
		return plan.Next(s, noon)
	}
	if d := decide(plan.Snapshot{Candidates: []plan.Candidate{spent}}); d.Choice != nil || d.Ends != loop.OutcomeGaveUp || d.Reason != loop.ReasonBudget || d.Detail != spent.Detail {
		t.Errorf("decision = %+v, want that the run gives up", d)
	}
	if d := decide(plan.Snapshot{Candidates: []plan.Candidate{spent, work("t", loop.StepOpen)}}); d.Choice == nil || d.Ends != "" {
		t.Errorf("decision = %+v, want the other step", d)
	}
	if d := decide(plan.Snapshot{Candidates: []plan.Candidate{spent}, Nothing: loop.ReasonSensedNothing}); d.Ends != "" || d.Reason != loop.ReasonSensedNothing {
		t.Errorf("decision = %+v, want that there is nothing to do", d)
	}
}
