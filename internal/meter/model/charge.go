package model

import (
	"context"
	"fmt"
	"sort"

	"github.com/pawl-run/pawl/internal/loop"
)

// asking is what a call wants to spend.
type asking struct {
	model   string
	input   int64 // tokens, estimated, without those in kept
	kept    int64 // tokens that come from the provider's cache, estimated
	output  int64 // tokens, at most
	write   bool  // the input is to be kept in the provider's cache, which costs more
	write1h bool  // for an hour
}

// with is what the call uses if so many tokens are written.
func (q asking) with(output int64) loop.Usage {
	u := loop.Usage{Input: q.input, CacheRead: q.kept, Output: output}
	if q.write {
		u.Input, u.CacheWrite = 0, q.input
	}
	if q.write && q.write1h {
		u.CacheWrite1h = q.input
	}
	return u
}

// charge is a call under way. Its fields belong to the mutex of the account.
type charge struct {
	account *Account
	asked   string // model
	model   string // that answered, once it is known
	held    loop.Amount
	used    loop.Usage
	output  int64 // tokens that it may write
}

// unpricedError is a model that cannot be paid for because nobody knows how much.
type unpricedError struct{ model string }

func (e *unpricedError) Error() string {
	return fmt.Sprintf("the run has a budget in money and the model %q has no price: the call was refused; add a price (`pawl prices update --file F`), or name a model that has one", e.model)
}

// open funds a call, or returns why it cannot be. It waits for calls under way
// if only what they hold is in the way.
func (a *Account) open(ctx context.Context, q asking) (*charge, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		c, freed, err := a.try(ctx, q)
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

// try funds a call, says why not, or returns what to wait for.
func (a *Account) try(ctx context.Context, q asking) (*charge, <-chan struct{}, error) {
	if c, _, err := a.hold(q); c != nil || err != nil {
		return c, nil, err
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	c, need, err := a.hold(q)
	if c != nil || err != nil {
		return c, nil, err
	}
	why := a.widen(ctx, need)
	return a.squeeze(q, why)
}

// hold funds a call whole. Without a charge and an error it returns what would
// have to be granted.
func (a *Account) hold(q asking) (*charge, loop.Amount, error) {
	defer a.lock()()
	if a.cause != nil {
		return nil, loop.Amount{}, a.cause
	}
	if a.grant.MicroUSD > 0 && !a.priced(q.model, q.model, q.with(q.output)).Priced {
		return nil, loop.Amount{}, &unpricedError{q.model}
	}
	want := a.amount(q.model, q.model, q.with(q.output))
	need := a.committed().Add(want)
	if short(a.grant, need) != "" {
		return nil, need, nil
	}
	return a.add(q, want, q.output), loop.Amount{}, nil
}

// squeeze funds a call with what is left, if that is enough for its input and
// for something to be written.
func (a *Account) squeeze(q asking, why error) (*charge, <-chan struct{}, error) {
	defer a.lock()()
	base := a.committed()
	if left := a.fits(q, base); left > 0 {
		return a.add(q, a.amount(q.model, q.model, q.with(left)), left), nil, nil
	}
	if len(a.live) > 0 && a.fits(q, a.spent()) > 0 {
		return nil, a.freed, nil
	}
	least := a.amount(q.model, q.model, q.with(1))
	return nil, nil, a.exhaust(short(a.grant, base.Add(least)), least, why)
}

// fits is how many tokens may be written on top of base, up to those that are
// asked for; a.mu is held. Money decides by search: prices need not be linear.
func (a *Account) fits(q asking, base loop.Amount) int64 {
	const most = 1 << 30
	first := sort.Search(int(min(q.output, most)), func(n int) bool {
		return short(a.grant, base.Add(a.amount(q.model, q.model, q.with(int64(n)+1)))) != ""
	})
	return int64(first)
}

func (a *Account) add(q asking, held loop.Amount, output int64) *charge {
	c := &charge{account: a, asked: q.model, held: held, output: output}
	a.live[c] = struct{}{}
	return c
}

// begin notes what a call has used of which nothing is known but that it is sent,
// for whoever adds up the calls of a process that died.
func (c *charge) begin(least loop.Usage) {
	defer c.account.lock()()
	c.used = least
}

// progress says what the call has used so far. It returns false if that is more
// than was granted: then the answer has to be cut.
func (c *charge) progress(ctx context.Context, model string, u loop.Usage) bool {
	a := c.account
	need, what := c.note(model, u)
	if what == "" {
		return true
	}
	a.asking.Lock()
	defer a.asking.Unlock()
	if _, what = c.note(model, u); what == "" {
		return true
	}
	why := a.widen(ctx, need)
	defer a.lock()()
	if what = short(a.grant, a.committed()); what == "" {
		return true
	}
	_ = a.exhaust(what, loop.Amount{}, why)
	return false
}

// note records what was used. Within what is held for the call there is nothing
// to decide; beyond that it returns what the account needs and which cap it passes.
func (c *charge) note(model string, u loop.Usage) (loop.Amount, string) {
	a := c.account
	defer a.lock()()
	c.model, c.used = model, u
	now := a.amount(c.model, c.asked, u)
	if larger(now, c.held) == c.held {
		return loop.Amount{}, ""
	}
	need := a.committed()
	return need, short(a.grant, need)
}

// settle ends the call with what it has used in the end.
func (c *charge) settle(model string, u loop.Usage) {
	a := c.account
	defer a.lock()()
	if !c.end() {
		return
	}
	a.calls++
	addTo(a.settled, a.priced(model, c.asked, u))
}

// release ends the call without a charge. After settle it does nothing.
func (c *charge) release() {
	defer c.account.lock()()
	c.end()
}

func (c *charge) end() bool {
	a := c.account
	if _, live := a.live[c]; !live {
		return false
	}
	delete(a.live, c)
	close(a.freed)
	a.freed = make(chan struct{})
	return true
}

// end exhausts the account for a reason that only the call knows.
func (a *Account) end(why error) error {
	defer a.lock()()
	return a.exhaust("", loop.Amount{}, why)
}
