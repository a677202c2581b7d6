package store

import (
	"context"
	"database/sql"
	"fmt"

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
	list := t.last
	if t.last = nil; len(list) == 0 {
		return nil
	}
	conn, ok := t.q.(*sql.Conn)
	if t.native.postgres == nil || !ok {
		for _, s := range list {
			if _, err := t.exec(ctx, s.query, s.args...); err != nil {
				return fmt.Errorf("%s: %w", s.doing, err)
			}
		}
		return nil
	}
	batch := &pgx.Batch{}
	for _, s := range list {
		batch.Queue(t.sql.expand(s.query), storableArgs(s.args...)...)
	}
	return conn.Raw(func(any) error {
		results := t.native.postgres.SendBatch(ctx, batch)
		for _, s := range list {
			if _, err := results.Exec(); err != nil {
				_ = results.Close() // It says the same.
				return fmt.Errorf("%s: %w", s.doing, err)
			}
		}
		return results.Close()
	})
}
