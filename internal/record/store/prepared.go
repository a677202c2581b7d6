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

// openSQLite opens a SQLite database whose connections keep the statements that they execute:
// to prepare most of them takes as long as to execute them.
func openSQLite(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dsn, err)
	}
	return sql.OpenDB(preparingConnector{c}), nil
}

type preparingConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparingConn{sqliteConn: conn.(sqliteConn), kept: map[string]*preparedStmt{}}, nil
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
	kept map[string]*preparedStmt // by the text of each
}

type preparedStmt struct {
	driver.Stmt
	inUse bool // its rows are being read
}

// prepare returns the statement of a query; nil if its rows are being read.
func (c *preparingConn) prepare(ctx context.Context, query string) (*preparedStmt, error) {
	if s := c.kept[query]; s != nil {
		if s.inUse {
			return nil, nil
		}
		return s, nil
	}
	if len(c.kept) >= mostPrepared {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s := &preparedStmt{Stmt: stmt}
	c.kept[query] = s
	return s, nil
}

// forget closes what nobody reads.
func (c *preparingConn) forget() error {
	var all []error
	for query, s := range c.kept {
		if !s.inUse {
			delete(c.kept, query)
			all = append(all, s.Close())
		}
	}
	return errors.Join(all...)
}

// ExecContext implements driver.ExecerContext.
func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

// QueryContext implements driver.QueryerContext.
func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
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

// Close implements driver.Rows.
func (r preparedRows) Close() error {
	r.of.inUse = false
	return r.Rows.Close()
}
