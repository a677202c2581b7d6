package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/effect"
	"github.com/pawl-run/pawl/internal/git/forge"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

// readPulls finds those pull requests of the loop that are open, or whose state is
// unknown. The code host is asked once about those of each remote, and never again
// about one that is merged or closed.
func (ps *proposals) readPulls(ctx context.Context, pulls []loop.Effect) (err error) {
	var open []loop.Effect
	for _, e := range pulls {
		if e.Result[effect.ResultState] == "" {
			merged, err := ps.pulledHere(ctx, e)
			if err != nil {
				return err
			}
			if !merged {
				open = append(open, e)
				continue
			}
			e = ps.stagePullState(e, forge.Merged)
		}
		ps.pulled = append(ps.pulled, e)
	}
	if len(open) == 0 {
		return nil
	}
	states, unknown := ps.askHost(ctx, open)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, e := range open {
		address := e.Result[effect.ResultURL]
		words := fmt.Sprintf("pull request %s is open", address)
		why, unsure := unknown[address]
		switch state := states[address]; {
		case unsure:
			words = fmt.Sprintf("pull request %s may be open: %s", address, why)
		case state != forge.Open:
			ps.pulled = append(ps.pulled, ps.stagePullState(e, state))
			continue
		}
		p := proposal{words: words, reason: loop.ReasonPullRequest}
		if p.asked, p.steps, err = ps.readProposer(ctx, e); err != nil {
			return err
		}
		if !ps.asksAnother(p.asked) {
			ps.open = append(ps.open, p)
		}
	}
	return nil
}

// distinctPulls are the pull requests that have an address, each once.
func distinctPulls(pulls []loop.Effect) []loop.Effect {
	var addresses []string
	return slices.DeleteFunc(pulls, func(e loop.Effect) bool { // Landed twice, one pull request is two effects.
		address := e.Result[effect.ResultURL]
		known := slices.Contains(addresses, address)
		addresses = append(addresses, address)
		return known || address == ""
	})
}

// pulledHere reports whether the base has the commit of a pull request here, so that
// nobody has to be asked.
func (ps *proposals) pulledHere(ctx context.Context, e loop.Effect) (bool, error) {
	tip, ok, err := ps.target.Repo.Ref(ctx, effect.BranchRef(e.Args[effect.ArgBase]))
	if err != nil || !ok {
		return false, err
	}
	held, err := ps.target.Repo.Contains(ctx, tip, e.Args[effect.ArgCommit])
	if errors.Is(err, loop.ErrNotFound) {
		return false, nil // Git has removed the commit after its branch.
	}
	return held, err
}

// askHost asks the code host behind each remote what became of its pull requests. For
// each address it returns the state, or why that is unknown.
func (ps *proposals) askHost(ctx context.Context, pulls []loop.Effect) (states, unknown map[string]string) {
	states, unknown = map[string]string{}, map[string]string{}
	behind := map[string][]string{} // addresses by remote
	for _, e := range pulls {
		remote := e.Args[effect.ArgRemote]
		behind[remote] = append(behind[remote], e.Result[effect.ResultURL])
	}
	for remote, addresses := range behind {
		found, err := ps.Pulls(ctx, ps.target.Repo, remote, addresses)
		if err == nil {
			maps.Copy(states, found)
			continue
		}
		why := err.Error()
		if f, ok := errors.AsType[*loop.Fault](err); ok {
			why = f.Error() + "; fix: " + f.Advice().String()
		}
		for _, address := range addresses {
			unknown[address] = why
		}
	}
	return states, unknown
}

// stagePullState stages what became of a pull request.
func (ps *proposals) stagePullState(e loop.Effect, state string) loop.Effect {
	e.Result[effect.ResultState] = state
	ps.stage(func(ctx context.Context, rt *store.RunTx) error { return rt.AmendEffect(ctx, e) }, ps.linkEffect(e))
	ps.said.Note("%s was %s", e.Result[effect.ResultURL], strings.ToLower(state))
	return e
}

// readProposer is the run whose work is on a pull request, and the ids of the steps that
// it finished: the run that asked for a yes, or one that needed none.
func (ps *proposals) readProposer(ctx context.Context, e loop.Effect) (run loop.Run, steps []string, err error) {
	err = ps.Store.View(ctx, func(r *store.Reader) error {
		id, stepID := e.RunID, ""
		if question, _, _ := strings.Cut(e.Key, "/"); question != e.RunID {
			a, err := r.Approval(ctx, question)
			if err != nil {
				return err
			}
			id, stepID = a.RunID, a.StepID
		}
		if run, err = r.Run(ctx, id); err != nil {
			return err
		}
		its, err := r.Iterations(ctx, id)
		steps = append(passedSteps(its), stepID)
		return err
	})
	return run, steps, err
}

// declined is work on a step that was rejected, or merged where this base does not
// have it yet. The same inputs are not paid for again.
type declined struct {
	inputs string // digest, apart from base and definition
	reason loop.Reason
	words  string
}

// dropDeclined keeps a step from being worked on whose work on the same inputs was declined.
func (ps *proposals) dropDeclined(ctx context.Context, cand *plan.Candidate, inputs loop.Inputs) error {
	if ps.declined == nil {
		if err := ps.readDeclined(ctx); err != nil {
			return err
		}
	}
	digest := inputs.PerStep().Digest()
	for _, d := range ps.declined[cmp.Or(cand.Step.ID, StepID(ps.run.LoopID, cand.Step.Key))] {
		if d.inputs == digest && cand.Drop == "" {
			cand.Drop, cand.Detail = d.reason, d.words
		}
	}
	return nil
}

// readDeclined finds what was declined of what runs with the base and the definition
// of this one proposed.
func (ps *proposals) readDeclined(ctx context.Context) error {
	type proposed struct {
		runID  string
		reason loop.Reason
		words  string
	}
	var list []proposed
	for _, e := range ps.pulled {
		if e.Args[effect.ArgOnto] != ps.run.BaseCommit {
			continue
		}
		run, _, err := ps.readProposer(ctx, e)
		if err != nil {
			return err
		}
		p := proposed{run.ID, loop.ReasonRejected, fmt.Sprintf("its pull request %s was closed and not merged, and nothing has changed since", e.Result[effect.ResultURL])}
		if e.Result[effect.ResultState] == forge.Merged {
			p.reason, p.words = loop.ReasonMerged, fmt.Sprintf("its pull request %s was merged, and %s here does not have it yet", e.Result[effect.ResultURL], e.Args[effect.ArgBase])
		}
		list = append(list, p)
	}
	type work struct {
		tree, step string
		declined
	}
	var works []work
	err := ps.Store.View(ctx, func(r *store.Reader) error {
		works = nil
		rejected, err := r.Approvals(ctx, ps.run.LoopID, loop.ApprovalRejected)
		if err != nil {
			return err
		}
		all := slices.Clone(list)
		for _, a := range rejected {
			if a.Action.Kind != loop.ActionCommand && !a.Changes && a.Definition == ps.run.Definition {
				all = append(all, proposed{a.RunID, loop.ReasonRejected, rejectedWords(a)})
			}
		}
		for _, p := range all {
			run, err := r.Run(ctx, p.runID)
			if err != nil {
				return err
			}
			if run.Definition != ps.run.Definition {
				continue
			}
			its, err := r.Iterations(ctx, p.runID)
			if err != nil {
				return err
			}
			for _, it := range its {
				if it.Verdict == loop.VerdictPass && it.Inputs != "" {
					works = append(works, work{run.BaseTree, it.StepID, declined{it.Inputs, p.reason, p.words}})
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	base, err := ps.inputTree(ctx, ps.run.BaseTree)
	if err != nil {
		return err
	}
	ps.declined = map[string][]declined{}
	for _, w := range works {
		tree := w.tree
		if tree != "" && base != ps.run.BaseTree { // Both may differ by the memory of loops alone.
			tree, err = ps.inputTree(ctx, tree)
		}
		if err != nil && !errors.Is(err, loop.ErrNotFound) {
			return err
		}
		if err == nil && tree == base {
			ps.declined[w.step] = append(ps.declined[w.step], w.declined)
		}
	}
	return nil
}

func rejectedWords(a loop.Approval) string {
	by := a.By
	if a.Note != "" {
		by += fmt.Sprintf(" (%q)", a.Note)
	}
	return fmt.Sprintf("its proposal %s was rejected by %s, and nothing has changed since", a.Action.Branch, by)
}
