package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// failing fails one statement of a transaction, and no other.
type failing struct {
	querier
	in     int  // so many statements from now on
	nulls  bool // it answers, with columns that no row has
	struck bool
}

func (f *failing) next(ctx context.Context) context.Context {
	if f.in--; f.in != 0 {
		return ctx
	}
	f.struck = true
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// spoiled is the query that is to be answered.
func (f *failing) spoiled(ctx context.Context, query string, args []any) (context.Context, string, []any) {
	if !f.nulls {
		return f.next(ctx), query, args
	}
	if f.in--; f.in != 0 {
		return ctx, query, args
	}
	n, err := f.columns(ctx, query, args)
	if err != nil {
		return ctx, query, args
	}
	f.struck = true
	return ctx, "SELECT " + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", "), nil
}

// columns is how many columns a query has.
func (f *failing) columns(ctx context.Context, query string, args []any) (int, error) {
	rows, err := f.querier.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	return len(columns), errors.Join(err, rows.Err())
}

func (f *failing) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if f.nulls { // Nothing of its answer is read but a number.
		return f.querier.ExecContext(ctx, query, args...)
	}
	return f.querier.ExecContext(f.next(ctx), query, args...)
}

func (f *failing) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, query, args = f.spoiled(ctx, query, args)
	return f.querier.QueryContext(ctx, query, args...)
}

func (f *failing) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	ctx, query, args = f.spoiled(ctx, query, args)
	return f.querier.QueryRowContext(ctx, query, args...)
}
