// Package store keeps the rows of pawl on SQLite or PostgreSQL with one set of
// SQL: workspaces, loops, runs, steps, iterations, turns, effects, approvals,
// events and the audit chain.
//
// Update is the only way to write and View the only way to read. What belongs
// to a run is written through a RunTx, which exists only while its fence is
// the newest one: a holder that lost its lease cannot write at all.
//
// The package never decides: it refuses what the state table of package loop
// does not list, and leaves every choice to its callers. Inside an Update no
// agent, git or file is touched.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Lease is how long a holder owns a run without extending its claim, unless
// Options.Lease says another time.
const Lease = 30 * time.Second

// Store is an open database. Its methods may be called concurrently.
type Store struct {
	w, r *sql.DB // on SQLite one writer and several readers, on PostgreSQL the same pool
	pool *pgxpool.Pool
	sql  dialect

	memory *memory     // set if the database is in memory
	frozen *frozen     // set if the folder of the file is not writable
	file   os.FileInfo // of the SQLite file when it was opened; nil on PostgreSQL
	clock  *databaseClock

	lease time.Duration // never zero

	inside *loop.Inside // each Update belongs to the agent of this run; nil: to nobody's

	commits atomic.Int64
	schema  atomic.Int64 // version of the tables when it was last read
}

// Lease is how long a claim of this store lasts without being extended.
func (s *Store) Lease() time.Duration { return s.lease }

// Commits is how many transactions Update has committed since Open.
func (s *Store) Commits() int64 { return s.commits.Load() }

type querier interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

// dialect holds the few places where the two databases differ.
type dialect struct {
	name      string
	place     string           // path, or address without the password
	now       string           // expression: the database's time in Unix milliseconds
	virtual   func() time.Time // instead of it; nil: none
	ours      string           // expression: 1 if runs are kept as pawl keeps them, else 0
	next      string           // expression: the next number in the order of firing
	forShare  string           // clause: rows that are read do not change before the transaction ends
	forUpdate string           // clause: rows that are read are not read so by another transaction before this one ends
	each      string           // function: a row with the column value for each element of a JSON list
	json      string           // cast: a text is JSON
	feed      feedDialect

	words *strings.Replacer // from prepared
}

// feedDialect is how the feed is read. $1 is the number of a cursor, $2 its
// transaction.
type feedDialect struct{ xact, at, after, settled, order, newest string }

// expand fills in {now}, the time of the database, so that leases of several
// machines are compared by one clock, {next}, {for_share} and {for_update}, {each} and {json}, and
// what the feed needs.
func (d dialect) expand(query string) string {
	words := d.words
	if d.virtual != nil {
		words = d.replacer(strconv.FormatInt(millis(d.virtual()), 10))
	}
	return words.Replace(query)
}

// prepared returns the same dialect with what fills in queries, which takes as long to
// make as a query of one row takes.
func (d dialect) prepared() dialect {
	d.words = d.replacer(d.now)
	return d
}

func (d dialect) replacer(now string) *strings.Replacer {
	return strings.NewReplacer(
		"{now}", now, "{ours}", d.ours, "{each}", d.each, "{json}", d.json, "{next}", d.next, "{for_share}", d.forShare, "{for_update}", d.forUpdate, "{xact}", d.feed.xact, "{at}", d.feed.at, "{after}", d.feed.after,
		"{settled}", d.feed.settled, "{order}", d.feed.order, "{newest}", d.feed.newest,
	)
}

// Reader reads rows in one consistent view.
type Reader struct {
	q     querier
	sql   dialect
	clock *databaseClock
}

func (r *Reader) queryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return r.q.QueryRowContext(ctx, r.sql.expand(query), args...)
}

// Tx is one write transaction; it reads what it wrote, except for events, links of audit
// chains and changed entries of the memory: they are written right before the commit, in one
// round trip.
type Tx struct {
	Reader
	now      time.Time
	lease    time.Duration
	native   native
	returned map[changeID]bool // changes that were returned, by earlier tries too

	extended bool             // the lease of a run, by its holder
	leased   loop.Run         // the run whose row was written last by its holder: ID and the lease that it has now
	feed     []loop.FeedEntry // to be written before the commit
	last     []statement      // to be executed before the commit
}

// changeID is a file change of a run.
type changeID struct {
	run string
	seq int
}

// native is the driver's own handle of the transaction; exactly one is set.
type native struct {
	sqlite   *sql.Tx
	postgres pgx.Tx
}

// Now is the time of the database, with which the transaction stamps rows.
func (t *Tx) Now() time.Time { return t.now }

// SQLite returns the driver's handle of this transaction, nil on PostgreSQL.
func (t *Tx) SQLite() *sql.Tx { return t.native.sqlite }

// Postgres returns the handle with which a PostgreSQL queue joins this
// transaction, nil on SQLite.
func (t *Tx) Postgres() pgx.Tx { return t.native.postgres }

// exec runs a statement that writes. Every text is made storable.
func (t *Tx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	res, err := t.q.ExecContext(ctx, t.sql.expand(query), storableArgs(args...)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// storableArgs makes every text storable on both databases: PostgreSQL refuses NUL and
// invalid UTF-8.
func storableArgs(args ...any) []any {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = storableText(s)
		}
	}
	return args
}

// SQLiteWriter is the only writing connection; nil on PostgreSQL. Whoever uses it inside
// Update waits for ever.
func (s *Store) SQLiteWriter() *sql.DB {
	if s.pool != nil {
		return nil
	}
	return s.w
}

// PostgresPool is the pool that a queue on PostgreSQL shares; nil on SQLite.
func (s *Store) PostgresPool() *pgxpool.Pool { return s.pool }

// Close ends all connections. It waits for running transactions.
func (s *Store) Close() error {
	err := errors.Join(s.memory.close(), s.w.Close())
	if s.r != s.w {
		err = errors.Join(err, s.r.Close())
	}
	if s.pool != nil {
		s.pool.Close()
	}
	return errors.Join(err, s.frozen.close())
}

// explain names the database in its errors; errors of callers are returned as they
// are.
func (s *Store) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if f := s.faultOf(err); f != nil {
		return f
	}
	if doing == "" {
		return err
	}
	return fmt.Errorf("%s %s: %w", doing, s.sql.name, err)
}

// faultOf says what a person can do about an error of the database. It is nil if pawl
// does not know.
func (s *Store) faultOf(err error) *loop.Fault {
	if f := s.schemaTrouble(err); f != nil {
		return f
	}
	if s.pool != nil {
		return postgresTrouble(s.sql.place, err)
	}
	return diskTrouble(s.sql.name, err)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
