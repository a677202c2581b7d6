package store

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

//go:embed migrations
var migrations embed.FS

// sqliteTables makes what the migrations make of an empty SQLite database, at once. A test
// writes it.
//
//go:embed sqlite.sql
var sqliteTables string

// SchemaVersion is the newest version of the tables that this binary knows.
const SchemaVersion = 34

// Options says which database to open and how.
type Options struct {
	// Path of the SQLite file, a postgres:// URL, or Memory.
	Database string
	// ReadOnly opens without migrating and without creating anything. A
	// database that does not exist yet is loop.ErrNotFound.
	ReadOnly bool
	// Now is the clock of this process. It decides nothing: it only measures how much
	// time has passed since the database said its own. Nil is an error.
	Now func() time.Time
	// Virtual replaces the time of the database, in tests and simulations; nil: it has
	// its own.
	Virtual func() time.Time
	// Node is this machine as one of those that share the database. The zero Node has not
	// been registered.
	Node loop.Node
	// Lease is how long a claim lasts without being extended; zero means the
	// constant Lease. All processes of a database should agree on it.
	Lease time.Duration
}

// Open opens the database and, unless it is read-only, brings its tables up to date if no
// other node shares them: see Migrate. A database whose tables this binary does not know
// is refused and left as it is, but for a word about this node; a reader reads what it can.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.ReadOnly && !isPostgres(o.Database) {
		return openReadOnly(ctx, o)
	}
	s, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	s.lease = cmp.Or(o.Lease, Lease)
	err = s.prepare(ctx, o)
	if err == nil && o.Database == Memory {
		err = s.holdMemory(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func connect(ctx context.Context, o Options) (*Store, error) {
	switch {
	case isPostgres(o.Database):
		return connectPostgres(ctx, o)
	case o.Database == Memory:
		return connectMemory(o)
	}
	return connectSQLite(o)
}

func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// mostConnections is how many connections to PostgreSQL a process has at most, unless the
// URL says pool_max_conns. A daemon needs one for the queue to listen on, one to fire, and
// some for the runs that it executes. A connection is made when it is first needed.
const mostConnections = 12

// mostStandstill is for how long a transaction may stand still. The process that holds it was
// stopped, or its machine is frozen: the server ends it then, so that nobody waits for its
// locks for ever, and no reader of the feed for its number.
const mostStandstill = 2 * Lease

func connectPostgres(ctx context.Context, o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(o.Database)
	var pool *pgxpool.Pool
	if err == nil {
		config.AfterConnect = prepareConnection
		if !strings.Contains(o.Database, "pool_max_conns") {
			config.MaxConns = max(config.MaxConns, mostConnections)
		}
		pool, err = pgxpool.NewWithConfig(ctx, config)
	}
	if err != nil {
		return nil, &loop.Fault{
			Exit: loop.ExitUsage, What: "open the PostgreSQL store", Why: err.Error(), Err: err,
			Fix: "correct the URL in PAWL_DATABASE: postgres://USER:PASSWORD@HOST:PORT/DATABASE",
		}
	}
	db := stdlib.OpenDBFromPool(pool)
	return &Store{
		w: db, r: db, pool: pool, clock: newDatabaseClock(o, false),
		sql: dialect{
			name: "PostgreSQL store", place: addressOf(pool.Config().ConnConfig), forShare: " FOR SHARE", forUpdate: " FOR UPDATE",
			now: "(extract(epoch FROM clock_timestamp()) * 1000)::bigint", virtual: o.Virtual,
			ours: "(SELECT count(*) FROM pg_attribute WHERE attrelid = to_regclass('runs') AND attname = 'fence')", next: "nextval('runs_seq')",
			each: "json_array_elements", json: "::json",
			feed: feedDialect{
				xact: "xact::text::bigint", at: "seq = $1 AND xact = $2::xid8", after: "(xact, seq) > ($2::xid8, $1)",
				settled: "xact < pg_snapshot_xmin(pg_current_snapshot())", order: "xact, seq", newest: "xact DESC, seq DESC",
			},
		}.prepared(),
	}, nil
}

func connectSQLite(o Options) (*Store, error) {
	if err := prepareSQLiteFile(o); err != nil {
		return nil, err
	}
	file := "file:" + (&url.URL{Path: o.Database}).EscapedPath() + "?_pragma=foreign_keys(1)"
	r, err := openSQLite(fmt.Sprintf("%s&_pragma=busy_timeout(%d)&_pragma=query_only(1)", file, Lease.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Database, err)
	}
	r.SetMaxOpenConns(4)
	// Every new connection reads the schema; a command opens a handful of
	// views in a row and should pay for that once.
	r.SetMaxIdleConns(2)
	s := &Store{
		w: r, r: r, clock: newDatabaseClock(o, true),
		sql: sqliteDialect(o),
	}
	if s.file, err = os.Stat(o.Database); err != nil {
		return nil, errors.Join(homeFault(filepath.Dir(o.Database), err), r.Close())
	}
	if o.ReadOnly {
		return s, nil
	}
	// SQLite itself retries ever more rarely, so that the longest wait ends last:
	// see retryWhileBusy, which starts again instead.
	s.w, err = openSQLite(file + "&_pragma=busy_timeout(100)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Database, err), r.Close())
	}
	s.w.SetMaxOpenConns(1)
	return s, nil
}

func sqliteDialect(o Options) dialect {
	return dialect{
		name: "store " + o.Database, place: o.Database, now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)", virtual: o.Virtual,
		ours: "(SELECT count(*) FROM pragma_table_info('runs') WHERE name = 'fence')",
		next: "(SELECT coalesce(max(seq), 0) + 1 FROM runs)", each: "json_each",
		feed: feedDialect{xact: "0", at: "seq = $1 AND $2 = '0'", after: "seq > $1 AND $2 = '0'", settled: "true", order: "seq", newest: "seq DESC"},
	}.prepared()
}

// prepareSQLiteFile creates the file and its folder. For a reader it creates nothing,
// and a missing file is ErrNotFound.
func prepareSQLiteFile(o Options) error {
	if o.ReadOnly {
		_, err := os.Stat(o.Database)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store %s: %w", o.Database, loop.ErrNotFound)
		}
		return err
	}
	dir := filepath.Dir(o.Database)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return homeFault(dir, err)
	}
	f, err := os.OpenFile(o.Database, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return homeFault(dir, err)
	}
	return f.Close()
}

func homeFault(dir string, err error) error {
	f := &loop.Fault{Exit: loop.ExitError, What: "open the store in " + dir, Why: err.Error(), Err: err, Fix: writableFix}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		f.Why, f.Fix = "pawl's home is read-only here: "+f.Why, writableFix+onlyReading
	}
	return f
}

const (
	writableFix = "make that folder writable, or name another with --home or PAWL_HOME"
	onlyReading = "; commands that only read (ls, show, trace, runs, why, logs) work as it is"
)

const readVersion = `SELECT coalesce(max(version_id), 0), {now}, {ours} FROM goose_db_version WHERE is_applied`

// version reads the version of the tables; 0 means that there are none. It is the
// first use of a connection, which switches a new SQLite file to its write-ahead log:
// that needs exclusive access, for which SQLite does not wait. The clock learns the time
// of the database, without the time that it takes to connect.
func (s *Store) version(ctx context.Context) (v int64, err error) {
	defer s.announceWait(ctx)()
	ours := 0 // whether runs are kept in it as pawl keeps them
	err = retryWhileBusy(ctx, s.commitCounter(ctx), func() error {
		conn, err := s.w.Conn(ctx)
		if err != nil {
			return err
		}
		var now int64
		began := s.clock.startSample()
		err = conn.QueryRowContext(ctx, s.sql.expand(readVersion)).Scan(&v, &now, &ours)
		began.learn(now)
		return errors.Join(err, conn.Close())
	})
	switch {
	case err == nil && v > 0 && ours == 0, isUnknownColumn(err):
		return 0, s.foreignFault("goose_db_version")
	case err == nil:
		s.schema.Store(v)
		return v, nil
	}
	if strings.Contains(err.Error(), "goose_db_version") { // No such table: nothing has been made yet.
		return 0, nil
	}
	if f := s.faultOf(err); f != nil {
		return 0, f
	}
	return 0, fmt.Errorf("open the %s: %w", s.sql.name, err)
}

const countTables = `SELECT count(*) FROM sqlite_schema`

// makeTables makes the tables of the newest version in a SQLite database that has no table,
// and reports whether it did.
func (s *Store) makeTables(ctx context.Context) (made bool, err error) {
	err = retryWhileBusy(ctx, s.commitCounter(ctx), func() error {
		tx, err := s.w.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // After a commit this does nothing.
		tables := 0
		if err := tx.QueryRowContext(ctx, countTables).Scan(&tables); err != nil || tables > 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, sqliteTables); err != nil {
			return err
		}
		made = true
		return tx.Commit()
	})
	return made && err == nil, s.explain("make the tables of the", err)
}

// migrate brings the tables up to the newest version.
func (s *Store) migrate(ctx context.Context) error {
	defer s.announceWait(ctx)()
	if s.pool == nil {
		if made, err := s.makeTables(ctx); made || err != nil {
			return err
		}
	}
	kind, folder := goose.DialectSQLite3, "migrations/sqlite"
	if s.pool != nil {
		kind, folder = goose.DialectPostgres, "migrations/postgres"
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	p, err := goose.NewProvider(kind, s.w, files)
	if err != nil {
		return fmt.Errorf("migrate the %s: %w", s.sql.name, err)
	}
	// Several commands may create a store at the same time: one that fails because
	// another was faster continues from there.
	var earlier error
	for v := int64(-1); ; {
		err := retryWhileBusy(ctx, s.commitCounter(ctx), func() error {
			if s.pool != nil { // The newest version of our tables says that those of River are there too.
				if _, err := p.UpTo(ctx, SchemaVersion-1); err != nil {
					return err
				}
				if err := s.migrateRiver(ctx); err != nil {
					return err
				}
			}
			_, err := p.Up(ctx)
			return err
		})
		if err == nil {
			return nil
		}
		now, verr := s.version(ctx)
		switch {
		case verr == nil && now == SchemaVersion:
			return nil
		case verr == nil && now > v:
			v, earlier = now, err
			continue
		}
		// After a first failure goose no longer tries to create its table, so the
		// earlier error has the cause.
		if f := s.faultOf(errors.Join(earlier, err)); f != nil {
			return f
		}
		return fmt.Errorf("migrate the %s: %w", s.sql.name, err)
	}
}

// diskTrouble recognises a full, broken or read-only disk behind an error of
// SQLite. A full disk shows as an I/O error as often as it shows as full.
func diskTrouble(name string, err error) *loop.Fault {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return nil
	}
	f := &loop.Fault{Exit: loop.ExitError, What: "use the " + name, Why: err.Error(), Err: err}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		f.Fix = "free disk space and run the command again: what was committed is safe"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		f.Why, f.Fix = "the file or its folder cannot be written here: "+f.Why, writableFix+onlyReading
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		f.Fix = "restore the file from a backup, or move it away to start with an empty store"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL:
		f.Exit = loop.ExitHeld
		f.Fix = fmt.Sprintf("another process has been writing for %s without an end: wait for it, or end it", Lease)
	default:
		return nil
	}
	return f
}
