package store_test

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
	"time"

	"github.com/pressly/goose/v3"

	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/pgtest"
)

// tables is a database whose tables a test changes behind the store's back.
type tables struct {
	t        *testing.T
	database string
	db       *sql.DB
	kind     goose.Dialect
}

// onTables runs a test on both databases, without tables.
func onTables(t *testing.T, test func(t *testing.T, d tables)) {
	t.Helper()
	for name, d := range map[string]tables{
		"sqlite": {database: filepath.Join(t.TempDir(), "p.db"), kind: goose.DialectSQLite3}, "postgres": {database: pgtest.URL(t), kind: goose.DialectPostgres},
	} {
		t.Run(name, func(t *testing.T) {
			driver, dsn := "pgx", d.database
			if name == "sqlite" {
				driver, dsn = "sqlite", "file:"+d.database+"?_pragma=busy_timeout(5000)"
			}
			db, err := sql.Open(driver, dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			d.t, d.db = t, db
			test(t, d)
		})
	}
}

func (d tables) exec(statements ...string) {
	d.t.Helper()
	for _, q := range statements {
		if _, err := d.db.ExecContext(d.t.Context(), q); err != nil {
			d.t.Fatalf("%s: %v", q, err)
		}
	}
}

// earlier brings the tables back to the version before the newest.
func (d tables) earlier() {
	d.t.Helper()
	p, err := goose.NewProvider(d.kind, d.db, os.DirFS(filepath.Join("migrations", map[goose.Dialect]string{goose.DialectSQLite3: "sqlite", goose.DialectPostgres: "postgres"}[d.kind])))
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := p.DownTo(d.t.Context(), store.SchemaVersion-1); err != nil {
		d.t.Fatal(err)
	}
}

// content lists what there is: tables with their columns, and the versions.
func (d tables) content() string {
	d.t.Helper()
	columns := `SELECT m.name || '.' || c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY 1`
	if d.kind == goose.DialectPostgres {
		columns = `SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1`
	}
	rows, err := d.db.QueryContext(d.t.Context(), columns)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			d.t.Error(err)
		}
	}()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			d.t.Fatal(err)
		}
		all = append(all, name)
	}
	return strings.Join(all, "\n")
}

func (d tables) open(self string, readOnly bool) (*store.Store, error) {
	s, err := store.Open(d.t.Context(), store.Options{
		Database: d.database, ReadOnly: readOnly, Now: time.Now, Node: loop.Node{ID: self, Name: self, Version: "2.0"},
	})
	if err == nil {
		d.t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// shared makes the tables, with nodes of an earlier pawl that share them.
func (d tables) shared(nodes ...string) loop.Run {
	d.t.Helper()
	s := open(d.t, d.database)
	update(d.t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		for _, id := range nodes {
			err = errors.Join(err, tx.SaveNode(ctx, loop.Node{ID: id, Name: id, Version: "1.0", Schema: store.SchemaVersion - 1}))
		}
		return err
	})
	run := fire(d.t, s, seed(d.t, s, "ci"), "-1", loop.Holder{PID: 1, Host: "far"})
	d.exec(`UPDATE runs SET node_id = '` + nodes[len(nodes)-1] + `'`)
	return run
}

func (d tables) wantSchema(node string, want int64) {
	d.t.Helper()
	var got int64
	if err := d.db.QueryRowContext(d.t.Context(), `SELECT schema_version FROM nodes WHERE id = $1`, node).Scan(&got); err != nil || got != want {
		d.t.Errorf("the tables say of %s that it knows version %d, %v; want %d", node, got, err, want)
	}
}

func wantSchemaFault(t *testing.T, err error, exit int, says ...string) {
	t.Helper()
	f, ok := errors.AsType[*loop.Fault](err)
	if !ok || f.Exit != exit || f.Fix == "" {
		t.Errorf("error = %v, want a fault with exit status %d and a fix", err, exit)
		return
	}
	for _, text := range says {
		if said := f.What + f.Why + f.Advice().String(); !strings.Contains(said, text) {
			t.Errorf("%q does not say %q", said, text)
		}
	}
}

// options are those of whoever brings the tables up to date.
func (d tables) options() store.Options { return store.Options{Database: d.database, Now: time.Now} }

func TestTablesThatNodesShareAreBroughtUpToDateOnRequestOnly(t *testing.T) {
	onTables(t, func(t *testing.T, d tables) {
		run := d.shared("n1", "n2")
		d.earlier()
		before := d.content()
		_, err := d.open("n1", false)
		wantSchemaFault(t, err, loop.ExitNotReady, "other nodes share them: n2", "pawl store migrate", fmt.Sprintf("this pawl needs %d", store.SchemaVersion))
		d.wantSchema("n1", store.SchemaVersion)
		d.wantSchema("n2", store.SchemaVersion-1)
		_, err = d.open("n3", false)
		wantSchemaFault(t, err, loop.ExitNotReady, "n1, n2")
		d.wantSchema("n3", store.SchemaVersion)
		reader, err := d.open("n1", true)
		if err != nil {
			t.Fatalf("reading: %v", err)
		}
		names := look(t, reader, func(ctx context.Context, r *store.Reader) ([]loop.Node, error) { return r.Nodes(ctx) })
		if len(names) != 3 || reader.Schema() >= store.SchemaVersion {
			t.Errorf("it reads %d nodes, in tables of version %d", len(names), reader.Schema())
		}

		for what, try := range map[string]func(context.Context, store.Options) (store.Migration, error){"plan": store.PlanMigration, "migrate": store.Migrate} {
			_, err = try(t.Context(), d.options())
			wantSchemaFault(t, err, loop.ExitHeld, "node n2 with pawl 1.0 holds run ci#1", "pawl stop RUN")
			if got := d.content(); got != before {
				t.Errorf("%s has changed the tables:\n%s", what, got)
			}
		}
		d.exec(`UPDATE runs SET lease_until_ms = 1`)
		plan, err := store.PlanMigration(t.Context(), d.options())
		if err != nil || !plan.Needed() || !slices.Equal(plan.Nodes, []string{"n1", "n2", "n3"}) || plan.To != store.SchemaVersion || d.content() != before {
			t.Errorf("plan = %+v, %v", plan, err)
		}
		if done, err := store.Migrate(t.Context(), d.options()); err != nil || done.Database.Version != plan.Database.Version || done.To != store.SchemaVersion {
			t.Errorf("migrated = %+v, %v", done, err)
		}
		s, err := d.open("n1", false)
		if err != nil {
			t.Fatal(err)
		}
		if got := look(t, s, func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) }); got.Fence != run.Fence {
			t.Errorf("the run is %+v", got)
		}
		if again, err := store.Migrate(t.Context(), d.options()); err != nil || again.Needed() {
			t.Errorf("once more: %+v, %v", again, err)
		}
	})
}

func TestTablesOfOneNodeAreBroughtUpToDateByWhoeverWrites(t *testing.T) {
	onTables(t, func(t *testing.T, d tables) {
		d.shared("n1")
		d.earlier()
		if s, err := d.open("n1", false); err != nil || s.Schema() != store.SchemaVersion {
			t.Errorf("open = %v", err)
		}
	})
}

func TestANodeWhosePawlIsTooOldSaysSoAndGoesOnReading(t *testing.T) {
	onTables(t, func(t *testing.T, d tables) {
		run := d.shared("n1", "n2")
		d.exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)`, `UPDATE nodes SET schema_version = 999`)
		_, err := d.open("n1", false)
		wantSchemaFault(t, err, loop.ExitError, "its tables are version 999", "use the newer pawl")
		d.wantSchema("n1", store.SchemaVersion)
		d.wantSchema("n2", 999)
		s, err := d.open("n1", true)
		if err != nil {
			t.Fatalf("reading: %v", err)
		}
		read := func(ctx context.Context, r *store.Reader) (loop.Run, error) { return r.Run(ctx, run.ID) }
		if got := look(t, s, read); got.Fence != run.Fence || s.Schema() != 999 {
			t.Errorf("it reads %+v", got)
		}
		d.exec(`ALTER TABLE runs RENAME COLUMN summary TO summary_of_999`)
		err = s.View(t.Context(), func(r *store.Reader) error {
			_, err := read(t.Context(), r)
			return err
		})
		wantSchemaFault(t, err, loop.ExitError, "its tables are version 999", "cannot read this", "summary")
		_, err = store.Migrate(t.Context(), d.options())
		wantSchemaFault(t, err, loop.ExitError, "its tables are version 999")
	})
}

func TestADatabaseOfAnotherProgramIsRefusedAndLeftAsItIs(t *testing.T) {
	const versions = `CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id BIGINT NOT NULL, is_applied BOOLEAN NOT NULL)`
	for name, theirs := range map[string][]string{
		"its versions are as ours": {versions, fmt.Sprintf(`INSERT INTO goose_db_version VALUES (1, %d, true)`, store.SchemaVersion), `CREATE TABLE users (id INTEGER)`},
		"its versions are lower":   {versions, `INSERT INTO goose_db_version VALUES (1, 2, true)`, `CREATE TABLE runs (id INTEGER)`},
		"its versions are higher":  {versions, `INSERT INTO goose_db_version VALUES (1, 20240101000000, true)`},
		"it counts otherwise":      {`CREATE TABLE goose_db_version (number INTEGER)`},
		"it has runs":              {`CREATE TABLE runs (id INTEGER, title TEXT)`},
		"it has an empty history":  {versions, `CREATE TABLE events (id INTEGER)`},
	} {
		t.Run(name, func(t *testing.T) {
			onTables(t, func(t *testing.T, d tables) {
				d.exec(theirs...)
				before := d.content()
				_, err := d.open("n1", false)
				wantSchemaFault(t, err, loop.ExitUsage, "it is a database of another program", "PAWL_DATABASE")
				for _, try := range []func(context.Context, store.Options) (store.Migration, error){store.PlanMigration, store.Migrate} {
					_, err = try(t.Context(), d.options())
					wantSchemaFault(t, err, loop.ExitUsage, "it is a database of another program")
				}
				if got := d.content(); got != before {
					t.Errorf("it was changed:\n%s", got)
				}
			})
		})
	}
}

func TestAPlanMakesNoFile(t *testing.T) {
	d := tables{database: filepath.Join(t.TempDir(), "none", "p.db")}
	plan, err := store.PlanMigration(t.Context(), d.options())
	if err != nil || plan.Database.Version != 0 || !plan.Needed() {
		t.Errorf("plan = %+v, %v", plan, err)
	}
	if _, err := os.Stat(filepath.Dir(d.database)); !os.IsNotExist(err) {
		t.Errorf("the folder was made: %v", err)
	}
	if _, err := store.Migrate(t.Context(), d.options()); err != nil {
		t.Error(err)
	}
}
