package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

func TestAStoreFromANewerPawlIsRefusedAndLeftAlone(t *testing.T) {
	for name, database := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "p.db"), "postgres": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			open(t, database)
			driver, dsn := "sqlite", "file:"+database
			if name == "postgres" {
				driver, dsn = "pgx", database
			}
			db, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			if _, err := db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, $1)`, true); err != nil {
				t.Fatal(err)
			}
			_, err = store.Open(t.Context(), store.Options{Database: database, Now: time.Now})
			f, ok := errors.AsType[*loop.Fault](err)
			if !ok || f.Exit != loop.ExitError || !strings.Contains(f.Why, "999") || f.Fix == "" {
				t.Errorf("open = %v, want a fault that names version 999 and a fix", err)
			}
		})
	}
}

// What Update has committed survives a power cut. With SQLite that is two settings
// of each connection that writes: in WAL mode only FULL syncs the log at each commit.
func TestACommitIsOnTheDiskWhenItReturns(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "p.db"))
	for range 2 {
		var mode, sync string
		row := s.SQLiteWriter().QueryRowContext(t.Context(), `SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous`)
		if err := row.Scan(&mode, &sync); err != nil {
			t.Fatal(err)
		}
		if mode != "wal" || sync != "2" {
			t.Errorf("journal_mode = %s, synchronous = %s, want wal and 2, which is FULL", mode, sync)
		}
		s.SQLiteWriter().SetMaxIdleConns(0) // The next connection has them too.
	}
}

func TestReadingCreatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "p.db")
	_, err := store.Open(t.Context(), store.Options{Database: path, ReadOnly: true, Now: time.Now})
	if !errors.Is(err, loop.ErrNotFound) {
		t.Errorf("open = %v, want ErrNotFound", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "p.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, database := range map[string]string{"an empty file": empty, "an empty database": pgtest.URL(t)} {
		if s, err := store.Open(t.Context(), store.Options{Database: database, ReadOnly: true, Now: time.Now}); !errors.Is(err, loop.ErrNotFound) {
			t.Errorf("open of %s = %+v, %v, want ErrNotFound", name, s, err)
		}
	}
}

func TestAFileThatIsNoDatabaseIsRefusedWithAFix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), store.Options{Database: path, Now: time.Now})
	if f, ok := errors.AsType[*loop.Fault](err); !ok || f.Fix == "" {
		t.Errorf("open = %v, want a fault with a fix", err)
	}
	if data, _ := os.ReadFile(path); !strings.HasPrefix(string(data), "no database") {
		t.Error("the file was changed")
	}
}

func TestAHomeThatCannotBeWrittenIsNamedWithTheFix(t *testing.T) {
	below := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(below, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), store.Options{Database: filepath.Join(below, "home", "p.db"), Now: time.Now})
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || !strings.Contains(f.Advice().String(), "PAWL_HOME") {
		t.Errorf("open = %v, want a fault that names PAWL_HOME", err)
	}
}

func TestTwoProcessesMayMakeTheStoreAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			s, err := store.Open(context.Background(), store.Options{Database: path, Now: time.Now})
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Errorf("open: %v", err)
		}
	}
}

// A new file is turned over to the write-ahead log by the first who opens it, and
// then SQLite says at once that it is busy, however long others were told to wait.
func TestAStoreThatIsJustBeingMadeIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	maker, err := sql.Open("sqlite", "file:"+path+"?_txlock=exclusive")
	if err != nil {
		t.Fatal(err)
	}
	defer maker.Close()
	tx, err := maker.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		s, err := store.Open(context.Background(), store.Options{Database: path, Now: time.Now})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("open of a file that another process has alone = %v, want that it waits", err)
	case <-time.After(time.Second):
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; err != nil {
			t.Errorf("open after the other process was done: %v", err)
		}
	}
}
