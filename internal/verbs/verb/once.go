package verb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/waiting"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

var (
	afterClaim   = fault.New("api.call.claim.after")
	beforeAnswer = fault.New("api.call.answer.before")
)

// mostKey bounds the keys of callers, in bytes.
const mostKey = 200

// Once says how a call with a key is carried out once, although its process may end at any
// moment.
type Once int

const (
	// InOneTransaction stores the effect of the verb, the key and the answer together. A call without an
	// answer has changed nothing.
	InOneTransaction Once = iota + 1
	// ByRun starts a run that keeps the key. Before it starts one, it looks for that run.
	ByRun
	// Repeatable sets something to a state. Done again, it changes nothing more.
	Repeatable
	// Unknown leaves no row that tells whether a call without an answer was carried out. It is not repeated.
	Unknown
)

// doOnce carries a verb out whose caller gave a key, unless it was carried out before. Of equal
// calls at once one is carried out, and the others wait for its answer. A call whose process
// ended before it had an answer is made again, if what it did can be found by its key.
func (i Info) doOnce(ctx context.Context, c Call, in any) (any, error) {
	if len(c.Key) > mostKey {
		return nil, &loop.Fault{Exit: loop.ExitUsage, What: "the idempotency key is too long", Why: fmt.Sprintf("it has %d bytes", len(c.Key)), Fix: fmt.Sprintf("use one of at most %d bytes", mostKey)}
	}
	place := ""
	if i.InWorkspace {
		ws, err := c.Workspace(ctx)
		if err != nil {
			return nil, err
		}
		place = ws.place().Root
		c.Workspace = func(context.Context) (Workspace, error) { return ws, nil }
	}
	request, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	given := c.Key
	caller := []string{place, string(c.By.Role), cmp.Or(i.Twin, i.Name), given}
	if c.By.Run != "" { // Each run has keys of its own.
		caller = append(caller, c.By.Run)
	}
	c.Key = "call/" + digest(caller...)
	call := store.KeyedCall{Key: c.Key, Verb: i.Name, Request: digest(string(request)), By: c.Store.claims().Self}
	for {
		known, err := c.Store.claims().begin(ctx, call)
		switch {
		case err != nil:
			return nil, err
		case known.Request != call.Request:
			return nil, &loop.Fault{
				Exit: loop.ExitUsage, What: fmt.Sprintf("the idempotency key %q was used before", given), Why: "with other arguments", Fix: "use a new key for another call",
			}
		case known.Answer != "" && known.Verb != i.Name: // It was queued, and is now asked for in a process, or the other way round.
			return i.do(ctx, c, in)
		case known.Answer != "":
			out := reflect.New(i.Out)
			err := json.Unmarshal([]byte(known.Answer), out.Interface())
			return out.Elem().Interface(), err
		}
		c.Claim = known.Claim()
		if known.Begun && i.Once == Unknown {
			_, err := c.endClaim(ctx, (*store.Tx).FreeCall)
			return nil, cmp.Or(err, error(&loop.Fault{
				Exit: loop.ExitHeld, What: fmt.Sprintf("a call with the idempotency key %q was begun and has no answer", given), Why: "its process ended",
				Fix: "see whether it was carried out; if it was not, use a new key",
			}))
		}
		out, err := i.doClaimed(ctx, c, in)
		end := func(tx *store.Tx, ctx context.Context, claim store.Claim) error {
			return tx.AnswerCall(ctx, claim, out)
		}
		switch {
		case err != nil && i.Once == ByRun: // Its run has the key, for this request only.
			end = (*store.Tx).FreeCall
		case err != nil:
			end = (*store.Tx).DropCall
		}
		lost, endErr := c.endClaim(ctx, end)
		if lost && err != nil && ctx.Err() == nil {
			continue // This process was suspended, and another one has carried the call out: that is what was in the way.
		}
		if endErr != nil {
			err = errors.Join(err, endErr)
		}
		return out, err
	}
}

// doClaimed carries a claimed call out. Its claim is prolonged meanwhile.
func (i Info) doClaimed(ctx context.Context, c Call, in any) (out any, err error) {
	defer c.keepClaim(ctx)()
	if err := afterClaim.Hit(ctx); err != nil {
		return nil, err
	}
	out, err = i.do(ctx, c, in)
	if failed := beforeAnswer.Hit(ctx); failed != nil {
		err = errors.Join(err, failed)
	}
	return out, err
}

// How long it takes until a call that waits for an equal one looks again.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// begin claims a call, and waits as long as another one with its key is carried out. It
// returns the claim, or what is known of the key: an answer, or that it was used for another
// request.
func (c *Claims) begin(ctx context.Context, call store.KeyedCall) (known store.KeyedCall, err error) {
	var by atomic.Value
	by.Store("")
	defer waiting.For(ctx, "another call with the same idempotency key", func() string { return by.Load().(string) })()
	gone, look := loop.Holder{}, firstLook
	for {
		err = c.Rows.Update(ctx, func(tx *store.Tx) (err error) {
			known, err = tx.BeginCall(ctx, call, gone)
			return err
		})
		if err != nil || known.Claimed || known.Answer != "" || known.Request != call.Request {
			return known, err
		}
		for known.By != (loop.Holder{}) && known.Answer == "" && !known.Lapsed {
			by.Store(known.By.String())
			if c.HolderState(known.By) == loop.HolderDead {
				gone = known.By
				break
			}
			select {
			case <-ctx.Done():
				return known, context.Cause(ctx)
			case <-time.After(look):
			}
			look = min(2*look, lastLook)
			err = c.Rows.View(ctx, func(r *store.Reader) error {
				known, err = r.Call(ctx, call.Key)
				return err
			})
			if errors.Is(err, loop.ErrNotFound) { // It did nothing, and was forgotten.
				break
			}
			if err != nil {
				return known, err
			}
		}
	}
}

// keepClaim prolongs the claim of a call until stop is called. One that is lost is not fought
// for: what the call does counts once by itself.
func (c Call) keepClaim(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(c.Store.claims().Rows.Lease() / 3)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			err := c.Store.claims().Rows.Update(ctx, func(tx *store.Tx) error { return tx.ExtendCall(ctx, c.Claim) })
			if errors.Is(err, loop.ErrLeaseLost) {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// endClaim writes what becomes of a claim, also if the caller has gone. It reports whether the
// claim was lost, or the call was answered, before.
func (c Call) endClaim(ctx context.Context, end func(*store.Tx, context.Context, store.Claim) error) (lost bool, err error) {
	ctx = context.WithoutCancel(ctx)
	err = c.Store.claims().Rows.Update(ctx, func(tx *store.Tx) error { return end(tx, ctx, c.Claim) })
	if errors.Is(err, loop.ErrLeaseLost) {
		return true, nil
	}
	return false, err
}

// digest tells sequences of texts apart.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
