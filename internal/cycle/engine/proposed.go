package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// proposal is what a run proposed and nobody has decided about yet.
type proposal struct {
	asked    loop.Run
	steps    []string // ids of those whose work it holds
	approval loop.Approval
	words    string      // what it is, and how it is decided
	reason   loop.Reason // why its steps are not worked on; empty: nobody has answered
}

// wordsAfter are the words of a proposal after an article, if they begin with it and not with
// who said yes to it.
func (p proposal) wordsAfter(article string) string {
	if p.approval.State == loop.ApprovalLanding {
		return p.words
	}
	return article + p.words
}

// proposals are those of the loop that keep steps from being worked on.
type proposals struct {
	*heldRun
	open     []proposal            // without an answer, or on a pull request that is open
	pulled   []loop.Effect         // pull requests that are merged or closed
	declined map[string][]declined // by id of the step: what it proposed on this base and is not to be paid for again; nil: nobody looked yet
}

// read finds the proposals of the loop that can still land, newest
// first, and those on pull requests that are open.
func (ps *proposals) read(ctx context.Context, nothing bool) error {
	ps.open = nil
	var unanswered []proposal
	var pulls []loop.Effect
	err := ps.Store.View(ctx, func(r *store.Reader) error {
		list, done, err := r.Undecided(ctx, ps.run.LoopID, effect.KindPullRequest)
		if err != nil {
			return err
		}
		pulls = done
		unanswered, err = ps.readUnanswered(ctx, r, list)
		return err
	})
	if err == nil {
		err = ps.keepOpen(ctx, unanswered)
	}
	if err != nil || nothing { // Nothing is worked on then, and nobody has to be asked.
		return err
	}
	return ps.readPulls(ctx, distinctPulls(pulls))
}

// asksAnother reports whether a person names who acts in this run, and somebody else
// acted in the one that proposed. That asks for another attempt, which no proposal
// of the first keeps from being made.
func (ps *proposals) asksAnother(proposed loop.Run) bool {
	o, before := ps.run.Overrides, proposed.Overrides
	return o.Agent+o.AgentCommand+o.Model != "" &&
		(o.Agent != before.Agent || o.AgentCommand != before.AgentCommand || o.Model != before.Model)
}

// readUnanswered returns the proposals among open approvals.
func (ps *proposals) readUnanswered(ctx context.Context, r *store.Reader, list []loop.Approval) (open []proposal, err error) {
	for _, a := range list {
		if a.Action.Kind == loop.ActionCommand || !a.Pending(ps.Now()) {
			continue
		}
		asked, err := r.Run(ctx, a.RunID)
		if err != nil {
			return nil, err
		}
		its, err := r.Iterations(ctx, a.RunID)
		if err != nil {
			return nil, err
		}
		run := fmt.Sprintf("%s#%d", ps.target.Loop.Name, asked.N)
		p := proposal{
			asked: asked, steps: append(passedSteps(its), a.StepID), approval: a,
			words: fmt.Sprintf("%s of %s has no answer yet", askedAbout(a.Action), run),
		}
		if a.State == loop.ApprovalLanding {
			p.words, p.reason = ps.owedWords(a, run)
		}
		open = append(open, p)
	}
	return open, nil
}

// askedAbout is what an approval asks about, in words.
func askedAbout(a loop.Action) string {
	switch {
	case a.Kind == loop.ActionQuestion:
		return "question"
	case a.Branch == "":
		return "result"
	}
	return "proposal " + a.Branch
}

// keepOpen keeps those proposals that can still land.
func (ps *proposals) keepOpen(ctx context.Context, unanswered []proposal) error {
	for _, p := range unanswered {
		if ps.asksAnother(p.asked) {
			continue
		}
		if p.asked.Node != "" && ps.Self.Node != "" && p.asked.Node != ps.Self.Node {
			ps.open = append(ps.open, p) // Its branch is in the clone of another node.
			continue
		}
		why, err := Stale(ctx, ps.target.Repo, p.approval, p.asked.Overrides.Apply(ps.target.Definition).WithDefaults())
		if err != nil {
			return err
		}
		if why == "" {
			ps.open = append(ps.open, p)
		}
	}
	return nil
}

// holdBack keeps a step from being worked on while nobody has decided about a proposal:
// one of its own, or any if it depends on all of them.
func (ps *proposals) holdBack(cand *plan.Candidate) {
	id, words, reason := cmp.Or(cand.Step.ID, StepID(ps.run.LoopID, cand.Step.Key)), "", loop.Reason("")
	for _, p := range ps.open {
		if slices.Contains(p.steps, id) {
			words, reason = p.wordsAfter("its "), p.reason
			break
		}
	}
	if words == "" && cand.Depends && len(ps.open) > 0 {
		p := ps.open[0]
		words, reason = "it depends on other steps, and "+p.wordsAfter("the "), p.reason
		switch n := len(ps.open) - 1; n {
		case 0:
		case 1:
			words += "; 1 more is undecided"
		default:
			words += fmt.Sprintf("; %d more are undecided", n)
		}
	}
	switch {
	case words == "":
	case reason == "":
		cand.Proposed = words
	case cand.Drop == "":
		cand.Drop, cand.Detail = reason, words
	}
}

// passedSteps are the ids of the steps that a run finished.
func passedSteps(its []loop.Iteration) []string {
	var ids []string
	for _, it := range its {
		if stood(it) {
			ids = append(ids, it.StepID)
		}
	}
	return ids
}

const definitionChanged = "the definition was changed after the question was asked"

// Stale says why approval of a proposal would not do what was asked, because something
// has changed since; it is empty if nothing has. A base that moved is no reason: the
// change is made again there. Def is the definition as the run that asked would
// have it now.
func Stale(ctx context.Context, repo *git.Repo, a loop.Approval, def loop.Definition) (string, error) {
	act := a.Action
	switch {
	case a.Hash != a.BindingHash():
		return "its hash is not that of what it shows", nil
	case act.Kind == loop.ActionPush && def.Digest() == a.Definition:
		return stalePush(ctx, repo, act)
	case act.Branch == "" && def.Digest() != a.Definition:
		return definitionChanged, nil
	case act.Branch == "":
		return "", nil // Nothing but the result is asked about.
	}
	tip, ok, err := repo.Ref(ctx, "refs/heads/"+act.Branch)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "branch " + act.Branch + " is gone", nil
	case tip != act.Commit:
		return fmt.Sprintf("branch %s was moved to %s after its gates ran", act.Branch, shortHash(tip)), nil
	case def.Digest() != a.Definition:
		return definitionChanged, nil
	case act.Kind == loop.ActionKeep || act.Kind == loop.ActionAccept:
		return "", nil // It goes nowhere.
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
