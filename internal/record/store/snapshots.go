package store

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// sameRepository selects the workspaces of the repository of one.
const sameRepository = `SELECT o.id FROM workspaces o JOIN workspaces w ON w.repository = o.repository WHERE w.id = `

const (
	snapshotRuns = `
SELECT ` + runColumns + ` FROM runs
WHERE  snapshot = $1 AND loop_id IN (SELECT id FROM loops WHERE workspace_id = $2) ORDER BY created_ms DESC LIMIT 1`
	snapshotRunsOfRepository = `
SELECT ` + runColumns + ` FROM runs
WHERE  snapshot = $1 AND loop_id IN (SELECT id FROM loops WHERE workspace_id IN (` + sameRepository + `$2)) ORDER BY created_ms DESC LIMIT 1`
	runOfRepository = `
SELECT ` + runColumns + ` FROM runs
WHERE  id = $1 AND loop_id IN (SELECT id FROM loops WHERE workspace_id IN (` + sameRepository + `$2))`
)

// SnapshotRun returns the run of a workspace whose work the ref keeps, or ErrNotFound. If the
// refs are shared, it may be one of another workspace of the same repository.
func (r *Reader) SnapshotRun(ctx context.Context, workspace, ref string, shared bool) (loop.Run, error) {
	query := snapshotRuns
	if shared {
		query = snapshotRunsOfRepository
	}
	return r.oneRun(ctx, "run of "+ref, query, ref, workspace)
}

// RunOfRepository returns a run of a workspace, or of another one of the same repository, or
// ErrNotFound.
func (r *Reader) RunOfRepository(ctx context.Context, workspace, id string) (loop.Run, error) {
	return r.oneRun(ctx, "run "+id, runOfRepository, id, workspace)
}

const (
	waitingSteps = `
SELECT s.snapshot, s.title FROM steps s JOIN loops l ON l.id = s.loop_id
WHERE  s.snapshot <> '' AND s.state NOT IN ('done', 'dropped') AND l.workspace_id = $1 ORDER BY s.id`
	waitingStepsOfRepository = `
SELECT s.snapshot, s.title FROM steps s JOIN loops l ON l.id = s.loop_id
WHERE  s.snapshot <> '' AND s.state NOT IN ('done', 'dropped') AND l.workspace_id IN (` + sameRepository + `$1) ORDER BY s.id`
)

// Waiting maps each snapshot ref from which a step of the workspace would continue to the title
// of such a step. If the refs are shared, steps of the other workspaces of the repository count.
func (r *Reader) Waiting(ctx context.Context, workspace string, shared bool) (waiting map[string]string, err error) {
	waiting = map[string]string{}
	query := waitingSteps
	if shared {
		query = waitingStepsOfRepository
	}
	_, err = collect(ctx, r, query, func(row interface{ Scan(...any) error }) (struct{}, error) {
		var ref, title string
		err := row.Scan(&ref, &title)
		waiting[ref] = title
		return struct{}{}, err
	}, workspace)
	return waiting, err
}

// settledSteps finds for each step that a run worked on when it was settled
// for good: by the first later run that succeeded with it, which a step that
// comes back again and again does not move, or by its own state.
const settledSteps = `
SELECT s.state, s.updated_ms, coalesce((
         SELECT r.ended_ms FROM runs r JOIN iterations i ON i.run_id = r.id
         WHERE  r.loop_id = s.loop_id AND r.n > $1 AND r.state = 'ended' AND i.step_id = s.id AND i.verdict = 'pass'
         AND    r.outcome IN ('quiet', 'reported', 'proposed', 'landed', 'done')
         ORDER  BY r.n LIMIT 1), 0)
FROM   steps s
WHERE  s.id IN (SELECT step_id FROM iterations WHERE run_id = $2)`

// Settled returns when the last step that an ended run worked on was done or
// dropped, and false while one is not. A run that worked on none was settled
// when it ended.
func (r *Reader) Settled(ctx context.Context, run loop.Run) (at time.Time, settled bool, err error) {
	if run.State != loop.RunEnded {
		return at, false, nil
	}
	at, settled = run.Ended, true
	_, err = collect(ctx, r, settledSteps, func(row interface{ Scan(...any) error }) (struct{}, error) {
		var state loop.StepState
		var updated, passed int64
		err := row.Scan(&state, &updated, &passed)
		switch {
		case passed > 0:
		case state == loop.StepDone || state == loop.StepDropped:
			passed = updated
		default:
			settled = false
		}
		if done := fromMillis(passed); done.After(at) {
			at = done
		}
		return struct{}{}, err
	}, run.N, run.ID)
	if err != nil {
		return at, false, fmt.Errorf("read the steps of run %s: %w", run.ID, err)
	}
	return at, settled, nil
}
