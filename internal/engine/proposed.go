package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/store"
)

// proposal is what a run proposed and nobody has answered yet.
type proposal struct {
	approval loop.Approval
	asked    loop.Run
	steps    []string // ids of those whose work it holds
}

// words say what the proposal is and how it is answered.
func (p proposal) words(name string) string {
	run := fmt.Sprintf("%s#%d", name, p.asked.N)
	return fmt.Sprintf("%s has no answer yet: pawl approve %s, or pawl reject %s", p.approval.Action.Branch, run, run)
}

// readProposals finds the proposals of the loop that a yes could still land, newest
// first. One that another agent or model made keeps nothing from being worked on
// if a person names who acts in this run: that asks for another attempt.
func (c *cycle) readProposals(ctx context.Context) error {
	var open []proposal
	err := c.Store.View(ctx, func(r *store.Reader) error {
		open = nil
		list, err := r.Approvals(ctx, c.run.LoopID, loop.ApprovalOpen)
		if err != nil {
			return err
		}
		for _, a := range list {
			if a.Action.Kind == loop.ActionCommand || !c.Now().Before(a.Expires) {
				continue
			}
			asked, err := r.Run(ctx, a.RunID)
			if err != nil {
				return err
			}
			its, err := r.Iterations(ctx, a.RunID)
			if err != nil {
				return err
			}
			open = append(open, proposal{a, asked, append(passedSteps(its), a.StepID)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.proposals = nil
	for _, p := range open {
		if o, before := c.run.Overrides, p.asked.Overrides; o.Agent+o.AgentCommand+o.Model != "" &&
			(o.Agent != before.Agent || o.AgentCommand != before.AgentCommand || o.Model != before.Model) {
			continue
		}
		why, err := Stale(ctx, c.t.Repo, p.approval, p.asked.Overrides.Apply(c.t.Definition).WithDefaults())
		if err != nil {
			return err
		}
		if why == "" {
			c.proposals = append(c.proposals, p)
		}
	}
	return nil
}

// proposed says which proposal keeps a step from being worked on: one of its own,
// or any if it depends on all of them.
func (c *cycle) proposed(step loop.Step, depends bool) string {
	id := or(step.ID, stepID(c.run.LoopID, step.Key))
	for _, p := range c.proposals {
		if slices.Contains(p.steps, id) {
			return "its proposal " + p.words(c.t.Loop.Name)
		}
	}
	if !depends || len(c.proposals) == 0 {
		return ""
	}
	more := ""
	switch n := len(c.proposals) - 1; n {
	case 0:
	case 1:
		more = "; 1 more has none either"
	default:
		more = fmt.Sprintf("; %d more have none either", n)
	}
	return "it depends on other steps, and the proposal " + c.proposals[0].words(c.t.Loop.Name) + more
}

// passedSteps are the ids of the steps that a run finished.
func passedSteps(its []loop.Iteration) []string {
	var ids []string
	for _, it := range its {
		if it.Verdict == loop.VerdictPass {
			ids = append(ids, it.StepID)
		}
	}
	return ids
}

// Stale says why a yes to a proposal would not do what was asked, because something
// has changed since; it is empty if nothing has. A base that moved is no reason: the
// change is made again there. Def is the definition as the run that asked would
// have it now.
func Stale(ctx context.Context, repo *git.Repo, a loop.Approval, def loop.Definition) (string, error) {
	act := a.Action
	if a.Hash != a.Binding() {
		return "its hash is not that of what it shows", nil
	}
	tip, ok, err := repo.Ref(ctx, "refs/heads/"+act.Branch)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "branch " + act.Branch + " is gone", nil
	case tip != act.Commit:
		return fmt.Sprintf("branch %s was moved to %s after its gates ran", act.Branch, short(tip)), nil
	case def.Digest() != a.Definition:
		return "the definition was changed after the question was asked", nil
	}
	base, ok, err := repo.Ref(ctx, "refs/heads/"+act.Base)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "branch " + act.Base + " is gone", nil
	}
	held, err := repo.Contains(ctx, base, act.Commit)
	if held {
		return act.Base + " holds " + act.Branch + " already", err
	}
	return "", err
}
