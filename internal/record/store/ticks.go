package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// placedHere selects the loops and runs of workspaces that lie on a node.
const placedHere = `workspace_id IN (SELECT workspace_id FROM placements WHERE node_id = $1)`

// loopPlacedHere is placedHere for statements that come to a few loops by another index: it
// is asked of each of them. SQLite takes placedHere as the way to the rows, and would read
// all loops of the node.
const loopPlacedHere = `EXISTS (SELECT 1 FROM placements p WHERE p.workspace_id = loops.workspace_id AND p.node_id = $1)`

// labelsOn is the condition that the node with the id in a parameter has all labels that
// a run asks for.
func labelsOn(node string) string {
	return `(runs.node_labels = '' OR NOT EXISTS (SELECT 1 FROM {each}(runs.node_labels{json}) asked WHERE NOT EXISTS (
  SELECT 1 FROM nodes, {each}(nodes.labels{json}) has WHERE nodes.id = ` + node + ` AND CAST(has.value AS TEXT) = CAST(asked.value AS TEXT))))`
}

const dueLoops = `
SELECT ` + loopColumns + ` FROM loops
WHERE  ` + loopPlacedHere + ` AND due_ms > 0 AND due_ms <= $2 AND broken = '' ORDER BY due_ms, id LIMIT $3`

// DueLoops lists loops of workspaces that lie on a node and that fire by now, those that
// have been due for longest first.
func (r *Reader) DueLoops(ctx context.Context, node string, now time.Time, limit int) ([]loop.Loop, error) {
	return collect(ctx, r, dueLoops, scanLoop, node, millis(now), limit)
}

// The index of due loops is used only if the statement says that due_ms is not 0.
const nextDue = `SELECT due_ms FROM loops WHERE ` + loopPlacedHere + ` AND due_ms > 0 AND due_ms > $2 AND broken = '' ORDER BY due_ms LIMIT 1`

// NextDue returns when the next loop of a workspace on the node fires after now. The zero
// time means never.
func (r *Reader) NextDue(ctx context.Context, node string, now time.Time) (time.Time, error) {
	var due int64
	err := r.queryRow(ctx, nextDue, node, millis(now)).Scan(&due)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return fromMillis(due), err
}

const planNext = `UPDATE loops SET planned_ms = $1, due_ms = $2, ticked_ms = $3 WHERE id = $4`

// PlanNext says when a locked loop fires next, and up to which planned time the ledger
// has verdicts.
func (t *Tx) PlanNext(ctx context.Context, loopID string, planned, due, ticked time.Time) error {
	if _, err := t.exec(ctx, planNext, millis(planned), millis(due), millis(ticked), loopID); err != nil {
		return fmt.Errorf("plan loop %s: %w", loopID, err)
	}
	t.announce(loop.FeedLoop, loopID, loopID, "")
	return nil
}

const insertTicks = `INSERT INTO ticks (loop_id, first_ms, last_ms, n, verdict, reason, run_id, at_ms) VALUES {rows}`

// AddTicks adds to the ledger of planned times. A time that is there already is an error.
func (t *Tx) AddTicks(ctx context.Context, list []loop.Tick) error {
	rows := make([][]any, len(list))
	for i, k := range list {
		rows[i] = []any{k.LoopID, millis(k.First), millis(k.Last), k.N, k.Verdict, k.Reason, k.RunID, millis(t.now)}
	}
	if err := t.insertRows(ctx, insertTicks, rows); err != nil {
		return fmt.Errorf("add to the ledger of planned times: %w", err)
	}
	return nil
}

const ticksOf = `
SELECT loop_id, first_ms, last_ms, n, verdict, reason, run_id, at_ms FROM ticks WHERE loop_id = $1 AND first_ms < $2 ORDER BY first_ms DESC LIMIT $3`

// Ticks lists what became of the planned times of a loop, the newest first: those that
// begin before a time, all if it is zero.
func (r *Reader) Ticks(ctx context.Context, loopID string, before time.Time, limit int) ([]loop.Tick, error) {
	if before.IsZero() {
		before = time.UnixMilli(1<<62 - 1)
	}
	return collect(ctx, r, ticksOf, scanTick, loopID, before.UnixMilli(), limit)
}

func scanTick(row interface{ Scan(...any) error }) (k loop.Tick, err error) {
	var first, last, at int64
	err = row.Scan(&k.LoopID, &first, &last, &k.N, &k.Verdict, &k.Reason, &k.RunID, &at)
	k.First, k.Last, k.At = fromMillis(first), fromMillis(last), fromMillis(at)
	return k, err
}

var queuedRuns = `SELECT ` + runColumns + ` FROM runs WHERE state = 'queued' AND ` + placedHere + ` AND ` + labelsOn("$1") + ` ORDER BY seq LIMIT $2`

// QueuedRuns lists runs that nobody has claimed yet and that the node may execute: their
// workspaces lie on it, and it has their labels. They are in the order in which they
// were fired.
func (r *Reader) QueuedRuns(ctx context.Context, node string, limit int) ([]loop.Run, error) {
	return collect(ctx, r, queuedRuns, scanRun, node, limit)
}

var queuedRun = `SELECT ` + runColumns + ` FROM runs WHERE id = $2 AND state = 'queued' AND ` + placedHere + ` AND ` + labelsOn("$1")

// QueuedRun returns one of QueuedRuns, or ErrNotFound.
func (r *Reader) QueuedRun(ctx context.Context, node, id string) (loop.Run, error) {
	return r.oneRun(ctx, "queued run "+id, queuedRun, node, id)
}

var nodesFor = `
SELECT runs.id, nodes.id FROM runs JOIN placements p ON p.workspace_id = runs.workspace_id JOIN nodes ON nodes.id = p.node_id
WHERE  nodes.seen_ms >= {now} - $1 AND runs.id IN ({list}) AND ` + labelsOn("nodes.id") + ` ORDER BY runs.id, nodes.id`

// NodesFor lists, by run, the ids of the nodes that may execute it and were seen within
// the time, sorted.
func (r *Reader) NodesFor(ctx context.Context, within time.Duration, runs ...string) (map[string][]string, error) {
	list, err := collectInParts(ctx, r, nodesFor, func(row interface{ Scan(...any) error }) (pair [2]string, err error) {
		err = row.Scan(&pair[0], &pair[1])
		return pair, err
	}, runs, within.Milliseconds())
	nodes := map[string][]string{}
	for _, pair := range list {
		nodes[pair[0]] = append(nodes[pair[0]], pair[1])
	}
	return nodes, err
}

// The index of queued runs begins with the workspace: without it SQLite reads all runs that
// the loops ever had.
const plannedRuns = `
SELECT ` + runColumns + ` FROM runs
WHERE  workspace_id IN (SELECT l.workspace_id FROM loops l WHERE l.id IN ({list})) AND loop_id IN ({list})
AND    state = 'queued' AND (planned_ms IS NOT NULL OR event <> '') ORDER BY seq`

// PlannedRuns lists those runs of the loops that were planned, or that an event has fired,
// and that nobody has claimed yet, in the order in which they were fired.
func (r *Reader) PlannedRuns(ctx context.Context, loops ...string) ([]loop.Run, error) {
	return collectInParts(ctx, r, plannedRuns, scanRun, loops)
}

// Without the words about runs that have ended SQLite reads all runs of the node.
const lapsedWorkspaces = `
SELECT DISTINCT workspace_id FROM runs WHERE state <> 'ended' AND state IN ('running', 'settling') AND lease_until_ms < {now} AND ` + placedHere

// LapsedWorkspaces lists the workspaces on the node with a run whose lease is over.
func (r *Reader) LapsedWorkspaces(ctx context.Context, node string) ([]string, error) {
	return collect(ctx, r, lapsedWorkspaces, scanID, node)
}

// Each half has an index of its own: together they would read all loops of the store.
const overdueLoops = `
SELECT ` + loopColumns + ` FROM loops WHERE due_ms > 0 AND due_ms <= $1 AND paused = 0 AND broken = ''
UNION ALL
SELECT ` + loopColumns + ` FROM loops WHERE due_ms > 0 AND due_ms <= $1 AND paused = 0 AND broken <> ''
ORDER  BY due_ms LIMIT $2`

// OverdueLoops lists loops of all nodes that should have fired by a time, also those whose
// definition broke, and are not paused by their own switch, those first that have been due for longest.
func (r *Reader) OverdueLoops(ctx context.Context, by time.Time, limit int) ([]loop.Loop, error) {
	return collect(ctx, r, overdueLoops, scanLoop, millis(by), limit)
}

const loopsSetBack = `
SELECT ` + loopColumns + ` FROM loops WHERE due_ms > $1 AND (created_ms > $1 OR ticked_ms > $1) ORDER BY id LIMIT $2`

// LoopsSetBack lists loops of all nodes that fire after a time and that were registered, or
// had a planned time decided, after it: the clock was set back to that time. It reads all
// loops of the store.
func (r *Reader) LoopsSetBack(ctx context.Context, to time.Time, limit int) ([]loop.Loop, error) {
	return collect(ctx, r, loopsSetBack, scanLoop, millis(to), limit)
}

const forgottenRuns = `
SELECT ` + runColumns + ` FROM runs WHERE state = 'queued' AND created_ms <= $1 AND contends_until_ms < {now} ORDER BY created_ms LIMIT $2`

// ForgottenRuns lists runs of all nodes that were queued by a time, that nobody has taken
// up, and that do not wait for another one.
func (r *Reader) ForgottenRuns(ctx context.Context, by time.Time, limit int) ([]loop.Run, error) {
	return collect(ctx, r, forgottenRuns, scanRun, millis(by), limit)
}

const backlog = `
SELECT (SELECT count(*) FROM runs WHERE state = 'queued' AND ` + placedHere + `), (SELECT count(*) FROM approvals WHERE state = 'open')`

// Backlog is what waits.
type Backlog struct {
	Queued    int64 // runs of workspaces on the node that nobody has claimed yet
	Approvals int64 // of the store that are open
}

// Backlog counts what waits for a node, and for people.
func (r *Reader) Backlog(ctx context.Context, node string) (b Backlog, err error) {
	return b, r.queryRow(ctx, backlog, node).Scan(&b.Queued, &b.Approvals)
}
