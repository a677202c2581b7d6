package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Memory as Options.Database is a SQLite database in the memory of this process, for
// simulations. It has one connection: a View inside of an Update, or of another View, waits
// for ever.
const Memory = ":memory:"

// memory is the connection of a store in memory. It tells the database the virtual time
// instead of writing it into the statements.
type memory struct {
	conn    *sql.Conn
	virtual func() time.Time // nil: the database has its own

	mu   sync.Mutex // held during a transaction
	told int64      // the time that the database was told last
}

// connectMemory opens a database that nobody else sees and that ends with its connection.
// Foreign keys are not checked: the tests of the same statements do that.
func connectMemory(o Options) (*Store, error) {
	w, err := openSQLite("file::memory:?_pragma=journal_mode(MEMORY)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, fmt.Errorf("open a store in memory: %w", err)
	}
	w.SetMaxOpenConns(1)
	w.SetMaxIdleConns(1)
	return &Store{w: w, r: w, clock: newDatabaseClock(o, true), sql: sqliteDialect(o)}, nil
}

// holdMemory takes the connection for good, once the tables are made.
func (s *Store) holdMemory(ctx context.Context, o Options) (err error) {
	m := &memory{virtual: o.Virtual}
	if m.conn, err = s.w.Conn(ctx); err != nil {
		return fmt.Errorf("open a store in memory: %w", err)
	}
	if m.virtual != nil {
		if _, err := m.conn.ExecContext(ctx, `CREATE TEMP TABLE virtual_now AS SELECT 0 AS ms`); err != nil {
			return errors.Join(fmt.Errorf("open a store in memory: %w", err), m.conn.Close())
		}
		s.sql.now, s.sql.virtual = `(SELECT ms FROM virtual_now)`, nil
		s.sql = s.sql.prepared()
	}
	s.memory = m
	return nil
}

func (m *memory) close() error {
	if m == nil {
		return nil
	}
	return m.conn.Close()
}

// ExecContext is that of *sql.DB. A statement takes microseconds: a context that ends ends
// the transaction, but not the statement, for which the driver would start a goroutine.
func (m *memory) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return m.conn.ExecContext(context.WithoutCancel(ctx), query, args...)
}

// QueryContext is that of *sql.DB.
func (m *memory) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return m.conn.QueryContext(context.WithoutCancel(ctx), query, args...)
}

// QueryRowContext is that of *sql.DB.
func (m *memory) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return m.conn.QueryRowContext(context.WithoutCancel(ctx), query, args...)
}

// view calls fn with the rows.
func (m *memory) view(ctx context.Context, fn func(querier) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.tellTime(ctx); err != nil {
		return err
	}
	if err := fn(m); err != nil {
		return err
	}
	return ctx.Err()
}

// update calls fn in a transaction, and commits if it returns nil.
func (m *memory) update(ctx context.Context, fn func(querier) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.tellTime(ctx)
	if err == nil {
		_, err = m.ExecContext(ctx, `BEGIN IMMEDIATE`)
	}
	if err != nil {
		return err
	}
	if err = fn(m); err == nil {
		err = ctx.Err()
	}
	if err == nil {
		if _, err = m.ExecContext(ctx, `COMMIT`); err == nil {
			return nil
		}
	}
	if _, undo := m.ExecContext(ctx, `ROLLBACK`); undo != nil {
		return errors.Join(err, undo)
	}
	return err
}

// tellTime makes the database know the virtual time.
func (m *memory) tellTime(ctx context.Context) error {
	if m.virtual == nil {
		return nil
	}
	now := millis(m.virtual())
	if now == m.told {
		return nil
	}
	_, err := m.ExecContext(ctx, `UPDATE virtual_now SET ms = $1`, now)
	if err == nil {
		m.told = now
	}
	return err
}
