package store_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/pawl-run/pawl/internal/test/drawn"
)

// A new store gets its tables at once. It has to be the store that the migrations make.
func TestANewStoreIsDrawnFromTheMigrations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "migrated.db")
	db := openSQLite(t, path)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS(filepath.Join("migrations", "sqlite")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := statementsOf(t, db)
	if drawn.File(t, "sqlite.sql", want); drawn.Updates() {
		return // The package has the old one in it.
	}
	path = filepath.Join(t.TempDir(), "new.db")
	open(t, path)
	db = openSQLite(t, path)
	if d := cmp.Diff(want, statementsOf(t, db)); d != "" {
		t.Errorf("a new store is not what the migrations make (-want +got):\n%s", d)
	}

	// The comparison sees what one of them has more.
	for _, more := range []string{
		`ALTER TABLE runs ADD COLUMN more TEXT`, `CREATE INDEX more ON runs (state)`, `INSERT INTO chains (id, links, head) VALUES ('more', 0, '')`,
		`DELETE FROM goose_db_version WHERE version_id = 3`,
	} {
		before := statementsOf(t, db)
		if _, err := db.ExecContext(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		if statementsOf(t, db) == before {
			t.Errorf("%s changed nothing that is compared", more)
		}
	}
}

func openSQLite(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// statementsOf lists the statements that make a database: its tables, its indexes and what
// else there is, then its rows, without the time at which they were written.
func statementsOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("-- Written by a test from migrations/sqlite, by make generate\n")
	// SQLite makes its own tables and indexes by itself.
	made := readRows(t, db, `SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY rowid`)
	for _, row := range made {
		fmt.Fprintf(&text, "%s;\n", row[2])
	}
	for _, row := range made {
		if row[0] != "table" {
			continue
		}
		columns := readRows(t, db, `SELECT name FROM pragma_table_info($1) WHERE name <> 'tstamp' ORDER BY cid`, row[1])
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = c[0]
		}
		for _, values := range readRows(t, db, `SELECT quote("`+strings.Join(names, `"), quote("`)+`") FROM "`+row[1]+`" ORDER BY "`+names[0]+`"`) {
			fmt.Fprintf(&text, "INSERT INTO %s (%s) VALUES (%s);\n", row[1], strings.Join(names, ", "), strings.Join(values, ", "))
		}
	}
	return text.String()
}

func readRows(t *testing.T, db *sql.DB, query string, args ...any) (all [][]string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	row, at := make([]string, len(columns)), make([]any, len(columns))
	for i := range row {
		at[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, slices.Clone(row))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}
