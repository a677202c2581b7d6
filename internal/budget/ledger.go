// Package budget is what one run may spend: what it will probably need, what of
// that it reserves in every budget that applies, what models may be asked for with
// it, and what is charged in the end.
//
// It asks no model, and never decides whether work goes on: it says what is short,
// in words. Other than a wider reservation while an agent acts, everything that it
// writes is a part of its caller's transactions.
package budget

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/spend"
	"github.com/pawl-run/pawl/internal/store"
)

// Store is where budgets are. A *store.Store is one, and so is a *store.Holding.
type Store interface {
	View(ctx context.Context, fn func(*store.Reader) error) error
	Update(ctx context.Context, fn func(*store.Tx) error) error
}

// Owner is the run that a ledger is of, and where its budgets are.
type Owner struct {
	Store         Store
	Now           func() time.Time
	Prices        func() (price.Table, error) // read when the ledger is opened; nil: the built-in ones
	Run           loop.Run                    // id, loop and fence are enough
	Definition    loop.Definition             // with defaults
	Loop          string                      // name
	Workspace     string                      // id
	Agent         string                      // handle; empty: nobody acts
	Model         string                      // that the agent will ask; empty: nobody knows
	ModelsUnknown bool                        // neither a meter nor the agent's program says which models it asked
}

// Ledger is what a run may spend. One that was not opened has reserved nothing.
type Ledger struct {
	owner      Owner
	account    *spend.Account
	prices     price.Table
	ownBudgets []loop.Budget              // of the definition
	reserved   loop.Amount                // reserved in the store; zero in what has no cap
	why        string                     // how the reservation came to be
	shortOf    atomic.Pointer[shortError] // why less was granted than was asked for, if it was
}

// New makes the ledger of a run.
func New(o Owner) *Ledger { return &Ledger{owner: o} }

// Open finds out what the run needs and what bounds it, before it first acts.
// What no budget can pay for is an error that Unpaid knows. Opening twice is
// opening once.
func (p *Ledger) Open(ctx context.Context) error {
	if p.account != nil {
		return nil
	}
	var err error
	if p.prices, err = p.readPrices(); err != nil {
		return err
	}
	// The cap of a single run is kept by the account: nobody else spends from it.
	p.ownBudgets = slices.DeleteFunc(plan.BudgetsOf(p.owner.Definition, p.owner.Run.LoopID), func(b loop.Budget) bool { return b.Window == loop.WindowRun })
	var standings []loop.Standing
	var history []loop.Amount
	err = p.owner.Store.View(ctx, func(r *store.Reader) (err error) {
		if standings, err = r.Standings(ctx, p.budgetScopes(), p.ownBudgets, p.owner.Now()); err != nil || len(standings) == 0 {
			return err
		}
		history, err = r.History(ctx, p.owner.Run.LoopID, plan.Past)
		return err
	})
	if err != nil {
		return err
	}
	p.reserved, p.why = p.estimateNeed(standings, history)
	if err := p.checkModelPriced(standings); err != nil {
		return err
	}
	p.account = &spend.Account{Grant: p.granted(), More: p.widen, Price: p.priceCall}
	return nil
}

func (p *Ledger) readPrices() (price.Table, error) {
	if p.owner.Prices == nil {
		return price.BuiltIn(), nil
	}
	return p.owner.Prices()
}

// Reserved is what is reserved; zero in what has no cap.
func (p *Ledger) Reserved() loop.Amount { return p.reserved }

// WhyReserved says how the reservation came to be.
func (p *Ledger) WhyReserved() string { return p.why }

// Account is what models are asked on; nil before the ledger is opened.
func (p *Ledger) Account() *spend.Account { return p.account }

// Cost prices what models were used for, with the prices of this run.
func (p *Ledger) Cost(used []loop.ModelUsage) ([]loop.ModelUsage, loop.Cost) {
	return plan.Cost(used, p.prices)
}

// WhyExhausted says in words why nothing is left.
func (p *Ledger) WhyExhausted() string {
	cause := p.account.Cause()
	if short := p.shortOf.Load(); short != nil {
		return short.Error()
	}
	if cause != nil {
		return cause.Error()
	}
	return "the budget of the run is used up"
}

// granted is what models may be used for with what is reserved.
func (p *Ledger) granted() loop.Amount {
	held := p.reserved
	return loop.Amount{Tokens: held.Tokens, MicroUSD: held.MicroUSD, Output: lowerCap(held.Output, p.owner.Definition.BudgetTokens)}
}

// lowerCap is the lower of two caps, of which zero is none.
func lowerCap(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// priceCall is what one call of a model costs, in millionths of a US dollar, and
// whether the model has a price.
func (p *Ledger) priceCall(id string, u loop.Usage) (microUSD int64, known bool) {
	return plan.CallCost(id, u, p.prices)
}

// Reserve is the part of the first decision that takes what the run needs from
// every budget that applies. What one of them does not have is an error that
// Unpaid and Short know, and nothing is taken.
func (p *Ledger) Reserve(ctx context.Context, rt *store.RunTx) error {
	return p.reserveAmount(ctx, rt, p.reserved)
}

func (p *Ledger) reserveAmount(ctx context.Context, rt *store.RunTx, want loop.Amount) error {
	if want.Zero() {
		return nil
	}
	short, err := rt.Reserve(ctx, p.budgetScopes(), p.ownBudgets, want)
	if err == nil && short != nil {
		err = &shortError{*short, p.owner.Loop}
	}
	return err
}

// storeTimeout bounds one transaction: an agent waits for it, and it does not end
// with the agent.
const storeTimeout = 30 * time.Second

var errStoreTimeout = errors.New("the store did not answer within " + storeTimeout.String())

// widen is asked for a larger reservation while an agent acts. What a budget has
// left is given where it has less than all that is needed.
func (p *Ledger) widen(ctx context.Context, need loop.Amount) (loop.Amount, error) {
	want := p.widerReservation(need)
	if want == p.reserved {
		return p.granted(), nil
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), storeTimeout, errStoreTimeout)
	defer cancel()
	for all := true; ; all = false {
		err := p.owner.Store.Update(ctx, func(tx *store.Tx) error {
			rt, err := tx.Enter(ctx, p.owner.Run, loop.PhaseAct)
			if err != nil {
				return err
			}
			return p.reserveAmount(ctx, rt, want)
		})
		if err == nil {
			p.reserved = want
			if all {
				p.shortOf.Store(nil)
			}
			return p.granted(), nil
		}
		short, ok := errors.AsType[*shortError](err)
		if !ok {
			return p.granted(), err
		}
		p.shortOf.Store(short)
		less := subtractShortage(want, short.Shortage).Max(p.reserved)
		if less == want || less == p.reserved {
			return p.granted(), err
		}
		want = less
	}
}

// Spent is what a run used, and how much of that is known.
type Spent struct {
	Used      loop.Amount
	Died      bool // its process did, and what it used last was seen by nobody
	Uncounted bool // there was a turn of which nobody counted the tokens
	Priced    bool // all that it used has a price
}

// Settle is the part of a run's end that gives back what it did not use. Of a run
// that died everything that it reserved counts as used, and so do tokens that
// nobody counted: nobody knows. It comes last in its transaction.
func (p *Ledger) Settle(ctx context.Context, rt *store.RunTx, s Spent) error {
	held, seen, there, err := rt.Reserved(ctx)
	switch {
	case err != nil:
		return err
	case there && s.Died:
		s.Used = s.Used.Max(held).Max(seen)
	case there:
		s.Used = plan.Charge(s.Used, held, !s.Uncounted, s.Priced)
	case s.Used.Zero():
		return nil
	}
	return rt.SettleBudget(ctx, p.budgetScopes(), s.Used)
}

// budgetScopes are all that the run's spending counts for.
func (p *Ledger) budgetScopes() []loop.BudgetScope {
	return []loop.BudgetScope{
		{Kind: loop.BudgetLoop, ID: p.owner.Run.LoopID},
		{Kind: loop.BudgetAgent, ID: p.owner.Agent},
		{Kind: loop.BudgetWorkspace, ID: p.owner.Workspace},
		{Kind: loop.BudgetAll},
	}
}
