package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// nodesSince is the version of the tables that knows nodes. Each later one keeps the
// columns of nodes, so that a binary of any version can say which it is.
const nodesSince = 8

// Schema is the version of the tables when it was last read.
func (s *Store) Schema() int64 { return s.schema.Load() }

// prepare compares the version of the tables with what this binary knows, and
// starts goose, which is slow, only if they differ.
func (s *Store) prepare(ctx context.Context, o Options) error {
	v, err := s.version(ctx)
	switch {
	case err != nil:
		return err
	case v == SchemaVersion:
		return nil
	case o.ReadOnly && v == 0:
		return fmt.Errorf("%s: %w", s.sql.name, loop.ErrNotFound)
	case o.ReadOnly:
		return nil // It reads what it can: see schemaTrouble.
	case v > SchemaVersion:
		s.announceNode(ctx, o.Node, v)
		return s.newerFault(v)
	case v == 0:
		if v, err = s.checkNotForeign(ctx); err != nil {
			return err
		}
	}
	others, err := s.otherNodes(ctx, o.Node, v)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		// Another process may have made the tables, and its node, since the version was read.
		if v, err = s.version(ctx); err != nil || v == SchemaVersion {
			return err
		}
		s.announceNode(ctx, o.Node, v)
		return &loop.Fault{
			Exit: loop.ExitNotReady, What: "open the " + s.sql.name,
			Why: fmt.Sprintf("its tables are version %d, this pawl needs %d, and other nodes share them: %s", v, SchemaVersion, strings.Join(others, ", ")),
			Fix: "when every node has the pawl that it is to have, bring them up to date once: {1}", Actions: []loop.Command{loop.PawlCommand("store migrate")},
		}
	}
	return s.migrateAndRead(ctx)
}

func (s *Store) migrateAndRead(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	_, err := s.version(ctx) // A new database says its time for the first time.
	return err
}

func (s *Store) newerFault(v int64) *loop.Fault {
	return &loop.Fault{
		Exit: loop.ExitError, What: "open the " + s.sql.name,
		Why: fmt.Sprintf("its tables are version %d, this pawl knows up to %d", v, SchemaVersion),
		Fix: "use the newer pawl that wrote it, or another store with --home",
	}
}

// foreignFault is the error of a database that another program made.
func (s *Store) foreignFault(table string) *loop.Fault {
	return &loop.Fault{
		Exit: loop.ExitUsage, What: "use the " + s.sql.name + placeOf(s.sql),
		Why: "it is a database of another program: the table " + table + " in it is not pawl's",
		Fix: "name a database of pawl's own, or an empty one, in PAWL_DATABASE, or another home with --home; nothing was changed",
	}
}

// placeOf is the place of a database whose name does not say it.
func placeOf(d dialect) string {
	if strings.HasSuffix(d.name, d.place) {
		return ""
	}
	return " at " + d.place
}

// tableNames are the tables that the migrations make.
var tableNames = sync.OnceValues(func() (names []string, err error) {
	err = fs.WalkDir(migrations, "migrations/sqlite", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := migrations.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
				name, _, _ := strings.Cut(rest, " ")
				names = append(names, name)
			}
		}
		return err
	})
	slices.Sort(names)
	return slices.Compact(names), err
})

// checkNotForeign refuses a database without a version in which another program has
// tables of our names. It returns the version, which another process may have made meanwhile.
func (s *Store) checkNotForeign(ctx context.Context) (int64, error) {
	names, err := tableNames()
	if err != nil {
		return 0, fmt.Errorf("list the tables of the migrations: %w", err)
	}
	found := `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name IN ('` + strings.Join(names, `', '`) + `') ORDER BY name`
	if s.pool != nil {
		found = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name IN ('` +
			strings.Join(names, `', '`) + `') ORDER BY table_name`
	}
	theirs, err := s.readNames(ctx, found)
	if err != nil || len(theirs) == 0 {
		return 0, err
	}
	v, err := s.version(ctx)
	if err == nil && v == 0 {
		err = s.foreignFault(theirs[0])
	}
	return v, err
}

// readNames runs a query outside of a View, for tables that this binary may not know.
func (s *Store) readNames(ctx context.Context, query string, args ...any) (names []string, err error) {
	err = retryWhileBusy(ctx, s.commitCounter(ctx), func() error {
		names, err = collect(ctx, &Reader{s.w, s.sql, s.clock}, query, func(row interface{ Scan(...any) error }) (name string, err error) {
			err = row.Scan(&name)
			return name, err
		}, args...)
		return err
	})
	return names, s.explain("read the tables of the", err)
}

const otherNodes = `SELECT name FROM nodes WHERE id <> $1 ORDER BY name`

// otherNodes are the names of the nodes that share the tables with this one.
func (s *Store) otherNodes(ctx context.Context, self loop.Node, v int64) ([]string, error) {
	if v < nodesSince {
		return nil, nil
	}
	return s.readNames(ctx, otherNodes, self.ID)
}

const (
	announceNode = `UPDATE nodes SET version = $1, schema_version = $2, skew_ms = $3, seen_ms = {now} WHERE id = $4`
	announceNew  = `
INSERT INTO nodes (id, name, version, schema_version, skew_ms, created_ms, seen_ms) VALUES ($1, $2, $3, $4, $5, {now}, {now})
ON CONFLICT DO NOTHING`
)

// announceNode says in the tables of another version that this node has a pawl which does
// not know them. Whoever cannot say it is refused all the same.
func (s *Store) announceNode(ctx context.Context, n loop.Node, v int64) {
	if n.ID == "" || v < nodesSince {
		return
	}
	skew := s.Skew().Milliseconds()
	res, err := s.w.ExecContext(ctx, s.sql.expand(announceNode), n.Version, SchemaVersion, skew, n.ID)
	if err != nil {
		return
	}
	if changed, err := res.RowsAffected(); err == nil && changed == 0 {
		_, _ = s.w.ExecContext(ctx, s.sql.expand(announceNew), n.ID, cmp.Or(n.Name, n.ID), n.Version, SchemaVersion, skew)
	}
}

// schemaTrouble explains an error of a reader of tables that this binary does not know.
func (s *Store) schemaTrouble(err error) *loop.Fault {
	v := s.schema.Load()
	if v == 0 || v == SchemaVersion || !isUnknownColumn(err) && !isUnknownTable(err) {
		return nil
	}
	f := &loop.Fault{
		Exit: loop.ExitError, What: "read the " + s.sql.name, Err: err,
		Why: fmt.Sprintf("its tables are version %d, this pawl knows %d and cannot read this in them: %s", v, SchemaVersion, err),
		Fix: "use the newer pawl that wrote it",
	}
	if v < SchemaVersion {
		f.Fix = "run any command that writes ({1}, {2}): it brings them up to date, or says how"
		f.Actions = []loop.Command{loop.PawlCommand("run"), loop.PawlCommand("pause")}
	}
	return f
}

func isUnknownColumn(err error) bool { return isUnknown(err, "42703", "no such column") }

func isUnknownTable(err error) bool { return isUnknown(err, "42P01", "no such table") }

func isUnknown(err error, code, words string) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code == code
	}
	return err != nil && strings.Contains(err.Error(), words)
}

// Migration is what bringing tables up to date means.
type Migration struct {
	Database Info     // with the version before
	To       int64    // version of the tables after it
	Nodes    []string // names of those that share the tables
}

// Needed reports whether there is anything to do.
func (m Migration) Needed() bool { return m.Database.Version != m.To }

// PlanMigration says what Migrate would do, and changes nothing. While a node has live runs it
// is a *loop.Fault: the pawl that carries them out does not know the new tables.
func PlanMigration(ctx context.Context, o Options) (m Migration, err error) {
	o.ReadOnly = true
	err = onTables(ctx, o, func(s *Store) error {
		m, err = s.planMigration(ctx)
		return err
	})
	if errors.Is(err, loop.ErrNotFound) { // A file that Migrate would make.
		return Migration{Database: Info{Driver: "sqlite", Location: o.Database}, To: SchemaVersion}, nil
	}
	return m, err
}

// Migrate brings the tables up to date, however many nodes share them.
func Migrate(ctx context.Context, o Options) (m Migration, err error) {
	err = onTables(ctx, o, func(s *Store) error {
		if m, err = s.planMigration(ctx); err != nil || !m.Needed() {
			return err
		}
		return s.migrateAndRead(ctx)
	})
	return m, err
}

// onTables calls fn with a store whose tables may be of any version.
func onTables(ctx context.Context, o Options, fn func(*Store) error) error {
	s, err := connect(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

const liveElsewhere = `
SELECT 'node ' || coalesce(n.name, r.node_id) || ' with pawl ' || coalesce(n.version, 'of an unknown version') || ' holds run ' || l.name || '#' || r.n
FROM   runs r JOIN loops l ON l.id = r.loop_id LEFT JOIN nodes n ON n.id = r.node_id
WHERE  r.state IN ('running', 'settling') AND r.lease_until_ms >= {now}
ORDER  BY r.seq`

func (s *Store) planMigration(ctx context.Context) (m Migration, err error) {
	m.To = SchemaVersion
	if m.Database, err = s.Info(ctx); err != nil {
		return m, err
	}
	v := m.Database.Version
	switch {
	case v > SchemaVersion:
		return m, s.newerFault(v)
	case v == 0:
		if m.Database.Version, err = s.checkNotForeign(ctx); err != nil {
			return m, err
		}
		return m, nil
	case v < nodesSince:
		return m, nil
	}
	if m.Nodes, err = s.otherNodes(ctx, loop.Node{}, v); err != nil || v == SchemaVersion {
		return m, err
	}
	live, err := s.readNames(ctx, liveElsewhere)
	if err == nil && len(live) > 0 {
		err = &loop.Fault{
			Exit: loop.ExitHeld, What: fmt.Sprintf("bring the tables of the %s from version %d to %d", s.sql.name, v, SchemaVersion),
			Why:     strings.Join(live, "; ") + "; that pawl does not know the new tables",
			Fix:     "wait until these runs have ended, or stop them with that pawl ({1}), and enter the command again",
			Actions: []loop.Command{loop.PawlCommand("stop", "RUN").WithBlanks("RUN")},
		}
	}
	return m, err
}
