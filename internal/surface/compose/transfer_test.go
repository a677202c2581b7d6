package compose_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // The tests read databases by themselves.

	"github.com/pawl-run/pawl/internal/definitions/config"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// address is that of the fixture's store.
func (s *fixture) address() string {
	if s.database == "" {
		return filepath.Join(s.home, "pawl.db")
	}
	return s.database
}

func (s *fixture) options() compose.Options {
	s.t.Helper()
	settings, err := config.Load(config.Settings{Home: s.home, Database: s.address()}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return compose.Options{Settings: settings, Log: compose.Log(nil)}
}

func openDatabase(t *testing.T, address string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(address, "postgres") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rowsOf are all rows of a store, read with nothing of pawl's, by table.
func rowsOf(t *testing.T, address string) map[string][]string {
	t.Helper()
	db := openDatabase(t, address)
	found := map[string][]string{}
	for table := range strings.FieldsSeq(`workspaces nodes placements git_configs loops definitions runs steps iterations turns effects changes approvals events
		audit chains test_counts budgets spending reservations holds agents sessions switches seats seat_locks ticks firing_events event_sources channels notices deliveries`) {
		found[table] = rowsOfTable(t, db, table)
	}
	return found
}

func rowsOfTable(t *testing.T, db *sql.DB, table string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var cells []string
		for i, v := range values {
			cells = append(cells, fmt.Sprintf("%s=%v", names[i], v))
		}
		slices.Sort(cells)
		list = append(list, strings.Join(cells, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func ignoreTable(string) {}

func wantExit(t *testing.T, err error, exit int, words string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || !strings.Contains(f.Error()+f.Why, words) {
		t.Errorf("error = %v, want exit status %d and %q", err, exit, words)
	}
}

func TestACopyOfAStoreHasEveryRowAndGoesOn(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		proposed(t, s)
		s.pawl("run")
		before := rowsOf(t, s.address())
		for kind, to := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "deep", "copy.db"), "postgres": pgtest.URL(t)} {
			c, err := compose.CopyStore(t.Context(), s.options(), to, ignoreTable)
			if err != nil {
				t.Fatalf("to %s: %v", kind, err)
			}
			if c.Runs != 2 || c.Chains != int64(len(before["chains"])) || c.Rows < 20 {
				t.Errorf("to %s: %+v", kind, c)
			}
			if diff := cmp.Diff(before, rowsOf(t, to)); diff != "" {
				t.Errorf("rows of the copy in %s (-store +copy):\n%s", kind, diff)
			}
			_, err = compose.CopyStore(t.Context(), s.options(), to, ignoreTable)
			wantExit(t, err, loop.ExitMissing, "not empty")
			if diff := cmp.Diff(before, rowsOf(t, to)); diff != "" {
				t.Errorf("a copy that was refused has changed %s:\n%s", kind, diff)
			}
			if diff := cmp.Diff(before, rowsOf(t, s.address())); diff != "" {
				t.Errorf("a copy has changed the store:\n%s", diff)
			}
			next := *s
			next.database = to
			if v := next.pawl("run"); v == nil || v.Run.N != 3 {
				t.Errorf("the next run of the copy in %s is %+v", kind, v)
			}
			if err := next.reader().Audit.VerifyChain(context.WithoutCancel(t.Context()), "fix"); err != nil {
				t.Errorf("the audit of the copy in %s: %v", kind, err)
			}
			if err := os.Remove(filepath.Join(s.root, ".loops/fix/run-log.md")); err != nil { // Each copy goes on from the same.
				t.Fatal(err)
			}
			s.git("checkout", "-q", "--", ".")
		}
	})
}

func TestACopyThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newFixture(t, "")
	s.pawl("run")
	to := pgtest.URL(t)
	empty := newFixture(t, to)
	empty.options()
	if _, err := compose.Migrate(t.Context(), empty.options()); err != nil {
		t.Fatal(err)
	}
	db := openDatabase(t, to)
	if _, err := db.ExecContext(t.Context(), `ALTER TABLE audit ADD CONSTRAINT short CHECK (seq < 2)`); err != nil {
		t.Fatal(err)
	}
	if _, err := compose.CopyStore(t.Context(), s.options(), to, ignoreTable); err == nil {
		t.Fatal("it did not fail")
	}
	for table, rows := range rowsOf(t, to) {
		if len(rows) > 0 {
			t.Errorf("%d rows are left in %s", len(rows), table)
		}
	}
}

func TestAStoreWithALiveRunIsBackedUpAndNotMoved(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		if v := s.pawl("run", "PAWL_FAULTS=1", "PAWL_CRASH_AT=engine.act.after:1"); v != nil {
			t.Fatalf("the run was not killed: %+v", v)
		}
		dir := t.TempDir()
		_, err := compose.CopyStore(t.Context(), s.options(), filepath.Join(dir, "copy.db"), ignoreTable)
		wantExit(t, err, loop.ExitHeld, "holds run fix#1")
		file := filepath.Join(dir, "backup.db")
		if _, err := compose.Backup(t.Context(), s.options(), file, ignoreTable); err != nil {
			t.Fatal(err)
		}
		_, err = compose.Restore(t.Context(), s.options(), file, true, ignoreTable)
		wantExit(t, err, loop.ExitHeld, "holds run fix#1")
		other := newFixture(t, "")
		other.root = s.root
		if err := os.RemoveAll(other.home); err != nil {
			t.Fatal(err)
		}
		other.home = s.home // The node of the backup.
		other.database = filepath.Join(dir, "restored.db")
		if _, err := compose.Restore(t.Context(), other.options(), file, false, ignoreTable); err != nil {
			t.Fatal(err)
		}
		if v := other.pawl("recover"); len(v.Recovered) != 1 || !strings.HasPrefix(v.Recovered[0], "fix#1 ") {
			t.Errorf("what was live in the backup is not ended: %+v", v)
		}
	})
}

func TestABackupIsRestoredOverWhatCameAfterItOnlyIfThatIsAskedFor(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, s *fixture) {
		proposed(t, s)
		dir := t.TempDir()
		file := filepath.Join(dir, "backup.db")
		if _, err := compose.Backup(t.Context(), s.options(), file, ignoreTable); err != nil {
			t.Fatal(err)
		}
		before := rowsOf(t, s.address())
		if diff := cmp.Diff(before, rowsOf(t, file)); diff != "" {
			t.Errorf("rows of the backup (-store +backup):\n%s", diff)
		}
		_, err := compose.Backup(t.Context(), s.options(), file, ignoreTable)
		wantExit(t, err, loop.ExitMissing, "there is a file")
		s.pawl("run")
		after := rowsOf(t, s.address())
		_, err = compose.Restore(t.Context(), s.options(), file, false, ignoreTable)
		wantExit(t, err, loop.ExitUsage, "would be replaced")
		if diff := cmp.Diff(after, rowsOf(t, s.address())); diff != "" {
			t.Errorf("what was refused has changed the store:\n%s", diff)
		}
		for name, bad := range map[string]string{"no such file": "", "not a database": "words", "a store that is cut off": "cut"} {
			path := filepath.Join(dir, "bad.db")
			_ = os.Remove(path)
			switch bad {
			case "words":
				err = os.WriteFile(path, []byte(strings.Repeat("words ", 1000)), 0o644)
			case "cut":
				text := readFile(t, file)
				err = os.WriteFile(path, []byte(text[:len(text)*2/3]), 0o644)
			}
			if err != nil && bad != "" {
				t.Fatal(err)
			}
			if _, err := compose.Restore(t.Context(), s.options(), path, true, ignoreTable); err == nil {
				t.Errorf("%s was restored", name)
			}
			if diff := cmp.Diff(after, rowsOf(t, s.address())); diff != "" {
				t.Errorf("%s has changed the store:\n%s", name, diff)
			}
		}
		r, err := compose.Restore(t.Context(), s.options(), file, true, ignoreTable)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range before["loops"] { // Runs that came later may have left branches.
			before["loops"][i] = strings.Replace(row, "numbered=1", "numbered=0", 1)
		}
		if diff := cmp.Diff(before, rowsOf(t, s.address())); diff != "" {
			t.Errorf("rows of the store (-backup +restored):\n%s", diff)
		}
		if s.database == "" {
			if diff := cmp.Diff(after, rowsOf(t, r.Replaced)); diff != "" {
				t.Errorf("rows of what was put aside (-before +aside):\n%s", diff)
			}
		}
		left, err := filepath.Glob(filepath.Join(dir, ".*part*"))
		near, nearErr := filepath.Glob(filepath.Join(s.home, ".*part*"))
		if err = errors.Join(err, nearErr); err != nil || len(left)+len(near) > 0 {
			t.Errorf("left behind: %v %v, %v", left, near, err)
		}
		// The run log has a line of #2, which the restored rows do not know.
		if v := s.pawl("run"); v == nil || v.Run.N != 3 || v.Run.Outcome != loop.OutcomeQuiet {
			t.Errorf("the next run is %+v", v)
		}
	})
}
