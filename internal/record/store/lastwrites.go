package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// statement is one that writes and whose result nobody waits for.
type statement struct {
	doing string // what it does, for errors
	query string
	args  []any
}

// execLast executes a statement right before the commit.
func (t *Tx) execLast(doing, query string, args ...any) {
	t.last = append(t.last, statement{doing, query, args})
}

// flush executes the statements that were left to the end, on PostgreSQL in one round trip.
func (t *Tx) flush(ctx context.Context) error {
	conn, ok := t.q.(*sql.Conn)
	if t.native.postgres == nil || !ok {
		list := t.last
		t.last = nil
		for _, s := range list {
			if _, err := t.exec(ctx, s.query, s.args...); err != nil {
				return fmt.Errorf("%s: %w", s.doing, err)
			}
		}
		return nil
	}
	return t.sendLast(ctx, conn)
}

// sendLast sends the statements that were left to the end, and then others.
func (t *Tx) sendLast(ctx context.Context, conn *sql.Conn, then ...statement) error {
	list := slices.Concat(t.last, then)
	if t.last = nil; len(list) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, s := range list {
		batch.Queue(t.sql.expand(s.query), storableArgs(s.args...)...)
	}
	return conn.Raw(func(any) error {
		results := t.native.postgres.SendBatch(ctx, batch)
		for _, s := range list {
			tag, err := results.Exec()
			if err == nil && s.query == commitQuery && tag.String() == "ROLLBACK" {
				err = pgx.ErrTxCommitRollback
			}
			if err != nil {
				_ = results.Close() // It says the same.
				if s.doing == "" {
					return err
				}
				return fmt.Errorf("%s: %w", s.doing, err)
			}
		}
		return results.Close()
	})
}

const commitQuery = "commit"

// commitPostgres writes the feed and what was left to the end, and commits, in one round
// trip. If one of the statements fails, those after it are not executed: nothing is committed.
func (t *Tx) commitPostgres(ctx context.Context, conn *sql.Conn) error {
	t.leaveFeed()
	if _, ok := t.q.(*sql.Conn); !ok {
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	return t.sendLast(ctx, conn, statement{query: commitQuery})
}
