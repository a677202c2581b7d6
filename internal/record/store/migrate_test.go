package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

func TestAStoreOfAnEarlierPawlKeepsItsRuns(t *testing.T) {
	for name, c := range map[string]struct {
		database, driver string
		kind             goose.Dialect
	}{
		"sqlite":   {database: filepath.Join(t.TempDir(), "p.db"), driver: "sqlite", kind: goose.DialectSQLite3},
		"postgres": {database: pgtest.URL(t), driver: "pgx", kind: goose.DialectPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c.database)
			run := fire(t, s, seed(t, s, "ci"), "-1", alice)
			run.Reason, run.Detail = loop.ReasonKillSwitch, "push: the kill switch is set: ops/off (cannot be read: x)"
			run.Cause = loop.Cause{Switch: loop.KillSwitch{Path: "ops/off", Unread: "x"}, Unpushed: "main"} // Which older tables have in words only.
			settle(t, s, run, loop.OutcomePaused)
			read := func(s *store.Store) loop.Run {
				return look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) })
			}
			before := read(s)
			dsn := c.database
			if name == "sqlite" {
				dsn = "file:" + dsn
			}
			db, err := sql.Open(c.driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			p, err := goose.NewProvider(c.kind, db, os.DirFS(filepath.Join("migrations", name)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.DownTo(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			again := open(t, c.database)
			if d := cmp.Diff(before, read(again)); d != "" {
				t.Error(d)
			}
			next := fire(t, again, seed(t, again, "ci"), "-2", alice)
			if short := reserve(t, again, next, nil, tokens(1)); short != nil || next.N != 2 {
				t.Errorf("run #%d: %+v", next.N, short)
			}
		})
	}
}
