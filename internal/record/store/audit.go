package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// lockChain says what the next entry of a chain follows, and makes other writers of the chain
// wait for the end of the transaction.
const lockChain = `SELECT links, head FROM chains WHERE id = $1{for_update}`

const (
	beginChain = `INSERT INTO chains (id, links, head) VALUES ($1, 0, '') ON CONFLICT DO NOTHING`
	insertLink = `INSERT INTO audit (chain, seq, at_ms, kind, run_id, body, prev, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	moveHead   = `UPDATE chains SET links = $1, head = $2 WHERE id = $3`
)

// Link appends an entry to an audit chain: that of a loop by its id, or that of
// a workspace for what belongs to none of its loops.
func (t *Tx) Link(ctx context.Context, chain, kind, runID string, body any) error {
	l := loop.Link{Chain: chain, At: fromMillis(millis(t.now)), Kind: kind, RunID: runID, Body: encode(body)}
	if slices.ContainsFunc(t.last, func(s statement) bool { return s.query == moveHead }) { // The next link follows it.
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	head, err := t.lockHead(ctx, chain)
	if err != nil {
		return fmt.Errorf("extend audit chain %s: %w", chain, err)
	}
	l.Seq, l.Prev = head.Links+1, head.Hash
	l.Hash = linkHash(l)
	t.execLast("append to audit chain "+chain, insertLink, l.Chain, l.Seq, millis(l.At), l.Kind, l.RunID, l.Body, l.Prev, l.Hash)
	t.execLast("move the head of audit chain "+chain, moveHead, l.Seq, l.Hash, chain)
	return nil
}

// lockHead returns where a chain ends, and locks its row, which it inserts if it is missing.
func (t *Tx) lockHead(ctx context.Context, chain string) (h Head, err error) {
	for {
		err = t.queryRow(ctx, lockChain, chain).Scan(&h.Links, &h.Hash)
		if !errors.Is(err, sql.ErrNoRows) {
			return h, err
		}
		if _, err := t.exec(ctx, beginChain, chain); err != nil {
			return h, err
		}
	}
}

// LinkBy is Link for a change by somebody, who becomes the "actor" of the body.
func (t *Tx) LinkBy(ctx context.Context, by loop.Actor, chain, kind, runID string, body map[string]any) error {
	body = maps.Clone(body)
	body["actor"] = by
	return t.Link(ctx, chain, kind, runID, body)
}

// Link is that of Tx. The entry of the run itself, or of the files that it owed, also
// holds the lines that this transaction appends to the loop's files, so that they can be
// compared and written again byte for byte, and in the order in which they were written.
func (t *RunTx) Link(ctx context.Context, chain, kind, runID string, body any) error {
	if (kind == loop.LinkRun || kind == loop.LinkOwed) && len(t.appended) > 0 {
		var fields map[string]json.RawMessage
		if err := decode("link of run "+runID, encode(body), &fields); err != nil {
			return err
		}
		fields["appended"] = json.RawMessage(encode(t.appended))
		body = fields
	}
	return t.Tx.Link(ctx, chain, kind, runID, body)
}

// linkHash covers every field of the entry but the hash itself. Fields are
// JSON strings in a list, so no two entries run together into one text.
func linkHash(l loop.Link) string {
	body, _ := json.Marshal([]any{l.Chain, l.Seq, millis(l.At), l.Kind, l.RunID, l.Body, l.Prev}) // Texts and numbers always have a JSON form.
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

const readChain = `SELECT chain, seq, at_ms, kind, run_id, body, prev, hash FROM audit WHERE chain = $1 ORDER BY seq`

// Chain returns the audit chain of a loop from its first entry.
func (r *Reader) Chain(ctx context.Context, loopID string) ([]loop.Link, error) {
	return collect(ctx, r, readChain, func(row interface{ Scan(...any) error }) (loop.Link, error) {
		var l loop.Link
		var at int64
		err := row.Scan(&l.Chain, &l.Seq, &at, &l.Kind, &l.RunID, &l.Body, &l.Prev, &l.Hash)
		l.At = fromMillis(at)
		return l, err
	}, loopID)
}

const readHead = `SELECT links, head FROM chains WHERE id = $1`

// Head is where an audit chain ends, as it is kept apart from the entries. The
// zero Head is that of an empty chain.
type Head struct {
	Links int64
	Hash  string
}

// ChainHead returns where a chain ends. A chain without entries has the zero Head.
func (r *Reader) ChainHead(ctx context.Context, chain string) (h Head, err error) {
	err = r.queryRow(ctx, readHead, chain).Scan(&h.Links, &h.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return h, err
}

// BreakError is the first place at which an audit chain does not hold.
type BreakError struct {
	Chain string
	Seq   int64  // of the entry
	What  string // what is wrong with it
	Found *loop.Link
}

func (e *BreakError) Error() string {
	return fmt.Sprintf("audit chain %s: entry %d %s", e.Chain, e.Seq, e.What)
}

// VerifyChain finds the first entry that was changed, removed or put in
// another place, and says which by a *BreakError. An empty chain is intact. It
// does not see that entries at the end are gone: Head.Verify does.
func VerifyChain(links []loop.Link) error {
	prev := ""
	for i, l := range links {
		n := int64(i + 1)
		switch {
		case l.Seq != n:
			return &BreakError{l.Chain, n, fmt.Sprintf("is missing, %d follows", l.Seq), &l}
		case l.Prev != prev:
			return &BreakError{l.Chain, n, fmt.Sprintf("does not follow entry %d", i), &l}
		case l.Hash != linkHash(l):
			return &BreakError{l.Chain, n, "was changed", &l}
		}
		prev = l.Hash
	}
	return nil
}

// Verify compares the end of a chain with its head. The error is a *BreakError.
func (h Head) Verify(chain string, links []loop.Link) error {
	n := int64(len(links))
	switch {
	case n < h.Links:
		return &BreakError{chain, n + 1, fmt.Sprintf("and all behind it are missing: there were %d", h.Links), nil}
	case n > h.Links:
		return &BreakError{chain, h.Links + 1, fmt.Sprintf("stands behind the end: there were %d", h.Links), &links[h.Links]}
	case n > 0 && links[n-1].Hash != h.Hash:
		return &BreakError{chain, n, "is not the one that the chain ended with", &links[n-1]}
	}
	return nil
}

const runEnds = `SELECT id, n, state, outcome FROM runs WHERE loop_id = $1 ORDER BY n`

// RunEnds lists what the audit of a loop compares its chain with: all runs of
// the loop by number, of which only ID, LoopID, N, State and Outcome are set.
func (r *Reader) RunEnds(ctx context.Context, loopID string) ([]loop.Run, error) {
	return collect(ctx, r, runEnds, func(row interface{ Scan(...any) error }) (loop.Run, error) {
		run := loop.Run{LoopID: loopID}
		err := row.Scan(&run.ID, &run.N, &run.State, &run.Outcome)
		return run, err
	}, loopID)
}
