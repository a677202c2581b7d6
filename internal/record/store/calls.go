package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// KeyedCall is a call to which its caller gave a key, so that it is carried out once.
type KeyedCall struct {
	Key     string // of the call, among all callers and workspaces
	Verb    string // that is carried out, or that has the answer
	Request string // digest of what was asked
	Answer  string // JSON; empty: it is not known yet

	By     loop.Holder // the process that carries it out; zero: none does
	Fence  int64       // counts the claims
	Lapsed bool        // the lease of By is over

	Claimed bool // BeginCall has claimed it for the caller
	Begun   bool // it was claimed before, and left without an answer
}

// Claim is the right to answer a call. It ends when another process has taken the call over.
// The zero Claim is that of a call without a key, whose answer is not kept.
type Claim struct {
	Key   string
	Fence int64
}

// keepCalls is how long the answer of a call is kept.
const keepCalls = 30 * 24 * time.Hour

const (
	forgetCalls = `DELETE FROM keyed_calls WHERE made_ms < $1`
	insertCall  = `
INSERT INTO keyed_calls (call_key, verb, request, holder, fence, lease_until_ms, made_ms) VALUES ($1, $2, $3, $4, 1, {now} + $5, {now})
ON CONFLICT DO NOTHING`
	// claimCall takes over a call that nobody carries out: its process is gone, as the caller has
	// seen, or has not extended its lease.
	claimCall = `
UPDATE keyed_calls SET verb = $1, holder = $2, fence = fence + 1, lease_until_ms = {now} + $3
WHERE  call_key = $4 AND request = $5 AND answer = '' AND (holder = '' OR holder = $6 OR lease_until_ms < {now})`
	callByKey  = `SELECT verb, request, answer, holder, fence, lease_until_ms < {now} FROM keyed_calls WHERE call_key = $1`
	extendCall = `UPDATE keyed_calls SET lease_until_ms = {now} + $1 WHERE call_key = $2 AND fence = $3`
	freeCall   = `UPDATE keyed_calls SET holder = '', lease_until_ms = 0 WHERE call_key = $1 AND fence = $2 AND answer = ''`
	dropCall   = `DELETE FROM keyed_calls WHERE call_key = $1 AND fence = $2 AND answer = ''`
	answerCall = `UPDATE keyed_calls SET answer = $1, holder = '' WHERE call_key = $2 AND fence = $3 AND answer = ''`
)

// BeginCall claims a call for the process c.By, unless it has an answer, another process carries
// it out, or its key was used for another request: then it returns what is recorded of the key.
// Gone is a process that the caller has proven dead; the zero Holder is none.
func (t *Tx) BeginCall(ctx context.Context, c KeyedCall, gone loop.Holder) (KeyedCall, error) {
	if _, err := t.exec(ctx, forgetCalls, millis(t.now.Add(-keepCalls))); err != nil {
		return c, fmt.Errorf("forget old calls: %w", err)
	}
	key, lease := storableText(c.Key), t.lease.Milliseconds()
	n, err := t.exec(ctx, insertCall, key, c.Verb, c.Request, encode(c.By), lease)
	if err != nil {
		return c, fmt.Errorf("record a call: %w", err)
	}
	begun := n == 0
	if begun {
		dead := ""
		if gone != (loop.Holder{}) {
			dead = encode(gone)
		}
		if n, err = t.exec(ctx, claimCall, c.Verb, encode(c.By), lease, key, c.Request, dead); err != nil {
			return c, fmt.Errorf("claim a call: %w", err)
		}
	}
	known, err := t.Call(ctx, c.Key)
	if errors.Is(err, loop.ErrNotFound) { // It was forgotten since it kept this one from being recorded.
		return KeyedCall{Key: c.Key, Verb: c.Verb, Request: c.Request}, nil
	}
	known.Claimed, known.Begun = n > 0, begun
	return known, err
}

// Call returns what is recorded of a key, or ErrNotFound.
func (r *Reader) Call(ctx context.Context, key string) (KeyedCall, error) {
	c := KeyedCall{Key: key}
	var holder string
	err := r.queryRow(ctx, callByKey, storableText(key)).Scan(&c.Verb, &c.Request, &c.Answer, &holder, &c.Fence, &c.Lapsed)
	if err == nil && holder != "" {
		err = decode("holder", holder, &c.By)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrNotFound
	}
	if err != nil {
		return c, fmt.Errorf("read a call: %w", err)
	}
	return c, nil
}

// Claim is that of a call that BeginCall has claimed.
func (c KeyedCall) Claim() Claim { return Claim{c.Key, c.Fence} }

// ExtendCall prolongs a claim, or returns ErrLeaseLost if another process has the call now.
func (t *Tx) ExtendCall(ctx context.Context, c Claim) error {
	return t.changeCall(ctx, "extend the claim of a call", extendCall, t.lease.Milliseconds(), storableText(c.Key), c.Fence)
}

// FreeCall ends a claim without an answer: the next caller carries the call out.
func (t *Tx) FreeCall(ctx context.Context, c Claim) error {
	return t.changeCall(ctx, "end the claim of a call", freeCall, storableText(c.Key), c.Fence)
}

// DropCall forgets a call that did nothing: its key may be used for another request.
func (t *Tx) DropCall(ctx context.Context, c Claim) error {
	return t.changeCall(ctx, "forget a call", dropCall, storableText(c.Key), c.Fence)
}

// AnswerCall keeps what a call is answered with, which ends the claim. In the transaction of
// what the call did it makes both happen or none. If another process has taken the call over the
// error is ErrLeaseLost.
func (t *Tx) AnswerCall(ctx context.Context, c Claim, answer any) error {
	if c == (Claim{}) {
		return nil
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("keep the answer of a call: %w", err)
	}
	return t.changeCall(ctx, "keep the answer of a call", answerCall, storableText(string(body)), storableText(c.Key), c.Fence)
}

// changeCall changes the row of a claim, or returns ErrLeaseLost if it does not count any more.
func (t *Tx) changeCall(ctx context.Context, doing, query string, args ...any) error {
	n, err := t.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = loop.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

const runByKey = `SELECT ` + runColumns + ` FROM runs WHERE run_key = $1`

// RunByKey returns the run that was fired with a key, or ErrNotFound.
func (r *Reader) RunByKey(ctx context.Context, key string) (loop.Run, error) {
	return r.oneRun(ctx, "run with key "+key, runByKey, storableText(key))
}
