package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// mostRows bounds a list of rows without a limit of its own.
const mostRows = 1000

const rowColumns = `
SELECT p.row_set, p.row_key, p.scope, p.state, p.owner, p.version, p.body, p.made_ms, p.moved_ms,
       coalesce((SELECT r.id FROM runs r WHERE r.id = p.run_id AND r.state IN ('running', 'settling') AND r.lease_until_ms >= {now}), '')
FROM   protocol_rows p
WHERE  p.workspace_id = $1 AND p.row_set = $2`

func scanRow(row interface{ Scan(...any) error }) (r loop.Row, err error) {
	var body string
	var made, moved int64
	err = row.Scan(&r.Set, &r.Key, &r.Scope, &r.State, &r.Owner, &r.Version, &body, &made, &moved, &r.RunID)
	if err != nil {
		return r, err
	}
	r.Made, r.Moved = fromMillis(made), fromMillis(moved)
	return r, decode("row "+r.Key+" of "+r.Set, body, &r.Body)
}

// rowsQuery is the statement for a query, whose fields select only if they are set.
func rowsQuery(workspace string, q loop.RowQuery) (query string, args []any) {
	var b strings.Builder
	b.WriteString(rowColumns)
	args = []any{workspace, q.Set}
	among := func(column string, values ...string) {
		if len(values) == 0 {
			return
		}
		marks := make([]string, len(values))
		for i, v := range values {
			args = append(args, storableText(v))
			marks[i] = fmt.Sprintf("$%d", len(args))
		}
		fmt.Fprintf(&b, " AND p.%s IN (%s)", column, strings.Join(marks, ", "))
	}
	among("row_key", q.Keys...)
	if q.Scope != "" {
		among("scope", q.Scope)
	}
	if q.Owner != "" {
		b.WriteString(" AND p.owner <> ''")
		among("owner", q.Owner)
	}
	among("state", q.States...)
	direction := ""
	if q.Newest {
		direction = " DESC"
	}
	args = append(args, cmp.Or(q.Limit, mostRows))
	fmt.Fprintf(&b, " ORDER BY p.made_ms%s, p.row_key%s LIMIT $%d", direction, direction, len(args))
	return b.String(), args
}

// Rows lists rows of protocols of a workspace.
func (r *Reader) Rows(ctx context.Context, workspace string, q loop.RowQuery) ([]loop.Row, error) {
	query, args := rowsQuery(workspace, q)
	list, err := collect(ctx, r, query, scanRow, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", q.Set, err)
	}
	return list, nil
}

// Row returns one row, or ErrNotFound.
func (r *Reader) Row(ctx context.Context, workspace, set, key string) (loop.Row, error) {
	list, err := r.Rows(ctx, workspace, loop.RowQuery{Set: set, Keys: []string{key}})
	switch {
	case err != nil:
		return loop.Row{}, err
	case len(list) == 0:
		return loop.Row{}, fmt.Errorf("%s of %s: %w", key, set, loop.ErrNotFound)
	}
	return list[0], nil
}

const rowCounts = `SELECT scope, state, COUNT(*) FROM protocol_rows WHERE workspace_id = $1 AND row_set = $2 GROUP BY scope, state`

// CountRows counts the rows of a set by their scopes and states.
func (r *Reader) CountRows(ctx context.Context, workspace, set string) (map[string]map[string]int, error) {
	type count struct {
		scope, state string
		n            int
	}
	list, err := collect(ctx, r, rowCounts, func(row interface{ Scan(...any) error }) (c count, err error) {
		err = row.Scan(&c.scope, &c.state, &c.n)
		return c, err
	}, workspace, set)
	if err != nil {
		return nil, fmt.Errorf("count %s: %w", set, err)
	}
	all := map[string]map[string]int{}
	for _, c := range list {
		if all[c.scope] == nil {
			all[c.scope] = map[string]int{}
		}
		all[c.scope][c.state] = c.n
	}
	return all, nil
}

const (
	insertRow = `
INSERT INTO protocol_rows (workspace_id, row_set, row_key, scope, state, owner, run_id, version, body, made_ms, moved_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $9, $9) ON CONFLICT DO NOTHING`
	updateRow = `
UPDATE protocol_rows SET scope = $1, state = $2, owner = $3, run_id = $4, version = version + 1, body = $5, moved_ms = $6
WHERE  workspace_id = $7 AND row_set = $8 AND row_key = $9 AND version = $10`
	deleteRow = `DELETE FROM protocol_rows WHERE workspace_id = $1 AND row_set = $2 AND row_key = $3 AND version = $4`
	heldRow   = `SELECT version, body FROM protocol_rows WHERE workspace_id = $1 AND row_set = $2 AND row_key = $3 AND run_id = $4{for_update}`
)

// WriteRow writes a row of the workspace: one that is new if its Version is 0, else the one
// with that version; without a Body it is deleted. No run holds the row then. The error is
// loop.ErrRowChanged, and nothing is written, if the stored row is another one.
func (t *Tx) WriteRow(ctx context.Context, workspace string, r loop.Row) error {
	return t.writeRow(ctx, workspace, r, "")
}

func (t *Tx) writeRow(ctx context.Context, workspace string, r loop.Row, run string) error {
	var n int64
	var err error
	switch {
	case r.Version == 0 && len(r.Body) == 0:
		return nil
	case r.Version == 0:
		n, err = t.exec(ctx, insertRow, workspace, r.Set, r.Key, r.Scope, r.State, r.Owner, run, string(r.Body), millis(t.now))
	case len(r.Body) == 0:
		n, err = t.exec(ctx, deleteRow, workspace, r.Set, r.Key, r.Version)
	default:
		n, err = t.exec(ctx, updateRow, r.Scope, r.State, r.Owner, run, string(r.Body), millis(t.now), workspace, r.Set, r.Key, r.Version)
	}
	switch {
	case err != nil:
		return fmt.Errorf("write %s of %s: %w", r.Key, r.Set, err)
	case n == 0:
		return fmt.Errorf("write %s of %s: %w", r.Key, r.Set, loop.ErrRowChanged)
	}
	return nil
}

// ChangeRow writes a row as its fields say: with Hold the run holds it from then on, and with
// Holds it is written only if the run does so already. The error is that of WriteRow.
func (t *RunTx) ChangeRow(ctx context.Context, workspace string, r loop.Row) error {
	run := ""
	if r.Hold {
		run = t.run.ID
	}
	if !r.Holds {
		return t.writeRow(ctx, workspace, r, run)
	}
	var stored string
	held, err := collect(ctx, &t.Reader, heldRow, func(row interface{ Scan(...any) error }) (version int64, err error) {
		err = row.Scan(&version, &stored)
		return version, err
	}, workspace, r.Set, r.Key, t.run.ID)
	if err == nil && len(held) == 0 {
		err = loop.ErrRowChanged
	}
	if err != nil {
		return fmt.Errorf("change %s of %s: %w", r.Key, r.Set, err)
	}
	if r.Version = held[0]; len(r.Body) > 0 {
		if r.Body, err = loop.MergeFields(json.RawMessage(stored), r.Body); err != nil {
			return fmt.Errorf("change %s of %s: %w", r.Key, r.Set, err)
		}
	}
	return t.writeRow(ctx, workspace, r, run)
}
