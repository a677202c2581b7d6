package store

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/test/pgtest"
)

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
