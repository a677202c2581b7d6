//go:build unix

package cli_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // bumps the version of a store

	"github.com/pawl-run/pawl/internal/record/store"
)

// cmdOlder takes the newest migration back from a store, and says that another node shares
// it, whose clock is wrong.
func cmdOlder(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS(filepath.Join(tables, "sqlite")))
	ts.Check(err)
	_, err = p.DownTo(context.Background(), store.SchemaVersion-1)
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), `INSERT INTO nodes (id, name, version, schema_version, skew_ms, created_ms, seen_ms) VALUES ('node_far', 'far', '0.9', 8, 300000, 1, 1)`)
	ts.Check(err)
	ts.Check(db.Close())
}

// cmdExpire makes every open approval expire.
func cmdExpire(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	const expire = `UPDATE approvals SET expires_ms = 1577836800000, body = json_set(body, '$.expires', '2020-01-01T00:00:00Z') WHERE state = 'open'`
	_, err = db.ExecContext(context.Background(), expire)
	ts.Check(err)
	ts.Check(db.Close())
}

// cmdDue makes a registered loop due since so long ago, once it is registered.
func cmdDue(ts *testscript.TestScript, _ bool, args []string) {
	ago, err := time.ParseDuration(args[1])
	ts.Check(err)
	const query = `UPDATE loops SET planned_ms = $1, due_ms = $1 WHERE name = $2 AND due_ms > 0`
	inStore(ts, "loop "+args[0]+" is not registered", func(ctx context.Context, db *sql.DB) (bool, error) {
		res, err := db.ExecContext(ctx, query, time.Now().Add(-ago).UnixMilli(), args[0])
		if err != nil {
			return false, err
		}
		n, err := res.RowsAffected()
		return n == 1, err
	})
}

// cmdAged makes it so that a loop was registered, came last and is due so much longer ago.
func cmdAged(ts *testscript.TestScript, _ bool, args []string) {
	by, err := time.ParseDuration(args[1])
	ts.Check(err)
	inStore(ts, "loop "+args[0]+" is not registered", func(ctx context.Context, db *sql.DB) (bool, error) {
		const loops = `UPDATE loops SET created_ms = created_ms - $1, ticked_ms = 0 WHERE name = $2`
		const runs = `UPDATE runs SET created_ms = created_ms - $1 WHERE loop_id IN (SELECT id FROM loops WHERE name = $2)`
		const due = `UPDATE loops SET planned_ms = planned_ms - $1, due_ms = due_ms - $1 WHERE due_ms > 0 AND name = $2`
		for _, query := range []string{runs, loops, due} {
			if _, err := db.ExecContext(ctx, query, by.Milliseconds(), args[0]); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

// cmdSetBack makes a loop as it is after the clock was set back by a time.
func cmdSetBack(ts *testscript.TestScript, _ bool, args []string) {
	by, err := time.ParseDuration(args[1])
	ts.Check(err)
	inStore(ts, "loop "+args[0]+" is not registered", func(ctx context.Context, db *sql.DB) (bool, error) {
		const query = `UPDATE loops SET created_ms = created_ms + $1, planned_ms = planned_ms + $1, due_ms = due_ms + $1 WHERE name = $2`
		_, err := db.ExecContext(ctx, query, by.Milliseconds(), args[0])
		return err == nil, err
	})
}

// cmdEnded waits until a run of a loop has ended.
func cmdEnded(ts *testscript.TestScript, _ bool, args []string) {
	const query = `SELECT count(*) FROM runs r JOIN loops l ON l.id = r.loop_id WHERE l.name = $1 AND r.n = $2 AND r.state = 'ended'`
	inStore(ts, fmt.Sprintf("run %v has not ended", args), func(ctx context.Context, db *sql.DB) (bool, error) {
		var n int
		err := db.QueryRowContext(ctx, query, args[0], args[1]).Scan(&n)
		return n == 1, err
	})
}

// inStore does something with the store of the script until it is done.
func inStore(ts *testscript.TestScript, undone string, fn func(context.Context, *sql.DB) (done bool, err error)) {
	db, err := sql.Open("sqlite", filepath.Join(ts.Getenv("PAWL_HOME"), "pawl.db")+"?_pragma=busy_timeout(10000)")
	ts.Check(err)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		done, err := fn(context.Background(), db)
		ts.Check(err)
		if done {
			ts.Check(db.Close())
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s after %s", undone, patience)
		}
	}
}
