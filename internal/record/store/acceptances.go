package store

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const insertAcceptances = `
INSERT INTO acceptances (loop_id, digest, how, accepted_by, accepted_ms) VALUES {rows}
ON CONFLICT DO NOTHING`

// Accept records that definitions of loops were accepted. What was accepted before stays as it
// was recorded first.
func (t *Tx) Accept(ctx context.Context, list ...loop.Acceptance) error {
	rows := make([][]any, len(list))
	for i, a := range list {
		rows[i] = []any{a.LoopID, a.Digest, string(a.How), encode(a.By), millis(t.now)}
	}
	if err := t.insertRows(ctx, insertAcceptances, rows); err != nil {
		return fmt.Errorf("accept definitions: %w", err)
	}
	return nil
}

const countAcceptances = `SELECT COUNT(*) FROM acceptances WHERE loop_id = $1 AND digest = $2`

// IsAccepted reports whether the definition of a loop with that digest was accepted.
func (r *Reader) IsAccepted(ctx context.Context, loopID, digest string) (bool, error) {
	var n int
	if err := r.queryRow(ctx, countAcceptances, loopID, digest).Scan(&n); err != nil {
		return false, fmt.Errorf("look whether definition %s is accepted: %w", digest, err)
	}
	return n > 0, nil
}
