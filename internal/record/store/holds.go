package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const saveHold = `
INSERT INTO holds (subject, until_ms, reason, detail, errors, updated_ms) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (subject) DO UPDATE
SET    until_ms = excluded.until_ms, reason = excluded.reason, detail = excluded.detail, errors = excluded.errors, updated_ms = excluded.updated_ms
WHERE  NOT (holds.reason <> '' AND excluded.reason <> '' AND excluded.until_ms <> 0 AND (holds.until_ms = 0 OR holds.until_ms > excluded.until_ms))`

// SetHold keeps runs of h.Subject from starting. It replaces the present hold, unless
// that one lasts longer: of two runs that are limited at the same time, only one may
// know until when. A zero Until means until somebody clears it; a hold without a
// reason holds nothing and only counts errors.
func (t *Tx) SetHold(ctx context.Context, h loop.Hold) error {
	_, err := t.exec(ctx, saveHold, h.Subject, millis(h.Until), string(h.Reason), h.Detail, h.Errors, millis(t.now))
	if err != nil {
		return fmt.Errorf("hold %s: %w", h.Subject, err)
	}
	t.announce(loop.FeedHold, h.Subject, "", string(h.Reason))
	return nil
}

const dropHold = `DELETE FROM holds WHERE subject = $1`

// ClearHold forgets the hold of a subject and its errors. It reports false if
// there was none.
func (t *Tx) ClearHold(ctx context.Context, subject string) (bool, error) {
	n, err := t.exec(ctx, dropHold, subject)
	if err != nil {
		return false, fmt.Errorf("clear the hold of %s: %w", subject, err)
	}
	if n == 1 {
		t.announce(loop.FeedHold, subject, "", "cleared")
	}
	return n == 1, nil
}

const readHolds = `SELECT subject, until_ms, reason, detail, errors, updated_ms FROM holds WHERE 1 = 1{among} ORDER BY subject`

// Holds lists the holds of the subjects, or every hold if none is given, by
// subject. Those whose time is over are among them: they carry the count of
// errors.
func (r *Reader) Holds(ctx context.Context, subjects ...string) ([]loop.Hold, error) {
	query, args := fillAmong(readHolds, "subject", nil, subjects)
	list, err := collect(ctx, r, query, scanHold, args...)
	if err != nil {
		return nil, fmt.Errorf("read the holds of %s: %w", strings.Join(subjects, ", "), err)
	}
	return list, nil
}

func scanHold(row interface{ Scan(...any) error }) (h loop.Hold, err error) {
	var until, updated int64
	err = row.Scan(&h.Subject, &until, &h.Reason, &h.Detail, &h.Errors, &updated)
	h.Until, h.Updated = fromMillis(until), fromMillis(updated)
	return h, err
}
