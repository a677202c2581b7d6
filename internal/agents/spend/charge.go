package spend

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// maxWait bounds how long a call waits for other calls to give back what they
// hold.
const maxWait = 2 * time.Minute

// Call is what a call of a model wants to spend. The input tokens are estimated.
type Call struct {
	Model        string
	Input        int64 // tokens, without those in Cached
	Cached       int64 // tokens that the provider reads from its cache
	Output       int64 // tokens, at most
	CacheWrite   bool  // the provider should cache the input, which costs more
	CacheWrite1h bool  // and keep it for an hour
}

// usageWith returns the call's usage if it writes so many tokens.
func (q Call) usageWith(output int64) loop.Usage {
	u := loop.Usage{Input: q.Input, CacheRead: q.Cached, Output: output}
	if q.CacheWrite {
		u.Input, u.CacheWrite = 0, q.Input
	}
	if q.CacheWrite && q.CacheWrite1h {
		u.CacheWrite1h = q.Input
	}
	return u
}

// Charge is a funded call under way.
type Charge struct {
	// Output is how many tokens the call may write.
	Output int64

	account *Account
	asked   string      // model
	held    loop.Amount // for the call

	// The account's mutex guards these.
	answered string // the model that answered; empty if not known yet
	used     loop.Usage
}

// UnpricedError means that money has a cap and the model has no price.
type UnpricedError struct{ Model string }

// Error says what to do about it.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("the run has a budget in money and the model %q has no price: the call was refused; add a price, or name a model that has one", e.Model)
}

// Open funds a call, or returns why it cannot: an *UnpricedError, a *loop.Fault
// once the account is exhausted, or the end of ctx. If the call cannot be funded
// only because of what others hold, it waits for them. The charge must be settled
// or released.
func (a *Account) Open(ctx context.Context, q Call) (*Charge, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for {
		c, freed, err := a.tryFund(ctx, q)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for what other calls of the run hold: %w", ctx.Err())
		}
	}
}

// tryFund returns a charge, an error, or a channel that is closed when it is
// worth trying again.
func (a *Account) tryFund(ctx context.Context, q Call) (*Charge, <-chan struct{}, error) {
	if c, _, err := a.fundWhole(q); c != nil || err != nil {
		return c, nil, err
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	c, need, err := a.fundWhole(q)
	if c != nil || err != nil {
		return c, nil, err
	}
	why := a.widen(ctx, need)
	return a.fundRest(q, why)
}

// fundWhole funds a call with everything that it wants. If it returns neither a
// charge nor an error, the amount is the grant that would be needed.
func (a *Account) fundWhole(q Call) (*Charge, loop.Amount, error) {
	defer a.lock()()
	if a.cause != nil {
		return nil, loop.Amount{}, a.cause
	}
	if a.grant.MicroUSD > 0 && !a.priceUsage(q.Model, q.Model, q.usageWith(q.Output)).Priced {
		return nil, loop.Amount{}, &UnpricedError{q.Model}
	}
	need := a.committed().Add(a.usageAmount(q.Model, q.Model, q.usageWith(q.Output)))
	if exceededCap(a.grant, need) != "" {
		return nil, need, nil
	}
	return a.hold(q, q.Output), loop.Amount{}, nil
}

// fundRest funds a call with what is left, if that pays for its input and at
// least one token of output.
func (a *Account) fundRest(q Call, why error) (*Charge, <-chan struct{}, error) {
	defer a.lock()()
	base := a.committed()
	if left := a.affordableOutput(q, base); left > 0 {
		return a.hold(q, left), nil, nil
	}
	if len(a.live) > 0 && a.affordableOutput(q, a.spent()) > 0 {
		return nil, a.freed, nil
	}
	least := a.usageAmount(q.Model, q.Model, q.usageWith(1))
	return nil, nil, a.exhaust(exceededCap(a.grant, base.Add(least)), least, why)
}

// affordableOutput returns how many tokens the call can write on top of base, at
// most those that it asks for; a.mu is held. It uses a search because prices need
// not be linear.
func (a *Account) affordableOutput(q Call, base loop.Amount) int64 {
	const most = 1 << 30
	first := sort.Search(int(min(q.Output, most)), func(n int) bool {
		return exceededCap(a.grant, base.Add(a.usageAmount(q.Model, q.Model, q.usageWith(int64(n)+1)))) != ""
	})
	return int64(first)
}

// hold begins a call that may write so many tokens; a.mu is held.
func (a *Account) hold(q Call, output int64) *Charge {
	c := a.addCharge(q.Model)
	c.Output, c.held = output, a.usageAmount(q.Model, q.Model, q.usageWith(output))
	return c
}

// addCharge adds a call under way that holds nothing; a.mu is held.
func (a *Account) addCharge(model string) *Charge {
	c := &Charge{account: a, asked: model}
	a.live[c] = struct{}{}
	return c
}

// Begin notes the least that a call uses once it is sent. If the process dies,
// this much of it is known.
func (c *Charge) Begin(least loop.Usage) {
	defer c.account.lock()()
	c.used = least
}

// Progress reports what the call has used so far. It returns false if that
// exceeds the grant: then the answer must be cut. It may block while more is
// asked for.
func (c *Charge) Progress(ctx context.Context, model string, u loop.Usage) bool {
	return c.updateUsage(ctx, model, u, func(need loop.Amount) loop.Amount { return need })
}

// updateUsage records what was used. If that exceeds a cap, it asks for
// request(need), and exhausts the account if that is not granted.
func (c *Charge) updateUsage(ctx context.Context, model string, u loop.Usage, request func(need loop.Amount) loop.Amount) bool {
	a := c.account
	if _, passed := c.recordUsage(model, u); passed == "" {
		return true
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	need, passed := c.recordUsage(model, u)
	if passed == "" {
		return true
	}
	why := a.widen(ctx, request(need))
	defer a.lock()()
	if passed = exceededCap(a.grant, a.committed()); passed == "" {
		return true
	}
	_ = a.exhaust(passed, loop.Amount{}, why)
	return false
}

// recordUsage notes what was used. If that is more than is held for the call, it
// returns what the account needs and which cap that exceeds.
func (c *Charge) recordUsage(model string, u loop.Usage) (loop.Amount, string) {
	a := c.account
	defer a.lock()()
	c.answered, c.used = model, u
	now := a.usageAmount(c.answered, c.asked, u)
	if maxOfEach(now, c.held) == c.held {
		return loop.Amount{}, ""
	}
	need := a.committed()
	return need, exceededCap(a.grant, need)
}

// Settle ends the call with its final usage.
func (c *Charge) Settle(model string, u loop.Usage) {
	c.settleModels(loop.ModelUsage{Model: model, Usage: u})
}

func (c *Charge) settleModels(models ...loop.ModelUsage) {
	a := c.account
	defer a.lock()()
	if !c.remove() {
		return
	}
	a.calls++
	for _, m := range models {
		addUsage(a.settled, a.priceUsage(m.Model, c.asked, m.Usage))
	}
}

// Release ends the call without charging it. After Settle it does nothing.
func (c *Charge) Release() {
	defer c.account.lock()()
	c.remove()
}

// remove reports whether the call was still under way; a.mu is held.
func (c *Charge) remove() bool {
	a := c.account
	if _, live := a.live[c]; !live {
		return false
	}
	delete(a.live, c)
	close(a.freed)
	a.freed = make(chan struct{})
	return true
}
