package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// conclude gives the iteration its verdict and settles its step. What it
// writes is staged: it joins the next commit, which is the next decision or
// the end of the run, so an iteration is never judged by halves.
func (c *cycle) conclude(ctx context.Context, step loop.Step, w work, a judgement) (*ending, error) {
	c.enterPhase(loop.PhaseConclude)
	rules := c.money.rules()
	a.Tokens, a.Began, a.Ended = c.current().Usage.ChargedTokens(), c.current().Started, c.Now()
	s := plan.Settle(step, a.Attempt, c.run.N, rules)
	if s.Step.State == loop.StepWaiting {
		s.Step.WaitsFor = c.NewID("ap") // Asked when the run ends and its effects are done.
	}
	it := c.current()
	it.Verdict, it.Reason, it.Feedback, it.Ended = a.Verdict, a.Reason, feedbackOf(a.Attempt), c.endOf(it)
	if a.Verdict != loop.VerdictPass && a.Reason != loop.ReasonContinues && (a.Gate == plan.AgentGate || a.Reason == loop.ReasonNoChanges) { // Those who watch have seen what a gate said.
		c.said.Note("iteration %d: %s", it.N, a.Reason.Explain(strings.Join(printables([]string{firstLine(a.Words)}), "")))
	}
	c.run.Summary = cmp.Or(w.report.Summary, c.run.Summary)
	c.run.Cause.Item = cmp.Or(w.report.Item, c.run.Cause.Item)
	if w.report.Readiness != nil {
		c.run.Readiness, c.assessed = *w.report.Readiness, true
	}
	retry := s.Again && c.worked < rules.MaxIterations && a.Reason != loop.ReasonAgentMissing && !missingGate(it.Gates)
	if retry {
		s.Step.State = loop.StepClaimed // It stays ours for the next iteration.
	} else {
		c.settled[step.Key] = true
	}
	if len(w.changed) > 0 && !a.stands() {
		c.tree.kept = ""
	}
	if c.def.Asks && (s.Report || s.Outcome == loop.OutcomeEscalated) {
		if err := c.question(ctx, &s); err != nil {
			return nil, err
		}
	}
	if err := c.recordIteration(ctx, s, w, a); err != nil {
		return nil, err
	}
	return c.endAfter(s, a.Attempt, retry, w.turn.cut != nil, rules.MaxIterations), nil
}

// recordIteration stages the rows of the iteration and lets the protocol add its own.
func (c *cycle) recordIteration(ctx context.Context, s plan.Settlement, w work, a judgement) error {
	res := Result{Run: c.run, Iteration: *c.current(), Settlement: s, Said: w.said}
	if a.stands() {
		if s.Step.Kind != loop.StepReply {
			c.items++
		}
		if len(w.changed) > 0 && c.def.Tier != loop.TierReport {
			res.Proposal = c.proposalEffect(s.Step, w, a)
		}
	}
	changes, effects := c.memory.session.Record(res)
	if err := loop.CheckChanges(changes); err != nil {
		return fmt.Errorf("record iteration %d: %w", res.Iteration.N, err)
	}
	for _, e := range effects {
		if e.Kind != effect.KindPropose {
			continue
		}
		if s.Step.State == loop.StepWaiting {
			break // A human decides.
		}
		landing, err := c.landUnattended(ctx, w, a, e)
		if err != nil {
			return err
		}
		effects = append(effects, landing...)
		break
	}
	step, it := s.Step, *c.current()
	c.steps[step.Key] = step
	c.stage(
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, step) },
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveIteration(ctx, it) },
		c.recordChanges(changes),
	)
	c.outbox.request(effects...)
	for _, e := range effects {
		if e.Kind == effect.KindPropose {
			c.tree.kept, c.run.Branch = w.candidate.Tree, e.Args[effect.ArgBranch]
		}
	}
	if a.stands() {
		c.success = successOf(c.def.Tier, effects, c.success)
		if s.Step.State == loop.StepWaiting {
			c.success = loop.OutcomeWaiting
		}
	}
	return nil
}

// firstLine is the first line of a longer text; the iteration keeps all of it.
func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		line = strings.TrimSuffix(line, ":")
	}
	return line
}

// feedbackOf is what was gathered about an attempt, in words.
func feedbackOf(a plan.Attempt) string {
	if a.Verdict == loop.VerdictPass {
		return cmp.Or(a.Words, a.Reason.Sentence())
	}
	return a.Words
}

func missingGate(gates []loop.GateResult) bool {
	for _, g := range gates {
		if !g.Pass && (g.Exit == 126 || g.Exit == 127) {
			return true
		}
	}
	return false
}

// proposalEffect is the effect that puts the gated tree on a branch of its own.
func (c *cycle) proposalEffect(step loop.Step, w work, a judgement) *loop.EffectRequest {
	branch := branchOf(c.target.Loop.Name, c.number())
	if c.items > 1 {
		branch += fmt.Sprintf("-%d", c.items)
	}
	title := strings.TrimSpace(strings.SplitN(cmp.Or(w.report.Summary, step.Title), "\n", 2)[0])
	msg := fmt.Sprintf("%s\n\nPawl-Loop: %s\nPawl-Run: %s#%d %s\nPawl-Tree: %s\n",
		title, c.target.Loop.Name, c.target.Loop.Name, c.run.N, c.run.ID, w.candidate.Tree)
	e := &loop.EffectRequest{
		Kind: effect.KindPropose, Key: c.run.ID + "/" + branch,
		Args: map[string]string{
			effect.ArgBranch: branch, effect.ArgTree: w.candidate.Tree, effect.ArgParent: c.run.BaseCommit,
			effect.ArgMessage: msg, effect.ArgWhen: c.Now().UTC().Format(time.RFC3339), effect.ArgBase: c.baseBranch,
			effect.ArgFlags: strings.Join(slices.Concat(a.flags, a.rewritable, stackFlag(c.stack)), "\n"),
		},
	}
	if len(c.stack) > 0 {
		e.Args[effect.ArgStack] = effect.EncodeStack(c.stack)
	}
	return e
}

// refuseChanges ends the run because of paths that may not be changed. The work is
// kept in a snapshot, and nothing of it goes anywhere.
func (c *cycle) refuseChanges(ctx context.Context, step loop.Step, w work) (*ending, error) {
	c.enterPhase(loop.PhaseConclude)
	words, reason := w.whyRefused()
	a := judgement{Attempt: plan.Attempt{Verdict: loop.VerdictFail, Reason: reason, Gate: plan.ScopeGate, Tree: w.candidate.Tree, Words: words}}
	a.Tokens, a.Ended = c.current().Usage.ChargedTokens(), c.Now()
	s := plan.Settle(step, a.Attempt, c.run.N, plan.DefinitionRules(c.def))
	it := c.current()
	it.Verdict, it.Reason, it.Feedback, it.Ended = a.Verdict, a.Reason, words, c.endOf(it)
	c.settled[step.Key] = true
	if err := c.recordIteration(ctx, s, w, a); err != nil {
		return nil, err
	}
	return &ending{outcome: loop.OutcomeRefused, reason: reason, detail: words}, nil
}

// whyRefused names the paths that may not be changed, with their rules.
func (w work) whyRefused() (string, loop.Reason) {
	if w.leaked != nil {
		return "the change holds a secret: " + quoteList(w.leaked), loop.ReasonSecret
	}
	return "changes outside of what the definition allows: " + quoteList(w.refused), loop.ReasonScope
}

// printables escapes what would break a line, move a cursor or hide a character:
// names of files are an agent's to choose. What is long is cut.
func printables(list []string) []string {
	const longest = 300
	shown := make([]string, len(list))
	for i, s := range list {
		if strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) || c == utf8.RuneError }) {
			s = strings.Trim(strconv.QuoteToASCII(s), `"`)
		}
		if len(s) > longest {
			s = strings.ToValidUTF8(s[:longest/2], "") + "…" + strings.ToValidUTF8(s[len(s)-longest/2:], "")
		}
		shown[i] = s
	}
	return shown
}

// quoteList puts a list on one line, and counts what would make it too long.
func quoteList(list []string) string {
	const shown = 20
	list = printables(list)
	if len(list) > shown {
		list = append(list[:shown:shown], fmt.Sprintf("and %d more", len(list)-shown))
	}
	return strings.Join(list, "; ")
}
