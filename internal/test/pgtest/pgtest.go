// Package pgtest gives tests a real PostgreSQL: one private cluster for each
// test process, started from the installed programs at the first use, and a
// fresh database for each test.
//
// The cluster listens on a Unix socket in a directory of its own and on no
// network. It never uses a server that runs already, never skips a test
// because programs are missing (the test fails and says the fix), and leaves
// nothing behind: a watchdog ends the server and removes its directory even
// when the test process dies by kill -9.
//
// Only tests import this package. A package that uses it says in a test file:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// process is the cluster of this test process.
var process struct {
	start    sync.Once
	settings []string
	cluster  *cluster
	err      error
	names    atomic.Int64

	fill    sync.Once // of the database that Copy copies
	filled  string
	fillErr error
}

// Main runs the tests of a package, stops the cluster if one was started, and returns the
// status for os.Exit. Settings are those of the server, like "fsync=off"; the defaults are
// durable, because tests test durability.
func Main(m *testing.M, settings ...string) int {
	process.settings = settings
	code := m.Run()
	if process.cluster == nil {
		return code
	}
	if err := process.cluster.stopServer(); err != nil {
		fmt.Println("pgtest:", err)
		return max(code, 1)
	}
	return code
}

// URL returns the address of a new and empty database, which is dropped when the test
// ends, even if it has connections. The first call of a process starts the cluster, and
// all others wait for it.
func URL(tb testing.TB) string {
	tb.Helper()
	return processCluster(tb).newDatabase(tb, maintenance)
}

// processCluster returns the cluster of the process, and starts it at the first call.
func processCluster(tb testing.TB) *cluster {
	tb.Helper()
	process.start.Do(func() {
		process.cluster, process.err = startCluster(process.settings)
	})
	if process.err != nil {
		tb.Fatalf("start PostgreSQL for the tests: %v", process.err)
	}
	return process.cluster
}

// Copy returns the address of a copy of the database that fill made from an empty one.
// Fill is called once in a process, by the first call, and must close its connections
// before it returns. The fill of later calls is ignored. The copy is dropped when the test
// ends.
func Copy(tb testing.TB, fill func(ctx context.Context, url string) error) string {
	tb.Helper()
	c := processCluster(tb)
	process.fill.Do(func() {
		const name = "filled"
		if process.fillErr = c.execAdmin(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+maintenance); process.fillErr == nil {
			process.filled, process.fillErr = name, fill(tb.Context(), c.databaseURL(name))
		}
	})
	if process.fillErr != nil {
		tb.Fatalf("fill the database that tests copy: %v", process.fillErr)
	}
	return c.newDatabase(tb, process.filled)
}

// newDatabase makes a database for one test, as a copy of another one.
func (c *cluster) newDatabase(tb testing.TB, template string) string {
	tb.Helper()
	name := "t" + strconv.FormatInt(process.names.Add(1), 10)
	if err := c.execAdmin(tb.Context(), "CREATE DATABASE "+name+c.byFiles+" TEMPLATE "+template); err != nil {
		tb.Fatalf("create database %s: %v", name, err)
	}
	tb.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
		defer cancel()
		if err := c.execAdmin(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("drop database %s: %v", name, err)
		}
	})
	return c.databaseURL(name)
}

// maintenance is the database for administration, which is copied for each test.
// PostgreSQL copies only a database without other connections, so one connection makes all
// statements, one at a time.
const maintenance = "template1"

// execAdmin runs one statement that cannot run in a transaction.
func (c *cluster) execAdmin(ctx context.Context, statement string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil || c.conn.IsClosed() {
		conn, err := pgx.Connect(ctx, c.databaseURL(maintenance))
		if err != nil {
			return err
		}
		c.conn = conn
	}
	_, err := c.conn.Exec(ctx, statement)
	return err
}

func (c *cluster) databaseURL(database string) string {
	// All are set, because others would come from the user's PG… variables.
	query := url.Values{"host": {c.dir}, "port": {"5432"}, "user": {superuser}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: query.Encode()}).String()
}
