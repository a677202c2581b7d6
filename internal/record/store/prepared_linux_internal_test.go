package store

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newPrepared opens a database of one connection with a table of n rows, 1 to n.
func newPrepared(t *testing.T, n int) (db *sql.DB, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.db")
	db, err := openSQLite("file:" + path + "?_pragma=journal_mode(WAL)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	const table = `CREATE TABLE x (n INTEGER); CREATE INDEX x_n ON x (n);`
	if _, err := db.ExecContext(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := db.ExecContext(t.Context(), `INSERT INTO x VALUES ($1)`, i+1); err != nil {
			t.Fatal(err)
		}
	}
	return db, path
}

// kept calls fn with the statements of the connection.
func kept(t *testing.T, db *sql.DB, fn func(all map[string]*preparedStmt)) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(dc any) error {
		fn(dc.(*preparingConn).kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStatementIsPreparedOnce(t *testing.T) {
	t.Parallel()
	const query, write = `SELECT n FROM x WHERE n = $1`, `INSERT INTO x VALUES ($1)`
	db, _ := newPrepared(t, 3)
	var first, firstWrite *preparedStmt
	for i := range 3 {
		n := 0
		if err := db.QueryRowContext(t.Context(), query, i+1).Scan(&n); err != nil || n != i+1 {
			t.Fatalf("n = %d: %v, want %d", n, err, i+1)
		}
		if _, err := db.ExecContext(t.Context(), write, 7); err != nil {
			t.Fatal(err)
		}
		kept(t, db, func(all map[string]*preparedStmt) {
			if i == 0 {
				first, firstWrite = all[query], all[write]
			}
			if all[query] == nil || all[query] != first || all[write] == nil || all[write] != firstWrite {
				t.Error("it was prepared again")
			}
		})
	}
}

func TestAQueryWhoseRowsAreBeingReadCanBeAskedAgain(t *testing.T) {
	t.Parallel()
	const query = `SELECT n FROM x WHERE n <= $1 ORDER BY n`
	db, _ := newPrepared(t, 4)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var read func(most int) string
	read = func(most int) string {
		rows, err := tx.QueryContext(t.Context(), query, most)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var got []string
		for rows.Next() {
			n := 0
			if err := rows.Scan(&n); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(n))
			if n > 1 && n == most {
				got = append(got, "("+read(most-1)+")")
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, " ")
	}
	for range 3 {
		if got, want := read(4), "1 2 3 4 (1 2 3 (1 2 (1)))"; got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
}

func TestAKeptStatementSeesTheTablesAsTheyAre(t *testing.T) {
	t.Parallel()
	db, path := newPrepared(t, 1)
	columns := func() string {
		rows, err := db.QueryContext(t.Context(), `SELECT * FROM x`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		names, err := rows.Columns()
		if err != nil || rows.Err() != nil {
			t.Fatal(err, rows.Err())
		}
		return strings.Join(names, " ")
	}
	for range 3 {
		if got := columns(); got != "n" {
			t.Fatalf("columns = %q", got)
		}
	}
	other, err := openSQLite("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.ExecContext(t.Context(), `ALTER TABLE x ADD COLUMN m INTEGER`); err != nil {
		t.Fatal(err)
	}
	if got, want := columns(), "n m"; got != want {
		t.Errorf("columns = %q after another connection added one, want %q", got, want)
	}
}

func TestAStatementThatFailsCanBeExecutedAgain(t *testing.T) {
	t.Parallel()
	db, _ := newPrepared(t, 1)
	if _, err := db.ExecContext(t.Context(), `CREATE UNIQUE INDEX x_once ON x (n)`); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if _, err := db.ExecContext(t.Context(), `INSERT INTO x VALUES ($1)`, 1); err == nil {
			t.Error("the same number is there twice")
		}
		if _, err := db.ExecContext(t.Context(), `INSERT INTO x VALUES ($1)`, i+2); err != nil {
			t.Error(err)
		}
		if _, err := db.ExecContext(t.Context(), `SELECT none FROM x`); err == nil {
			t.Error("a column that does not exist was read")
		}
	}
}

func TestStatementsThatAreKeptAreBoundedAndHoldNoFileOpen(t *testing.T) {
	t.Parallel()
	db, path := newPrepared(t, 1)
	for i := range 3 * mostPrepared {
		n := 0
		if err := db.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT n + %d FROM x`, i)).Scan(&n); err != nil || n != i+1 {
			t.Fatalf("n = %d: %v, want %d", n, err, i+1)
		}
	}
	kept(t, db, func(all map[string]*preparedStmt) {
		if len(all) > mostPrepared {
			t.Errorf("%d are kept, want at most %d", len(all), mostPrepared)
		}
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		t.Fatal(open, err)
	}
	for _, fd := range open {
		if to, _ := os.Readlink(fd); strings.HasPrefix(to, path) {
			t.Errorf("%s is still open", to)
		}
	}
}
