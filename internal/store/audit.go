package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/loop"
)

const (
	chainHead  = `SELECT seq, hash FROM audit WHERE chain = $1 ORDER BY seq DESC LIMIT 1`
	insertLink = `INSERT INTO audit (chain, seq, at_ms, kind, run_id, body, prev, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
)

// lockChain serialises writers of one chain on PostgreSQL; on SQLite every
// write transaction is alone anyway.
const lockChain = `SELECT last_n FROM loops WHERE id = $1 FOR UPDATE`

// Link appends an entry to the audit chain of a loop.
func (t *Tx) Link(ctx context.Context, loopID, kind, runID string, body any) error {
	if t.native.postgres != nil {
		var n int64
		if err := t.row(ctx, lockChain, loopID).Scan(&n); err != nil {
			return fmt.Errorf("lock audit chain of %s: %w", loopID, err)
		}
	}
	l := loop.Link{Chain: loopID, At: fromMillis(millis(t.now)), Kind: kind, RunID: runID, Body: encode(body)}
	if err := t.row(ctx, chainHead, loopID).Scan(&l.Seq, &l.Prev); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read audit chain of %s: %w", loopID, err)
	}
	l.Seq++
	l.Hash = linkHash(l)
	if _, err := t.exec(ctx, insertLink, l.Chain, l.Seq, millis(l.At), l.Kind, l.RunID, l.Body, l.Prev, l.Hash); err != nil {
		return fmt.Errorf("append to audit chain of %s: %w", loopID, err)
	}
	return nil
}

// linkHash covers every field of the entry but the hash itself. Fields are
// JSON strings in a list, so no two entries run together into one text.
func linkHash(l loop.Link) string {
	body, err := json.Marshal([]any{l.Chain, l.Seq, millis(l.At), l.Kind, l.RunID, l.Body, l.Prev})
	if err != nil {
		panic("store: link does not marshal: " + err.Error())
	}
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

// VerifyChain finds the first entry that was changed, removed or put in
// another place, and says which. An empty chain is intact.
func VerifyChain(links []loop.Link) error {
	prev := ""
	for i, l := range links {
		switch {
		case l.Seq != int64(i+1):
			return fmt.Errorf("audit chain %s: entry %d is missing, %d follows", l.Chain, i+1, l.Seq)
		case l.Prev != prev:
			return fmt.Errorf("audit chain %s: entry %d does not follow entry %d", l.Chain, l.Seq, i)
		case l.Hash != linkHash(l):
			return fmt.Errorf("audit chain %s: entry %d was changed", l.Chain, l.Seq)
		}
		prev = l.Hash
	}
	return nil
}
