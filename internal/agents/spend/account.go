package spend

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Account is what a run may spend on models and what it has spent, over all of
// its turns. It is safe for concurrent use, and several endpoints may share one.
// The zero value spends without a cap. Its fields must not change, and it must
// not be copied, once it is used.
//
// A call holds what it may use until its usage is known, so that concurrent calls
// cannot spend the same amount twice. Spending exceeds the grant at most by the
// amount by which the answers under way exceed what was held for them.
type Account struct {
	// Grant is what may be spent: Tokens, Output and MicroUSD. A zero field means no
	// cap. The other fields are ignored.
	Grant loop.Amount

	// More is called for a larger grant before a call is refused or cut, with the
	// run's total need. It returns the total grant, which may be less. A field with
	// a cap keeps it. An error means that nothing more is granted, and becomes a part
	// of what Cause returns. Nil means that no more can be granted.
	More func(ctx context.Context, need loop.Amount) (loop.Amount, error)

	// Price returns what one call of a model costs, in millionths of a US dollar,
	// and whether the model has a price. Nil means that no model has one.
	Price func(model string, u loop.Usage) (microUSD int64, known bool)

	asking sync.Mutex // held while More is asked

	mu      sync.Mutex
	ready   bool
	grant   loop.Amount
	settled map[string]loop.ModelUsage
	live    map[*Charge]struct{}
	calls   int64
	recent  map[string][]answeredRequest
	freed   chan struct{} // closed and replaced when a call ends
	done    chan struct{}
	cause   error
}

// lock locks a.mu, makes a zero Account usable, and returns the function that
// unlocks a.mu.
func (a *Account) lock() func() {
	a.mu.Lock()
	if !a.ready {
		a.ready, a.grant = true, loop.Amount{Tokens: a.Grant.Tokens, Output: a.Grant.Output, MicroUSD: a.Grant.MicroUSD}
		a.settled, a.live = map[string]loop.ModelUsage{}, map[*Charge]struct{}{}
		a.recent = map[string][]answeredRequest{}
		a.freed, a.done = make(chan struct{}), make(chan struct{})
	}
	return a.mu.Unlock
}

// Regrant makes what grant returns the grant, for a smaller one than before: the caller needs
// the rest elsewhere. Grant is told what is spent or may still be spent by calls under way,
// and no more is asked for meanwhile. A field without a cap keeps none. After an error the
// grant stays.
func (a *Account) Regrant(grant func(committed loop.Amount) (loop.Amount, error)) error {
	a.asking.Lock()
	defer a.asking.Unlock()
	defer a.lock()()
	to, err := grant(a.committed())
	if err != nil {
		return err
	}
	for _, f := range []struct {
		now *int64
		to  int64
	}{{&a.grant.Tokens, to.Tokens}, {&a.grant.Output, to.Output}, {&a.grant.MicroUSD, to.MicroUSD}} {
		if *f.now > 0 && f.to > 0 {
			*f.now = f.to
		}
	}
	return nil
}

// Exhausted returns a channel that is closed when a call is refused or cut
// because the grant is used up. From then on every call is refused.
func (a *Account) Exhausted() <-chan struct{} {
	defer a.lock()()
	return a.done
}

// Cause returns why the account is exhausted, as a *loop.Fault; nil if it is not.
func (a *Account) Cause() error {
	defer a.lock()()
	return a.cause
}

// Calls returns how many calls were charged, without those under way.
func (a *Account) Calls() int64 {
	defer a.lock()()
	return a.calls
}

// Used returns what was spent so far, including what calls under way have used.
func (a *Account) Used() loop.Amount {
	defer a.lock()()
	return a.spent()
}

// Committed returns what was spent, plus what calls under way may still spend.
func (a *Account) Committed() loop.Amount {
	defer a.lock()()
	return a.committed()
}

// Total returns the usage so far, as a sum and by model, sorted by name. It
// includes what is known of calls under way.
func (a *Account) Total() (loop.Usage, []loop.ModelUsage) {
	defer a.lock()()
	byModel := maps.Clone(a.settled)
	for c := range a.live {
		if !c.used.Zero() {
			addUsage(byModel, a.priceUsage(c.answered, c.asked, c.used))
		}
	}
	var sum loop.Usage
	for _, m := range byModel {
		sum = sum.Add(m.Usage)
	}
	return sum, slices.SortedFunc(maps.Values(byModel), func(x, y loop.ModelUsage) int {
		return strings.Compare(x.Model, y.Model)
	})
}

func addUsage(byModel map[string]loop.ModelUsage, m loop.ModelUsage) {
	old, ok := byModel[m.Model]
	if ok {
		m.Priced = m.Priced && old.Priced
	}
	m.Usage = old.Add(m.Usage)
	m.MicroUSD = loop.Amount{MicroUSD: old.MicroUSD}.Add(loop.Amount{MicroUSD: m.MicroUSD}).MicroUSD
	byModel[m.Model] = m
}

// priceUsage prices the usage of a call: by the model that answered, or else by
// the requested one, for which the provider may use a longer name. The usage is
// booked under the name that has the price.
func (a *Account) priceUsage(answered, asked string, u loop.Usage) loop.ModelUsage {
	m := loop.ModelUsage{Model: answered, Usage: u}
	if m.Model == "" {
		m.Model = asked
	}
	if a.Price == nil {
		return m
	}
	m.MicroUSD, m.Priced = a.Price(m.Model, u)
	if !m.Priced && asked != m.Model {
		if cost, known := a.Price(asked, u); known {
			m.Model, m.MicroUSD, m.Priced = asked, cost, true
		}
	}
	if !m.Priced {
		m.MicroUSD = 0
	}
	return m
}

// usageAmount returns how much of the grant a usage takes; a.mu is held. It looks
// up the price only if money has a cap, since it is called for every piece of a
// stream.
func (a *Account) usageAmount(answered, asked string, u loop.Usage) loop.Amount {
	sum := loop.Amount{Tokens: u.ChargedTokens(), Output: u.Output}
	if a.grant.MicroUSD > 0 {
		sum.MicroUSD = a.priceUsage(answered, asked, u).MicroUSD
	}
	return sum
}

// settledAmount returns what the ended calls used; a.mu is held.
func (a *Account) settledAmount() loop.Amount {
	var sum loop.Amount
	for _, m := range a.settled {
		sum = sum.Add(amountOf(m))
	}
	return sum
}

// spent returns what all calls have used, including those under way; a.mu is
// held.
func (a *Account) spent() loop.Amount {
	sum := a.settledAmount()
	for c := range a.live {
		sum = sum.Add(amountOf(a.priceUsage(c.answered, c.asked, c.used)))
	}
	return sum
}

// committed returns what is spent plus what calls under way may still spend; a.mu
// is held.
func (a *Account) committed() loop.Amount {
	sum := a.settledAmount()
	for c := range a.live {
		sum = sum.Add(maxOfEach(c.held, a.usageAmount(c.answered, c.asked, c.used)))
	}
	return sum
}

func amountOf(m loop.ModelUsage) loop.Amount {
	return loop.Amount{Tokens: m.ChargedTokens(), Output: m.Output, MicroUSD: m.MicroUSD}
}

// maxOfEach returns the larger value of each field.
func maxOfEach(x, y loop.Amount) loop.Amount {
	return loop.Amount{
		Tokens: max(x.Tokens, y.Tokens), Output: max(x.Output, y.Output), MicroUSD: max(x.MicroUSD, y.MicroUSD),
	}
}

// exceededCap names the first cap that need exceeds, or is empty.
func exceededCap(grant, need loop.Amount) string {
	for _, c := range []struct {
		what      string
		cap, need int64
	}{
		{"tokens", grant.Tokens, need.Tokens},
		{"output tokens", grant.Output, need.Output},
		{"money", grant.MicroUSD, need.MicroUSD},
	} {
		if c.cap > 0 && c.need > c.cap {
			return c.what
		}
	}
	return ""
}

// Exhaust refuses all further calls for a reason that only the caller knows, and
// returns the cause.
func (a *Account) Exhaust(why error) error {
	defer a.lock()()
	return a.exhaust("", loop.Amount{}, why)
}

// exhaust ends the account because what a call needs exceeds the cap named what,
// or because of why if what is empty; a.mu is held.
func (a *Account) exhaust(what string, need loop.Amount, why error) error {
	if a.cause != nil {
		return a.cause
	}
	text := a.describe(what, need)
	switch {
	case what == "":
		text = why.Error()
	case why != nil:
		text += "; no more was granted: " + why.Error()
	}
	a.cause = &loop.Fault{
		Exit: loop.ExitBudget, What: "the budget of the run is used up", Why: text,
		Fix: "raise the budget, or let the loop do less in one run", Err: why,
	}
	close(a.done)
	return a.cause
}

// describe says how much of a cap is used and how much the next call needs; a.mu
// is held.
func (a *Account) describe(what string, need loop.Amount) string {
	var text string
	var more int64
	used := a.spent()
	switch what {
	case "tokens":
		text, more = fmt.Sprintf("%d of %d tokens are used", used.Tokens, a.grant.Tokens), need.Tokens
	case "output tokens":
		text, more = fmt.Sprintf("%d of %d output tokens are used", used.Output, a.grant.Output), need.Output
	case "money":
		text = fmt.Sprintf("$%.4f of $%.4f are used", dollars(used.MicroUSD), dollars(a.grant.MicroUSD))
		if need.MicroUSD > 0 {
			text += fmt.Sprintf(", and the next call costs about $%.4f", dollars(need.MicroUSD))
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and the next call needs about %d", more)
	}
	return text
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

// widen asks for more and adds what is granted, which may be less. It returns why
// nothing was granted.
func (a *Account) widen(ctx context.Context, need loop.Amount) error {
	if a.More == nil {
		return nil
	}
	got, err := a.More(ctx, need)
	if err != nil {
		return err
	}
	defer a.lock()()
	old := a.grant
	a.grant = maxOfEach(old, got)
	for _, f := range []struct{ now, before *int64 }{
		{&a.grant.Tokens, &old.Tokens},
		{&a.grant.Output, &old.Output},
		{&a.grant.MicroUSD, &old.MicroUSD},
	} {
		if *f.before == 0 {
			*f.now = 0
		}
	}
	return nil
}
