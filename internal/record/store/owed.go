package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const takeLost = `
UPDATE runs SET holder = $1, fence = fence + 1, lease_until_ms = {now} + $2
WHERE  id = $3 AND fence = $4 AND state IN ('running', 'settling') AND (lease_until_ms < {now} OR holder = $5)
RETURNING ` + runColumns

// TakeLost makes the caller the holder of a run of another node, only to end it: the
// run stays one of that node. It is Claim otherwise, and needs no placement.
func (t *Tx) TakeLost(ctx context.Context, id string, seen int64, by, dead loop.Holder) (loop.Run, error) {
	gone := "-"
	if dead != (loop.Holder{}) {
		gone = encode(dead)
	}
	r, err := scanRun(t.queryRow(ctx, takeLost, encode(by), t.lease.Milliseconds(), id, seen, gone))
	if errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrLeaseLost
	}
	if err != nil {
		return r, fmt.Errorf("take run %s: %w", id, err)
	}
	t.announceRun(r)
	return r, nil
}

const oweFiles = `UPDATE runs SET owed = 1 WHERE id = $1 AND fence = $2`

// OweFiles says that the node of the run still has to keep its work and write its
// files.
func (t *RunTx) OweFiles(ctx context.Context) error {
	n, err := t.exec(ctx, oweFiles, t.run.ID, t.run.Fence)
	t.announceRun(t.run)
	return t.checkGuard("leave the files of", n, err)
}

const enterOwed = `
UPDATE runs SET owed = $1, branch = $2, commit_hash = $3, snapshot = $4, detail = $5
WHERE  id = $6 AND fence = $7 AND state = 'ended' AND owed = 1`

// EnterOwed returns the handle for writing to an ended run whose files are still owed,
// and saves what was found out about its work. If paid, nothing is owed any more. A
// run that owes nothing is ErrLeaseLost.
func (t *Tx) EnterOwed(ctx context.Context, r loop.Run, paid bool) (*RunTx, error) {
	owed := 1
	if paid {
		owed = 0
	}
	n, err := t.exec(ctx, enterOwed, owed, r.Branch, r.Commit, r.Snapshot, r.Detail, r.ID, r.Fence)
	rt := &RunTx{Tx: t, run: r}
	if err := rt.checkGuard("finish", n, err); err != nil {
		return nil, err
	}
	t.announceRun(r)
	return rt, nil
}

const owedRuns = `SELECT ` + runColumns + ` FROM runs WHERE node_id = $1 AND workspace_id = $2 AND owed = 1 ORDER BY seq`

// OwedRuns lists the ended runs of a workspace whose files a node still owes, oldest
// first.
func (r *Reader) OwedRuns(ctx context.Context, node, workspace string) ([]loop.Run, error) {
	return collect(ctx, r, owedRuns, scanRun, node, workspace)
}

const openRuns = `
SELECT ` + runColumns + ` FROM runs WHERE node_id = $1 AND owed = 1
UNION ALL
SELECT ` + runColumns + ` FROM runs WHERE node_id = $1 AND state <> 'ended'
ORDER  BY seq`

// OpenRuns lists the runs of a node, in all workspaces, that are live or whose files it
// still owes, oldest first.
func (r *Reader) OpenRuns(ctx context.Context, node string) ([]loop.Run, error) {
	return collect(ctx, r, openRuns, scanRun, node)
}

const (
	dropOwed    = `UPDATE runs SET owed = 0 WHERE node_id = $1 AND owed = 1`
	dropChanges = `DELETE FROM changes WHERE run_id IN (SELECT id FROM runs WHERE node_id = $1)`
)

// GiveUpOwed forgets what a node owes: the files of its runs are not written any more.
func (t *Tx) GiveUpOwed(ctx context.Context, node string) error {
	for _, query := range []string{dropOwed, dropChanges} {
		if _, err := t.exec(ctx, query, node); err != nil {
			return fmt.Errorf("give up what node %s owes: %w", node, err)
		}
	}
	return nil
}
