package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
)

// landUnattended is what lands a proposal without a human: nothing, unless the
// definition is at L3, names the class of this change, nothing in it needs a
// human, and the way of landing is one that the class allows.
func (c *cycle) landUnattended(ctx context.Context, w work, a judgement, propose loop.EffectRequest) ([]loop.EffectRequest, error) {
	if c.def.Tier != loop.TierUnattended || len(c.def.Autoland) == 0 {
		return nil, nil
	}
	if len(c.stack) > 0 {
		c.said.Note("a human decides: it builds on a proposal that has not landed")
		return nil, nil
	}
	// A lockfile is one of the files that judge, and its patch is a class.
	inherent := a.onlyJudges && policy.LockfilePatch(w.compared.Changes).Allowed
	reasons := a.flags
	if a.untraced { // Nobody knows whether the change is one of the gate. Files that are named would be a flag.
		reasons = slices.Concat(reasons, a.rewritable)
	}
	if len(reasons) > 0 && !inherent {
		c.said.Note("a human decides: %s", quoteList(reasons))
		return nil, nil
	}
	set := policy.ChangeSet{
		Changes: w.compared.Changes, Files: w.compared.Files, Action: policy.ActionLand, Branch: c.baseBranch, Green: len(c.runEnv().Gates()) > 0,
	}
	action := loop.Action{Kind: loop.ActionLand, Base: c.baseBranch, Onto: propose.Args[effect.ArgParent], Branch: propose.Args[effect.ArgBranch], Why: c.run.Summary}
	switch c.def.LandVia {
	case "pr":
		set.Action, set.Branch, set.Main = policy.ActionOpenPR, action.Branch, c.baseBranch
		action.Kind, action.Remote = loop.ActionPullRequest, remoteOf(loop.ActionPullRequest)
	case "", "human":
	default:
		return nil, nil // Somebody else lands.
	}
	verdict := policy.Classify(set).Auto(c.def.Autoland)
	if !verdict.Allowed {
		c.said.Note("a human decides: %s", verdict.Rule)
		return nil, nil
	}
	when, err := time.Parse(time.RFC3339, propose.Args[effect.ArgWhen])
	if err != nil {
		return nil, err
	}
	// The same commit that the proposal will make.
	action.Commit, err = c.target.Repo.Commit(ctx, w.candidate.Tree, []string{action.Onto}, propose.Args[effect.ArgMessage], when)
	if err != nil {
		return nil, err
	}
	c.said.Note("it lands without a human: %s (%s)", verdict.Code, verdict.Rule)
	return effect.RequestsFor(loop.Approval{ID: c.run.ID + "/autoland", Tree: w.candidate.Tree, Action: action}, c.Now()), nil
}
