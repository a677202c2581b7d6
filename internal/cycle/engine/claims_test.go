package engine

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/report"
)

// turned is a run whose agent has just taken a turn on a step of work.
func turned() *cycle {
	c := unstarted(loop.Definition{Name: "fix", Tier: loop.TierAssisted})
	c.maker = turn.Actor{Agent: loop.Agent{Command: "my-agent"}}
	c.steps = map[string]loop.Step{"work": {ID: "st_1", Key: "work", Kind: loop.StepWork}, "reply": {ID: "st_2", Key: "reply", Kind: loop.StepReply}}
	c.its = []loop.Iteration{{N: 1, StepID: "st_1", Acted: "the agent did something"}}
	return c
}

// unstarted is the cycle of a run that has not begun.
func unstarted(d loop.Definition) *cycle {
	return New(Deps{Now: time.Now}).newCycle(Target{}, Firing{}, d)
}

func TestAClaimIsBelievedWhereNoGateHasToLook(t *testing.T) {
	said := func(outcome report.Outcome) report.Report { return report.Report{Outcome: outcome} }
	exited := func(status int) turnResult { return turnResult{Result: agent.Result{Ended: proc.Exited, Exit: status}} }
	failed := func(class loop.FailureClass, changed ...string) work {
		r := exited(1)
		r.Failure = &loop.Failure{Class: class, Text: "no"}
		return work{turn: r, changed: changed}
	}
	changed := []string{"src/a.txt"}
	timedOut := turnResult{Result: agent.Result{Ended: proc.TimedOut, Exit: 143}}
	reporting := func(c *cycle, _ *work) { c.def.Tier = loop.TierReport }
	replying := func(c *cycle, _ *work) { c.its[0].StepID = "st_2" }
	cut := func(_ *cycle, w *work) { w.turn.cut = &ending{reason: loop.ReasonBudget, detail: "nothing is left"} }
	killed := func(c *cycle, w *work) { cut(c, w); w.turn.unmetered = true }
	for name, c := range map[string]struct {
		change  func(*cycle, *work)
		w       work
		verdict loop.Verdict // empty: gates have to look
		reason  loop.Reason
		words   string
	}{
		"it changed something":                    {nil, work{turn: exited(0), changed: changed}, "", "", ""},
		"nothing changed":                         {nil, work{turn: exited(0)}, loop.VerdictFail, loop.ReasonNoChanges, "done was claimed, but nothing changed and the report does not say no_change"},
		"nothing had to change":                   {nil, work{turn: exited(0), report: report.Report{NoChange: true}}, "", "", ""},
		"an answer":                               {replying, work{turn: exited(0), report: report.Report{Summary: "yes"}}, loop.VerdictPass, loop.ReasonReplied, "yes"},
		"an answer that changes something":        {replying, work{turn: exited(0), changed: changed}, "", "", ""},
		"a report":                                {reporting, work{turn: exited(0), report: report.Report{Summary: "all is well"}}, loop.VerdictPass, loop.ReasonReportedOnly, "all is well"},
		"a report that took too long":             {reporting, work{turn: timedOut}, loop.VerdictFail, loop.ReasonAgentTimeout, "the agent did something"},
		"blocked":                                 {nil, work{turn: exited(0), report: report.Report{Outcome: report.Blocked, Reason: "no key", Summary: "x"}, changed: changed}, loop.VerdictFail, loop.ReasonAgentBlocked, "no key"},
		"blocked, in the summary":                 {nil, work{turn: exited(0), report: report.Report{Outcome: report.Blocked, Summary: "no key"}}, loop.VerdictFail, loop.ReasonAgentBlocked, "no key"},
		"escalated":                               {nil, work{turn: exited(0), report: said(report.Escalate), changed: changed}, loop.VerdictFail, loop.ReasonAgentEscalated, "the agent handed it over without a reason"},
		"quiet":                                   {nil, work{turn: exited(0), report: said(report.Quiet)}, loop.VerdictFail, loop.ReasonAgentQuiet, "the agent found nothing to do"},
		"quiet, and yet it changed something":     {nil, work{turn: exited(0), report: said(report.Quiet), changed: changed}, "", "", ""},
		"it says that it failed":                  {nil, work{turn: exited(0), report: said(report.Failed), changed: changed}, loop.VerdictFail, loop.ReasonAgentFailed, "the agent says that it failed"},
		"a report that cannot be read":            {nil, work{turn: exited(0), malformed: errors.New("line 1"), changed: changed}, loop.VerdictFail, loop.ReasonReportMalformed, "the report in $PAWL_REPORT cannot be read: line 1"},
		"a bad exit":                              {nil, work{turn: exited(3), changed: changed}, loop.VerdictFail, loop.ReasonAgentExit, "the agent did something"},
		"that of timeout(1)":                      {nil, work{turn: exited(124), changed: changed}, loop.VerdictFail, loop.ReasonAgentTimeout, "the agent did something"},
		"a bad exit, and why":                     {nil, work{turn: exited(3), report: report.Report{Reason: "no disk"}, changed: changed}, loop.VerdictFail, loop.ReasonAgentExit, "the agent says: no disk"},
		"a bad exit that proves nothing":          {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Exit: 3, Claims: true}}, changed: changed}, "", "", ""},
		"a signal":                                {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.Signaled, Exit: 137, Claims: true}}, changed: changed}, loop.VerdictFail, loop.ReasonAgentExit, "the agent did something"},
		"no such program":                         {nil, work{turn: exited(127)}, loop.VerdictFail, loop.ReasonAgentMissing, `the agent command "my-agent" cannot be run (exit status 127)`},
		"a file that is not a program":            {nil, work{turn: exited(126), changed: changed}, loop.VerdictFail, loop.ReasonAgentMissing, `the agent command "my-agent" cannot be run (exit status 126)`},
		"127 of a program that spoke":             {nil, work{turn: exited(127), report: said(report.Done), changed: changed}, loop.VerdictFail, loop.ReasonAgentExit, "the agent did something"},
		"127 of a driver that speaks":             {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Exit: 127, Claims: true}}, changed: changed}, "", "", ""},
		"a limit":                                 {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.Limited, Exit: 137, Limit: proc.OutputLimit}}, changed: changed}, loop.VerdictFail, loop.ReasonLimit, "the agent failed: it ran into the limit of"},
		"a limit that it only met":                {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Exit: 1, Limit: proc.OutputLimit}}, changed: changed}, loop.VerdictFail, loop.ReasonLimit, "the agent failed: it ran into the limit of"},
		"a limit that it got over":                {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Limit: proc.OutputLimit}}, changed: changed}, "", "", ""},
		"its time was over":                       {nil, work{turn: turnResult{Result: agent.Result{Ended: proc.TimedOut, Limit: proc.TimeLimit}}, changed: changed}, "", "", ""},
		"its time was over, and nothing is there": {nil, work{turn: timedOut}, loop.VerdictFail, loop.ReasonAgentTimeout, "the agent did something"},
		"its account is limited":                  {nil, failed(loop.FailureRateLimit, "src/a.txt"), loop.VerdictFail, loop.FailureRateLimit, "no"},
		"its answer cannot be read":               {nil, failed(loop.FailureMalformed), loop.VerdictFail, loop.FailureMalformed, "no"},
		"that, with work":                         {nil, failed(loop.FailureMalformed, "src/a.txt"), "", "", ""},
		"that, in a report":                       {reporting, failed(loop.FailureMalformed, "src/a.txt"), loop.VerdictFail, loop.FailureMalformed, "no"},
		"cut, with work":                          {cut, work{turn: turnResult{Result: agent.Result{Ended: proc.Signaled, Exit: 143}}, changed: changed}, "", "", ""},
		"cut, which made it fail":                 {cut, failed(loop.FailureRateLimit, "src/a.txt"), "", "", ""},
		"cut, without work":                       {cut, work{turn: turnResult{Result: agent.Result{Ended: proc.Signaled, Exit: 143}}}, loop.VerdictFail, loop.ReasonBudget, "nothing is left"},
		"cut, in a report":                        {func(c *cycle, w *work) { cut(c, w); reporting(c, w) }, work{turn: exited(0), changed: changed}, loop.VerdictFail, loop.ReasonBudget, "nothing is left"},
		"cut in the midst of what it did":         {killed, work{turn: exited(0), changed: changed, malformed: errors.New("half of it")}, loop.VerdictFail, loop.ReasonBudget, "nothing is left"},
	} {
		t.Run(name, func(t *testing.T) {
			run := turned()
			if c.change != nil {
				c.change(run, &c.w)
			}
			c.w.candidate.Tree = "tree"
			a, settled := run.judge.judgeClaim(c.w)
			if settled != (c.verdict != "") {
				t.Fatalf("settled %v: %+v", settled, a)
			}
			if !settled {
				return
			}
			if a.Verdict != c.verdict || a.Reason != c.reason || !strings.HasPrefix(a.Words, c.words) || c.words == "" || a.Tree != "tree" {
				t.Errorf("attempt = %+v, want %s %s %q", a, c.verdict, c.reason, c.words)
			}
			gate := plan.AgentGate
			switch {
			case a.Verdict == loop.VerdictPass:
				gate = ""
			case a.Reason == loop.ReasonNoChanges:
				gate = "changes"
			}
			if a.Gate != gate {
				t.Errorf("it failed at %q, want %q", a.Gate, gate)
			}
		})
	}
}

func TestAnAttemptThatWasCutIsNoFaultOfTheStep(t *testing.T) {
	fail := func(reason loop.Reason, gate, words string) plan.Attempt {
		return plan.Attempt{Verdict: loop.VerdictFail, Reason: reason, Gate: gate, Words: words}
	}
	spent := fail(loop.ReasonBudget, plan.AgentGate, "nothing is left")
	pass := plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass}
	for name, c := range map[string]struct{ a, want plan.Attempt }{
		"a gate fails":                   {fail(loop.ReasonGateFailed, "verify", "red"), fail(loop.ReasonBudget, plan.AgentGate, "nothing is left; what it left does not pass: red")},
		"a gate fails and says nothing":  {fail(loop.ReasonGateFailed, "verify", ""), spent},
		"the agent fails":                {fail(loop.ReasonAgentExit, plan.AgentGate, "exit 1"), spent},
		"the gates pass":                 {pass, pass},
		"the agent said that it blocks":  {fail(loop.ReasonAgentBlocked, plan.AgentGate, "no key"), fail(loop.ReasonAgentBlocked, plan.AgentGate, "no key")},
		"the agent hands it over":        {fail(loop.ReasonAgentEscalated, plan.AgentGate, "look"), fail(loop.ReasonAgentEscalated, plan.AgentGate, "look")},
		"the agent found nothing to do":  {fail(loop.ReasonAgentQuiet, plan.AgentGate, "quiet"), fail(loop.ReasonAgentQuiet, plan.AgentGate, "quiet")},
		"nothing changed in what it did": {fail(loop.ReasonNoChanges, "changes", "none"), fail(loop.ReasonBudget, plan.AgentGate, "nothing is left; what it left does not pass: none")},
	} {
		var turn turnResult
		if got := turn.explainCut(c.a); !reflect.DeepEqual(got, c.a) {
			t.Errorf("%s, not cut: %+v became %+v", name, c.a, got)
		}
		turn.cut = &ending{reason: loop.ReasonBudget, detail: "nothing is left"}
		if got := turn.explainCut(c.a); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v became %+v, want %+v", name, c.a, got, c.want)
		}
	}
}

func TestAFailureSaysUntilWhenNobodyActs(t *testing.T) {
	until := time.Date(2026, 5, 1, 12, 0, 0, 0, time.FixedZone("east", 3600))
	account, own := AccountHold("a"), LoopHold("l")
	for name, c := range map[string]struct {
		hold  *loop.Hold
		reset time.Time
		want  string
	}{
		"nothing is held":                   {nil, time.Time{}, "slow down"},
		"the loop, until a time":            {&loop.Hold{Subject: own, Until: until}, time.Time{}, "slow down; the loop rests until 2026-05-01T11:00:00Z"},
		"the account, until a time":         {&loop.Hold{Subject: account, Until: until}, until, "slow down (until 2026-05-01T11:00:00Z); every loop with this account rests until 2026-05-01T11:00:00Z"},
		"no time, and none was stated":      {&loop.Hold{Subject: account, Detail: "held"}, time.Time{}, "slow down"},
		"no time, and one that is too late": {&loop.Hold{Subject: account, Detail: "held"}, until, "held; every loop with this account rests until somebody resumes it"},
	} {
		if got := holdWords(loop.Failure{Text: "slow down", Reset: c.reset}, c.hold); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	late := loop.Failure{Text: "slow down", Reset: until}
	if got, want := holdText(late, plan.RetryDecision{}), "slow down; the reset that was stated, 2026-05-01T11:00:00Z, is not waited for"; got != want {
		t.Errorf("a reset that is not waited for: %q, want %q", got, want)
	}
	for _, r := range []plan.RetryDecision{{At: until}, {At: until, Hold: true}} {
		if got, want := holdText(late, r), "slow down (until 2026-05-01T11:00:00Z)"; got != want {
			t.Errorf("a reset that is waited for: %q, want %q", got, want)
		}
	}
	if got := holdText(loop.Failure{Text: "no"}, plan.RetryDecision{}); got != "no" {
		t.Errorf("without a reset: %q", got)
	}
}

func TestHowATurnEndedIsSaidInWords(t *testing.T) {
	const took = 1500 * time.Millisecond
	for want, res := range map[string]agent.Result{
		"the agent ended with exit status 3 after 1.5s":                                         {Ended: proc.Exited, Exit: 3},
		"the agent ended with exit status 1 after 1.5s":                                         {Ended: proc.NotStarted, Exit: 1},
		"the agent was stopped after 1.5s, the longest that a turn may take (max_step_timeout)": {Ended: proc.TimedOut, Exit: 143},
		"the agent was killed by signal 9 after 1.5s":                                           {Ended: proc.Signaled, Exit: 137},
		"the agent was stopped with the run after 1.5s":                                         {Ended: proc.Canceled},
		"the agent was stopped after 1.5s: its time was over after 1.5s":                        {Ended: proc.Limited, Limit: proc.TimeLimit},
		"the agent failed after 1.5s: auth: no key":                                             {Ended: proc.Exited, Failure: &loop.Failure{Class: loop.FailureAuth, Text: "no key"}},
	} {
		res.Took = took
		if got := (turnResult{Result: res}).words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	cut := turnResult{Result: agent.Result{Took: took, Failure: &loop.Failure{}}, cut: &ending{detail: "nothing is left"}}
	if got, want := cut.words(), "the agent was stopped after 1.5s: nothing is left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheEndOfATurnIsTheClaimOfAProgramThatReportsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		w    work
		want report.Outcome
	}{
		"a good end":                    {work{turn: turnResult{Result: agent.Result{Ended: proc.Exited}}}, report.Done},
		"a bad end":                     {work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Exit: 1}}}, report.Failed},
		"a driver that speaks for it":   {work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Exit: 1, Claims: true}}}, report.Done},
		"a report":                      {work{report: report.Report{Outcome: report.Blocked}, turn: turnResult{Result: agent.Result{Ended: proc.Exited}}}, report.Blocked},
		"a signal":                      {work{turn: turnResult{Result: agent.Result{Ended: proc.Signaled}}}, ""},
		"a failure that the driver saw": {work{turn: turnResult{Result: agent.Result{Ended: proc.Exited, Failure: &loop.Failure{}}}}, ""},
	} {
		if got := c.w.claim(); got != c.want {
			t.Errorf("%s claims %q, want %q", name, got, c.want)
		}
	}
}
