package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const loopColumns = `id, workspace_id, name, protocol, definition, paused, forgotten, last_n, created_ms, deferrals, source, good, broken, planned_ms, due_ms, ticked_ms, listens, parent_id, depth, made_by_run, pawl_tools, lent`

func scanLoop(row interface{ Scan(...any) error }) (loop.Loop, error) {
	var l loop.Loop
	var created, planned, due, ticked int64
	var lent string
	reg := &l.Registered
	err := row.Scan(
		&l.ID, &l.WorkspaceID, &l.Name, &l.Protocol, &l.Definition, &l.Paused, &l.Forgotten, &l.LastN, &created, &l.Deferrals,
		&reg.Source, &reg.Good, &reg.Broken, &planned, &due, &ticked, &reg.Listens, &l.Parent, &l.Depth, &l.MadeBy, &l.PawlTools, &lent,
	)
	if err == nil && lent != "" {
		err = decode("lent", lent, &l.Lent)
	}
	l.Created, reg.Planned, reg.Due, l.Ticked = fromMillis(created), fromMillis(planned), fromMillis(due), fromMillis(ticked)
	return l, err
}

const (
	insertLoop = `
INSERT INTO loops (id, workspace_id, name, protocol, last_n, created_ms) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING`
	notNumbered  = `SELECT id, last_n FROM loops WHERE workspace_id = $1 AND protocol = $2 AND name = $3 AND numbered = 0{for_update}`
	startNumbers = `UPDATE loops SET last_n = $1, numbered = 1 WHERE id = $2`
)

// AddLoop creates the loop, with its workspace, unless the workspace has one of
// that protocol and name. The runs of a new one, and of one that was only registered,
// are numbered on from l.LastN.
func (t *Tx) AddLoop(ctx context.Context, w loop.Workspace, l loop.Loop) error {
	if err := t.AddWorkspace(ctx, w); err != nil {
		return err
	}
	n, err := t.exec(ctx, insertLoop, l.ID, l.WorkspaceID, l.Name, l.Protocol, l.LastN, millis(t.now))
	if err != nil {
		return fmt.Errorf("save loop %s: %w", l.Name, err)
	}
	if n == 1 {
		t.announce(loop.FeedLoop, l.ID, l.ID, "")
		return nil
	}
	if err := t.startNumbers(ctx, l); err != nil {
		return fmt.Errorf("number loop %s: %w", l.Name, err)
	}
	return nil
}

// startNumbers makes the runs of a loop that is there be numbered on from l.LastN, unless
// they are. One that had runs, in a store that was restored, has a gap: the chain says so.
func (t *Tx) startNumbers(ctx context.Context, l loop.Loop) error {
	var id string
	var before int64
	err := t.queryRow(ctx, notNumbered, l.WorkspaceID, l.Protocol, l.Name).Scan(&id, &before)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if before > 0 && l.LastN > before {
		if err := t.Link(ctx, id, loop.LinkMissing, "", loop.Missing{First: before + 1, Last: l.LastN}); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, startNumbers, max(before, l.LastN), id); err != nil {
		return err
	}
	t.announce(loop.FeedLoop, id, id, "")
	return nil
}

const numberRun = `
UPDATE loops SET last_n = last_n + 1, forgotten = 0 WHERE workspace_id = $1 AND protocol = $2 AND name = $3 AND numbered = 1
RETURNING ` + loopColumns

// Number gives the loop's next run its number, LastN of the row that it
// returns, and locks the row: numbers have no gaps, because a firing that fails
// gives its number back with the transaction. A loop that was forgotten is known
// again. It returns ErrNotFound for a loop without a row, and for one whose last
// number has not been looked up in its files yet.
func (t *Tx) Number(ctx context.Context, workspace, protocol, name string) (loop.Loop, error) {
	return oneLoop(name, t.queryRow(ctx, numberRun, workspace, protocol, name))
}

const loopNamed = `SELECT ` + loopColumns + ` FROM loops WHERE workspace_id = $1 AND protocol = $2 AND name = $3`

// LoopNamed finds a loop by its protocol and name, or returns ErrNotFound.
func (r *Reader) LoopNamed(ctx context.Context, workspace, protocol, name string) (loop.Loop, error) {
	return oneLoop(name, r.queryRow(ctx, loopNamed, workspace, protocol, name))
}

const loopByID = `SELECT ` + loopColumns + ` FROM loops WHERE id = $1`

// Loop returns one loop of any workspace, or ErrNotFound.
func (r *Reader) Loop(ctx context.Context, id string) (loop.Loop, error) {
	return oneLoop(id, r.queryRow(ctx, loopByID, id))
}

func oneLoop(name string, row *sql.Row) (loop.Loop, error) {
	l, err := scanLoop(row)
	if errors.Is(err, sql.ErrNoRows) {
		return l, fmt.Errorf("loop %s: %w", name, loop.ErrNotFound)
	}
	return l, err
}

const loopsOf = `SELECT ` + loopColumns + ` FROM loops WHERE workspace_id = $1 ORDER BY name, protocol`

// Loops lists the loops of a workspace by name, also those that were forgotten.
func (r *Reader) Loops(ctx context.Context, workspace string) ([]loop.Loop, error) {
	return collect(ctx, r, loopsOf, scanLoop, workspace)
}

const loopsNamed = `SELECT ` + loopColumns + ` FROM loops WHERE workspace_id = $1 AND name IN ({list}) ORDER BY name, protocol`

// LoopsNamed lists the loops of a workspace that have one of the names, whatever
// their protocol, also those that were forgotten.
func (r *Reader) LoopsNamed(ctx context.Context, workspace string, names ...string) ([]loop.Loop, error) {
	return collectInParts(ctx, r, loopsNamed, scanLoop, names, workspace)
}

const loopsAfter = `
SELECT ` + loopColumns + ` FROM loops WHERE workspace_id = $1 AND (name, protocol) > ($2, $3) ORDER BY name, protocol LIMIT $4`

// LoopsAfter lists a page of the loops of a workspace, by name and then by
// protocol, also those that were forgotten: at most limit of those that come after
// this name and protocol. Texts are compared byte by byte.
func (r *Reader) LoopsAfter(ctx context.Context, workspace, name, protocol string, limit int) ([]loop.Loop, error) {
	return collect(ctx, r, loopsAfter, scanLoop, storableArgs(workspace, name, protocol, limit)...)
}

const unfinishedLoops = `
SELECT ` + loopColumns + ` FROM loops
WHERE  workspace_id = $1 AND id IN (
  SELECT loop_id FROM runs WHERE workspace_id = $1 AND state <> 'ended' AND state <> 'queued'
  UNION SELECT loop_id FROM runs WHERE workspace_id = $1 AND node_id = $2 AND owed = 1
  UNION SELECT c.loop_id FROM changes c JOIN runs r ON r.id = c.run_id WHERE r.node_id IN ($2, ''))
ORDER  BY name, protocol`

// UnfinishedLoops lists the loops of a workspace that have a live run, and those for
// which a node still has to write files.
func (r *Reader) UnfinishedLoops(ctx context.Context, workspace, node string) ([]loop.Loop, error) {
	return collect(ctx, r, unfinishedLoops, scanLoop, workspace, node)
}

const lockLoop = `SELECT ` + loopColumns + ` FROM loops WHERE id = $1{for_update}`

// LockLoop returns one loop, or ErrNotFound. Nobody fires a run of it, pauses it or
// forgets it before the transaction ends.
func (t *Tx) LockLoop(ctx context.Context, id string) (loop.Loop, error) {
	return oneLoop(id, t.queryRow(ctx, lockLoop, id))
}

const lockLoopOf = `SELECT ` + loopColumns + ` FROM loops WHERE id = (SELECT loop_id FROM runs WHERE id = $1){for_update}`

// LockLoopOf is LockLoop for the loop of a run. If there is no such run the error is
// ErrNotFound.
func (t *Tx) LockLoopOf(ctx context.Context, run string) (loop.Loop, error) {
	return oneLoop("of run "+run, t.queryRow(ctx, lockLoopOf, run))
}

const pauseLoop = `UPDATE loops SET paused = $1 WHERE id = $2`

// Pause sets or clears the store's own switch of one loop.
func (t *Tx) Pause(ctx context.Context, loopID string, paused bool) error {
	on, state := 0, "resumed"
	if paused {
		on, state = 1, "paused"
	}
	if _, err := t.exec(ctx, pauseLoop, on, loopID); err != nil {
		return fmt.Errorf("pause loop %s: %w", loopID, err)
	}
	t.announce(loop.FeedLoop, loopID, loopID, state)
	return nil
}

const forgetLoop = `UPDATE loops SET forgotten = 1, paused = 0, source = '', due_ms = 0, listens = '' WHERE id = $1`

// Forget takes a loop out of listings until it runs again, and plans no run of it until
// its file is looked at again. Its runs and its audit chain, of which this is a link,
// stay, and its numbers go on.
func (t *Tx) Forget(ctx context.Context, by loop.Actor, loopID string) error {
	if _, err := t.exec(ctx, forgetLoop, loopID); err != nil {
		return fmt.Errorf("forget loop %s: %w", loopID, err)
	}
	t.announce(loop.FeedLoop, loopID, loopID, "forgotten")
	return t.LinkBy(ctx, by, loopID, loop.LinkForget, "", map[string]any{"verb": "forget"})
}

const (
	insertDefinition = `INSERT INTO definitions (digest, loop_id, body, created_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	pinDefinition    = `UPDATE loops SET definition = $1 WHERE id = $2`
)

// SaveDefinition records d under its digest and makes it the loop's newest.
func (t *Tx) SaveDefinition(ctx context.Context, loopID string, d loop.Definition) error {
	if err := t.AddDefinition(ctx, loopID, d); err != nil {
		return err
	}
	if _, err := t.exec(ctx, pinDefinition, d.Digest(), loopID); err != nil {
		return fmt.Errorf("pin definition %s: %w", d.Name, err)
	}
	t.announce(loop.FeedLoop, loopID, loopID, "")
	return nil
}

// AddDefinition records d under its digest.
func (t *Tx) AddDefinition(ctx context.Context, loopID string, d loop.Definition) error {
	if _, err := t.exec(ctx, insertDefinition, d.Digest(), loopID, encode(d), millis(t.now)); err != nil {
		return fmt.Errorf("save definition %s: %w", d.Name, err)
	}
	return nil
}

const readDefinition = `SELECT body FROM definitions WHERE digest = $1`

// Definition returns the definition with the digest, or ErrNotFound.
func (r *Reader) Definition(ctx context.Context, digest string) (d loop.Definition, err error) {
	var body string
	switch err := r.queryRow(ctx, readDefinition, digest).Scan(&body); {
	case errors.Is(err, sql.ErrNoRows):
		return d, fmt.Errorf("definition %s: %w", digest, loop.ErrNotFound)
	case err != nil:
		return d, fmt.Errorf("read definition %s: %w", digest, err)
	}
	return d, decode("definition "+digest, body, &d)
}

const readDefinitions = `SELECT digest, body FROM definitions WHERE digest IN ({list})`

// Definitions finds definitions by their digests. Those that do not exist or cannot
// be decoded are left out: of many loops one must not hide the others.
func (r *Reader) Definitions(ctx context.Context, digests ...string) (map[string]loop.Definition, error) {
	list, err := collectInParts(ctx, r, readDefinitions, func(row interface{ Scan(...any) error }) (d [2]string, err error) {
		err = row.Scan(&d[0], &d[1])
		return d, err
	}, digests)
	found := map[string]loop.Definition{}
	for _, row := range list {
		var d loop.Definition
		if decode("definition", row[1], &d) == nil {
			found[row[0]] = d
		}
	}
	return found, err
}

// collect runs a query and scans each row. It is not a method because methods have no
// type parameters.
func collect[T any](ctx context.Context, r *Reader, query string, scan func(interface{ Scan(...any) error }) (T, error), args ...any) ([]T, error) {
	return appendRows(ctx, r, nil, query, scan, args...)
}

// appendRows is collect that appends to a list.
func appendRows[T any](ctx context.Context, r *Reader, list []T, query string, scan func(interface{ Scan(...any) error }) (T, error), args ...any) (_ []T, err error) {
	rows, err := r.q.QueryContext(ctx, r.sql.expand(query), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// partSize is how many values one statement compares with: SQLite limits the
// depth of an expression and both databases the number of parameters.
const partSize = 500

// collectInParts is collect for a query in which {list} stands for values, which may be
// thousands. Other parameters come first. Rows of one part are in the query's order.
func collectInParts[T any](ctx context.Context, r *Reader, query string, scan func(interface{ Scan(...any) error }) (T, error), values []string, args ...any) (list []T, err error) {
	for part := range slices.Chunk(values, partSize) {
		var marks []string
		with := slices.Clone(args)
		for _, v := range part {
			with = append(with, v)
			marks = append(marks, fmt.Sprintf("$%d", len(with)))
		}
		list, err = appendRows(ctx, r, slices.Grow(list, len(part)), strings.ReplaceAll(query, "{list}", strings.Join(marks, ", ")), scan, storableArgs(with...)...)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func decode(what, body string, into any) error {
	if err := json.Unmarshal([]byte(body), into); err != nil {
		return fmt.Errorf("decode %s: %w", what, err)
	}
	return nil
}

func encode(v any) string {
	body, err := json.Marshal(v)
	if err != nil {
		// Rows hold strings, numbers, times and lists of them.
		panic(fmt.Sprintf("store: %T does not marshal: %v", v, err))
	}
	return string(body)
}

func micros(d time.Duration) int64 { return d.Microseconds() }

func fromMicros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
