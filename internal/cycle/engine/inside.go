package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/pawl-run/pawl/internal/agents/budget"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// toolsPort is where programs with a network of their own find pawl's own tools.
const toolsPort = 3130

// mostToolEvents bounds how many calls of pawl's tools, and connections to them that were refused,
// the events of one turn tell of.
const mostToolEvents = 500

// hostedTurn is a turn whose agent has pawl's own tools, for the verbs that it calls.
type hostedTurn struct {
	fence  int64
	ledger *budget.Ledger
	lent   atomic.Pointer[loop.Amount] // to children, out of the life of a spec, in this turn
}

// toolServer returns what serves pawl's own tools to the agent in a turn, and tells of its
// calls; nil if it has none. Only those who work on a step have them.
func (a *agentSide) toolServer(t assignment, tell func(text string)) turn.ToolServer {
	if a.PawlTools == nil || !a.hasTools(t) {
		return nil
	}
	in := &loop.Inside{
		RunID: a.run.ID, Fence: a.run.Fence, LoopID: a.run.LoopID, Loop: a.target.Loop.Name, Workspace: a.target.Workspace.ID,
		Depth: a.target.Loop.Depth, Handle: a.ownHandle(), Tools: t.def.PawlTools,
	}
	by := loop.Actor{
		Who: fmt.Sprintf("@%s of %s#%d", in.Handle, in.Loop, a.run.N), Role: loop.RoleAgent, From: "run", Run: in.RunID, Depth: in.Depth,
		Grant: &loop.Grant{Inside: in},
	}
	return a.PawlTools(by, a.target.Workspace.Root, func(tool, outcome string) { tell(tool + ": " + outcome) })
}

// tellOfTools returns what makes events of calls of pawl's tools in a turn, of so many.
func (a *agentSide) tellOfTools() func(text string) {
	var told atomic.Int64
	return func(text string) {
		switch n := told.Add(1); {
		case n < mostToolEvents:
			a.said.Emit(loop.EventPawlTool, text)
		case n == mostToolEvents:
			a.said.Emit(loop.EventPawlTool, fmt.Sprintf("the turn has made %d calls; further ones are not listed", n))
		}
	}
}

func (a *agentSide) hasTools(t assignment) bool {
	return t.def.PawlTools != "" && !a.reviews && (t.purpose == loop.PurposeAct || t.purpose == loop.PurposeReply)
}

// ownHandle is in whose name the agent writes: the agent of a board, or who acts.
func (a *agentSide) ownHandle() string {
	if a.target.Loop.Protocol == loop.ProtocolBoard {
		return strings.TrimPrefix(a.target.Loop.Name, "@")
	}
	return strings.TrimPrefix(cmp.Or(a.login.actor.Handle, a.run.Agent), "@")
}

// hostTurn lets verbs that the agent calls take what they give away from the run's own
// budget, until the function is called that it returns.
func (a *agentSide) hostTurn(t assignment) (end func()) {
	if a.PawlTools == nil || !a.hasTools(t) {
		return func() {}
	}
	host := &hostedTurn{fence: a.run.Fence, ledger: a.money.ledger()}
	a.hosted.Store(a.run.ID, host)
	return func() {
		a.hosted.Delete(a.run.ID)
		if lent := host.lent.Load(); lent != nil {
			a.def.Life = a.def.Life.Less(*lent)
		}
	}
}

var errTurnOver = errors.New("the turn in which it was asked for is over")

// findHosted finds the turn of an agent that calls a verb.
func (e *Engine) findHosted(in *loop.Inside) (*hostedTurn, error) {
	v, ok := e.hosted.Load(in.RunID)
	if ok {
		if host := v.(*hostedTurn); host.fence == in.Fence { //nolint:forcetypeassert // Nothing else is stored.
			return host, nil
		}
	}
	return nil, fmt.Errorf("write inside of run %s: %w: %w", in.RunID, loop.ErrLeaseLost, errTurnOver)
}

// GiveToChild takes a part of the life of the loop in whose run an agent acts away from
// that run, for a child. Undo takes it back if the child was not made. A life that is
// not a spec's has nothing to give, which is no error.
func (e *Engine) GiveToChild(in *loop.Inside, lent loop.Amount) (undo func(), err error) {
	host, err := e.findHosted(in)
	if err != nil {
		return nil, err
	}
	back, err := host.ledger.Give(lent.Tokens)
	if err != nil {
		return nil, err
	}
	host.addLent(func(sum loop.Amount) loop.Amount { return sum.Add(lent) })
	return func() {
		back()
		host.addLent(func(sum loop.Amount) loop.Amount { return sum.Sub(lent) })
	}, nil
}

// LifeLeft is how many tokens the run in which an agent acts can give to a child out of the life of
// its loop; false if that has no life of its own.
func (e *Engine) LifeLeft(in *loop.Inside) (tokens int64, capped bool, err error) {
	host, err := e.findHosted(in)
	if err != nil {
		return 0, false, err
	}
	tokens, capped = host.ledger.LifeLeft()
	return tokens, capped, nil
}

func (h *hostedTurn) addLent(change func(loop.Amount) loop.Amount) {
	for {
		before := h.lent.Load()
		var sum loop.Amount
		if before != nil {
			sum = *before
		}
		if sum = change(sum); h.lent.CompareAndSwap(before, &sum) {
			return
		}
	}
}

// borrow sets a part of what a run may spend aside for a run that its agent begins inside
// of it. Outside of runs it does nothing.
func (e *Engine) borrow(f *Firing) (settle func(loop.Run, error), err error) {
	in := f.By.Grant.Within()
	if in == nil {
		return func(loop.Run, error) {}, nil
	}
	host, err := e.findHosted(in)
	if err != nil {
		return nil, err
	}
	most, back, err := host.ledger.Lend()
	if err != nil {
		return nil, err
	}
	f.borrowed = most
	return func(r loop.Run, err error) {
		if err != nil && r.ID != "" { // It is not known what it has used.
			back(most)
			return
		}
		back(loop.Amount{Tokens: r.Usage.ChargedTokens(), Output: r.Usage.Output, MicroUSD: r.Cost.MicroUSD})
	}, nil
}

// subtractLent leaves the run what its loop has not given to children of its life.
func (h *heldRun) subtractLent(ctx context.Context) error {
	if h.def.Life == nil {
		return nil
	}
	var lent loop.Amount
	err := h.Store.View(ctx, func(r *store.Reader) (err error) {
		lent, err = r.LentToChildren(ctx, h.run.LoopID)
		return err
	})
	h.def.Life = h.def.Life.Less(lent)
	return err
}
