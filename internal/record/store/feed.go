package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// ErrFeedPruned is the error of Feed for a cursor whose entry was removed: later
// entries may have been removed too. The caller reads everything again and continues
// from FeedHead.
var ErrFeedPruned = errors.New("the feed no longer reaches back to this cursor")

// announce adds an entry to the feed when the transaction commits. Several entries
// about one thing become one with the last state; an empty state changes nothing.
func (t *Tx) announce(kind loop.FeedKind, id, loopID, state string) {
	for i, e := range t.feed {
		if e.Kind == kind && e.ID == id {
			if state != "" {
				t.feed[i].State = state
			}
			return
		}
	}
	t.feed = append(t.feed, loop.FeedEntry{Kind: kind, ID: id, LoopID: loopID, State: state})
}

// announceRun announces a run whose row, or what belongs to it, has changed.
func (t *Tx) announceRun(r loop.Run) {
	state := string(r.State)
	if r.Outcome != "" {
		state = string(r.Outcome)
	}
	t.announce(loop.FeedRun, r.ID, r.LoopID, state)
}

const insertFeed = `INSERT INTO feed (at_ms, kind, id, loop_id, state) VALUES {rows}`

// writeFeed writes what the transaction announced, and what it left to the end. It is called
// right before the commit.
func (t *Tx) writeFeed(ctx context.Context) error {
	t.leaveFeed()
	return t.flush(ctx)
}

// leaveFeed leaves what the transaction announced to its end.
func (t *Tx) leaveFeed() {
	var rows [][]any
	for _, e := range t.feed {
		rows = append(rows, []any{millis(t.now), string(e.Kind), e.ID, e.LoopID, e.State})
	}
	t.insertLast("write the feed", insertFeed, rows)
}

// On PostgreSQL an entry is read only when every transaction that began before its
// own has ended, so that no entry can appear before it later.
const (
	feedAfter = `SELECT {xact}, seq, at_ms, kind, id, loop_id, state FROM feed WHERE {after} AND {settled} ORDER BY {order} LIMIT $3`
	feedEntry = `SELECT count(*) FROM feed WHERE {at}`
	feedHead  = `SELECT {xact}, seq FROM feed WHERE {settled} ORDER BY {newest} LIMIT 1`
)

// Feed lists the entries after a cursor in their order, at most limit. Entries
// are never listed later than ones that follow them. A cursor whose entry was
// removed is ErrFeedPruned.
func (r *Reader) Feed(ctx context.Context, after loop.Cursor, limit int) ([]loop.FeedEntry, error) {
	xact := fmt.Sprint(after.Transaction)
	if after != (loop.Cursor{}) {
		var n int
		if err := r.queryRow(ctx, feedEntry, after.Seq, xact).Scan(&n); err != nil {
			return nil, fmt.Errorf("read the feed: %w", err)
		}
		if n == 0 {
			return nil, ErrFeedPruned
		}
	}
	return collect(ctx, r, feedAfter, func(row interface{ Scan(...any) error }) (e loop.FeedEntry, err error) {
		var at int64
		err = row.Scan(&e.Cursor.Transaction, &e.Cursor.Seq, &at, &e.Kind, &e.ID, &e.LoopID, &e.State)
		e.At = fromMillis(at)
		return e, err
	}, after.Seq, xact, limit)
}

// FeedHead is the cursor of the newest entry that Feed lists.
func (r *Reader) FeedHead(ctx context.Context) (c loop.Cursor, err error) {
	err = r.queryRow(ctx, feedHead).Scan(&c.Transaction, &c.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	return c, err
}

// FeedHead is Reader.FeedHead in one statement, which is a transaction of its own.
func (s *Store) FeedHead(ctx context.Context) (c loop.Cursor, err error) {
	defer s.announceWait(ctx)()
	if err = s.checkFile(); err == nil {
		c, err = (&Reader{s.r, s.sql, s.clock}).FeedHead(ctx)
	}
	return c, s.explainGone(s.explain("", s.frozen.checkUnchanged(err)))
}

const loopsMoved = `
SELECT EXISTS (SELECT 1 FROM feed WHERE {at}) AND NOT EXISTS (SELECT 1 FROM feed WHERE {after} AND kind = 'loop')`

// LoopsMoved reports whether the row of a loop of the store may have been written since
// FeedHead returned the cursor: by FeedHead's transaction, or later.
func (r *Reader) LoopsMoved(ctx context.Context, since loop.Cursor) (bool, error) {
	var still bool
	if err := r.queryRow(ctx, loopsMoved, since.Seq, fmt.Sprint(since.Transaction)).Scan(&still); err != nil {
		return false, fmt.Errorf("read the feed: %w", err)
	}
	return !still, nil
}

const pruneFeed = `
DELETE FROM feed
WHERE  at_ms < $1 AND seq < (SELECT max(seq) FROM feed) AND seq <= (SELECT max(seq) FROM (SELECT seq FROM feed ORDER BY seq LIMIT $2) oldest)`

// PruneFeed removes those of the oldest entries, at most so many, that are older than a
// time, but never the newest one, and returns how many. It reads no others.
func (t *Tx) PruneFeed(ctx context.Context, before time.Time, most int) (int64, error) {
	n, err := t.exec(ctx, pruneFeed, millis(before), most)
	if err != nil {
		return 0, fmt.Errorf("prune the feed: %w", err)
	}
	return n, nil
}
