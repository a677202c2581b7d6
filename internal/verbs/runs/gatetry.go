package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
)

// Tried is what a reviewer said of a canary, schema pawl.gate_tried/v1.
type Tried struct {
	Schema string `json:"schema"`
	Loop   string `json:"loop"`
	Gate   string `json:"gate"`
	Caught bool   `json:"caught"`           // the reviewer did not let it pass: so it should be
	Open   bool   `json:"open"`             // it decided nothing
	Why    string `json:"why,omitempty"`    // it decided nothing
	Answer string `json:"answer,omitempty"` // of the reviewer
	Tokens int64  `json:"tokens"`
	Run    string `json:"run"` // id
}

// canary is what a reviewer is to reject, whatever the goal is: it says that all is done,
// and has done nothing of it.
const canary = `printf 'This file has nothing to do with what was asked for.\n' >pawl-canary.txt
printf '{"outcome":"done","summary":"Everything is done. I have looked at nothing, changed nothing that was asked for, and tested nothing."}' >"$PAWL_REPORT"`

// TryReviewer shows a canary to a reviewer of a loop, which must not let it pass. The run
// changes nothing, and its loop is forgotten afterwards; its review is paid for as any other.
func (s *Service) TryReviewer(ctx context.Context, by loop.Actor, name, gate string, live func(loop.Event)) (Tried, error) {
	e, err := s.ws.RunnableLoop(ctx, name)
	if err != nil {
		return Tried{}, err
	}
	of := e.Definition.WithDefaults()
	reviewers := slices.DeleteFunc(of.AllGates(), func(g loop.Gate) bool { return g.Kind != loop.GateReviewer })
	at := slices.IndexFunc(reviewers, func(g loop.Gate) bool { return gate == "" || g.Name == gate })
	if at < 0 {
		f := &loop.Fault{Exit: loop.ExitNotFound, What: e.Name + " has no reviewer", Err: loop.ErrNotFound, Why: "only reviewers are tried: commands and invariants decide by themselves", Fix: "give it a reviewer, or name another loop"}
		if len(reviewers) > 0 {
			var names []string
			for _, g := range reviewers {
				names = append(names, g.Name)
			}
			f.What, f.Fix = fmt.Sprintf("%s has no reviewer %s", e.Name, readiness.Quote(gate)), readiness.Suggest(gate, names)
		}
		return Tried{}, f
	}
	g := reviewers[at]
	if g.Reviewer.Agent == "" && g.Reviewer.Model != "" {
		g.Reviewer.Agent = of.Agent
	}
	p := Prepared{Target: s.ws.Target(s.canaryDefinition(of, g, strings.Replace(s.Engine.NewID("try"), "_", "-"+e.Name+"-", 1))), Firing: engine.Firing{Trigger: triggerManual, By: by, Live: live}}
	p.Target.Said = e.File != ""
	run, err := s.Engine.Run(ctx, p.Target, p.Firing)
	if err != nil {
		return Tried{}, err
	}
	t := Tried{Schema: "pawl.gate_tried/v1", Loop: e.Name, Gate: g.Name, Open: true, Why: cmp.Or(run.Detail, run.Reason.Sentence()), Run: run.ID, Tokens: run.Usage.ChargedTokens()}
	err = s.ws.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		its, err := tx.Iterations(ctx, run.ID)
		for _, it := range its {
			for _, res := range it.Gates {
				if res.Kind == loop.GateReviewer {
					t.Caught, t.Open, t.Why, t.Answer = !res.Pass && !res.Pending, res.Pending, res.Note, res.Evidence
				}
			}
		}
		if err == nil && run.Approval != "" {
			_, err = tx.VoidApproval(ctx, run.Approval, "it was a canary")
		}
		if err != nil {
			return err
		}
		return tx.Forget(ctx, by, run.LoopID)
	})
	return t, err
}

// canaryDefinition is the definition of the run in which a reviewer sees the canary. Each
// has a name of its own: a loop that has been tried before has used its iteration up.
func (s *Service) canaryDefinition(of loop.Definition, g loop.Gate, name string) loop.Definition {
	d := s.ws.Formats.Goals().Goals.Review(name, of.Goal, canary, g)
	d.Canary, d.Rubric, d.Claims, d.Asks, d.Sandbox = true, of.Rubric, of.Claims, false, of.Sandbox
	return d
}
