package store

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// A table that a new migration makes is copied, or it is known why not.
func TestACopyKnowsEveryTableAndBothDatabasesHaveTheSameColumns(t *testing.T) {
	want := slices.Sorted(slices.Values(slices.Concat(copiedTables, emptiedTables)))
	columns := map[string][2][]string{}
	for i, database := range []string{filepath.Join(t.TempDir(), "pawl.db"), pgtest.URL(t)} {
		s, err := Open(t.Context(), Options{Database: database, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		all := `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version' ORDER BY name`
		if i == 1 {
			all = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name NOT LIKE 'river%' AND table_name <> 'goose_db_version' ORDER BY 1`
		}
		tables, err := s.readNames(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(tables)
		if diff := cmp.Diff(tables, want); diff != "" {
			t.Errorf("tables of the %s (-there +copied):\n%s", s.sql.name, diff)
		}
		err = s.View(t.Context(), func(r *Reader) error {
			for _, table := range copiedTables {
				names, err := columnsOf(t.Context(), r, table)
				if err != nil {
					return err
				}
				both := columns[table]
				both[i] = names
				columns[table] = both
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for table, both := range columns {
		if diff := cmp.Diff(both[0], both[1]); diff != "" {
			t.Errorf("columns of %s (-SQLite +PostgreSQL):\n%s", table, diff)
		}
	}
}
