package store_test

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

func TestAStoreSaysWhichDatabaseItIsAndNoPassword(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	address := pgtest.URL(t)
	real, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	real.User = url.UserPassword(real.User.Username(), "s3cret")
	for name, c := range map[string]struct{ database, driver string }{
		"a file": {path, "sqlite"}, "a server": {address, "postgres"}, "a server with a password": {real.String(), "postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := open(t, c.database).Info(t.Context())
			if err != nil || i.Driver != c.driver || i.Version < 1 {
				t.Errorf("info = %+v, %v", i, err)
			}
			if c.driver == "sqlite" {
				if i.Location != path {
					t.Errorf("location = %s, want %s", i.Location, path)
				}
				return
			}
			if strings.Contains(i.Location, "s3cret") {
				t.Errorf("location = %s", i.Location)
			}
			// It is still an address of the same database.
			s, err := store.Open(t.Context(), store.Options{Database: i.Location, Now: time.Now, ReadOnly: true})
			if err != nil {
				t.Fatalf("open %s: %v", i.Location, err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if again, err := s.Info(t.Context()); err != nil || again != i {
				t.Errorf("opened by its location it is %+v, %v, want %+v", again, err, i)
			}
		})
	}
}

func TestADatabaseThatDoesNotAnswerIsAnErrorBesideWhatIsKnown(t *testing.T) {
	for name, database := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "p.db"), "postgres": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(t.Context(), store.Options{Database: database, Now: time.Now})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			i, err := s.Info(t.Context())
			if err == nil || i.Driver != name || i.Location == "" || i.Version != 0 {
				t.Errorf("info = %+v, %v, want an error beside driver and location", i, err)
			}
		})
	}
}

func TestEndedRunsAreListedWithoutThoseThatAreNot(t *testing.T) {
	onBoth(t, func(t *testing.T, s *store.Store) {
		l := seed(t, s, "ci")
		for _, key := range []string{"-1", "-2", "-3"} {
			settle(t, s, fire(t, s, l, key, alice), loop.OutcomeQuiet)
		}
		fire(t, s, l, "-4", alice)
		fire(t, s, l, "-5", loop.Holder{})
		settle(t, s, fire(t, s, seed(t, s, "other"), "-1", alice), loop.OutcomeQuiet)
		for limit, want := range map[int][]int64{9: {3, 2, 1}, 2: {3, 2}, 0: nil} {
			runs := look(t, s, func(ctx context.Context, r *store.Reader) ([]loop.Run, error) { return r.Ended(ctx, l.ID, limit) })
			var got []int64
			for _, r := range runs {
				got = append(got, r.N)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the newest %d (-want +got):\n%s", limit, diff)
			}
		}
	})
}
