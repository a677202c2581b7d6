package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/fault"
	"github.com/pawl-run/pawl/internal/gate"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/report"
	"github.com/pawl-run/pawl/internal/runenv"
	"github.com/pawl-run/pawl/internal/turn"
)

var (
	beforeVerify = fault.New("engine.verify.before")
	afterGates   = fault.New("engine.verify.gates.after")
)

// verify judges the candidate: the agent's claim first, then gates and guard
// on a clean copy of exactly that tree. A turn that ran out of time is judged
// like any other, because what it left may be good.
func (c *cycle) verify(ctx context.Context, w work) (plan.Attempt, error) {
	c.enter(loop.PhaseVerify)
	if err := beforeVerify.Hit(ctx); err != nil {
		return plan.Attempt{}, err
	}
	if a, settled := c.judgeClaim(w); settled {
		return c.forCut(a), nil
	}
	a, err := c.judgeGates(ctx, w)
	if err != nil {
		return a, err
	}
	return c.forCut(a), afterGates.Hit(ctx)
}

// forCut is an attempt for which nothing was left to spend: that it did not pass
// says nothing about the step.
func (c *cycle) forCut(a plan.Attempt) plan.Attempt {
	said := []loop.Reason{loop.ReasonAgentBlocked, loop.ReasonAgentEscalated, loop.ReasonAgentQuiet}
	if c.cut == nil || a.Verdict == loop.VerdictPass || slices.Contains(said, a.Reason) {
		return a
	}
	if a.Gate != plan.Agent && a.Words != "" {
		a.Words = "; what it left does not pass: " + a.Words
	} else {
		a.Words = ""
	}
	a.Reason, a.Gate, a.Words = c.cut.reason, plan.Agent, c.cut.detail+a.Words
	return a
}

// judgeClaim settles attempts that no gate has to look at.
func (c *cycle) judgeClaim(w work) (plan.Attempt, bool) {
	a := plan.Attempt{Verdict: loop.VerdictFail, Gate: plan.Agent, Tree: w.candidate.Tree}
	said := or(w.report.Reason, w.report.Summary)
	timedOut := w.turn.Ended == proc.TimedOut || c.cut != nil
	failed := w.turn.Failure
	if c.cut != nil {
		failed = nil // It failed because it was cut.
	}
	switch claim := w.claim(); {
	case c.cut != nil && c.cutUnmetered:
		a.Reason, a.Words = c.cut.reason, c.cut.detail
	case w.malformed != nil:
		a.Reason, a.Words = loop.ReasonReportMalformed, "the report in $PAWL_REPORT cannot be read: "+w.malformed.Error()
	case claim == report.Blocked:
		a.Reason, a.Words = loop.ReasonAgentBlocked, said
	case claim == report.Escalate:
		a.Reason, a.Words = loop.ReasonAgentEscalated, or(said, "the agent handed it over without a reason")
	case claim == report.Quiet && len(w.changed) == 0:
		a.Reason, a.Words = loop.ReasonAgentQuiet, or(said, "the agent found nothing to do")
	case failed != nil && (failed.Class.Outside() || len(w.changed) == 0 || c.def.Tier == loop.TierReport):
		a.Reason, a.Words = failed.Class, c.failureText(*failed)
	case failed != nil:
		return a, false // What it left may be good.
	case c.cut != nil && (len(w.changed) == 0 || c.def.Tier == loop.TierReport):
		a.Reason, a.Words = c.cut.reason, c.cut.detail
	case !timedOut && w.turn.Limit != "" && (w.turn.Ended != proc.Exited || w.turn.Exit != 0):
		a.Reason, a.Words = loop.ReasonLimit, "the agent failed: "+runenv.LimitText(w.turn.Limit, w.turn.Took)
	case gate.Missing(loop.GateResult{Exit: w.turn.Exit}) && w.report.Outcome == "" && !w.turn.Claims:
		a.Reason, a.Words = loop.ReasonAgentMissing, fmt.Sprintf("the agent command %q cannot be run (exit status %d)", c.actor.Command, w.turn.Exit)
	case !timedOut && (w.turn.Ended != proc.Exited || w.turn.Exit != 0 && !w.turn.Claims):
		a.Reason, a.Words = loop.ReasonAgentExit, c.current().Acted
		if said != "" {
			a.Words = "the agent says: " + said
		}
	case claim == report.Failed:
		a.Reason, a.Words = loop.ReasonAgentFailed, or(said, "the agent says that it failed")
	case c.def.Tier == loop.TierReport && timedOut:
		a.Reason, a.Words = loop.ReasonAgentTimeout, c.current().Acted
	case c.def.Tier == loop.TierReport:
		a.Verdict, a.Reason, a.Gate, a.Words = loop.VerdictPass, loop.ReasonReportedOnly, "", w.report.Summary
	case len(w.changed) == 0 && timedOut:
		a.Reason, a.Words = loop.ReasonAgentTimeout, c.current().Acted
	case len(w.changed) == 0 && c.replying():
		a.Verdict, a.Reason, a.Gate, a.Words = loop.VerdictPass, loop.ReasonReplied, "", w.report.Summary
	case len(w.changed) == 0 && !w.report.NoChange:
		a.Reason, a.Gate = loop.ReasonNoChanges, "changes"
		a.Words = "done was claimed, but nothing changed and the report does not say no_change"
	default:
		return a, false
	}
	return a, true
}

// failureText is what a failure says, and until when nobody acts because of it
// where it says an end.
func (c *cycle) failureText(f loop.Failure) string {
	switch {
	case c.hold == nil, c.hold.Until.IsZero() && f.Reset.IsZero():
		return turn.FailureText(f)
	case c.hold.Until.IsZero():
		return c.hold.Detail + "; " + holder(*c.hold) + " rests until somebody resumes it"
	}
	return turn.FailureText(f) + "; " + holder(*c.hold) + " rests until " + c.hold.Until.UTC().Format(time.RFC3339)
}

// replying reports whether the step is an answer, which changes no files.
func (c *cycle) replying() bool {
	return c.stepOf(c.current()).Kind == loop.StepReply
}

// judgeGates runs verify and then guard. The guard is spared when the gate has
// failed already; both must pass.
func (c *cycle) judgeGates(ctx context.Context, w work) (plan.Attempt, error) {
	a := plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Tree: w.candidate.Tree, Words: w.report.Summary}
	if err := c.sayRewritable(ctx); err != nil {
		return a, err
	}
	var renamed []string
	err := c.runEnv().Judge(ctx, w.candidate.Commit, false, func(g runenv.Gate, at runenv.Place) (more bool, err error) {
		res, flag, err := c.runGate(ctx, w, g, at)
		if flag != "" {
			renamed = append(renamed, strings.Join(printables([]string{g.Check().Name + ": " + flag}), ""))
		}
		if err == nil && !res.Pass {
			a.Verdict, a.Reason, a.Gate, a.Words = loop.VerdictFail, g.Check().Fail, g.Check().Name, gate.Feedback(res)
		}
		return res.Pass, err
	})
	if err == nil && a.Verdict == loop.VerdictPass {
		c.flags, err = c.warn(ctx, w)
		c.flags = append(c.flags, renamed...)
	}
	switch {
	case err != nil || a.Verdict == loop.VerdictFail:
	case len(w.changed) == 0:
		a.Reason = loop.ReasonNoChange
	case len(c.runEnv().Gates()) == 0:
		a.Reason = loop.ReasonNoGate
	}
	return a, err
}

// runGate runs one gate of the run and books what it said. The flag is what a
// human should know of a gate that passed.
func (c *cycle) runGate(ctx context.Context, w work, g runenv.Gate, at runenv.Place) (res loop.GateResult, flag string, err error) {
	it := c.current()
	r, known, err := c.recorded(ctx, it.Tree, g)
	if known = known && r.Result != nil && r.Result.Pass && r.Names != nil; known { // A failure may be a flaky test's.
		res = *r.Result
		res.Known, res.Names, res.Took = true, *r.Names, 0
	} else if err == nil {
		out := c.said.Output()
		res, err = c.runEnv().RunGate(ctx, g, at, c.freshCopy, out)
		out.End()
		err = errors.Join(err, c.dropFresh(ctx))
	}
	if err != nil {
		return res, "", err
	}
	if res, flag, err = c.ratchet(ctx, w, g, res); err != nil {
		return res, "", err
	}
	res.Evidence, res.Note = c.said.Hide(res.Evidence), c.said.Hide(res.Note)
	if res.Pass && !known {
		if _, err = c.saveTests(ctx, it.Tree, g, res); err != nil {
			return res, "", err
		}
	}
	it.Gates = append(it.Gates, res)
	c.run.Spent.Gates += res.Took
	verdict := "pass"
	switch {
	case !res.Pass && res.Note != "":
		verdict = "fail (" + res.Note + ")"
	case !res.Pass:
		verdict = fmt.Sprintf("fail (exit %d)", res.Exit)
	case res.Tests != nil:
		verdict = "pass (" + testsReported(res.Tests.Ran()) + ")"
	}
	if res.Known {
		verdict += ", known of this tree"
	}
	c.said.Emit(loop.EventGate, res.Name+": "+verdict)
	return res, flag, nil
}

func testsReported(n int) string {
	if n == 1 {
		return "1 test reported"
	}
	return fmt.Sprintf("%d tests reported", n)
}
