package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// KeyedCall is a call to which its caller gave a key, so that it is carried out once.
type KeyedCall struct {
	Known   bool   // it was recorded before
	Key     string // of the call, among all callers and workspaces
	Verb    string
	Request string // digest of what was asked
	Answer  string // JSON; empty: it is not known yet
}

// keepCalls is how long the answer of a call is kept.
const keepCalls = 30 * 24 * time.Hour

const (
	forgetCalls = `DELETE FROM keyed_calls WHERE made_ms < $1`
	insertCall  = `INSERT INTO keyed_calls (call_key, verb, request, made_ms) VALUES ($1, $2, $3, {now}) ON CONFLICT DO NOTHING`
	callByKey   = `SELECT call_key, verb, request, answer FROM keyed_calls WHERE call_key = $1`
	dropCall    = `DELETE FROM keyed_calls WHERE call_key = $1 AND answer = ''`
	answerCall  = `UPDATE keyed_calls SET answer = $1 WHERE call_key = $2`
)

// BeginCall records a call, unless its key has been used: then it returns what was recorded
// with it.
func (t *Tx) BeginCall(ctx context.Context, c KeyedCall) (KeyedCall, error) {
	if _, err := t.exec(ctx, forgetCalls, millis(t.now.Add(-keepCalls))); err != nil {
		return c, fmt.Errorf("forget old calls: %w", err)
	}
	n, err := t.exec(ctx, insertCall, storableText(c.Key), c.Verb, c.Request)
	if err == nil && n == 0 {
		c.Known = true
		err = t.queryRow(ctx, callByKey, storableText(c.Key)).Scan(&c.Key, &c.Verb, &c.Request, &c.Answer)
	}
	if err != nil {
		return c, fmt.Errorf("record a call: %w", err)
	}
	return c, nil
}

// DropCall forgets a call that was begun and did nothing.
func (t *Tx) DropCall(ctx context.Context, key string) error {
	if _, err := t.exec(ctx, dropCall, storableText(key)); err != nil {
		return fmt.Errorf("forget a call: %w", err)
	}
	return nil
}

// AnswerCall keeps the answer of a call that was begun.
func (t *Tx) AnswerCall(ctx context.Context, key, answer string) error {
	if _, err := t.exec(ctx, answerCall, storableText(answer), storableText(key)); err != nil {
		return fmt.Errorf("keep the answer of a call: %w", err)
	}
	return nil
}

const runByKey = `SELECT ` + runColumns + ` FROM runs WHERE run_key = $1`

// RunByKey returns the run that was fired with a key, or ErrNotFound.
func (r *Reader) RunByKey(ctx context.Context, key string) (loop.Run, error) {
	return r.oneRun(ctx, "run with key "+key, runByKey, storableText(key))
}
