package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/confine/workspace/toolset"
	"github.com/pawl-run/pawl/internal/cycle/gate"
	"github.com/pawl-run/pawl/internal/cycle/runenv"
	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
)

var (
	beforeAnswer = fault.New("engine.review.before")
	afterAnswer  = fault.New("engine.review.after")
)

// critics are the agents that gates of a run ask what they think of the work.
type critics struct {
	*heldRun
	money    *spending
	sides    map[loop.Reviewer]*agentSide // of those that were asked before
	unfunded error                        // why the run could not pay for any turn
}

// mostAnswer is how much is kept of an answer, and of the beginning of what a program prints
// that has no driver of its own, in bytes.
const mostAnswer = 32 << 10

// answer lets the agent take a turn in an empty tree. Only its answer is kept, and no file.
func (a *agentSide) answer(ctx context.Context, t assignment) (res turnResult, err error) {
	if t.copy, err = t.env.EmptyCopy(ctx); err != nil {
		return res, err
	}
	defer func() {
		if err := t.copy.Remove(context.WithoutCancel(ctx)); err != nil {
			a.said.Note("the tree of the turn stays until the run ends: %s", err)
		}
	}()
	t.begins = mostAnswer
	a.said.Emit(loop.EventPrompt, t.prompt)
	if err := beforeAnswer.Hit(ctx); err != nil {
		return res, err
	}
	if res, err = a.carryOut(ctx, t); err != nil {
		return res, err
	}
	if res.answers = true; a.login.actor.Profile.AnyProvider { // What it says is what its program prints.
		res.Message = cmp.Or(res.Message, res.printed)
	}
	return res, afterAnswer.Hit(ctx)
}

// ask puts a question to an agent that did not do the work, which takes a turn for it in
// an empty tree. It is gate.ErrNobody if nobody can answer. Only an agent whose model the
// meter sees is asked: an answer of an unknown model would decide nothing.
func (c *critics) ask(ctx context.Context, q gate.Question) (gate.Answer, error) {
	a, t, err := c.prepare(ctx, q)
	if err == nil {
		err = c.fund(ctx)
	}
	if err != nil {
		return gate.Answer{}, c.nobody(err)
	}
	handle := a.login.actor.Handle
	c.said.Note("asking @%s for a review", handle)
	res, err := a.answer(ctx, t)
	switch {
	case ctx.Err() != nil: // The run was stopped, which says nothing about the reviewer.
		return gate.Answer{}, errors.Join(err, context.Cause(ctx))
	case err != nil:
		return gate.Answer{}, c.nobody(err)
	case res.cut != nil:
		return gate.Answer{}, &gate.NobodyError{Why: "the review was stopped: " + res.cut.detail}
	case res.Failure != nil, res.Ended != proc.Exited, res.Exit != 0 && !res.Claims:
		return gate.Answer{}, &gate.NobodyError{Why: fmt.Sprintf("@%s did not review: %s", handle, res.words())}
	}
	answer := gate.Answer{Text: res.Message, Usage: res.Usage}
	for _, m := range res.Models {
		if m.Model == "" || res.Usage.Source != loop.UsageMetered {
			answer.Models = nil
			break
		}
		answer.Models = append(answer.Models, m.Model)
	}
	return answer, nil
}

// prepare finds out who answers a question, and what for.
func (c *critics) prepare(ctx context.Context, q gate.Question) (*agentSide, assignment, error) {
	by := cmp.Or(q.By, c.Critic)
	if by == (loop.Reviewer{}) {
		return nil, assignment{}, &gate.NobodyError{Why: "no agent reviews: the gate names none, and no critic is configured; set reviewer_agent or reviewer_model, or PAWL_REVIEWER_AGENT for all loops"}
	}
	d := c.definitionFor(by)
	a := c.sides[by]
	if a == nil {
		actor, err := c.resolveActor(ctx, d, c.Store.View)
		if f, ok := errors.AsType[*loop.Fault](err); ok { // Its fix is about who does the work.
			return nil, assignment{}, &gate.NobodyError{Why: "nobody reviews: " + f.Why}
		}
		if err != nil {
			return nil, assignment{}, err
		}
		if actor.Handle == c.maker.Handle && actor.Model == c.maker.Model && actor.Command == c.maker.Command {
			return nil, assignment{}, &gate.NobodyError{Why: fmt.Sprintf("@%s did the work and may not review it; name another agent or another model", actor.Handle)}
		}
		a = &agentSide{heldRun: c.heldRun, money: c.money, login: &login{heldRun: c.heldRun, actor: actor}, reviews: true}
		c.sides[by] = a
	}
	a.hold = nil
	if err := c.Store.View(ctx, func(r *store.Reader) error { return a.readHolds(ctx, r) }); err != nil {
		return nil, assignment{}, err
	}
	l := a.login
	switch {
	case l.unsigned != nil:
		return nil, assignment{}, l.unsigned
	case l.signed.Auth == loop.AuthLend:
		return nil, assignment{}, &gate.NobodyError{Why: fmt.Sprintf("@%s would be lent a login, with which nobody sees which model answers; set a key for it", l.actor.Handle)}
	case l.signed.Auth != loop.AuthInject:
		return nil, assignment{}, &gate.NobodyError{Why: fmt.Sprintf("nobody sees which model @%s asks; name its provider", l.actor.Handle)}
	case a.hold != nil:
		return nil, assignment{}, &gate.NobodyError{Why: fmt.Sprintf("@%s may not act now: %s", l.actor.Handle, cmp.Or(a.hold.Detail, plan.HoldWords(*a.hold)))}
	}
	env := c.runEnv()
	env.Definition, env.Agent, env.Tools = d, l.actor.CommandLines(), &runenv.Tools{}
	return a, assignment{purpose: q.Purpose, prompt: q.Prompt, def: d, env: env, limit: q.Timeout}, nil
}

// definitionFor is the definition with which a reviewer acts: it has its own model, and
// nothing of what the agent that did the work may use beside its own.
func (c *critics) definitionFor(by loop.Reviewer) loop.Definition {
	d := loop.Overrides{Agent: strings.TrimPrefix(by.Agent, "@"), Model: by.Model}.Apply(c.def)
	return loop.Definition{
		Name: d.Name, Protocol: d.Protocol, Tier: loop.TierReport, Goal: d.Goal, PermissionMode: d.PermissionMode,
		Agent: d.Agent, AgentCommand: d.AgentCommand, Model: d.Model, Provider: d.Provider, BaseURL: d.BaseURL, Auth: d.Auth,
		MaxStepTimeout: d.MaxStepTimeout, MaxWallClock: d.MaxWallClock, MaxDisk: d.MaxDisk,
		Sandbox: d.Sandbox, Setup: toolset.None, History: loop.HistoryNone,
	}
}

// fund reserves what the run needs if it has not: one that makes a proposal again on a
// base that has moved takes no turn before its gates.
func (c *critics) fund(ctx context.Context) error {
	ledger := c.money.ledger()
	switch {
	case c.unfunded != nil:
		return c.unfunded
	case ledger.Account() != nil && ledger.Account().Cause() != nil:
		return &gate.NobodyError{Why: "nobody reviews: " + ledger.WhyExhausted()}
	case ledger.Account() != nil:
		return nil
	}
	c.unfunded = ledger.Open(ctx)
	if c.unfunded == nil {
		c.unfunded = c.Store.Update(ctx, func(tx *store.Tx) error {
			rt, err := tx.Enter(ctx, c.id, c.said.Phase())
			if err != nil {
				return err
			}
			return ledger.Reserve(ctx, rt)
		})
	}
	return c.unfunded
}

// nobody turns an error that a person can fix into gate.ErrNobody. The gate is undecided
// then, and a human decides.
func (c *critics) nobody(err error) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		why := f.Why
		if f.Fix != "" {
			why += "; " + f.Advice().String()
		}
		return &gate.NobodyError{Why: "nobody reviews: " + why}
	}
	if budget.IsUnpaid(err) {
		return &gate.NobodyError{Why: "nobody reviews: " + err.Error()}
	}
	return err
}
