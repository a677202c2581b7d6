package plan_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
)

func TestAReservationIsTheSmallestAmountThat95Of100RunsDidNotExceed(t *testing.T) {
	upTo := func(n int64) (list []loop.Amount) {
		for tokens := int64(1); tokens <= n; tokens++ {
			list = append(list, loop.Amount{Tokens: tokens})
		}
		return list
	}
	for runs, want := range map[int64]int64{5: 5, 20: 19, 21: 20, 39: 38, 50: 48} {
		if got, _ := plan.Reserve(upTo(runs), loop.Amount{}, loop.Amount{}); got.Tokens != want {
			t.Errorf("after %d runs of 1, 2, 3 … tokens %d are reserved, want %d", runs, got.Tokens, want)
		}
	}
}

func TestAReservationSaysThatItWasCutOnlyWhenItWas(t *testing.T) {
	usual := loop.Amount{Tokens: 10, Output: 1, MicroUSD: 1, Wall: time.Second, Iterations: 1, Items: 1}
	for most, cut := range map[int64]bool{9: true, 10: false, 11: false, 0: false} {
		if _, why := plan.Reserve(nil, usual, loop.Amount{Tokens: most}); strings.Contains(why, "cut to") != cut {
			t.Errorf("with a cap of %d: %q, want cut = %v", most, why, cut)
		}
	}
}

func TestACapOfOneIsACap(t *testing.T) {
	budgets := []loop.Budget{{Window: loop.WindowRun, Cap: loop.Amount{Iterations: 1}}, {Window: loop.WindowRun, Cap: loop.Amount{Iterations: 2}}}
	if got := plan.RunCaps(budgets); got.Iterations != 1 {
		t.Errorf("RunCaps = %+v, want 1 iteration", got)
	}
}

func TestDriftBeginsRightAboveItsBounds(t *testing.T) {
	now := slices.Repeat([]loop.Amount{{Tokens: 2000}}, 50)
	old := slices.Repeat([]loop.Amount{{Tokens: 90_000}}, 50)
	rising := func(n int) (list []loop.Amount) { // 10,000, 20,000 …
		for i := range n {
			list = append(list, loop.Amount{Tokens: int64(i+1) * 10_000})
		}
		return list
	}
	spiky := func(n, spikes int) []loop.Amount {
		return slices.Concat(slices.Repeat([]loop.Amount{{Tokens: 1000}}, n-spikes), slices.Repeat([]loop.Amount{{Tokens: 30_000}}, spikes))
	}
	many := loop.Amount{Tokens: math.MaxInt64 / 2}
	for name, c := range map[string]struct {
		past  []loop.Amount
		last  loop.Amount
		alarm bool
	}{
		"money at four times the floor":             {make([]loop.Amount, 9), loop.Amount{MicroUSD: 40_000}, false},
		"money above four times the floor":          {make([]loop.Amount, 9), loop.Amount{MicroUSD: 40_001}, true},
		"only the newest 50 runs count":             {append(slices.Clone(now), old...), loop.Amount{Tokens: 10_000}, true},
		"the median of 50 is the 25th":              {rising(50), loop.Amount{Tokens: 1_000_001}, true},
		"at four times the median of 50":            {rising(50), loop.Amount{Tokens: 1_000_000}, false},
		"at twice the p95":                          {spiky(50, 3), loop.Amount{Tokens: 60_000}, false},
		"above twice the p95":                       {spiky(50, 3), loop.Amount{Tokens: 60_001}, true},
		"two of 50 do not move the p95":             {spiky(50, 2), loop.Amount{Tokens: 4001}, true},
		"one of 20 is not among them either":        {spiky(20, 1), loop.Amount{Tokens: 4001}, true},
		"what is too much to be counted four times": {slices.Repeat([]loop.Amount{many}, 5), loop.Amount{Tokens: math.MaxInt64}, false},
		"what can just be counted four times":       {slices.Repeat([]loop.Amount{{Tokens: math.MaxInt64 / 4}}, 5), loop.Amount{Tokens: math.MaxInt64}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if alarm, words := plan.DetectDrift(c.past, c.last); alarm != c.alarm {
				t.Errorf("Drift = %v, %q, want %v", alarm, words, c.alarm)
			}
		})
	}
	_, words := plan.DetectDrift(slices.Repeat([]loop.Amount{{Tokens: 1000, MicroUSD: 10_000}}, 5), loop.Amount{Tokens: 9000, MicroUSD: 90_000})
	if both := strings.Split(words, "; "); len(both) != 2 || !strings.Contains(both[1], "USD") {
		t.Errorf("Drift in tokens and in money says %q, want a sentence of each", words)
	}
}

func TestAmountsAtTheEdgesOfTheirUnits(t *testing.T) {
	for want, a := range map[string]loop.Amount{
		"-1.00 USD": {MicroUSD: -1_000_000},
		"1m":        {Wall: time.Minute + 500*time.Millisecond},
		"59.5s":     {Wall: 59*time.Second + 500*time.Millisecond},
		"60ms":      {Wall: 60*time.Millisecond + 500*time.Microsecond},
		"59.5ms":    {Wall: 59*time.Millisecond + 500*time.Microsecond},
	} {
		if got := plan.AmountWords(a); got != want {
			t.Errorf("Words(%+v) = %q, want %q", a, got, want)
		}
	}
}

func TestTheBudgetOfARunComesBeforeThatOfADay(t *testing.T) {
	for range 100 { // the order of a map is another each time
		got := plan.DefinitionBudgets(loop.Definition{BudgetTokens: 5, BudgetTokensDay: 6}, "lp_1")
		if len(got) != 2 || got[0].Window != loop.WindowRun {
			t.Fatalf("BudgetsOf = %+v, want the run first", got)
		}
	}
}

func TestACallCostsWhatItsModelCostsAndNothingIsKnownOfOthers(t *testing.T) {
	if got, known := plan.CallCost("gpt-5", loop.Usage{Output: 100}, dated); got != 1000 || !known {
		t.Errorf("CallCost = %d, %v, want 1000, true", got, known)
	}
	if got, known := plan.CallCost("nobody-sells-it", loop.Usage{Output: 100}, dated); got != 0 || known {
		t.Errorf("CallCost = %d, %v, want 0, false", got, known)
	}
}

func TestAModelThatOnlyTheMeterKnowsIsNamedAmongThePrices(t *testing.T) {
	metered := used("resold", loop.Usage{Input: 5})
	metered.MicroUSD, metered.Priced = 7, true
	_, cost := plan.PriceModels([]loop.ModelUsage{metered}, dated)
	if diff := cmp.Diff([]loop.ModelPrice{{Model: "resold"}}, cost.Prices); diff != "" {
		t.Error(diff)
	}
}

func TestTheFeeOfAFileSearchIsAmongThePrices(t *testing.T) {
	table := price.Table{Models: []price.Model{{ID: "finder", FileSearch: new(2.5)}}}
	_, cost := plan.PriceModels([]loop.ModelUsage{used("finder", loop.Usage{FileSearches: 1})}, table)
	if len(cost.Prices) != 1 || cost.Prices[0].FileSearch != 2.5 {
		t.Errorf("prices %+v, want the fee of 2.5", cost.Prices)
	}
}

func TestAHoldKeepsUntilItsTimeAndSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		hold  loop.Hold
		holds bool
		words string
	}{
		"nobody holds":        {loop.Hold{Detail: "x"}, false, "until somebody resumes it: x"},
		"until it is resumed": {loop.Hold{Reason: loop.ReasonBudget, Detail: "x"}, true, "until somebody resumes it: x"},
		"until a time":        {loop.Hold{Reason: loop.ReasonBudget, Until: noon.Add(1), Detail: "x"}, true, "until 2026-09-03T12:00:00Z: x"},
		"its time has come":   {loop.Hold{Reason: loop.ReasonBudget, Until: noon, Detail: "x"}, false, "until 2026-09-03T12:00:00Z: x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.HoldActive(c.hold, noon); got != c.holds {
				t.Errorf("Holds = %v, want %v", got, c.holds)
			}
			if got := plan.HoldWords(c.hold); got != c.words {
				t.Errorf("HoldWords = %q, want %q", got, c.words)
			}
		})
	}
}

func TestWhyAStepWasChosenInWords(t *testing.T) {
	for name, c := range map[string]struct {
		candidate plan.Candidate
		want      string
	}{
		"an open one":           {work("a", loop.StepOpen), "first in order"},
		"a reply":               {reply("a", loop.StepOpen), "replies go first"},
		"the protocol's reason": {with(work("a", loop.StepOpen), func(c *plan.Candidate) { c.Detail = "it is due" }), "it is due"},
		"one of this run": {
			with(work("a", loop.StepClaimed), func(c *plan.Candidate) { c.Step.RunID, c.Step.Attempts = "run_7", 2 }),
			"tried again after attempt 2 failed",
		},
		"one that failed": {
			with(work("a", loop.StepFailed), func(c *plan.Candidate) { c.Step.Attempts = 3 }),
			"failed before (3 attempts), nothing open goes first",
		},
		"one that was blocked": {work("a", loop.StepBlocked), "its waiting time is over"},
		"one that was answered": {
			with(work("a", loop.StepWaiting), func(c *plan.Candidate) { c.Answered = true }),
			"the human answered",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := plan.Next(snapshot(c.candidate), noon)
			if d.Choice == nil || d.Choice.Detail != c.want || d.Detail != c.want {
				t.Errorf("Next = %+v, want chosen because %q", d, c.want)
			}
		})
	}
}

func TestWhyAStepWasNotChosenInWords(t *testing.T) {
	escalated := with(work("a", loop.StepEscalated), func(c *plan.Candidate) { c.Step.Feedback = "ask Ann" })
	for name, c := range map[string]struct {
		snapshot plan.Snapshot
		want     string
	}{
		"sensing found nothing": {
			func() plan.Snapshot { s := snapshot(open("a")...); s.Nothing = loop.ReasonSensedNothing; return s }(),
			"",
		},
		"another run has it":   {snapshot(with(work("a", loop.StepClaimed), func(c *plan.Candidate) { c.Step.RunID = "run_6" })), "run run_6 works on it"},
		"nobody has answered":  {snapshot(with(work("a", loop.StepWaiting), func(c *plan.Candidate) { c.Step.WaitsFor = "ap_1" })), "approval ap_1 has no answer yet"},
		"a human has it":       {snapshot(escalated), "a human has it: ask Ann"},
		"it is done":           {snapshot(work("a", loop.StepDone)), ""},
		"a later state of it":  {snapshot(work("a", "odd")), "unknown state odd"},
		"the protocol's words": {snapshot(with(work("a", loop.StepOpen), func(c *plan.Candidate) { c.Drop, c.Detail = loop.ReasonNotEligible, "in Watch" })), "in Watch"},
	} {
		t.Run(name, func(t *testing.T) {
			d := plan.Next(c.snapshot, noon)
			if len(d.Considered) != 1 || d.Considered[0].Detail != c.want {
				t.Errorf("Next = %+v, want %q", d, c.want)
			}
		})
	}
}

func TestWhatALimitWaitsForHasBounds(t *testing.T) {
	limited := func(attempt int, reset time.Duration) plan.RetryDecision {
		return plan.Retry(loop.FailureRateLimit, attempt, noon.Add(reset), noon, 7)
	}
	if got := limited(2, 30*time.Second); !got.TryAgain {
		t.Errorf("the second limit that is lifted in 30s: %+v, want another try", got)
	}
	if got := limited(1, 30*time.Second+1); got.TryAgain || !got.Hold {
		t.Errorf("a limit that is lifted later: %+v, want a hold", got)
	}
	if got := limited(1, 32*24*time.Hour); got.At.IsZero() {
		t.Errorf("a limit of 32 days: %+v, want a time", got)
	}
	if got := limited(1, 32*24*time.Hour+1); !got.At.IsZero() {
		t.Errorf("a limit of more: %+v, want none", got)
	}
	if got := limited(1, -time.Minute+1); !got.TryAgain {
		t.Errorf("a limit that was lifted just now: %+v, want another try", got)
	}
	if got := limited(1, -time.Minute); got.TryAgain {
		t.Errorf("a limit that was lifted a minute ago: %+v, want a hold", got)
	}
}

// A run that is taken over by a newer pawl waits as long as the old one said.
func TestTheTimeOfASeedIsTheSameInEveryRelease(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time
		want time.Duration
	}{
		"a server":       {plan.Retry(loop.FailureServer, 1, time.Time{}, noon, 7).At, 1_559_318_993},
		"a server again": {plan.Retry(loop.FailureServer, 2, time.Time{}, noon, 1<<60+7).At, 6_630_948_649},
		"a known limit":  {plan.Retry(loop.FailureRateLimit, 1, noon.Add(time.Hour), noon, 99).At, 3_631_383_656_588},
		"a limit":        {plan.Retry(loop.FailureRateLimit, 1, time.Time{}, noon, 99).At, 331_383_656_588},
		"the last limit": {plan.Retry(loop.FailureRateLimit, 100, time.Time{}, noon, 99).At, 21_672_927_186_441},
		"cool off":       {plan.CoolOff(3, noon, 12345), 1_014_105_728_294},
		"at most":        {plan.CoolOff(90, noon, 12345), 86_441_714_331_681},
	} {
		if got := c.at.Sub(noon); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestAnotherTrySaysWhichItIsAndWhenItComes(t *testing.T) {
	for attempt, want := range map[int]string{1: "server_error: try 2 of 3, after 1.6s", 2: "server_error: try 3 of 3, after "} {
		if got := plan.Retry(loop.FailureServer, attempt, time.Time{}, noon, 7).Why; !strings.HasPrefix(got, want) {
			t.Errorf("Why = %q, want %q", got, want)
		}
	}
}

func TestAnAttemptThatTheAgentFailedNeitherCountsNorBreaksTheStreakOfAGate(t *testing.T) {
	step := loop.Step{Key: "a", State: loop.StepClaimed}
	var got plan.Settlement
	for i, a := range []plan.Attempt{fails("verify", "t1"), says(loop.FailureMalformed), fails("verify", "t1"), fails("verify", "t1")} {
		if got = plan.Settle(step, a, 7, roomy); got.Outcome == loop.OutcomeGaveUp != (i == 3) {
			t.Errorf("attempt %d: %+v, want to give up at the third failure of the gate", i+1, got)
		}
		step = got.Step
	}
	if got := step.Tried.Gates["verify"].SameTree; got != 3 {
		t.Errorf("verify failed %d times in a row, want 3", got)
	}
}
