package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A run whose memory and work are commits of its branch may leave it to a person to push
// them. The question names the newest commit. It stays open while later runs work on: a yes
// pushes up to that commit, and not what came after it.

// askPush asks whether what the run has left on its branch may be pushed, unless that was
// asked already or a person has answered: a yes that did not come about stays valid.
// Questions about commits that the branch does not have any more, or that the remote has by
// now, are void.
func (c *cycle) askPush(ctx context.Context, effects []loop.Effect) error {
	var asking, pushed loop.Effect
	for _, e := range effects {
		switch {
		case e.State != loop.EffectDone:
		case e.Kind == effect.KindMemoryCommit && e.Args[effect.ArgAsks] != "":
			asking = e
		case e.Kind == effect.KindBranchPush || e.Kind == effect.KindMemoryPush:
			pushed = e
		}
	}
	by := cmp.Or(asking.Kind, pushed.Kind)
	if by == "" || c.run.Outcome == loop.OutcomePaused || c.run.Outcome == loop.OutcomeInterrupted {
		return nil
	}
	var known []loop.Approval
	err := c.Store.View(ctx, func(r *store.Reader) (err error) {
		known, err = r.Approvals(ctx, c.run.LoopID, loop.ApprovalOpen, loop.ApprovalLanding, loop.ApprovalRejected)
		return err
	})
	if err != nil {
		return err
	}
	known = slices.DeleteFunc(known, func(a loop.Approval) bool {
		return a.Action.Kind != loop.ActionPush || a.State != loop.ApprovalRejected && !a.Pending(c.Now())
	})
	for _, a := range known {
		why, err := stalePush(ctx, c.target.Repo, a.Action)
		if err != nil {
			return err
		}
		if why != "" && a.State == loop.ApprovalOpen {
			c.stage(func(ctx context.Context, rt *store.RunTx) error {
				_, err := rt.VoidApproval(ctx, a.ID, why)
				return err
			})
		}
	}
	if asking.Kind == "" {
		return nil
	}
	act, err := c.pushOf(ctx, asking)
	if err != nil || act.Kind == "" {
		return err
	}
	for _, a := range known {
		if a.Action.Commit != act.Commit {
			continue
		}
		if a.State == loop.ApprovalOpen {
			c.waitForPush(a)
		}
		return nil
	}
	tree, err := c.target.Repo.TreeOf(ctx, act.Commit)
	if err != nil {
		return err
	}
	a := c.newQuestion(StepID(c.run.LoopID, "push/"+act.Base), tree, "")
	a.Action = act
	a.Hash = a.BindingHash()
	c.said.Note("approval %s is open: approving it %s", a.ID, approvalDoes(act))
	c.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.AskApproval(ctx, a) })
	c.waitForPush(a)
	return nil
}

// waitForPush lets a run that did its work end with the question. Any other one keeps its
// outcome.
func (c *cycle) waitForPush(a loop.Approval) {
	c.run.Approval = cmp.Or(c.run.Approval, a.ID)
	if c.run.Outcome == loop.OutcomeDone {
		c.run.Outcome, c.run.Reason, c.run.Detail = loop.OutcomeWaiting, loop.ReasonApproval, joinWords(c.run.Detail, "a yes "+approvalDoes(a.Action))
	}
}

// pushOf is the push that a person is asked about; the zero Action: the remote has it all, or
// there is no remote.
func (c *cycle) pushOf(ctx context.Context, e loop.Effect) (act loop.Action, err error) {
	base, remote := e.Args[effect.ArgBase], e.Args[effect.ArgRemote]
	_, err = c.target.Repo.RemoteURL(remote)
	if errors.Is(err, loop.ErrNotFound) {
		c.said.Note("not pushed: the repository has no remote %s", remote)
		return act, nil
	}
	if err != nil {
		return act, err
	}
	act = loop.Action{Kind: loop.ActionPush, Why: c.run.Summary, Base: base, Remote: remote, Commit: e.Result[effect.ResultCommit], Onto: e.Args[effect.ArgOnto]}
	if act.Commit == "" { // This run has made none, and earlier ones did.
		if act.Commit, _, err = c.target.Repo.Ref(ctx, effect.BranchRef(base)); err != nil {
			return act, err
		}
	}
	seen, there, err := c.target.Repo.Ref(ctx, effect.TrackingRef(remote, base))
	if err != nil {
		return act, err
	}
	if there {
		has, err := c.target.Repo.Contains(ctx, seen, act.Commit)
		if err != nil || has {
			return loop.Action{}, err
		}
		act.Onto = seen
	}
	if len(c.runEnv().Gates()) == 0 {
		act.Flags = []string{"no gate has judged it"}
	}
	return act, nil
}

// stalePush says why a push would not do what was shown any more; empty: it would.
func stalePush(ctx context.Context, repo *git.Repo, act loop.Action) (string, error) {
	tip, ok, err := repo.Ref(ctx, effect.BranchRef(act.Base))
	if err != nil || !ok {
		return "branch " + act.Base + " is gone", err
	}
	held, err := repo.Contains(ctx, tip, act.Commit)
	if err != nil && !errors.Is(err, loop.ErrNotFound) {
		return "", err
	}
	if !held {
		return fmt.Sprintf("%s does not have %s any more", act.Base, shortHash(act.Commit)), nil
	}
	seen, there, err := repo.Ref(ctx, effect.TrackingRef(act.Remote, act.Base))
	if err != nil || !there {
		return "", err
	}
	has, err := repo.Contains(ctx, seen, act.Commit)
	if err != nil && !errors.Is(err, loop.ErrNotFound) {
		return "", err
	}
	if has {
		return fmt.Sprintf("%s/%s has it already", act.Remote, act.Base), nil
	}
	return "", nil
}
