package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/confine/workspace"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// ApprovalTime is how long an approval waits for an answer.
const ApprovalTime = 7 * 24 * time.Hour

// askHuman records that the agent wants something that only a human may allow. The
// run ends: nothing that waits holds a worker, a lease or a tree. The step is
// taken up again by the run that the answer fires.
func (c *cycle) askHuman(ctx context.Context, step loop.Step, w work, ask agent.Ask) (*ending, error) {
	c.enterPhase(loop.PhaseConclude)
	it := c.current()
	err := c.tree.keepSnapshot(ctx)
	if errors.Is(err, workspace.ErrIncomplete) {
		err = c.tree.setAside(err)
	}
	if err != nil {
		return nil, err
	}
	kept, err := c.tree.keepAsked(ctx, it.Tree, cmp.Or(c.run.Snapshot, step.Snapshot))
	if err != nil {
		return nil, err
	}
	now := c.Now().UTC()
	a := loop.Approval{
		ID: c.NewID("ap"), LoopID: c.run.LoopID, RunID: c.run.ID, StepID: step.ID, Action: loop.Action{Kind: loop.ActionCommand, Argv: ask.Argv, Why: ask.Why},
		Tree: it.Tree, Definition: c.run.Definition, State: loop.ApprovalOpen, Created: now, Expires: now.Add(ApprovalTime),
	}
	a.Hash = a.BindingHash()
	step.State, step.WaitsFor, step.Snapshot, step.RunID = loop.StepWaiting, a.ID, kept, ""
	step.Attempts++
	step.Tokens += it.Usage.ChargedTokens()
	step.Feedback = fmt.Sprintf("approval %s was asked for: %s", a.ID, strings.Join(ask.Argv, " "))
	if words := w.ran.words(); words != "" {
		step.Feedback += "\n" + words
	}
	it.Verdict, it.Reason, it.Feedback, it.Ended = loop.VerdictPending, loop.ReasonApproval, step.Feedback, c.endOf(it)
	c.settled[step.Key] = true
	c.run.Approval = a.ID
	settled := plan.Settlement{Step: step, Outcome: loop.OutcomeWaiting, Reason: loop.ReasonApproval}
	if err := c.recordIteration(ctx, settled, w, judgement{}); err != nil {
		return nil, err
	}
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.AskApproval(ctx, a) })
	return &ending{outcome: loop.OutcomeWaiting, reason: loop.ReasonApproval, detail: firstLine(step.Feedback)}, nil
}

// readRejected reads which commands of a step a person said no to. That is remembered as long
// as the step lives, and on a board with the task, whoever has it.
func (h *heldRun) readRejected(ctx context.Context, step loop.Step) error {
	h.rejected = nil
	return h.Store.View(ctx, func(r *store.Reader) error {
		in, ids := h.run.LoopID, []string{step.ID}
		if h.target.Loop.Protocol == loop.ProtocolBoard {
			of, err := r.StepsOfTask(ctx, h.target.Loop.WorkspaceID, step.Key)
			if err != nil {
				return err
			}
			in, ids = h.target.Loop.WorkspaceID, append(ids, of...)
		}
		asked, err := r.ApprovalsOfSteps(ctx, in, ids...)
		h.rejected = nil
		for _, a := range asked {
			if a.Action.Kind == loop.ActionCommand && a.State == loop.ApprovalRejected {
				h.rejected = append(h.rejected, policy.Rejection{Argv: a.Action.Argv, By: a.By, Note: a.Note})
			}
		}
		return err
	})
}

func (h *heldRun) isRejected(argv []string) bool {
	return slices.ContainsFunc(h.rejected, func(r policy.Rejection) bool { return slices.Equal(r.Argv, argv) })
}

func answerFiring(id string) Firing {
	return Firing{Trigger: triggerApproval, Key: approvalKey + id, Approval: id}
}

// Heard is the firing of a run that takes up an answer which was recorded before.
func Heard(id string, by loop.Actor) Firing {
	f := answerFiring(id)
	f.By = by
	return f
}

// Runs that approvals fire, and what their keys begin with.
const (
	triggerApproval = loop.TriggerApproval
	approvalKey     = "approval/"
	rebaseKey       = "rebase/"
)

// Yes is the firing that says yes to an approval and does it. The answer counts
// only if the run is fired: while another run of the loop is live, or its
// switch is set, the approval stays open.
func Yes(id string, by loop.Answer) Firing {
	f := answerFiring(id)
	f.By = by.Actor()
	by.Yes = true
	f.Answer = &by
	return f
}

// Try is the firing that tries once more to land what a person said yes to before. The id
// tells it from other tries.
func Try(id, try string, by loop.Actor) Firing {
	f := answerFiring(id)
	f.Key += "/" + try
	f.By, f.Landing = by, true
	return f
}

// Changes is the firing that answers an approval with what is to be different, and goes
// on with its step, of the given key, from the work that was proposed.
func Changes(id, step string, by loop.Answer) Firing {
	f := answerFiring(id)
	f.By = by.Actor()
	by.Yes, by.Changes = false, true
	f.Answer, f.Overrides.Step = &by, step
	return f
}

// Again is the firing that makes the proposal of a void approval once more, on
// a base that has moved.
func Again(id string, by loop.Answer) Firing {
	return Firing{Trigger: triggerApproval, Key: rebaseKey + id, Rebase: id, By: by.Actor()}
}

// firingOf is the firing that a queued run was made of.
func firingOf(r loop.Run) Firing {
	f := Firing{Trigger: r.Trigger, Planned: r.Planned, Event: r.Event, By: r.By, Key: r.Key, Request: r.Request, Overrides: r.Overrides, Approval: r.Approval}
	if _, try, _ := strings.Cut(strings.TrimPrefix(r.Key, approvalKey), "/"); r.Trigger == triggerApproval && try != "" {
		f.Landing = true
	}
	if void, again := strings.CutPrefix(r.Key, rebaseKey); again && r.Trigger == triggerApproval {
		f.Rebase = void
	}
	return f
}

// AnswerOf is the id of the approval that a run was fired for, or nothing.
func AnswerOf(r loop.Run) string {
	if r.Trigger != triggerApproval {
		return ""
	}
	_, id, _ := strings.Cut(r.Key, "/")
	id, _, _ = strings.Cut(id, "/")
	return id
}

// Answer records what a human said to an approval, once. The caller then fires
// a run of the loop with the key that it returns; firing twice is harmless.
func (e *Engine) Answer(ctx context.Context, id string, by loop.Answer) (loop.Approval, Firing, error) {
	var a loop.Approval
	err := e.Store.Update(ctx, func(tx *store.Tx) (err error) {
		a, err = recordAnswer(ctx, tx, id, by)
		return err
	})
	return a, answerFiring(id), err
}

// answerQuestion lets the step that waits for an answer be worked on again, or leaves it to
// people.
func answerQuestion(ctx context.Context, tx *store.Tx, a loop.Approval) error {
	steps, err := tx.Steps(ctx, a.LoopID)
	for _, s := range steps {
		switch {
		case s.WaitsFor != a.ID || s.State != loop.StepEscalated:
		case a.State == loop.ApprovalRejected:
			return tx.CloseQuestion(ctx, a.ID)
		default:
			again := s.AsNew()
			if a.Action.KeepsBudget {
				if again = s.Retried(); !again.Begun.IsZero() { // The time of the question is not the agent's.
					again.Begun = again.Begun.Add(max(0, tx.Now().Sub(s.Updated)))
				}
			}
			again.Snapshot = s.Snapshot
			if a.Note != "" {
				again.Feedback = a.By + " answers: " + a.Note
			}
			_, err := tx.ReopenStep(ctx, again)
			return err
		}
	}
	return err
}

func recordAnswer(ctx context.Context, tx *store.Tx, id string, by loop.Answer) (loop.Approval, error) {
	if err := tx.AnswerApproval(ctx, id, by); err != nil {
		return loop.Approval{}, err
	}
	a, err := tx.Approval(ctx, id)
	if err != nil {
		return a, err
	}
	if a.State == loop.ApprovalApproved {
		if err := tx.Accept(ctx, loop.Acceptance{LoopID: a.LoopID, Digest: a.Definition, How: loop.AcceptedApproval, By: by.Actor()}); err != nil {
			return a, err
		}
	}
	if a.Action.Kind == loop.ActionQuestion {
		if err := answerQuestion(ctx, tx, a); err != nil {
			return a, err
		}
	} else if a.State == loop.ApprovalRejected && !a.Changes && a.Action.Kind != loop.ActionCommand {
		// The next run works on what was rejected, and knows why.
		if err := tx.ReopenRejected(ctx, a.ID, a.Action.BranchRef(), cmp.Or(a.Note, a.By+" rejected the result")); err != nil {
			return a, err
		}
	}
	if a.State == loop.ApprovalRejected {
		if err := voidStacked(ctx, tx, a, fmt.Sprintf("it builds on %s, which %s rejected", a.Action.Branch, a.By)); err != nil {
			return a, err
		}
	}
	return a, tx.Link(ctx, a.LoopID, loop.LinkApproval, a.RunID, map[string]string{"id": a.ID, "hash": a.Hash, "state": string(a.State), "by": a.By})
}
