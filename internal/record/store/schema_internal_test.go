package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// Thirty loops of a new home start at the same time: one of them makes the tables, and
// is the node of the home, while the others look for tables.
func TestTablesThatAnotherProcessMadeMeanwhileAreNotBehind(t *testing.T) {
	url := pgtest.URL(t)
	line := pgtest.NewLine(t, url)
	var other sync.Once
	line.Watch(func(query string) pgtest.Cut {
		if strings.Contains(query, "information_schema.tables") {
			other.Do(func() {
				s, err := Open(t.Context(), Options{Database: url, Now: time.Now})
				if err == nil {
					err = errors.Join(s.Update(t.Context(), func(tx *Tx) error { return tx.SaveNode(t.Context(), loop.Node{ID: "node", Name: "attic"}) }), s.Close())
				}
				if err != nil {
					t.Errorf("the other process: %v", err)
				}
			})
		}
		return pgtest.Nowhere
	})
	// The line sees simple queries only.
	s, err := Open(t.Context(), Options{Database: line.URL + "&default_query_exec_mode=simple_protocol", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	other.Do(func() { t.Error("no other process came in between") })
	if v := s.Schema(); v != SchemaVersion {
		t.Errorf("version %d, want %d", v, SchemaVersion)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A database that nobody could look into may be another program's.
func TestADatabaseThatCannotBeReadIsNotTakenForAnEmptyOne(t *testing.T) {
	for name, database := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "pawl.db"), "postgres": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := connect(t.Context(), Options{Database: database, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if v, err := s.checkNotForeign(t.Context()); v != 0 || err != nil {
				t.Errorf("an empty one = %d, %v", v, err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.checkNotForeign(gone); !errors.Is(err, context.Canceled) {
				t.Errorf("one that cannot be read = %v", err)
			}
		})
	}
}
