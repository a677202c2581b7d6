package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/envelope"
	"github.com/pawl-run/pawl/internal/rules/invariant"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/report"
)

var (
	beforeVerify = fault.New("engine.verify.before")
	afterGates   = fault.New("engine.verify.gates.after")
)

// judge runs the gates of a run.
type judge struct {
	*heldRun
	tree      *workTree
	critics   *critics
	work      gate.Work                     // that is judged
	fresh     *runenv.Copy                  // for a gate that is tried again
	records   map[[2]string]loop.TestRecord // of this run's gates, by tree and gate
	toldGates bool                          // gates that files of the scope can rewrite were shown to whoever watches
}

// judgement is what claim and gates say of an attempt, and what a human should know
// of it before it lands.
type judgement struct {
	plan.Attempt
	flags      []string // of a candidate that passed
	onlyJudges bool     // it changes what judges it, and nothing else
	rewritable []string // gates that files of the scope can rewrite, in words
	untraced   bool     // the files of one of them cannot be followed
}

// stands reports whether no gate objects: what was done is proposed, or waits for a
// human.
func (a judgement) stands() bool {
	return a.Verdict == loop.VerdictPass || a.Verdict == loop.VerdictPending
}

// verify judges the candidate: the agent's claim first, then gates and guard
// on a clean copy of exactly that tree. A turn that ran out of time is judged
// like any other, because what it left may be good.
func (j *judge) verify(ctx context.Context, w work) (judgement, error) {
	j.enterPhase(loop.PhaseVerify)
	if err := beforeVerify.Hit(ctx); err != nil {
		return judgement{}, err
	}
	if a, settled := j.judgeClaim(w); settled {
		return judgement{Attempt: w.turn.explainCut(a)}, nil
	}
	a, err := j.judgeGates(ctx, w)
	if err != nil {
		return a, err
	}
	a.Attempt = w.turn.explainCut(a.Attempt)
	return a, afterGates.Hit(ctx)
}

// exitTimeout is the exit status of timeout(1) whose time was over.
const exitTimeout = 124

// explainCut gives an attempt for which nothing was left to spend the reason of the
// cut: that it did not pass says nothing about the step.
func (res turnResult) explainCut(a plan.Attempt) plan.Attempt {
	said := []loop.Reason{loop.ReasonAgentBlocked, loop.ReasonAgentEscalated, loop.ReasonAgentQuiet}
	if res.cut == nil || a.Verdict == loop.VerdictPass || slices.Contains(said, a.Reason) {
		return a
	}
	if a.Gate != plan.AgentGate && a.Words != "" {
		a.Words = "; what it left does not pass: " + a.Words
	} else {
		a.Words = ""
	}
	a.Reason, a.Gate, a.Words = res.cut.reason, plan.AgentGate, res.cut.detail+a.Words
	return a
}

// judgeClaim settles attempts that no gate has to look at.
func (j *judge) judgeClaim(w work) (plan.Attempt, bool) {
	a := plan.Attempt{Verdict: loop.VerdictFail, Gate: plan.AgentGate, Tree: w.candidate.Tree}
	said := cmp.Or(w.report.Reason, w.report.Summary)
	timedOut := w.turn.Ended == proc.TimedOut || w.turn.cut != nil
	failed := w.turn.Failure
	if w.turn.cut != nil {
		failed = nil // It failed because it was cut.
	}
	switch claim := w.claim(); {
	case w.turn.cut != nil && w.turn.unmetered:
		a.Reason, a.Words = w.turn.cut.reason, w.turn.cut.detail
	case w.malformed != nil:
		a.Reason, a.Words = loop.ReasonReportMalformed, "the report in $PAWL_REPORT cannot be read: "+w.malformed.Error()
	case claim == report.Blocked:
		a.Reason, a.Words = loop.ReasonAgentBlocked, said
	case claim == report.Escalate:
		a.Reason, a.Words = loop.ReasonAgentEscalated, cmp.Or(said, "the agent handed it over without a reason")
	case claim == report.Quiet && len(w.changed) == 0:
		a.Reason, a.Words = loop.ReasonAgentQuiet, cmp.Or(said, "the agent found nothing to do")
	case claim == report.Continue && (failed == nil || !failed.Class.IsExternal()):
		a.Reason, a.Words = loop.ReasonContinues, w.ran.words()
	case !w.ran.met() && w.ran.unrun == "":
		a.Reason, a.Gate, a.Words = w.ran.reason(), plan.CommandsGate, w.ran.summary()+"\n"+w.ran.words()
	case failed != nil && (failed.Class.IsExternal() || len(w.changed) == 0 || j.def.Tier == loop.TierReport):
		a.Reason, a.Words = failed.Class, holdWords(*failed, w.turn.hold)
	case failed != nil:
		return a, false // What it left may be good.
	case w.turn.cut != nil && (len(w.changed) == 0 || j.def.Tier == loop.TierReport):
		a.Reason, a.Words = w.turn.cut.reason, w.turn.cut.detail
	case !timedOut && w.turn.Limit != "" && (w.turn.Ended != proc.Exited || w.turn.Exit != 0):
		a.Reason, a.Words = loop.ReasonLimit, "the agent failed: "+runenv.LimitText(w.turn.Limit, w.turn.Took)
	case gate.Missing(loop.GateResult{Exit: w.turn.Exit}) && w.report.Outcome == "" && !w.turn.Claims:
		a.Reason, a.Words = loop.ReasonAgentMissing, fmt.Sprintf("the agent command %q cannot be run (exit status %d)", j.maker.Command, w.turn.Exit)
	case !timedOut && (w.turn.Ended != proc.Exited || w.turn.Exit != 0 && !w.turn.Claims):
		a.Reason, a.Words = loop.ReasonAgentExit, j.current().Acted
		if w.turn.Ended == proc.Exited && w.turn.Exit == exitTimeout {
			a.Reason = loop.ReasonAgentTimeout
		}
		if said != "" {
			a.Words = "the agent says: " + said
		}
	case claim == report.Failed:
		a.Reason, a.Words = loop.ReasonAgentFailed, cmp.Or(said, "the agent says that it failed")
	case j.def.Tier == loop.TierReport && timedOut:
		a.Reason, a.Words = loop.ReasonAgentTimeout, j.current().Acted
	case j.def.Tier == loop.TierReport && j.def.LoopType != "": // The gates judge the report.
		return a, false
	case j.def.Tier == loop.TierReport:
		a.Verdict, a.Reason, a.Gate, a.Words = loop.VerdictPass, loop.ReasonReportedOnly, "", w.report.Summary
	case len(w.changed) == 0 && timedOut:
		a.Reason, a.Words = loop.ReasonAgentTimeout, j.current().Acted
	case len(w.changed) == 0 && j.stepOf(j.current()).Kind == loop.StepReply:
		a.Verdict, a.Reason, a.Gate, a.Words = loop.VerdictPass, loop.ReasonReplied, "", w.report.Summary
	case len(w.changed) == 0 && !w.report.NoChange:
		a.Reason, a.Gate = loop.ReasonNoChanges, plan.ChangesGate
		a.Words = "done was claimed, but nothing changed and the report does not say no_change"
	default:
		return a, false
	}
	return a, true
}

// holdWords is what a failure says, and until when nobody acts because of it
// where it says an end.
func holdWords(f loop.Failure, hold *loop.Hold) string {
	switch {
	case hold == nil, hold.Until.IsZero() && f.Reset.IsZero():
		return turn.FailureText(f)
	case hold.Until.IsZero():
		return hold.Detail + "; " + holdSubject(*hold) + " rests until somebody resumes it"
	}
	return turn.FailureText(f) + "; " + holdSubject(*hold) + " rests until " + hold.Until.UTC().Format(time.RFC3339)
}

// judgeGates runs the gates on the candidate. All of them are run, so that the next
// attempt knows everything that is wrong; only reviewers, which cost tokens, are spared
// once a command has failed.
func (j *judge) judgeGates(ctx context.Context, w work) (a judgement, err error) {
	a.Attempt = plan.Attempt{Verdict: loop.VerdictPass, Reason: loop.ReasonGatesPass, Tree: w.candidate.Tree, Words: w.report.Summary, Found: w.report.Items}
	if err := j.findRewritable(ctx, &a); err != nil {
		return a, err
	}
	var renamed []string
	gates := j.runEnv().Gates()
	results, commandFailed := []loop.GateResult{}, false
	if j.work, err = j.workOf(ctx, w, gates); err != nil {
		return a, err
	}
	err = j.runEnv().Judge(ctx, w.candidate.Commit, false, func(g runenv.Gate, place func() (runenv.Place, error)) (more bool, err error) {
		res, flag, err := j.runGate(ctx, w, g, place)
		if flag != "" {
			renamed = append(renamed, strings.Join(printables([]string{g.Check().Name + ": " + flag}), ""))
		}
		results = append(results, res)
		j.work.Outputs[res.Name] = res.Evidence
		commandFailed = commandFailed || g.Check().Kind == loop.GateCommand && !res.Pass
		next := len(results)
		spared := commandFailed && next < len(gates) && gates[next].Check().Kind == loop.GateReviewer
		return !spared, err
	})
	if err != nil {
		return a, err
	}
	a.judgeBy(j.def.LoopType, gates, results)
	if a.Verdict != loop.VerdictFail {
		a.flags, a.onlyJudges, err = j.collectFlags(ctx, w)
		a.flags = append(a.flags, renamed...)
	}
	switch {
	case err != nil || a.Verdict != loop.VerdictPass:
	case len(w.changed) == 0:
		a.Reason = loop.ReasonNoChange
	case len(gates) == 0:
		a.Reason = loop.ReasonNoGate
	}
	return a, err
}

// workOf is what gates that are not commands judge beside the candidate's tree. Where
// there are none, it is not looked at.
func (j *judge) workOf(ctx context.Context, w work, gates []runenv.Gate) (gate.Work, error) {
	has := func(kind loop.GateKind) bool {
		return slices.ContainsFunc(gates, func(g runenv.Gate) bool { return g.Check().Kind == kind })
	}
	it := j.current()
	of := gate.Work{Iteration: it.N, Tokens: j.stepOf(it).Tokens + it.Usage.ChargedTokens(), Outputs: map[string]string{}, Goal: envelope.Field{Text: j.def.Goal, By: j.def.GoalAuthor()}, Criteria: j.def.Rubric, Claims: j.def.Claims}
	if !has(loop.GateInvariant) && !has(loop.GateReviewer) {
		return of, nil
	}
	files, added, removed, err := j.target.Repo.DiffStat(ctx, j.run.BaseCommit, w.candidate.Commit)
	if err != nil {
		return of, err
	}
	of.Diff = invariant.Diff{Files: files, Added: added, Removed: removed, Paths: w.changed}
	if has(loop.GateInvariant) {
		of.BaseOutputs = map[string]string{}
		for _, g := range gates {
			if g.Check().Kind != loop.GateCommand {
				continue
			}
			r, known, err := j.recordOf(ctx, j.run.BaseTree, g)
			if err == nil && (!known || r.Result == nil) {
				r, err = j.baseTests(ctx, g)
			}
			if err != nil {
				return of, err
			}
			of.BaseOutputs[g.Check().Name] = r.Result.Evidence
		}
	}
	if has(loop.GateReviewer) {
		patch, err := j.target.Repo.Diff(ctx, j.run.BaseCommit, w.candidate.Commit)
		if err != nil {
			return of, err
		}
		of.Changes, of.Said = j.said.Hide(string(patch)), cmp.Or(w.report.Summary, lastOf(j.said.Hide(strings.TrimSpace(w.turn.Message))))
		if of.Makers, err = j.makers(ctx); err != nil {
			return of, err
		}
	}
	return of, nil
}

// makers are the models that did the work which is judged, as the meter saw them: in this
// run, and in earlier ones if it goes on from what they left. There are none if a turn was
// not metered.
func (j *judge) makers(ctx context.Context) (models []string, err error) {
	if j.def.Canary {
		return []string{"no model"}, nil
	}
	var turns []loop.Turn
	err = j.Store.View(ctx, func(r *store.Reader) (err error) {
		if j.tree.restored == "" && j.firing.Rebase == "" {
			turns, err = r.Turns(ctx, j.run.ID)
		} else {
			turns, err = r.StepTurns(ctx, j.run.LoopID, j.current().StepID)
		}
		return err
	})
	for _, t := range turns {
		switch {
		case t.Purpose == loop.PurposeReview, t.Ended == string(proc.NotStarted):
			continue
		case t.Usage.Source != loop.UsageMetered:
			return nil, err
		}
		for _, m := range t.Models {
			if m.Model == "" {
				return nil, err
			}
			models = append(models, m.Model)
		}
	}
	slices.Sort(models)
	return slices.Compact(models), err
}

// judgeBy makes an attempt's verdict of what the gates said. Results may be fewer than
// gates: the last ones were spared.
func (a *judgement) judgeBy(t loop.Determinism, gates []runenv.Gate, results []loop.GateResult) {
	verdict, decided, why := plan.Judge(t, results)
	a.Verdict = verdict
	a.Passed = []string{plan.ChangesGate, plan.ScopeGate}
	var failed []string
	for i, res := range results {
		switch {
		case res.Pass:
			a.Passed = append(a.Passed, res.Name)
		case !res.Pending:
			a.Failed = append(a.Failed, res.Name)
			a.Tests = append(a.Tests, res.Names.Failed...)
			failed = append(failed, gate.Feedback(res))
			if res.Name == decided {
				a.Gate, a.Reason = decided, gates[i].Check().Fail
			}
		}
	}
	switch verdict {
	case loop.VerdictFail:
		a.Words = strings.Join(failed, "\n\n")
	case loop.VerdictPending:
		a.Gate, a.Reason, a.Words = decided, loop.ReasonUndecided, why
	case loop.VerdictPass, loop.VerdictIntended: // The agent's own words stay.
	}
}

// runGate runs one gate of the run and books what it said. The flag is what a
// human should know of a gate that passed. A gate whose result is known needs no place.
func (j *judge) runGate(ctx context.Context, w work, g runenv.Gate, place func() (runenv.Place, error)) (res loop.GateResult, flag string, err error) {
	it := j.current()
	r, known, err := j.recordOf(ctx, it.Tree, g)
	command := g.Check().Kind == loop.GateCommand                                              // What another gate says depends on more than the tree.
	if known = known && command && r.Result != nil && r.Result.Pass && r.Names != nil; known { // A failure may be a flaky test's.
		res = *r.Result
		res.Known, res.Names, res.Took = true, *r.Names, 0
	} else if err == nil {
		var at runenv.Place
		if at, err = place(); err != nil {
			return res, "", err
		}
		out := j.said.Output()
		env := j.runEnv()
		env.Work, env.Ask = j.work, j.critics.ask
		res, err = env.RunGate(ctx, g, at, j.freshCopy, out)
		out.End()
		err = errors.Join(err, j.dropFresh(ctx))
	}
	if err != nil {
		return res, "", err
	}
	if res, flag, err = j.compareWithBase(ctx, w, g, res); err != nil {
		return res, "", err
	}
	res.Evidence, res.Note = j.said.Hide(res.Evidence), j.said.Hide(res.Note)
	if res.Pass && !known && command {
		if _, err = j.saveTests(ctx, it.Tree, g, res); err != nil {
			return res, "", err
		}
	}
	it.Gates = append(it.Gates, res)
	j.run.Spent.Gates += res.Took
	verdict := "pass"
	switch {
	case res.Pending:
		verdict = "pending (" + res.Note + ")"
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
	j.said.Emit(loop.EventGate, res.Name+": "+verdict)
	return res, flag, nil
}

func testsReported(n int) string {
	if n == 1 {
		return "1 test reported"
	}
	return fmt.Sprintf("%d tests reported", n)
}
