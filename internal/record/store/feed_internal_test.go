package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// fed are the tables that the feed is about, with the columns that name a row and
// those that change without an entry.
var fed = map[loop.FeedKind]struct {
	table, id string
	silent    []string
}{
	loop.FeedRun:      {"runs", "id", []string{"lease_until_ms", "contends_until_ms"}}, // a heartbeat is not news
	loop.FeedLoop:     {"loops", "id", []string{"last_n"}},                             // the run with that number is
	loop.FeedApproval: {"approvals", "id", nil},
	loop.FeedBudget:   {"budgets", "scope_kind || '/' || scope_id", nil},
	loop.FeedHold:     {"holds", "subject", nil},
	loop.FeedAgent:    {"agents", "id", nil},
}

// announces calls a method in a transaction that is taken back, and fails the test
// if a row that the feed is about has changed without an entry.
func announces(t *testing.T, s *Store, run loop.Run, name string, call func(*RunTx) error) {
	t.Helper()
	ctx, undone := t.Context(), errors.New("undone")
	err := s.Update(ctx, func(tx *Tx) error {
		rt, err := tx.Enter(ctx, run, loop.PhaseAct)
		if err != nil {
			return err
		}
		tx.feed = nil
		before := fedRows(ctx, t, tx)
		if err := call(rt); err != nil {
			return undone // It may have changed nothing: this transaction would not be committed.
		}
		for kind, rows := range fedRows(ctx, t, tx) {
			for id, row := range rows {
				told := slices.ContainsFunc(tx.feed, func(e loop.FeedEntry) bool { return e.Kind == kind && e.ID == id })
				if row != before[kind][id] && !told {
					t.Errorf("%s changes the %s %s, and the feed does not say so: %+v", name, kind, id, tx.feed)
				}
				delete(before[kind], id)
			}
			for id := range before[kind] {
				if !slices.ContainsFunc(tx.feed, func(e loop.FeedEntry) bool { return e.Kind == kind && e.ID == id }) {
					t.Errorf("%s removes the %s %s, and the feed does not say so: %+v", name, kind, id, tx.feed)
				}
			}
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
}

// fedRows are the rows that the feed is about, by kind and id, without their silent
// columns.
func fedRows(ctx context.Context, t *testing.T, tx *Tx) map[loop.FeedKind]map[string]string {
	t.Helper()
	all := map[loop.FeedKind]map[string]string{}
	for kind, of := range fed {
		all[kind] = map[string]string{}
		rows, err := tx.q.QueryContext(ctx, "SELECT "+of.id+" AS row_id, * FROM "+of.table)
		if err != nil {
			t.Fatal(err)
		}
		if err := eachRow(rows, func(columns []string, values []any) {
			id := fmt.Sprint(values[0])
			for i, column := range columns[1:] {
				if !slices.Contains(of.silent, column) {
					all[kind][id] += fmt.Sprintf("%s=%v ", column, values[i+1])
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func eachRow(rows *sql.Rows, do func(columns []string, values []any)) error {
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		do(columns, values)
	}
	return rows.Err()
}
