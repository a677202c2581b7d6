package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/git/hazard"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

func TestARunWithNothingLeftToDoEndsByWhatItCameTo(t *testing.T) {
	one := []loop.Iteration{{N: 1, Reason: loop.ReasonGatesPass}}
	for name, c := range map[string]struct {
		its     []loop.Iteration
		success loop.Outcome
		hold    *loop.Hold
		reason  loop.Reason
		want    ending
	}{
		"it found nothing to do":          {nil, "", nil, loop.ReasonNoCandidates, ending{outcome: loop.OutcomeQuiet, reason: loop.ReasonNoCandidates, detail: "why"}},
		"it had no time to begin with":    {nil, "", nil, loop.ReasonWallClock, ending{outcome: loop.OutcomeBudget, reason: loop.ReasonWallClock, detail: "why"}},
		"it had no tokens to begin with":  {nil, "", nil, loop.ReasonBudgetTokens, ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudgetTokens, detail: "why"}},
		"its time was over":               {one, "", nil, loop.ReasonWallClock, ending{outcome: loop.OutcomeBudget, reason: loop.ReasonWallClock, detail: "why"}},
		"its tokens were used":            {one, "", nil, loop.ReasonBudgetTokens, ending{outcome: loop.OutcomeBudget, reason: loop.ReasonBudgetTokens, detail: "why"}},
		"nothing is left and none passed": {one, "", nil, loop.ReasonNoCandidates, ending{outcome: loop.OutcomeFailed, reason: loop.ReasonNoCandidates, detail: "why"}},
		"something passed":                {one, loop.OutcomeProposed, nil, loop.ReasonWallClock, ending{outcome: loop.OutcomeProposed, reason: loop.ReasonGatesPass}},
		"it is held":                      {nil, "", &loop.Hold{Reason: loop.ReasonCoolOff}, loop.ReasonCoolOff, ending{outcome: loop.OutcomeBlocked, reason: loop.ReasonCoolOff, detail: "why"}},
		"it is held, after something":     {one, loop.OutcomeProposed, &loop.Hold{Reason: loop.ReasonCoolOff}, loop.ReasonCoolOff, ending{outcome: loop.OutcomeProposed, reason: loop.ReasonGatesPass}},
		"it is held, and found nothing":   {nil, "", &loop.Hold{Reason: loop.ReasonCoolOff}, loop.ReasonNoCandidates, ending{outcome: loop.OutcomeQuiet, reason: loop.ReasonNoCandidates, detail: "why"}},
	} {
		run := progress{its: c.its, success: c.success}
		if got := run.endWithoutChoice(plan.Decision{Reason: c.reason, Detail: "why"}, c.hold); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestAnEffectThatDidNotComeAboutDecidesHowTheRunEnds(t *testing.T) {
	failed := loop.Effect{Kind: effect.KindLand, State: loop.EffectFailed, Error: "no"}
	stopped := failed
	stopped.State = loop.EffectRefused
	guardrail := &loop.Fault{Exit: loop.ExitRefused, What: "land", Why: "no", Fix: "do it"}
	for name, c := range map[string]struct {
		e       loop.Effect
		refusal *loop.Fault
		want    ending
	}{
		"it failed":            {failed, nil, ending{outcome: loop.OutcomeFailed, reason: loop.ReasonEffectFailed, detail: "land: no"}},
		"a switch stopped it":  {stopped, nil, ending{outcome: loop.OutcomePaused, reason: loop.ReasonKillSwitch, detail: "land: no"}},
		"a guardrail is in it": {stopped, guardrail, ending{outcome: loop.OutcomeRefused, reason: loop.ReasonLanding, detail: guardrail.Error() + "; nothing was changed; do it"}},
	} {
		if got := endingOfEffect(c.e, c.refusal); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestARunThatPassedIsNamedAfterWhatItAskedFor(t *testing.T) {
	propose, land := []loop.EffectRequest{{Kind: effect.KindPropose}}, []loop.EffectRequest{{Kind: effect.KindPropose}, {Kind: effect.KindLand}}
	for name, c := range map[string]struct {
		tier    loop.Tier
		effects []loop.EffectRequest
		before  loop.Outcome
		want    loop.Outcome
	}{
		"it lands":                       {loop.TierUnattended, land, loop.OutcomeProposed, loop.OutcomeLanded},
		"it proposes":                    {loop.TierAssisted, propose, "", loop.OutcomeProposed},
		"it proposed an item before":     {loop.TierAssisted, nil, loop.OutcomeProposed, loop.OutcomeProposed},
		"it reports":                     {loop.TierReport, nil, "", loop.OutcomeReported},
		"it changes nothing":             {loop.TierAssisted, nil, "", loop.OutcomeDone},
		"it changes nothing once more":   {loop.TierAssisted, nil, loop.OutcomeDone, loop.OutcomeDone},
		"it asks for something else yet": {loop.TierAssisted, []loop.EffectRequest{{Kind: effect.KindPush}}, "", loop.OutcomeDone},
	} {
		if got := successOf(c.tier, c.effects, c.before); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheLastOfSeveralIterationsSaysWhatAllCameTo(t *testing.T) {
	fail := plan.Attempt{Verdict: loop.VerdictFail}
	settled := plan.Settlement{Outcome: loop.OutcomeFailed, Reason: loop.ReasonGateFailed, Detail: "verify failed:\nline 2", Halt: true, Again: true}
	run := func(worked int) *progress {
		return &progress{worked: worked, its: []loop.Iteration{{Reason: loop.ReasonGateFailed}, {Reason: loop.ReasonAgentExit}, {Reason: loop.ReasonGateFailed}}}
	}
	if got, want := run(1).cameTo(), "2 times: a gate failed; the agent's program failed"; got != want {
		t.Errorf("it came to %q, want %q", got, want)
	}
	if end := run(1).endAfter(settled, fail, true, false, 3); end != nil {
		t.Errorf("with another try: %+v", end)
	}
	if end := run(1).endAfter(plan.Settlement{}, plan.Attempt{Verdict: loop.VerdictPass}, false, false, 3); end != nil {
		t.Errorf("after a pass: %+v", end)
	}
	cut := run(1)
	cut.success = loop.OutcomeProposed
	if end := cut.endAfter(plan.Settlement{}, plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass}, false, true, 3); end == nil || *end != (ending{outcome: loop.OutcomeProposed, reason: loop.ReasonGatesPass}) {
		t.Errorf("after a pass with nothing left: %+v", end)
	}
}

func TestAHeadlineIsTheFirstLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one": "one", "one:": "one:", "one:\ntwo": "one", "one\ntwo:\n": "one", "\n one: \ntwo\n": "one: ",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("headline(%q) = %q, want %q", text, got, want)
		}
	}
	if got := feedbackOf(plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass}); got != "all gates pass" {
		t.Errorf("a pass without words: %q", got)
	}
	if got := feedbackOf(plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Words: "w"}) + feedbackOf(plan.Attempt{Reason: loop.ReasonGateFailed}); got != "w" {
		t.Errorf("words of attempts: %q", got)
	}
}

func TestAGateWhoseProgramIsMissingIsNotTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		gates []loop.GateResult
		want  bool
	}{
		"none":                 {nil, false},
		"not found":            {[]loop.GateResult{{Pass: true}, {Exit: 127}}, true},
		"no program":           {[]loop.GateResult{{Exit: 126}}, true},
		"another status":       {[]loop.GateResult{{Exit: 125}, {Exit: 128}, {Exit: 1}}, false},
		"127 that was allowed": {[]loop.GateResult{{Exit: 127, Pass: true}}, false},
	} {
		if got := missingGate(c.gates); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAListOfPathsStaysOnOneLineAndHasAnEnd(t *testing.T) {
	if got, want := quoteList([]string{"a b", "ä/€.go", "x\ny", "\x1b[31m", "\u202e", "\xff"}), `a b; ä/€.go; x\ny; \x1b[31m; \u202e; \xff`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for n, want := range map[int]string{20: "f; f", 21: "f; and 1 more", 50: "f; and 30 more"} {
		if got := quoteList(slices.Repeat([]string{"f"}, n)); !strings.HasSuffix(got, want) || strings.Count(got, "f;") > 20 {
			t.Errorf("of %d: %s, want … %s", n, got, want)
		}
	}
	if got := printables([]string{strings.Repeat("a", 300), strings.Repeat("b", 301)}); len(got[0]) != 300 || got[1] != strings.Repeat("b", 150)+"…"+strings.Repeat("b", 150) {
		t.Errorf("long names become %v", got)
	}
	halves := printables([]string{"a" + strings.Repeat("ä", 150), strings.Repeat("ä", 150) + "a"})
	if halves[0] != "a"+strings.Repeat("ä", 74)+"…"+strings.Repeat("ä", 75) || halves[1] != strings.Repeat("ä", 75)+"…"+strings.Repeat("ä", 74)+"a" {
		t.Errorf("letters are cut: %q", halves)
	}
	for n, want := range map[int]string{0: "nothing changed", 1: "changed f", 5: "changed f, f, f, f, f", 6: "changed f, f, f, f, f and 1 more", 9: "changed f, f, f, f, f and 4 more"} {
		if got := changedText(slices.Repeat([]string{"f"}, n)); got != want {
			t.Errorf("%d paths: %q, want %q", n, got, want)
		}
	}
	if got := changedText([]string{"a\nb"}); got != `changed a\nb` {
		t.Errorf("a name of two lines: %q", got)
	}
}

func TestTheReadinessFollowsTheRunsUnlessTheAgentSaidIt(t *testing.T) {
	for name, c := range map[string]struct {
		end      ending
		assessed bool
		from, to int
	}{
		"gates pass":           {ending{outcome: loop.OutcomeProposed, reason: loop.ReasonGatesPass}, false, 40, 100},
		"it failed":            {ending{outcome: loop.OutcomeFailed}, false, 40, 20},
		"it gave up":           {ending{outcome: loop.OutcomeGaveUp}, false, 40, 20},
		"it was refused":       {ending{outcome: loop.OutcomeRefused}, false, 40, 20},
		"it failed at nothing": {ending{outcome: loop.OutcomeFailed}, false, 10, 0},
		"it found nothing":     {ending{outcome: loop.OutcomeQuiet}, false, 40, 40},
		"the agent said it":    {ending{outcome: loop.OutcomeFailed}, true, 40, 40},
		"it passed, and more":  {ending{outcome: loop.OutcomeProposed, reason: loop.ReasonGatesPass}, true, 40, 40},
	} {
		if got := readinessAfter(c.end, c.assessed, c.from); got != c.to {
			t.Errorf("%s: from %d to %d, want %d", name, c.from, got, c.to)
		}
	}
}

func TestAnOutcomeIsSaidWithItsReasonAndDetail(t *testing.T) {
	for want, r := range map[string]loop.Run{
		"done":                  {Outcome: loop.OutcomeDone},
		"failed: a gate failed": {Outcome: loop.OutcomeFailed, Reason: loop.ReasonGateFailed},
		"failed: red":           {Outcome: loop.OutcomeFailed, Reason: loop.ReasonGateFailed, Detail: "red"},
	} {
		if got := outcomeText(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAFinishedProposalAsksWhoeverLands(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	propose := func(branch string, state loop.EffectState, base string) loop.Effect {
		return loop.Effect{
			Kind: effect.KindPropose, State: state, Result: map[string]string{effect.ResultCommit: "commit of " + branch},
			Args: map[string]string{effect.ArgBranch: branch, effect.ArgBase: base, effect.ArgTree: "tree of " + branch, effect.ArgParent: "parent"},
		}
	}
	for name, c := range map[string]struct {
		via     string
		outcome loop.Outcome
		effects []loop.Effect
		kind    string
		branch  string
	}{
		"a human":                     {"", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main")}, loop.ActionLand, "one"},
		"a human, by name":            {"human", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main")}, loop.ActionLand, "one"},
		"a pull request":              {"pr", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main")}, loop.ActionPullRequest, "one"},
		"somebody else":               {"none", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main")}, "", ""},
		"the newest of two":           {"", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main"), propose("two", loop.EffectDone, "main")}, loop.ActionLand, "two"},
		"one that came about":         {"", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main"), propose("two", loop.EffectFailed, "main")}, loop.ActionLand, "one"},
		"one that landed already":     {"", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main"), {Kind: effect.KindLand}}, "", ""},
		"one that was pushed already": {"", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "main"), {Kind: effect.KindPush}}, "", ""},
		"a HEAD that is detached":     {"", loop.OutcomeProposed, []loop.Effect{propose("one", loop.EffectDone, "")}, "", ""},
		"a run that was stopped":      {"", loop.OutcomePaused, []loop.Effect{propose("one", loop.EffectDone, "main")}, "", ""},
		"nothing that was proposed":   {"", loop.OutcomeProposed, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Deps{Now: func() time.Time { return now }, NewID: func(p string) string { return p + "_1" }})
			run := e.newCycle(Target{}, Firing{}, loop.Definition{LandVia: c.via})
			run.run = loop.Run{ID: "run_1", LoopID: "lp_1", Outcome: c.outcome, Definition: "def", Summary: "because"}
			run.its = []loop.Iteration{{StepID: "st_1", Tree: "tree of one"}, {StepID: "st_2", Tree: "tree of two"}}
			a := run.approvalFor(c.effects)
			if c.kind == "" {
				if a != nil {
					t.Fatalf("it asks %+v", a)
				}
				return
			}
			remote := map[string]string{loop.ActionPullRequest: "origin"}[c.kind]
			want := &loop.Approval{
				ID: "ap_1", LoopID: "lp_1", RunID: "run_1", StepID: map[string]string{"one": "st_1", "two": "st_2"}[c.branch], Tree: "tree of " + c.branch, Definition: "def",
				Action: loop.Action{Kind: c.kind, Why: "because", Branch: c.branch, Commit: "commit of " + c.branch, Base: "main", Onto: "parent", Remote: remote},
				State:  loop.ApprovalOpen, Created: now, Expires: now.Add(ApprovalTime),
			}
			want.Hash = want.BindingHash()
			if diff := cmp.Diff(want, a); diff != "" {
				t.Errorf("it asks (-want +got):\n%s", diff)
			}
		})
	}
	if got := (&progress{its: []loop.Iteration{{StepID: "st_1", Tree: "tree"}}}).iterationOfTree("another"); got.StepID != "" {
		t.Errorf("a tree that no step made is that of %q", got.StepID)
	}
	if ApprovalTime != 7*24*time.Hour {
		t.Errorf("an approval waits for %s", ApprovalTime)
	}
}

func TestWhatDidNotLandIsLandedByACommand(t *testing.T) {
	for want, action := range map[string]loop.Action{
		"pawl land fix#1":         {Kind: loop.ActionLand},
		"pawl land fix#1 --merge": {Kind: loop.ActionLand, Merge: true},
		"pawl land fix#1 --pr":    {Kind: loop.ActionPullRequest},
	} {
		if got := LandAgain(loop.Approval{Action: action}, "fix#1").String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLinesThatAHumanShouldSeeHaveAnEnd(t *testing.T) {
	text := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	change := func(path, now string) []policy.Change {
		return []policy.Change{{Path: path, New: policy.File{Mode: 0o100644, Text: now, Size: int64(len(now))}}}
	}
	for n, want := range map[int]int{9: 9, 10: 10, 11: 11, 30: 11} {
		flags := hiddenIn(change("a.go", text(n, "x := 1 // \u202e evil")))
		if len(flags) != want || (flags[len(flags)-1] == "and more lines like these") != (n > 10) {
			t.Errorf("of %d lines that are not what they look like: %d flags, %q", n, len(flags), flags)
		}
	}
}

func TestHazardsAreNamed(t *testing.T) {
	one := hazard.Hazard{Kind: "config", Key: "core.hooksPath", Where: ".git/config", Why: "runs programs"}
	end := refusedHazards("what", []hazard.Hazard{one, one}, "fix it")
	if want := "what: config core.hooksPath in .git/config (runs programs); config core.hooksPath in .git/config (runs programs); fix it"; end.detail != want || end.outcome != loop.OutcomeRefused || end.reason != loop.ReasonGitConfig {
		t.Errorf("%+v, want %q", end, want)
	}
	if end := refusedHazards("what", nil, "fix it"); end.detail != "what: something that stood there is gone; fix it" {
		t.Errorf("%+v", end)
	}
}

func TestNumbersOfRunsTellCheckoutsApart(t *testing.T) {
	run := &heldRun{target: Target{Repo: &git.Repo{}}, run: loop.Run{ID: "run_abcdefgh", N: 12}}
	if got := run.number(); got != "12" {
		t.Errorf("number %q", got)
	}
	for id, want := range map[string]string{"run_abcdefgh": "cdefgh", "abcdef": "abcdef", "abc": "abc", "": ""} {
		if got := idTail(id); got != want {
			t.Errorf("tail(%q) = %q, want %q", id, got, want)
		}
	}
	for hash, want := range map[string]string{"0123456789abcdef": "0123456789ab", "0123": "0123"} {
		if got := shortHash(hash); got != want {
			t.Errorf("short(%q) = %q, want %q", hash, got, want)
		}
	}
}

func TestWordsAreJoinedWhereThereAreAny(t *testing.T) {
	for want, c := range map[string][2]string{"": {"", ""}, "a": {"a", ""}, "b": {"", "b"}, "a; b": {"a", "b"}} {
		if got := joinWords(c[0], c[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := fmt.Sprint(testsReported(0), ", ", testsReported(1), ", ", testsReported(2)); got != "0 tests reported, 1 test reported, 2 tests reported" {
		t.Error(got)
	}
}
