package notify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// read is what a person reads of what a row gives cause for.
func (t told) read() string {
	var b strings.Builder
	for _, n := range t.raise {
		fmt.Fprintf(&b, "%s %s [%s]\n%s\n%s\n> %s\n", n.Event.Kind(), n.Event, n.Key, n.Title, n.Body, describeAnswer(n))
	}
	for _, e := range t.over {
		fmt.Fprintf(&b, "over [%s] %s\n", e.key, e.how)
	}
	return b.String()
}

func TestWhatPeopleAreToldAboutARun(t *testing.T) {
	t.Parallel()
	p := place{loop.Loop{ID: "lp", Name: "ci"}, "/w/my repo"}
	ended := func(o loop.Outcome, r loop.Reason, change func(*loop.Run)) loop.Run {
		run := loop.Run{ID: "run_1", LoopID: "lp", N: 7, State: loop.RunEnded, Outcome: o, Reason: r}
		if change != nil {
			change(&run)
		}
		return run
	}
	for name, c := range map[string]struct {
		run  loop.Run
		old  bool
		want string
	}{
		"it goes on":   {run: loop.Run{State: loop.RunSettling, Outcome: loop.OutcomeEscalated}},
		"it was quiet": {run: ended(loop.OutcomeQuiet, loop.ReasonAllDropped, nil)},
		"nothing to do": {run: ended(loop.OutcomeQuiet, loop.ReasonSensedNothing, nil), want: `over [loop/lp/failing] ci#7 ended quiet: there is nothing to do
`},
		"paused": {run: ended(loop.OutcomePaused, loop.ReasonKillSwitch, nil)},
		"it waits": {run: ended(loop.OutcomeWaiting, loop.ReasonAgentBlocked, func(r *loop.Run) { r.Detail = "which port?" }), want: `needs_you waiting_human [run/run_1]
ci#7 waits for you
the agent is blocked: which port?
> pawl why ci#7 --workspace '/w/my repo'
`},
		"its question is told": {run: ended(loop.OutcomeWaiting, loop.ReasonApproval, func(r *loop.Run) { r.Approval = "ap_1" })},
		"escalated": {run: ended(loop.OutcomeEscalated, loop.ReasonAgentEscalated, func(r *loop.Run) { r.Summary, r.Agent = "too hard", "claude" }), want: `needs_you escalated [run/run_1]
ci#7 hands its step over to you
the agent asks for a person
it says: too hard
> pawl show ci#7 --workspace '/w/my repo'
over [loop/lp/budget] ci#7 ended escalated: the agent asks for a person
`},
		"gave up": {run: ended(loop.OutcomeGaveUp, loop.ReasonGiveUp, nil), want: `needs_you gave_up [run/run_1]
ci#7 gave up
the same gate failed too often
> pawl trace ci#7 --workspace '/w/my repo'
`},
		"no budget": {run: ended(loop.OutcomeBudget, loop.ReasonBudget, func(r *loop.Run) {
			r.Detail, r.Agent = "day of loop ci: 5 $ of 5 $ are used; it opens at 00:00", "claude"
		}), want: `needs_you budget [loop/lp/budget]
no budget pays for ci
day of loop ci: 5 $ of 5 $ are used; it opens at 00:00
> pawl budget show ci --workspace '/w/my repo'
`},
		"no budget, before a newer run": {old: true, run: ended(loop.OutcomeBudget, loop.ReasonBudget, nil)},
		"a limit of the run": {run: ended(loop.OutcomeBudget, loop.ReasonWallClock, nil), want: `information failing [loop/lp/failing]
ci#7 met a limit
the time of the run is over
> pawl why ci#7 --workspace '/w/my repo'
`},
		"failed": {run: ended(loop.OutcomeFailed, loop.ReasonGateFailed, func(r *loop.Run) { r.Agent = "claude" }), want: `information failing [loop/lp/failing]
ci#7 failed
a gate failed
> pawl why ci#7 --workspace '/w/my repo'
over [loop/lp/budget] ci#7 ended failed: a gate failed
`},
		"failed, before a newer run": {old: true, run: ended(loop.OutcomeFailed, loop.ReasonGateFailed, nil)},
		"refused": {run: ended(loop.OutcomeRefused, loop.ReasonScope, nil), want: `information failing [loop/lp/failing]
ci#7 was refused
it changed what the definition does not allow
> pawl why ci#7 --workspace '/w/my repo'
`},
		"others have its agent": {run: ended(loop.OutcomeBlocked, loop.ReasonAgentBusy, nil)},
		"somebody stopped it":   {run: ended(loop.OutcomeInterrupted, loop.ReasonStopped, nil)},
		"landed": {run: ended(loop.OutcomeLanded, loop.ReasonGatesPass, func(r *loop.Run) { r.Branch = "pawl/ci/6" }), want: `information landed [run/run_1]
ci#7 landed pawl/ci/6
all gates pass
> pawl show ci#7 --workspace '/w/my repo'
over [loop/lp/failing] ci#7 ended landed: all gates pass
`},
		"landed, before a newer run": {old: true, run: ended(loop.OutcomeLanded, loop.ReasonGatesPass, nil), want: `information landed [run/run_1]
ci#7 landed
all gates pass
> pawl show ci#7 --workspace '/w/my repo'
`},
		"proposed": {run: ended(loop.OutcomeProposed, loop.ReasonGatesPass, func(r *loop.Run) { r.Branch = "pawl/ci/7" }), want: `information proposed [run/run_1]
ci#7 proposes pawl/ci/7
all gates pass
> pawl diff ci#7 --workspace '/w/my repo'
over [loop/lp/failing] ci#7 ended proposed: all gates pass
`},
	} {
		if d := cmp.Diff(c.want, ofRun(c.run, p, !c.old).read()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Each outcome is either told or left out on purpose; a new one has to be decided here.
func TestAMemoryThatIsOnlyHereIsToldUntilItIsPushed(t *testing.T) {
	p := place{loop: loop.Loop{ID: "lp", Name: "boot", Protocol: loop.ProtocolBoot}}
	run := loop.Run{ID: "run_1", LoopID: "lp", N: 7, State: loop.RunEnded, Outcome: loop.OutcomeDone, Reason: loop.ReasonGatesPass, Cause: loop.Cause{Unpushed: "main"}}
	raised := ofRun(run, p, true).raise
	if len(raised) != 1 || raised[0].Event != loop.NoticeUnpushed || raised[0].Key != "loop/lp/unpushed" || raised[0].Title != "boot#7 could not push main" {
		t.Errorf("told: %+v", raised)
	}
	if old := ofRun(run, p, false); len(old.raise) > 0 {
		t.Errorf("an older run is told: %+v", old)
	}
	over := func(change func(*loop.Run)) bool {
		run := run
		run.Cause = loop.Cause{}
		change(&run)
		return slices.Contains(ofRun(run, p, true).keys(), "loop/lp/unpushed")
	}
	if !over(func(*loop.Run) {}) || !over(func(r *loop.Run) { r.Outcome, r.Reason = loop.OutcomeQuiet, loop.ReasonPlanNothing }) {
		t.Error("a run that pushed does not end it")
	}
	if over(func(r *loop.Run) { r.Outcome, r.Reason = loop.OutcomeQuiet, loop.ReasonLockHigher }) || over(func(r *loop.Run) { r.Outcome = loop.OutcomeFailed }) {
		t.Error("a run that pushed nothing ends it")
	}
}

func TestWorkThatNoGateJudgedIsToldOfEachRunThatPushedIt(t *testing.T) {
	p := place{loop: loop.Loop{ID: "lp", Name: "boot", Protocol: loop.ProtocolBoot}}
	run := loop.Run{ID: "run_1", LoopID: "lp", N: 7, State: loop.RunEnded, Outcome: loop.OutcomeDone, Cause: loop.Cause{Ungated: "origin/main"}}
	for _, newest := range []bool{true, false} {
		raised := ofRun(run, p, newest).raise
		if len(raised) != 1 || raised[0].Event != loop.NoticeUngated || raised[0].Key != "run/run_1/ungated" || raised[0].Title != "boot#7 pushed work to origin/main, and no gate has judged it" {
			t.Errorf("told: %+v", raised)
		}
	}
}

func TestEachOutcomeIsToldOrLeftOut(t *testing.T) {
	t.Parallel()
	left := []loop.Outcome{loop.OutcomeQuiet, loop.OutcomeReported, loop.OutcomeDone, loop.OutcomePaused}
	for _, m := range loop.Meanings {
		run := loop.Run{ID: "r", LoopID: "lp", State: loop.RunEnded, Outcome: m.Outcome, Reason: loop.ReasonGateFailed}
		raised := len(ofRun(run, place{}, true).raise) == 1
		if isLeft := strings.Contains(fmt.Sprint(left), string(m.Outcome)); raised == isLeft {
			t.Errorf("%s is told: %v", m.Outcome, raised)
		}
	}
}

func TestWhatPeopleAreToldAboutAnApproval(t *testing.T) {
	t.Parallel()
	p, run := place{loop.Loop{ID: "lp", Name: "ci"}, "/w"}, loop.Run{ID: "run_1", N: 7}
	open := loop.Approval{ID: "ap_1", State: loop.ApprovalOpen, Expires: noon.Add(time.Hour)}
	with := func(change func(*loop.Approval)) loop.Approval {
		a := open
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		a    loop.Approval
		want string
	}{
		"land": {with(func(a *loop.Approval) {
			a.Action = loop.Action{Kind: loop.ActionLand, Branch: "pawl/ci/7", Base: "main", Why: "tests are green", Flags: []string{"it changes a test"}}
		}), `needs_you approval [approval/ap_1]
ci#7 asks: may pawl/ci/7 land on main?
it says: tests are green
careful: it changes a test
It can be answered until 2026-11-30 13:00 UTC.
> pawl approve ap_1 --workspace /w
`},
		"pull request": {with(func(a *loop.Approval) {
			a.Action = loop.Action{Kind: loop.ActionPullRequest, Branch: "pawl/ci/7", Base: "main"}
		}), `needs_you approval [approval/ap_1]
ci#7 asks: may a pull request of pawl/ci/7 for main be opened?
It can be answered until 2026-11-30 13:00 UTC.
> pawl approve ap_1 --workspace /w
`},
		"command": {with(func(a *loop.Approval) {
			a.Action = loop.Action{Kind: loop.ActionCommand, Argv: []string{"make", "deploy"}}
		}), `needs_you approval [approval/ap_1]
ci#7 asks: may a command be run?
the command: make deploy
It can be answered until 2026-11-30 13:00 UTC.
> pawl approve ap_1 --workspace /w
`},
		"answered": {
			with(func(a *loop.Approval) { a.State, a.By, a.From, a.Answered = loop.ApprovalApproved, "ann", "cli", noon }),
			"over [approval/ap_1] ann said yes from cli at 2026-11-30T12:00:00Z\n",
		},
		"its time is over": {with(func(a *loop.Approval) { a.Expires = noon }), "over [approval/ap_1] its time ran out at 2026-11-30T12:00:00Z\n"},
	} {
		if d := cmp.Diff(c.want, ofApproval(c.a, run, p, noon).read()); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestPausesDoubleUpToAnHour(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]time.Duration{0: time.Minute, 1: time.Minute, 2: 2 * time.Minute, 6: 32 * time.Minute, 7: time.Hour, 1000: time.Hour} {
		if got := pauseAfter(n); got != want {
			t.Errorf("after try %d: %v, want %v", n, got, want)
		}
	}
}
