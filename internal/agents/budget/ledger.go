// Package budget keeps what one run may spend. It estimates what the run needs,
// reserves that in every budget that applies, grants models a part of it, and
// charges what was used in the end.
//
// It calls no model and never decides whether work continues: it only says, in
// words, which budget is short. It writes inside its caller's transactions, except
// when an agent needs a larger reservation while it acts.
package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/agents/spend"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// Store reads and writes budgets. *store.Store and *store.Holding implement it.
type Store interface {
	View(ctx context.Context, fn func(*store.Reader) error) error
	Update(ctx context.Context, fn func(*store.Tx) error) error
}

// Owner says which run a ledger belongs to, and where its budgets are stored.
type Owner struct {
	Store         Store
	Now           func() time.Time
	Prices        func() (price.Table, error) // called when the ledger is opened; nil means the built-in prices
	Run           loop.Run                    // ID, loop and fence must be set
	Definition    loop.Definition             // with defaults filled in
	Loop          string                      // name
	Workspace     string                      // ID
	Agent         string                      // handle; empty if no agent acts
	Model         string                      // the model that the agent will call; empty if unknown
	ModelsUnknown bool                        // neither a meter nor the agent's program reports which models were called
	MostTokens    int64                       // that the run may charge, whatever its budgets have; 0: no cap
	Borrowed      loop.Amount                 // that a run inside of another one may use of what that one may; a zero field has no cap
	Phase         func() loop.Phase           // in which the run is when it needs more than it reserved; nil: it acts
}

// Ledger keeps what a run may spend. Before Open it has reserved nothing.
type Ledger struct {
	owner      Owner
	account    *spend.Account
	prices     price.Table
	ownBudgets []loop.Budget              // from the definition
	above      []string                   // ids of the loops that the run's loop is below
	single     loop.Amount                // caps of this run alone; a zero field has none
	reserved   loop.Amount                // reserved in the store; a field without a cap is zero
	why        string                     // how the reservation was estimated
	shortOf    atomic.Pointer[shortError] // why less was granted than was asked for; nil if all was granted

	mu    sync.Mutex
	lent  loop.Amount // what runs inside of this one have of single
	given int64       // what children have of Owner.MostTokens
}

// New makes the ledger of a run.
func New(o Owner) *Ledger { return &Ledger{owner: o} }

// Open estimates what the run needs and reads what limits it, before its agent
// first acts. If no budget can pay for the run, IsUnpaid reports true for the
// error. A second call does nothing.
func (l *Ledger) Open(ctx context.Context) error {
	if l.account != nil {
		return nil
	}
	var err error
	if l.prices, err = l.readPrices(); err != nil {
		return err
	}
	// The account keeps the cap of a single run: no other run spends from it.
	l.ownBudgets = slices.DeleteFunc(plan.DefinitionBudgets(l.owner.Definition, l.owner.Run.LoopID), func(b loop.Budget) bool { return b.Window == loop.WindowRun })
	var standings []loop.Standing
	var history []loop.Amount
	err = l.owner.Store.View(ctx, func(r *store.Reader) (err error) {
		if err := l.readAbove(ctx, r); err != nil {
			return err
		}
		if standings, err = r.Standings(ctx, l.budgetScopes(), l.ownBudgets, l.owner.Now()); err != nil || len(standings) == 0 {
			return err
		}
		history, err = r.History(ctx, l.owner.Run.LoopID, plan.MaxHistory)
		return err
	})
	if err != nil {
		return err
	}
	l.reserved, l.why = l.estimateNeed(standings, history)
	l.single = l.capsOfRun(standings)
	if err := l.checkModelPriced(standings); err != nil {
		return err
	}
	l.account = &spend.Account{Grant: l.granted(), More: l.widen, Price: l.priceCall}
	return nil
}

func (l *Ledger) readPrices() (price.Table, error) {
	if l.owner.Prices == nil {
		return price.BuiltIn(), nil
	}
	return l.owner.Prices()
}

// Reserved returns what is reserved. A field without a cap is zero.
func (l *Ledger) Reserved() loop.Amount { return l.reserved }

// WhyReserved says how the reservation was estimated.
func (l *Ledger) WhyReserved() string { return l.why }

// Account returns the account that pays for calls of models; nil before Open.
func (l *Ledger) Account() *spend.Account { return l.account }

// Cost prices the usage of models with the prices of this run.
func (l *Ledger) Cost(used []loop.ModelUsage) ([]loop.ModelUsage, loop.Cost) {
	return plan.PriceModels(used, l.prices)
}

// WhyExhausted says in words why the run can spend no more.
func (l *Ledger) WhyExhausted() string {
	cause := l.account.Cause()
	if short := l.shortOf.Load(); short != nil {
		return short.Error()
	}
	if cause != nil {
		return cause.Error()
	}
	return "the budget of the run is used up"
}

// MostUsedUp reports whether a run that can spend no more has used up Owner.MostTokens, and
// neither a budget of the store nor what it has borrowed is short.
func (l *Ledger) MostUsedUp() bool {
	b := l.owner.Borrowed
	if l.owner.MostTokens == 0 || l.shortOf.Load() != nil || b.Output > 0 || b.MicroUSD > 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.Tokens == 0 || l.owner.MostTokens-l.given <= l.single.Tokens-l.lent.Tokens
}

// granted returns the part of the reservation that calls of models may spend.
func (l *Ledger) granted() loop.Amount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grantedBeside()
}

// grantedBeside is granted beside what others have; l.mu is held.
func (l *Ledger) grantedBeside() loop.Amount {
	left := func(most, gone int64) int64 {
		if most == 0 {
			return 0
		}
		return max(1, most-gone) // Zero would be no cap.
	}
	return loop.Amount{
		Tokens:   lowerCap(lowerCap(l.reserved.Tokens, left(l.owner.MostTokens, l.given)), left(l.single.Tokens, l.lent.Tokens)),
		MicroUSD: lowerCap(l.reserved.MicroUSD, left(l.single.MicroUSD, l.lent.MicroUSD)),
		Output:   lowerCap(l.reserved.Output, left(l.single.Output, l.lent.Output)),
	}
}

// lowerCap returns the lower of two caps. Zero means no cap.
func lowerCap(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// priceCall returns what one call of a model costs, in millionths of a US dollar,
// and whether the model has a price.
func (l *Ledger) priceCall(id string, u loop.Usage) (microUSD int64, known bool) {
	return plan.CallCost(id, u, l.prices)
}

// Reserve takes what the run needs from every budget that applies, in the
// transaction of the first decision. If one of them does not have enough, nothing
// is taken, and IsShort and IsUnpaid report true for the error.
func (l *Ledger) Reserve(ctx context.Context, rt *store.RunTx) error {
	err := l.reserveAmount(ctx, rt, l.reserved)
	short, _ := errors.AsType[*shortError](err)
	l.shortOf.Store(short)
	return err
}

// OpensAgain returns when the budget has its next day or month that is short now. It is
// zero if none is, or the next one will not have enough either.
func (l *Ledger) OpensAgain() time.Time {
	short := l.shortOf.Load()
	if short == nil || short.Need > short.Cap {
		return time.Time{}
	}
	return short.Opens
}

func (l *Ledger) reserveAmount(ctx context.Context, rt *store.RunTx, want loop.Amount) error {
	if want.Zero() {
		return nil
	}
	short, err := rt.Reserve(ctx, l.budgetScopes(), l.ownBudgets, want)
	if err == nil && short != nil {
		err = &shortError{*short, l.owner.Loop, slices.Contains(l.above, short.Budget.Scope.ID)}
	}
	return err
}

// storeTimeout bounds a transaction that widens the reservation. The agent waits
// for it, but it is not canceled with the agent.
const storeTimeout = 30 * time.Second

var errStoreTimeout = errors.New("the store did not answer within " + storeTimeout.String())

// widen enlarges the reservation while an agent acts. If a budget has less than
// what is needed, all that it has left is granted.
func (l *Ledger) widen(ctx context.Context, need loop.Amount) (loop.Amount, error) {
	want := l.widerReservation(need)
	if want == l.reserved {
		return l.granted(), nil
	}
	phase := loop.PhaseAct
	if l.owner.Phase != nil {
		phase = l.owner.Phase()
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), storeTimeout, errStoreTimeout)
	defer cancel()
	for all := true; ; all = false {
		err := l.owner.Store.Update(ctx, func(tx *store.Tx) error {
			rt, err := tx.Enter(ctx, l.owner.Run, phase)
			if err != nil {
				return err
			}
			return l.reserveAmount(ctx, rt, want)
		})
		if err == nil {
			l.reserved = want
			if all {
				l.shortOf.Store(nil)
			}
			return l.granted(), nil
		}
		short, ok := errors.AsType[*shortError](err)
		if !ok {
			return l.granted(), err
		}
		l.shortOf.Store(short)
		less := subtractShortage(want, short.Shortage).Max(l.reserved)
		if less == want || less == l.reserved {
			return l.granted(), err
		}
		want = less
	}
}

// Spent says what a run used, and how far that is known.
type Spent struct {
	Used      loop.Amount
	Taken     bool // from another process, which may have reserved for it
	Died      bool // that process died, so that the last usage is unknown
	Uncounted bool // the tokens of at least one turn were not counted
	Priced    bool // every model that it used has a price
}

// Settle charges what the run used and gives back the rest of what it reserved,
// when the run ends. After a crash the whole reservation is charged, and so it is
// for tokens that were not counted: the real usage is unknown. It must be the last
// write of its transaction.
func (l *Ledger) Settle(ctx context.Context, rt *store.RunTx, s Spent) error {
	if l.account == nil && !s.Taken && !s.Died && s.Used.Zero() {
		return nil // Nobody acted: nothing was reserved.
	}
	if l.account == nil { // A run that died, or in which nobody acted.
		if err := l.readAbove(ctx, &rt.Reader); err != nil {
			return err
		}
	}
	return rt.SettleBudget(ctx, l.budgetScopes(), func(held, seen loop.Amount, there bool) loop.Amount {
		switch {
		case there && s.Died:
			return s.Used.Max(held).Max(seen)
		case there:
			return plan.Charge(s.Used, held, !s.Uncounted, s.Priced)
		}
		return s.Used
	})
}

// readAbove finds the loops above that of the run, whose budgets pay for it too, with what
// their definitions say of a day. In each budget a run counts once.
func (l *Ledger) readAbove(ctx context.Context, r *store.Reader) error {
	above, err := r.Ancestors(ctx, l.owner.Run.LoopID)
	if err != nil {
		return err
	}
	l.above = nil
	for _, a := range above {
		l.above = append(l.above, a.ID)
		if a.Definition == "" {
			continue
		}
		d, err := r.Definition(ctx, a.Definition)
		if err != nil {
			return err
		}
		for _, b := range plan.DefinitionBudgets(d, a.ID) {
			if b.Window != loop.WindowRun {
				l.ownBudgets = append(l.ownBudgets, b)
			}
		}
	}
	return nil
}

// budgetScopes lists the scopes whose budgets the run spends from.
func (l *Ledger) budgetScopes() []loop.BudgetScope {
	scopes := []loop.BudgetScope{
		{Kind: loop.BudgetLoop, ID: l.owner.Run.LoopID},
		{Kind: loop.BudgetAgent, ID: l.owner.Agent},
		{Kind: loop.BudgetWorkspace, ID: l.owner.Workspace},
		{Kind: loop.BudgetAll},
	}
	for _, id := range l.above {
		scopes = append(scopes, loop.BudgetScope{Kind: loop.BudgetLoop, ID: id})
	}
	return scopes
}
