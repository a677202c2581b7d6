package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/ground/fault"
	"github.com/pawl-run/pawl/internal/ground/flock"
	"github.com/pawl-run/pawl/internal/ground/waiting"
)

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
