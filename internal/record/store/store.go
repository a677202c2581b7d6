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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/waiting"
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

// Update runs fn in one write transaction and commits if it returns nil.
// Nothing is written otherwise, and the error of fn comes back as it is.
//
// PostgreSQL may abort a transaction because of a conflict with another. Then fn is
// called again: outside of the database it must set results, not add to them.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	defer s.announceWait(ctx)()
	tries := newAttempts()
	for n := 1; ; n++ {
		err := s.tryUpdate(ctx, tries, fn)
		if !isSerializationFailure(err) || n == maxAttempts || ctx.Err() != nil {
			return err
		}
	}
}

// maxAttempts is how often a transaction is tried that PostgreSQL aborts.
const maxAttempts = 10

// attempts is the state that all attempts of one transaction share.
type attempts struct {
	told     map[changeID]bool
	commit   commit // what is known about the commit of the last attempt
	extended bool   // the last attempt extended a lease
}

func newAttempts() *attempts { return &attempts{told: map[changeID]bool{}} }

// tryUpdate is one attempt of a transaction.
func (s *Store) tryUpdate(ctx context.Context, t *attempts, fn func(*Tx) error) error {
	if err := s.checkFile(); err != nil {
		return err
	}
	if in := s.inside; in != nil {
		write := fn
		fn = func(tx *Tx) error {
			if err := tx.CheckInside(ctx, *in); err != nil {
				return err
			}
			return write(tx)
		}
	}
	t.extended = false
	try := s.trySQLite
	switch {
	case s.pool != nil:
		try = s.tryPostgres
	case s.memory != nil:
		try = s.tryMemory
	}
	err := try(ctx, t, fn)
	if err == nil {
		s.commits.Add(1)
	}
	return err
}

func (s *Store) trySQLite(ctx context.Context, t *attempts, fn func(*Tx) error) error {
	var tx *sql.Tx
	err := retryWhileBusy(ctx, s.commitCounter(ctx), func() (err error) {
		tx, err = s.w.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return s.explain("begin", err)
	}
	defer func() { _ = tx.Rollback() }() // After a commit this does nothing.
	reader := Reader{tx, s.sql, s.clock}
	if err := s.clock.refresh(ctx, &reader); err != nil {
		return s.explain("", err)
	}
	ours := &Tx{Reader: reader, now: s.Now(), lease: s.lease, native: native{sqlite: tx}, returned: t.told}
	if err := fn(ours); err != nil {
		return s.explain("", err)
	}
	if err := ours.writeFeed(ctx); err != nil {
		return s.explain("", err)
	}
	t.extended = ours.extended
	return s.explain("commit", tx.Commit())
}

// tryMemory is trySQLite for a database in memory.
func (s *Store) tryMemory(ctx context.Context, t *attempts, fn func(*Tx) error) error {
	err := s.memory.update(ctx, func(q querier) error {
		ours := &Tx{Reader: Reader{q, s.sql, s.clock}, now: s.Now(), lease: s.lease, returned: t.told}
		if err := fn(ours); err != nil {
			return err
		}
		t.extended = ours.extended
		return ours.writeFeed(ctx)
	})
	return s.explain("", err)
}

// announceWait reports a wait for the database, on SQLite with the process that
// holds it, until done is called.
func (s *Store) announceWait(ctx context.Context) (done func()) {
	return waiting.For(ctx, "the "+s.sql.name+" to answer", func() string {
		if s.pool != nil {
			return ""
		}
		return flock.Holder(s.sql.place + "-shm")
	})
}

// busyPause is the pause after SQLite reports that it is busy, which it does at once
// if waiting could be a deadlock.
const busyPause = 5 * time.Millisecond

// retryWhileBusy calls fn again while other processes write to a SQLite file. It
// pauses for the same time after each attempt, so that no process starves. A caller
// with a deadline waits until then. Any other gives up when nobody has committed
// anything for the length of a lease: with many writers on a slow machine, the last
// may have to wait longer than that.
func retryWhileBusy(ctx context.Context, committed func() int64, fn func() error) error {
	err := fn()
	if !isBusy(err) {
		return err
	}
	_, bounded := ctx.Deadline()
	for before := committed(); ; {
		err := retryForLease(ctx, fn)
		if !isBusy(err) || ctx.Err() != nil {
			return err
		}
		now := committed()
		if now == before && !bounded {
			return err
		}
		before = now
	}
}

// retryForLease calls fn again while SQLite is busy, for the length of a lease.
func retryForLease(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Lease)
	defer cancel()
	for {
		err := fn()
		if !isBusy(err) || ctx.Err() != nil {
			return err
		}
		pause, done := context.WithTimeout(ctx, busyPause)
		<-pause.Done()
		done()
	}
}

// commitCounter returns a number that changes when another process commits to a
// SQLite file, or 0 if nothing can be read yet.
func (s *Store) commitCounter(ctx context.Context) func() int64 {
	return func() (n int64) {
		if s.w.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&n) != nil {
			return 0
		}
		return n
	}
}

// Patience is how long one transaction of a run may take, waiting included. On SQLite
// that is long: the process that writes may get no CPU for a while, and the work of
// the run is worth the wait.
func (s *Store) Patience() time.Duration {
	if s.pool == nil {
		return 10 * Lease
	}
	return Lease
}

// Waiting reports whether an error means only that other processes of this host were
// using the store for too long. It is never so on PostgreSQL, which has many writers.
func (s *Store) Waiting(err error) bool {
	return s.pool == nil && (isBusy(err) || errors.Is(err, context.DeadlineExceeded))
}

// isBusy reports whether an error of SQLite means that others use the file: with many
// of them a reader may also lose every race for a snapshot (SQLITE_PROTOCOL).
func isBusy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	code := e.Code() & 0xff
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_PROTOCOL
}

// isSerializationFailure reports whether PostgreSQL aborted a transaction only
// because of another one, for example because two lock the same rows in different
// orders.
func isSerializationFailure(err error) bool {
	const serializationFailure, deadlockDetected = "40001", "40P01"
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == serializationFailure || e.Code == deadlockDetected)
}

// beginPostgres begins on the raw connection, because a queue on PostgreSQL
// needs a pgx.Tx: our SQL goes through conn and the queue's through tx, which
// is one connection and so one transaction. Whoever calls it closes conn.
func (s *Store) beginPostgres(ctx context.Context) (conn *sql.Conn, tx pgx.Tx, err error) {
	conn, err = s.w.Conn(ctx)
	if err != nil {
		return nil, nil, s.explain("connect", err)
	}
	// After a statement that could not be sent, as when its context had ended,
	// database/sql gives the connection back by itself, and it is closed beside whoever
	// still uses it. Raw is an error then, and the server rolls back.
	err = conn.Raw(func(dc any) (err error) {
		tx, err = dc.(*stdlib.Conn).Conn().Begin(ctx)
		return err
	})
	if err != nil {
		_ = conn.Close()
		return nil, nil, s.explain("begin", err)
	}
	return conn, tx, nil
}

func (s *Store) tryPostgres(ctx context.Context, t *attempts, fn func(*Tx) error) error {
	conn, tx, err := s.beginPostgres(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	committed := false
	defer func() {
		if !committed {
			_ = conn.Raw(func(any) error { return tx.Rollback(context.WithoutCancel(ctx)) })
		}
	}()
	reader := Reader{conn, s.sql, s.clock}
	if err := s.clock.refresh(ctx, &reader); err != nil {
		return s.explain("", err)
	}
	ours := &Tx{Reader: reader, now: s.Now(), lease: s.lease, native: native{postgres: tx}, returned: t.told}
	if done, err := t.commit.wasCommitted(ctx, ours); done || err != nil {
		return s.explain("", err)
	}
	if err := fn(ours); err != nil {
		return s.explain("", err)
	}
	if err := t.commit.recordLease(ctx, ours); err != nil {
		return s.explain("", err)
	}
	t.extended = ours.extended
	err = ours.commitPostgres(ctx, conn)
	t.commit.unknown, committed = isAway(err), err == nil
	return s.explain("commit", err)
}

// beforeView is passed by each reading of rows but TryView.
var beforeView = fault.New("store.view.before")

// View runs fn on one consistent view of the rows. fn must not keep the Reader.
func (s *Store) View(ctx context.Context, fn func(*Reader) error) error {
	if err := beforeView.Hit(ctx); err != nil {
		return s.explain("", err)
	}
	return s.tryView(ctx, fn)
}

func (s *Store) tryView(ctx context.Context, fn func(*Reader) error) error {
	defer s.announceWait(ctx)()
	if err := s.checkFile(); err != nil {
		return err
	}
	switch {
	case s.memory != nil:
		return s.explain("", s.memory.view(ctx, func(q querier) error { return fn(&Reader{q, s.sql, s.clock}) }))
	case s.pool != nil:
		return s.viewPostgres(ctx, fn)
	}
	tx, err := s.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // It is one snapshot.
	if err != nil {
		return s.explain("begin", err)
	}
	defer func() { _ = tx.Rollback() }()
	r := &Reader{tx, s.sql, s.clock}
	if err := s.clock.refresh(ctx, r); err != nil {
		return s.explain("", err)
	}
	return s.explain("", s.frozen.checkUnchanged(fn(r)))
}

func (s *Store) viewPostgres(ctx context.Context, fn func(*Reader) error) error {
	conn, err := s.r.Conn(ctx)
	if err != nil {
		return s.explain("connect", err)
	}
	v := &postgresView{Conn: conn}
	defer func() { _ = v.end(ctx) }() // It changed nothing.
	r := &Reader{v, s.sql, s.clock}
	err = s.clock.refresh(ctx, r)
	if err == nil {
		err = fn(r)
	}
	if v.err != nil {
		return s.explain("begin", v.err)
	}
	return s.explain("", err)
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
