package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// mostPrepared is how many statements a connection to SQLite keeps. Those with lists of rows
// differ by their lengths, and those of a virtual clock by the time.
const mostPrepared = 400

// openSQLite opens a SQLite database whose connections keep the statements that they execute
// again: to prepare most of them takes longer than to execute them.
func openSQLite(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dsn, err)
	}
	return sql.OpenDB(preparingConnector{c}), nil
}

type preparingConnector struct{ driver.Connector }

func (c preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparingConn{sqliteConn: conn.(sqliteConn), known: map[string]*preparedStmt{}}, nil
}

// sqliteConn is what package sql asks of a connection to SQLite.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type preparingConn struct {
	sqliteConn
	known map[string]*preparedStmt // by the text of each
}

// preparedStmt is a statement that was executed once, and is kept from the second time on.
type preparedStmt struct {
	kept  driver.Stmt // nil after the first time
	inUse bool        // its rows are being read
}

// prepare returns the kept statement of a query; nil if it is executed for the first time, or
// if its rows are being read.
func (c *preparingConn) prepare(ctx context.Context, query string) (*preparedStmt, error) {
	s := c.known[query]
	switch {
	case s == nil:
		if len(c.known) >= mostPrepared {
			if err := c.forget(); err != nil {
				return nil, err
			}
		}
		c.known[query] = &preparedStmt{}
		return nil, nil
	case s.inUse:
		return nil, nil
	case s.kept == nil:
		kept, err := c.PrepareContext(ctx, query)
		if err != nil { // Of the driver it is a pointer that is nil, too.
			return nil, err
		}
		s.kept = kept
	}
	return s, nil
}

// forget closes what nobody reads.
func (c *preparingConn) forget() error {
	var all []error
	for query, s := range c.known {
		if s.inUse {
			continue
		}
		delete(c.known, query)
		if s.kept != nil {
			all = append(all, s.kept.Close())
		}
	}
	return errors.Join(all...)
}

func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.kept.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.kept.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.inUse = true
	return preparedRows{rows, s}, nil
}

// Close ends the connection. SQLite keeps the file open while a statement of it is there.
func (c *preparingConn) Close() error {
	return errors.Join(c.forget(), c.sqliteConn.Close())
}

// preparedRows are the rows of a kept statement.
type preparedRows struct {
	driver.Rows
	of *preparedStmt
}

func (r preparedRows) Close() error {
	r.of.inUse = false
	return r.Rows.Close()
}
