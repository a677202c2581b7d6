package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// mostTold bounds the account of what was tried: iterations, and characters of each.
const mostTold, mostToldEach = 12, 300

// question stages the question whether a step that is handed over or given up goes on, with
// an account of what was tried. It is asked once: the step is not worked on before it is
// answered. A step of a loop that is paused is only accounted for.
func (c *cycle) question(ctx context.Context, s *plan.Settlement) error {
	why := strings.TrimSuffix(firstLine(cmp.Or(s.Detail, s.Reason.Sentence())), ".") + ". A yes lets it go on, and the note is the answer that the agent is told."
	if s.Report {
		account, err := c.accountOf(ctx, s.Step)
		if err != nil {
			return err
		}
		c.said.Note("what was tried, the newest last: %s", account)
		why += " Its budget begins anew.\nWhat was tried, the newest last:\n" + account
	}
	if s.Step.State != loop.StepEscalated {
		return nil // Whoever resumes the loop wants it tried again.
	}
	tree := c.run.BaseTree
	if len(c.its) > 0 {
		tree = cmp.Or(c.current().Tree, tree)
	}
	a := c.newQuestion(s.Step.ID, tree, why)
	a.Action.KeepsBudget = !s.Report
	a.Hash = a.BindingHash()
	s.Step.WaitsFor, c.run.Approval = a.ID, a.ID
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.AskApproval(ctx, a) })
	return nil
}

// giveUpSpent gives up the step of a decision the budget of whose life is used up, as an
// attempt does that uses it up.
func (c *cycle) giveUpSpent(ctx context.Context, d plan.Decision) error {
	if d.Spent == nil || c.success != "" {
		return nil
	}
	s := plan.EndLife(*d.Spent, d.Detail)
	s.Step.LoopID, s.Step.RunID = c.run.LoopID, ""
	if c.def.Asks {
		if err := c.question(ctx, &s); err != nil {
			return err
		}
	}
	step := s.Step
	c.steps[step.Key] = step
	if told, ok := c.memory.session.(GivenUpStep); ok {
		told.GaveUp(step)
	}
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, step) })
	return nil
}

// newQuestion makes an approval that asks a person something about a step.
func (c *cycle) newQuestion(stepID, tree, why string) loop.Approval {
	now := c.Now().UTC()
	a := loop.Approval{
		ID: c.NewID("ap"), LoopID: c.run.LoopID, RunID: c.run.ID, StepID: stepID, Definition: c.run.Definition, State: loop.ApprovalOpen, Created: now, Expires: now.Add(ApprovalTime),
		Tree: tree, Action: loop.Action{Kind: loop.ActionQuestion, Why: why},
	}
	a.Hash = a.BindingHash()
	return a
}

// accountOf says what the iterations of a step came to, in all of its runs.
func (c *cycle) accountOf(ctx context.Context, step loop.Step) (string, error) {
	var its []loop.Iteration
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		its, err = r.NewestIterations(ctx, c.run.LoopID, mostTold)
		return err
	})
	if err != nil {
		return "", err
	}
	its = slices.DeleteFunc(its, func(it loop.Iteration) bool { return it.RunID == c.run.ID }) // This run knows its own better.
	slices.Reverse(its)
	its = slices.DeleteFunc(append(its, c.its...), func(it loop.Iteration) bool { return it.StepID != step.ID || it.Verdict == loop.VerdictIntended })
	its = its[max(0, len(its)-mostTold):]
	lines := make([]string, len(its))
	for i, it := range its {
		said := strings.Join(strings.Fields(cmp.Or(it.Feedback, it.Reason.Sentence())), " ")
		if len(said) > mostToldEach {
			said = strings.ToValidUTF8(said[:mostToldEach], "") + "…"
		}
		lines[i] = fmt.Sprintf("- %s: %s; %s", it.Verdict, strings.Join(printables([]string{said}), ""), changedText(it.Changed))
	}
	return strings.Join(lines, "\n"), nil
}

// questionPrefix begins the keys of steps that are questions of a session.
const questionPrefix = "question/"

// readQuestions reads what people have said yes to of what sessions of the loop asked.
func readQuestions(ctx context.Context, r *store.Reader, v *View) error {
	keys := map[string]string{} // by id of the step
	for _, s := range v.Steps {
		if key, asked := strings.CutPrefix(s.Key, questionPrefix); asked {
			keys[s.ID] = key
		}
	}
	if len(keys) == 0 {
		return nil
	}
	list, err := r.Approvals(ctx, v.Loop.ID, loop.ApprovalApproved)
	slices.SortFunc(list, func(a, b loop.Approval) int { return a.Answered.Compare(b.Answered) })
	for _, a := range list {
		if key, asked := keys[a.StepID]; asked {
			v.Answers[key] = strings.TrimSpace(a.Note)
		}
	}
	return err
}

// askFirst asks what a session has to know before anything is worked on, once, and ends the
// run. Nil: it asks nothing.
func (c *cycle) askFirst(ctx context.Context) (*ending, error) {
	s, ok := c.memory.session.(FirstQuestion)
	if !ok {
		return nil, nil
	}
	q := s.Question()
	if q == nil {
		return nil, nil
	}
	end := &ending{outcome: loop.OutcomeWaiting, reason: q.Reason, detail: firstLine(q.Text)}
	if q.Idle {
		end.outcome = loop.OutcomeQuiet
	}
	row := c.steps[questionPrefix+q.Key]
	switch {
	case row.State == loop.StepEscalated && row.WaitsFor != "":
		c.run.Approval = row.WaitsFor
		return end, nil
	case row.State == loop.StepEscalated:
		end.outcome, end.detail = loop.OutcomeQuiet, end.detail+" Nobody said yes; the files of the memory settle it too."
		return end, nil
	}
	row = loop.Step{
		ID: StepID(c.run.LoopID, questionPrefix+q.Key), LoopID: c.run.LoopID, Key: questionPrefix + q.Key, Title: firstLine(q.Text),
		Kind: loop.StepWork, State: loop.StepEscalated,
	}
	a := c.newQuestion(row.ID, c.run.BaseTree, q.Text)
	row.WaitsFor = a.ID
	c.steps[row.Key], c.run.Approval = row, a.ID
	c.stage(
		func(ctx context.Context, rt *store.RunTx) error { return rt.SaveStep(ctx, row) },
		func(ctx context.Context, rt *store.RunTx) error { return rt.AskApproval(ctx, a) },
	)
	return end, nil
}
