// Package storetest gives tests databases that have the tables of a store and no
// rows. They are made once for each test process and database; every test gets a
// copy, which takes a fraction of the time.
//
// Tests of the migrations themselves use empty databases instead. Only tests
// import this package.
package storetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/pawl-run/pawl/internal/ground/clock"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// SQLite returns the path of a new database file with all tables.
func SQLite(tb testing.TB) string {
	tb.Helper()
	path, err := SQLiteIn(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// SQLiteIn makes the database file of a home of pawl's, with all tables, and returns its
// path.
func SQLiteIn(home string) (string, error) {
	body, err := migratedFile()
	if err != nil {
		return "", fmt.Errorf("make the tables of a store: %w", err)
	}
	path := filepath.Join(home, "pawl.db")
	return path, os.WriteFile(path, body, 0o600)
}

// PostgreSQL returns the address of a new database with all tables, which is
// dropped when the test ends.
func PostgreSQL(tb testing.TB) string {
	tb.Helper()
	return pgtest.Copy(tb, migrate)
}

var migratedFile = sync.OnceValues(func() (body []byte, err error) {
	dir, err := os.MkdirTemp("", "pawl-storetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pawl.db")
	if err := migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// migrate makes the tables. A SQLite file has them all once the store is closed.
func migrate(ctx context.Context, database string) error {
	s, err := store.Open(ctx, store.Options{Database: database, Now: clock.System{}.Now})
	if err != nil {
		return err
	}
	return s.Close()
}
