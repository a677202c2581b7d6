package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// reading is a query, and what its rows become.
type reading struct {
	query string
	args  []any
	add   func(row interface{ Scan(...any) error }) error
}

// readInto is a reading that appends each row to a list.
func readInto[T any](list *[]T, scan func(interface{ Scan(...any) error }) (T, error), query string, args ...any) reading {
	return reading{query, args, func(row interface{ Scan(...any) error }) error {
		item, err := scan(row)
		if err == nil {
			*list = append(*list, item)
		}
		return err
	}}
}

// readTogether reads what several queries find, on PostgreSQL in one round trip.
func (r *Reader) readTogether(ctx context.Context, list ...reading) error {
	if b, ok := r.q.(batcher); ok {
		return b.readBatch(ctx, r.sql, list)
	}
	for _, read := range list {
		_, err := appendRows(ctx, r, nil, read.query, func(row interface{ Scan(...any) error }) (struct{}, error) { return struct{}{}, read.add(row) }, read.args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// LoopState is what a run reads of its loop before it opens its memory.
type LoopState struct {
	Pending []loop.PendingChange // file changes for the node that are not known to be applied there, in the order in which they must be
	Steps   []loop.Step          // that the memory still holds
	Runs    []loop.Run           // the newest, newest first
	Holds   []loop.Hold          // of the subjects, by subject
}

// LoopState reads how a loop stands on a node, with at most so many runs.
func (r *Reader) LoopState(ctx context.Context, loopID, node string, runs int, subjects ...string) (s LoopState, err error) {
	holds, args := fillAmong(readHolds, "subject", nil, subjects)
	err = r.readTogether(
		ctx,
		readInto(&s.Pending, scanPending, pendingChanges, loopID, node),
		readInto(&s.Steps, scanStep, stepsOf, loopID),
		readInto(&s.Runs, scanRun, recentRuns, loopID, runs),
		readInto(&s.Holds, scanHold, holds, args...),
	)
	if err != nil {
		err = fmt.Errorf("read the state of loop %s: %w", loopID, err)
	}
	return s, err
}

// Undecided lists the approvals of a loop whose state is not final, and the effects of one kind that its runs
// have carried out, both newest first.
func (r *Reader) Undecided(ctx context.Context, loopID, kind string) (open []loop.Approval, done []loop.Effect, err error) {
	query, args := fillAmong(approvalsIn, "state", []any{loopID}, loop.PendingStates())
	err = r.readTogether(ctx, readInto(&open, scanApproval, query, args...), readInto(&done, scanEffect, effectsDone, loopID, kind))
	if err != nil {
		err = fmt.Errorf("read what nobody has decided of loop %s: %w", loopID, err)
	}
	return open, done, err
}

// batcher is a querier that sends several queries at once.
type batcher interface {
	readBatch(ctx context.Context, d dialect, list []reading) error
}

// postgresView is a read transaction of PostgreSQL on a connection of its own. It begins
// with the first query, in the same round trip if that is a batch.
type postgresView struct {
	*sql.Conn
	begun bool
	err   error // of the beginning
}

const beginView = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

// begin begins, unless it has begun. After an error every query fails: one that was made
// outside of the transaction would not be of its view.
func (v *postgresView) begin(ctx context.Context) context.Context {
	if !v.begun && v.err == nil {
		_, v.err = v.Conn.ExecContext(ctx, beginView)
		v.begun = v.err == nil
	}
	if v.err == nil {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(v.err)
	return ctx
}

// ExecContext implements querier.
func (v *postgresView) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return v.Conn.ExecContext(v.begin(ctx), query, args...)
}

// QueryContext implements querier.
func (v *postgresView) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return v.Conn.QueryContext(v.begin(ctx), query, args...)
}

// QueryRowContext implements querier.
func (v *postgresView) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return v.Conn.QueryRowContext(v.begin(ctx), query, args...)
}

// readBatch implements batcher.
func (v *postgresView) readBatch(ctx context.Context, d dialect, list []reading) error {
	if v.err != nil {
		return v.err
	}
	batch := &pgx.Batch{}
	began := v.begun
	if !began {
		batch.Queue(beginView)
	}
	for _, read := range list {
		batch.Queue(d.expand(read.query), read.args...)
	}
	return v.Raw(func(dc any) error {
		results := dc.(*stdlib.Conn).Conn().SendBatch(ctx, batch)
		if !began {
			if _, v.err = results.Exec(); v.err != nil {
				_ = results.Close() // It says the same.
				return v.err
			}
			v.begun = true
		}
		for _, read := range list {
			if err := readRows(results, read); err != nil {
				_ = results.Close() // It is about what follows.
				return err
			}
		}
		return results.Close()
	})
}

func readRows(results pgx.BatchResults, read reading) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read.add(postgresRow{rows}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// postgresRow scans as package sql does, which reads a number as a truth value.
type postgresRow struct{ pgx.Rows }

// Scan reads the columns of a row.
func (r postgresRow) Scan(into ...any) error {
	numbers := map[*bool]*int64{}
	into = slices.Clone(into)
	for i, v := range into {
		if truth, ok := v.(*bool); ok {
			numbers[truth] = new(int64)
			into[i] = numbers[truth]
		}
	}
	err := r.Rows.Scan(into...)
	for truth, n := range numbers {
		*truth = *n != 0
	}
	return err
}

// end ends the transaction. It changed nothing.
func (v *postgresView) end(ctx context.Context) error {
	if !v.begun {
		return v.Close()
	}
	_, err := v.Conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, v.Close())
}
