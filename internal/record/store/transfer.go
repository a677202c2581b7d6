package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// copiedTables are the tables that a copy of a store has, each after those that it refers
// to. The feed begins anew in a copy: it is for those who look at the store now.
var copiedTables = []string{
	"workspaces", "nodes", "placements", "git_configs", "loops", "definitions", "runs", "steps", "iterations", "turns", "effects", "changes", "approvals",
	"events", "audit", "chains", "test_counts", "budgets", "spending", "reservations", "holds", "agents", "sessions", "switches", "seats", "seat_locks",
	"ticks", "firing_events", "event_sources", "channels", "notices", "deliveries", "specs", "spec_revisions", "memories", "messages",
	"protocol_rows", "keyed_calls", "acceptances",
}

// emptiedTables are those in which a copy has nothing.
var emptiedTables = []string{"feed", "notice_cursor", "event_cursors"}

// TableCount is how many rows a table has.
type TableCount struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

// Copied says what a copy of a store has. It was compared with the original.
type Copied struct {
	Tables []TableCount `json:"tables"`
	Rows   int64        `json:"rows"`
	Runs   int64        `json:"runs"`
	Chains int64        `json:"chains"`
}

func (c *Copied) add(n TableCount) {
	c.Tables, c.Rows = append(c.Tables, n), c.Rows+n.Rows
	switch n.Table {
	case "runs":
		c.Runs = n.Rows
	case "chains":
		c.Chains = n.Rows
	}
}

var (
	beforeCopyCommit = fault.New("store.copy.commit.before")
	afterCopyCommit  = fault.New("store.copy.commit.after")
)

// CopyTo copies all rows into another store, of one database or the other, in one
// transaction there: as they are at one moment here, or none. It compares the number of
// rows and the heads of the audit chains before it commits. If the target has rows, it is a
// *loop.Fault unless they are to be replaced. Tell is called with each table before its
// rows are copied.
func (s *Store) CopyTo(ctx context.Context, target *Store, replace bool, tell func(table string)) (c Copied, err error) {
	err = s.View(ctx, func(r *Reader) error {
		w, err := target.beginCopy(ctx)
		if err != nil {
			return err
		}
		defer w.rollback(context.WithoutCancel(ctx))
		c, err = copyRows(ctx, r, w, replace, tell)
		if err != nil {
			return err
		}
		if err := beforeCopyCommit.Hit(ctx); err != nil {
			return err
		}
		if err := w.commit(ctx); err != nil {
			return fmt.Errorf("commit the copy: %w", err)
		}
		return afterCopyCommit.Hit(ctx)
	})
	return c, err
}

func copyRows(ctx context.Context, r *Reader, w *copyWriter, replace bool, tell func(table string)) (c Copied, err error) {
	there := &Reader{w.q, w.store.sql, w.store.clock}
	filled, err := firstFilled(ctx, there)
	switch {
	case err != nil:
		return c, err
	case filled != "" && !replace:
		return c, &loop.Fault{
			Exit: loop.ExitMissing, What: "copy into the " + w.store.sql.name + placeOf(w.store.sql),
			Why: "it is not empty: there are rows in its table " + filled, Fix: "name an empty database, or one that does not exist yet",
		}
	case filled != "":
		for _, table := range slices.Backward(slices.Concat(copiedTables, emptiedTables)) {
			if _, err := w.q.ExecContext(ctx, "DELETE FROM "+table); err != nil {
				return c, fmt.Errorf("empty the table %s: %w", table, err)
			}
		}
	}
	for _, table := range copiedTables {
		tell(table)
		n, err := copyTable(ctx, r, w, table)
		if err != nil {
			return c, fmt.Errorf("copy the table %s: %w", table, err)
		}
		c.add(TableCount{table, n})
		var made int64
		if err := there.queryRow(ctx, "SELECT count(*) FROM "+table).Scan(&made); err != nil || made != n {
			return c, errors.Join(err, fmt.Errorf("copy the table %s: %d rows were read, and %d are there", table, n, made))
		}
	}
	if err := w.advanceSequences(ctx); err != nil {
		return c, err
	}
	return c, compareChains(ctx, r, there)
}

// firstFilled names a table that has rows; empty if none has.
func firstFilled(ctx context.Context, r *Reader) (string, error) {
	for _, table := range copiedTables {
		var n int
		err := r.queryRow(ctx, "SELECT 1 FROM "+table+" LIMIT 1").Scan(&n)
		if err == nil {
			return table, nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return "", fmt.Errorf("look into the table %s: %w", table, err)
		}
	}
	return "", nil
}

// columnsOf lists the columns of a table, sorted, so that both databases agree.
func columnsOf(ctx context.Context, r *Reader, table string) (names []string, err error) {
	rows, err := r.q.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err = rows.Columns()
	slices.Sort(names)
	return names, errors.Join(err, rows.Err())
}

// copyTable copies the rows of one table. It holds as many of them as one statement inserts.
func copyTable(ctx context.Context, r *Reader, w *copyWriter, table string) (n int64, err error) {
	columns, err := columnsOf(ctx, r, table)
	if err != nil {
		return 0, err
	}
	rows, err := r.q.QueryContext(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+table)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	source := &rowSource{rows: rows, values: make([]any, len(columns)), into: make([]any, len(columns))}
	for i := range source.values {
		source.into[i] = &source.values[i]
	}
	n, err = w.insert(ctx, table, columns, source)
	return n, errors.Join(err, rows.Err())
}

// rowSource hands out the rows of a query one by one, as pgx.CopyFromSource does.
type rowSource struct {
	rows         *sql.Rows
	values, into []any
	n            int64
	err          error
}

// Next reads the next row.
func (s *rowSource) Next() bool {
	if s.err != nil || !s.rows.Next() {
		return false
	}
	if s.err = s.rows.Scan(s.into...); s.err != nil {
		return false
	}
	s.n++
	return true
}

// Values are those of the row, until Next is called again.
func (s *rowSource) Values() ([]any, error) { return s.values, nil }

// Err is why there is no next row; nil at the end.
func (s *rowSource) Err() error { return errors.Join(s.err, s.rows.Err()) }

// chainsDigest is the same for the same chains, in whatever order a database has them.
func chainsDigest(ctx context.Context, r *Reader) (n int64, digest [sha256.Size]byte, err error) {
	rows, err := r.q.QueryContext(ctx, "SELECT id, links, head FROM chains")
	if err != nil {
		return 0, digest, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, head string
		var links int64
		if err := rows.Scan(&id, &links, &head); err != nil {
			return 0, digest, err
		}
		one := sha256.Sum256(fmt.Appendf(nil, "%q %d %s", id, links, head))
		for i := range digest {
			digest[i] ^= one[i]
		}
		n++
	}
	return n, digest, rows.Err()
}

const brokenHeads = `
SELECT count(*) FROM chains c WHERE NOT EXISTS (SELECT 1 FROM audit a WHERE a.chain = c.id AND a.seq = c.links AND a.hash = c.head)`

// compareChains holds that a copy has the heads of the audit chains of the original, and
// the entries that they are about.
func compareChains(ctx context.Context, r, there *Reader) error {
	n, want, err := chainsDigest(ctx, r)
	if err != nil {
		return fmt.Errorf("read the audit chains: %w", err)
	}
	made, got, err := chainsDigest(ctx, there)
	if err != nil {
		return fmt.Errorf("read the audit chains of the copy: %w", err)
	}
	if n != made || want != got {
		return fmt.Errorf("the heads of %d audit chains are not those of the %d of the copy", n, made)
	}
	var broken int64
	if err := there.queryRow(ctx, brokenHeads).Scan(&broken); err != nil {
		return fmt.Errorf("read the audit chains of the copy: %w", err)
	}
	if broken > 0 {
		return &loop.Fault{
			Exit: loop.ExitError, What: "copy the store", Why: fmt.Sprintf("the end of %d audit chains is not in the record: they were changed before", broken),
			Fix: "{1} says which", Actions: []loop.Command{loop.PawlCommand("audit verify")},
		}
	}
	return nil
}

// copyWriter is a transaction into which rows are copied.
type copyWriter struct {
	store *Store
	q     querier
	tx    *sql.Tx   // on SQLite
	conn  *sql.Conn // on PostgreSQL
	pg    pgx.Tx
}

func (s *Store) beginCopy(ctx context.Context) (*copyWriter, error) {
	w := &copyWriter{store: s}
	if s.pool == nil {
		tx, err := s.w.BeginTx(ctx, nil)
		w.tx, w.q = tx, tx
		return w, s.explain("begin", err)
	}
	conn, tx, err := s.beginPostgres(ctx)
	w.conn, w.pg, w.q = conn, tx, conn
	return w, err
}

func (w *copyWriter) commit(ctx context.Context) error {
	if w.tx != nil {
		return w.store.explain("commit", w.tx.Commit())
	}
	return w.store.explain("commit", w.conn.Raw(func(any) error { return w.pg.Commit(ctx) }))
}

// rollback takes back what was not committed.
func (w *copyWriter) rollback(ctx context.Context) {
	if w.tx != nil {
		_ = w.tx.Rollback()
		return
	}
	_ = w.conn.Raw(func(any) error { return w.pg.Rollback(ctx) })
	_ = w.conn.Close()
}

// mostParameters is how many parameters a statement has at most that inserts copied rows.
const mostParameters = 500

// insertRowsInto is a statement that inserts so many rows. Its parameters have no numbers: the driver
// of SQLite looks for each that has one among all.
func insertRowsInto(table string, columns []string, rows int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ") + ")"
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES " + strings.TrimSuffix(strings.Repeat(one+", ", rows), ", ")
}

func (w *copyWriter) insert(ctx context.Context, table string, columns []string, rows *rowSource) (int64, error) {
	if w.pg != nil {
		err := w.conn.Raw(func(any) error {
			_, err := w.pg.CopyFrom(ctx, pgx.Identifier{table}, columns, rows)
			return err
		})
		return rows.n, err
	}
	atOnce := max(1, mostParameters/len(columns))
	full, err := w.tx.PrepareContext(ctx, insertRowsInto(table, columns, atOnce))
	if err != nil {
		return 0, err
	}
	defer full.Close()
	args := make([]any, 0, atOnce*len(columns))
	for rows.Next() {
		args = append(args, rows.values...)
		if len(args) == cap(args) {
			if _, err := full.ExecContext(ctx, args...); err != nil {
				return rows.n, err
			}
			args = args[:0]
		}
	}
	if err := rows.Err(); err != nil || len(args) == 0 {
		return rows.n, err
	}
	_, err = w.tx.ExecContext(ctx, insertRowsInto(table, columns, len(args)/len(columns)), args...)
	return rows.n, err
}

// advanceSequences makes new rows be numbered after those that were copied. SQLite looks
// for the highest number by itself.
func (w *copyWriter) advanceSequences(ctx context.Context) error {
	if w.pg == nil {
		return nil
	}
	for sequence, newest := range map[string]string{"runs_seq": "SELECT max(seq) FROM runs", "notices_seq_seq": "SELECT max(seq) FROM notices"} {
		if _, err := w.q.ExecContext(ctx, "SELECT setval('"+sequence+"', n) FROM ("+newest+") x (n) WHERE n > 0"); err != nil {
			return fmt.Errorf("advance %s: %w", sequence, err)
		}
	}
	return nil
}
