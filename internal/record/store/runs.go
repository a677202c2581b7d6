package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const runColumns = `id, loop_id, n, seq, run_key, trigger_name, event, planned_ms, fired_by, request, state, phase, outcome, reason, detail, summary, subject, cause, definition,
overrides, base_commit, base_tree, branch, commit_hash, snapshot, approval, sandbox, readiness, agent, auth, usage, cost, total_us,
agent_us, gates_us, holder, node_id, owed, fence, lease_until_ms, cancel, created_ms, started_ms, ended_ms, deferred_to`

func scanRun(row interface{ Scan(...any) error }) (loop.Run, error) {
	var r loop.Run
	var subject, overrides, usage, cost, holder, by, deferred string
	var cause sql.NullString
	var total, agent, gates, lease, created, started, ended int64
	var planned sql.NullInt64
	err := row.Scan(&r.ID, &r.LoopID, &r.N, &r.Seq, &r.Key, &r.Trigger, &r.Event, &planned, &by, &r.Request, &r.State, &r.Phase, &r.Outcome, &r.Reason, &r.Detail, &r.Summary,
		&subject, &cause, &r.Definition, &overrides, &r.BaseCommit, &r.BaseTree, &r.Branch, &r.Commit, &r.Snapshot, &r.Approval, &r.Sandbox,
		&r.Readiness, &r.Agent, &r.Auth, &usage, &cost, &total, &agent, &gates, &holder, &r.Node, &r.Owed, &r.Fence, &lease, &r.Cancel, &created, &started, &ended, &deferred)
	if err != nil {
		return r, err
	}
	r.Spent = loop.Spent{Total: fromMicros(total), Agent: fromMicros(agent), Gates: fromMicros(gates)}
	r.LeaseUntil, r.Created, r.Started, r.Ended = fromMillis(lease), fromMillis(created), fromMillis(started), fromMillis(ended)
	r.Planned = fromMillis(planned.Int64)
	err = errors.Join(decode("actor", by, &r.By), decode("overrides", overrides, &r.Overrides), decode("usage", usage, &r.Usage), decode("cost", cost, &r.Cost))
	if holder != "" {
		err = errors.Join(err, decode("holder", holder, &r.Holder))
	}
	if deferred != "" {
		err = errors.Join(err, decode("deferral", deferred, &r.DeferredTo))
	}
	if !cause.Valid {
		r.Cause = loop.CauseOf(r, subject)
		return r, err
	}
	return r, errors.Join(err, decode("cause", cause.String, &r.Cause))
}

const insertRun = `
INSERT INTO runs (id, loop_id, n, run_key, trigger_name, request, state, phase, definition, overrides, sandbox, approval, created_ms,
                  holder, fence, lease_until_ms, started_ms, event, planned_ms, fired_by, workspace_id, seq, node_id, lock_body, contends_until_ms, node_labels, lock_priority, lock_bound)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, CASE $14 WHEN '' THEN 0 ELSE {now} + $16 END, $17, $18,
       $19, $20, (SELECT workspace_id FROM loops WHERE id = $2), {next}, $21, $22, CASE $7 WHEN 'queued' THEN {now} + $23 ELSE 0 END, $24, $25, $26
WHERE  ($7 = 'queued' OR NOT EXISTS (SELECT 1 FROM runs WHERE loop_id = $2 AND state IN ('running', 'settling')))
AND    NOT EXISTS (SELECT 1 FROM switches s JOIN loops l ON l.id = $2 WHERE s.id IN ('', l.workspace_id))
ON CONFLICT (run_key) DO NOTHING
RETURNING seq, lease_until_ms`

// Fire inserts a queued run with number r.N, which Number gave in the same
// transaction. A key that fired before is ErrDuplicateKey, and the transaction
// must not be committed.
func (t *Tx) Fire(ctx context.Context, r loop.Run) (loop.Run, error) {
	r.State, r.Phase = loop.RunQueued, loop.PhaseTrigger
	return t.insertRun(ctx, r, "", 0)
}

// FireClaimed inserts a run that the caller holds from the start, with fence
// 1: what Fire and Claim do, in one step. While another run of the loop is live
// it is a *loop.HeldError, under a switch of the workspace or the store a
// *loop.PausedError, and the transaction must not be committed.
func (t *Tx) FireClaimed(ctx context.Context, r loop.Run, by loop.Holder) (loop.Run, error) {
	r.State, r.Phase, r.Holder, r.Node, r.Fence = loop.RunRunning, loop.PhaseClaim, by, by.Node, 1
	r.Started = fromMillis(millis(t.now))
	return t.insertRun(ctx, r, encode(by), t.lease.Milliseconds())
}

func (t *Tx) insertRun(ctx context.Context, r loop.Run, holder string, lease int64) (loop.Run, error) {
	var until int64
	for {
		err := t.queryRow(ctx, insertRun, storableArgs(r.ID, r.LoopID, r.N, r.Key, r.Trigger, r.Request, string(r.State), string(r.Phase), r.Definition,
			encode(r.Overrides), r.Sandbox, r.Approval, millis(t.now), holder, r.Fence, lease, millis(r.Started), r.Event,
			sql.NullInt64{Int64: millis(r.Planned), Valid: !r.Planned.IsZero()}, encode(r.By), r.Node,
			lockColumn(r.Lock), contendTime.Milliseconds(), labelsColumn(r.NodeLabels), r.Lock.Priority, r.Lock.Bound)...).Scan(&r.Seq, &until)
		if err == nil {
			break
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return r, fmt.Errorf("fire %s: %w", r.Key, err)
		}
		if err := t.whyNotInserted(ctx, r); err != nil {
			return r, err
		}
	}
	r.LeaseUntil = fromMillis(until)
	r.Created, r.Planned, r.Readiness = fromMillis(millis(t.now)), fromMillis(millis(r.Planned)), fullReadiness
	t.announceRun(r)
	return r, nil
}

// labelsColumn is how labels that a node must have are stored; empty if there are none.
func labelsColumn(labels []string) string {
	if len(labels) == 0 {
		return ""
	}
	return encode(labels)
}

const keyFired = `SELECT 1 FROM runs WHERE run_key = $1`

// whyNotInserted returns the reason as an error: a switch, a live run, or a duplicate key. On
// PostgreSQL the live run may have ended since: then there is no reason any more.
func (t *Tx) whyNotInserted(ctx context.Context, r loop.Run) error {
	if err := t.checkSwitches(ctx, r.LoopID); err != nil {
		return err
	}
	if r.State != loop.RunQueued {
		live, err := t.Live(ctx, r.LoopID)
		if err == nil {
			return &loop.HeldError{What: fmt.Sprintf("run #%d", live.N), Holder: live.Holder}
		}
		if !errors.Is(err, loop.ErrNotFound) {
			return err
		}
	}
	var fired int
	switch err := t.queryRow(ctx, keyFired, storableText(r.Key)).Scan(&fired); {
	case err == nil:
		return fmt.Errorf("%s: %w", r.Key, loop.ErrDuplicateKey)
	case errors.Is(err, sql.ErrNoRows):
		return nil
	default:
		return fmt.Errorf("fire %s: %w", r.Key, err)
	}
}

// fullReadiness is what a run starts with, as the column's default says.
const fullReadiness = 100

// claimRun takes a queued run, or one whose lease lapsed or whose holder the
// caller has found dead.
var claimRun = `
UPDATE runs
SET    state = CASE state WHEN 'queued' THEN 'running' ELSE state END, phase = CASE state WHEN 'queued' THEN 'claim' ELSE phase END,
       holder = $1, fence = fence + 1, lease_until_ms = {now} + $2, started_ms = CASE started_ms WHEN 0 THEN $3 ELSE started_ms END, node_id = $7
WHERE  id = $4 AND fence = $5 AND (state = 'queued' AND NOT EXISTS (SELECT 1 FROM switches s WHERE s.id IN ('', runs.workspace_id)) AND ($7 = '' OR ` + labelsOn("$7") + `) OR (state IN ('running', 'settling') AND (lease_until_ms < {now} OR holder = $6)))
AND    ($7 = '' OR EXISTS (SELECT 1 FROM placements p WHERE p.workspace_id = runs.workspace_id AND p.node_id = $7))
RETURNING ` + runColumns

// Claim makes the caller the holder of run id with a new fence. seen is the
// fence that the caller knows; dead, when not zero, is the holder that the
// caller has proven dead, whose lease then need not lapse. Nobody else's live
// claim is ever taken: that is ErrLeaseLost. So is a run of a workspace that does not lie
// on the node of the caller, and a queued one with a label that the node lacks. A queued run under a switch of its workspace or of the
// store is a *loop.PausedError; one that is taken from another holder is not held up.
func (t *Tx) Claim(ctx context.Context, id string, seen int64, by, dead loop.Holder) (loop.Run, *RunTx, error) {
	gone := "-"
	if dead != (loop.Holder{}) {
		gone = encode(dead)
	}
	r, err := scanRun(t.queryRow(ctx, claimRun, encode(by), t.lease.Milliseconds(), millis(t.now), id, seen, gone, by.Node))
	if errors.Is(err, sql.ErrNoRows) {
		err = t.whyNotClaimed(ctx, id, seen)
	}
	if err != nil {
		return r, nil, fmt.Errorf("claim run %s: %w", id, err)
	}
	t.announceRun(r)
	return r, &RunTx{Tx: t, run: r}, nil
}

const queuedLoop = `SELECT loop_id FROM runs WHERE id = $1 AND fence = $2 AND state = 'queued'`

// whyNotClaimed returns the reason as an error: a switch, or another claim.
func (t *Tx) whyNotClaimed(ctx context.Context, id string, seen int64) error {
	var loopID string
	err := t.queryRow(ctx, queuedLoop, id, seen).Scan(&loopID)
	if err == nil {
		err = t.checkSwitches(ctx, loopID)
	}
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrLeaseLost
	}
	return err
}

const extendRun = `
UPDATE runs SET lease_until_ms = {now} + $1
WHERE  id = $2 AND fence = $3 AND state IN ('running', 'settling')
RETURNING lease_until_ms, {now}, cancel`

// Extend prolongs the lease of the holder with the fence and returns what the
// run was asked to stop for, empty when it was not.
func (t *Tx) Extend(ctx context.Context, id string, fence int64) (cancel string, err error) {
	if err = t.writeHeld(ctx, loop.Run{ID: id}, &cancel, extendRun, t.lease.Milliseconds(), id, fence); err != nil {
		return "", fmt.Errorf("extend run %s: %w", id, err)
	}
	return cancel, nil
}

const cancelRun = `UPDATE runs SET cancel = $1 WHERE id = $2 AND state IN ('queued', 'running') AND cancel = '' RETURNING loop_id, state`

// Cancel asks the holder of a run to stop. It reports false when the run is
// past the point where stopping means anything, or was asked before.
func (t *Tx) Cancel(ctx context.Context, id, why string) (bool, error) {
	r := loop.Run{ID: id}
	err := t.queryRow(ctx, cancelRun, storableText(why), id).Scan(&r.LoopID, &r.State)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cancel run %s: %w", id, err)
	}
	t.announceRun(r)
	return true, nil
}

const runByID = `SELECT ` + runColumns + ` FROM runs WHERE id = $1`

// Run returns one run, or ErrNotFound.
func (r *Reader) Run(ctx context.Context, id string) (loop.Run, error) {
	return r.oneRun(ctx, "run "+id, runByID, id)
}

const runByNumber = `SELECT ` + runColumns + ` FROM runs WHERE loop_id = $1 AND n = $2`

// RunNumber returns the loop's run n, or ErrNotFound.
func (r *Reader) RunNumber(ctx context.Context, loopID string, n int64) (loop.Run, error) {
	return r.oneRun(ctx, fmt.Sprintf("run #%d", n), runByNumber, loopID, n)
}

func (r *Reader) oneRun(ctx context.Context, what, query string, args ...any) (loop.Run, error) {
	run, err := scanRun(r.queryRow(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return run, fmt.Errorf("%s: %w", what, loop.ErrNotFound)
	}
	return run, err
}

const liveRun = `SELECT ` + runColumns + ` FROM runs WHERE loop_id = $1 AND state IN ('running', 'settling')`

// Live returns the loop's one run that somebody holds, or ErrNotFound.
func (r *Reader) Live(ctx context.Context, loopID string) (loop.Run, error) {
	return r.oneRun(ctx, "live run", liveRun, loopID)
}

const recentRuns = `SELECT ` + runColumns + ` FROM runs WHERE loop_id = $1 ORDER BY n DESC LIMIT $2`

// Runs lists the newest runs of a loop, newest first.
func (r *Reader) Runs(ctx context.Context, loopID string, limit int) ([]loop.Run, error) {
	return collect(ctx, r, recentRuns, scanRun, loopID, limit)
}

const workspaceRuns = `SELECT ` + runColumns + ` FROM runs WHERE workspace_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3`

// WorkspaceRuns lists the newest runs of a workspace, newest first by the order in
// which they were fired: only those fired before the run with the given Seq, all
// if it is 0.
func (r *Reader) WorkspaceRuns(ctx context.Context, workspace string, before int64, limit int) ([]loop.Run, error) {
	return collect(ctx, r, workspaceRuns, scanRun, workspace, cmp.Or(before, math.MaxInt64), limit)
}

const newestRuns = `
SELECT ` + runColumns + ` FROM runs
WHERE  id IN (SELECT (SELECT m.id FROM runs m WHERE m.loop_id = l.id ORDER BY m.n DESC LIMIT 1) FROM loops l WHERE l.id IN ({list}))`

// NewestRuns lists the newest run of each of the loops, in no order. Loops without
// runs are left out.
func (r *Reader) NewestRuns(ctx context.Context, loops ...string) ([]loop.Run, error) {
	return collectInParts(ctx, r, newestRuns, scanRun, loops)
}

const endedRuns = `SELECT ` + runColumns + ` FROM runs WHERE loop_id = $1 AND state = 'ended' ORDER BY n DESC LIMIT $2`

// Ended lists the newest runs of a loop that have ended, newest first.
func (r *Reader) Ended(ctx context.Context, loopID string, limit int) ([]loop.Run, error) {
	return collect(ctx, r, endedRuns, scanRun, loopID, limit)
}

const idleNumbers = `SELECT count(*) FROM runs WHERE loop_id = $1 AND n > $2 AND n < $3 AND (outcome = 'paused' OR trigger_name = 'approval')`

// NoCyclesBetween counts the runs of a loop between two numbers that were not cycles of it: a
// switch kept them from working, or they carried out an answer.
func (r *Reader) NoCyclesBetween(ctx context.Context, loopID string, after, before int64) (n int64, err error) {
	if err = r.queryRow(ctx, idleNumbers, loopID, after, before).Scan(&n); err != nil {
		return 0, fmt.Errorf("count runs of loop %s: %w", loopID, err)
	}
	return n, nil
}

// RunTx writes what belongs to one run. It exists only for the holder whose
// fence is the newest: Enter, Save, Settle and End make it, each by a statement
// that a stale fence does not match.
type RunTx struct {
	*Tx
	run      loop.Run
	appended []line // to files, in this transaction
}

// line is one that a change appends to a file of the loop.
type line struct {
	Path string `json:"path"`
	Line string `json:"line"`
}

const enterPhase = `
UPDATE runs SET phase = $1, lease_until_ms = {now} + $2
WHERE  id = $3 AND fence = $4 AND state IN ('running', 'settling')
RETURNING lease_until_ms, {now}`

// Enter records the phase, prolongs the lease and returns the handle for
// writing to the run, or ErrLeaseLost if another worker has it now.
func (t *Tx) Enter(ctx context.Context, r loop.Run, phase loop.Phase) (*RunTx, error) {
	err := t.writeHeld(ctx, r, nil, enterPhase, string(phase), t.lease.Milliseconds(), r.ID, r.Fence)
	r.Phase = phase
	return t.newRunTx("enter", r, err)
}

const saveRun = `
UPDATE runs
SET    reason = $1, detail = $2, summary = $3, subject = $4, base_commit = $5, base_tree = $6, branch = $7, commit_hash = $8, snapshot = $9,
       approval = $10, sandbox = $11, readiness = $12, agent = $13, auth = $14, usage = $15, cost = $16, total_us = $17,
       agent_us = $18, gates_us = $19, phase = $20, state = $21, outcome = $22, ended_ms = $23,
       holder = CASE $21 WHEN 'ended' THEN '' ELSE holder END, lease_until_ms = CASE $21 WHEN 'ended' THEN 0 ELSE {now} + $24 END, cause = $25
WHERE  id = $26 AND fence = $27 AND state = $28
RETURNING lease_until_ms, {now}`

// Save is Enter for a run whose phases have found out facts: it records them.
// State and outcome stay what they are.
func (t *Tx) Save(ctx context.Context, r loop.Run, phase loop.Phase) (*RunTx, error) {
	return t.save(ctx, r, phase, r.State, r.State)
}

// Settle saves a running run with its outcome. It ends the run at once unless
// effects are outstanding, which then keep it settling.
func (t *Tx) Settle(ctx context.Context, r loop.Run, phase loop.Phase, outstanding bool) (*RunTx, error) {
	to := loop.RunEnded
	if outstanding {
		to = loop.RunSettling
	}
	return t.save(ctx, r, phase, loop.RunRunning, to)
}

// End saves and ends a settling run: nothing is outstanding any more. The
// outcome may have changed with what the effects did.
func (t *Tx) End(ctx context.Context, r loop.Run, phase loop.Phase) (*RunTx, error) {
	return t.save(ctx, r, phase, loop.RunSettling, loop.RunEnded)
}

func (t *Tx) save(ctx context.Context, r loop.Run, phase loop.Phase, from, to loop.RunState) (*RunTx, error) {
	if from != to && !slices.Contains(loop.SourceStates("run", to), from) {
		return nil, fmt.Errorf("run %s: %s may not become %s", r.ID, from, to)
	}
	var ended int64
	if to == loop.RunEnded {
		ended = millis(t.now)
	}
	err := t.writeHeld(ctx, r, nil, saveRun, string(r.Reason), r.Detail, r.Summary, r.Subject(), r.BaseCommit, r.BaseTree, r.Branch, r.Commit, r.Snapshot,
		r.Approval, r.Sandbox, r.Readiness, r.Agent, string(r.Auth), encode(r.Usage), encode(r.Cost), micros(r.Spent.Total),
		micros(r.Spent.Agent), micros(r.Spent.Gates), string(phase), string(to), string(r.Outcome), ended, t.lease.Milliseconds(), encode(r.Cause), r.ID, r.Fence, string(from))
	r.Phase, r.State = phase, to
	rt, err := t.newRunTx("save", r, err)
	if err == nil && to == loop.RunEnded && r.Event != "" && (r.Outcome == loop.OutcomePaused || r.Outcome == loop.OutcomeInterrupted) {
		err = rt.returnStopped(ctx, r.Outcome)
	}
	return rt, err
}

// writeHeld executes a statement that writes the row of a run for its holder, and notes the
// lease that it leaves there. More is what else it returns; nil: nothing. If the fence is
// stale the error is ErrLeaseLost.
func (t *Tx) writeHeld(ctx context.Context, r loop.Run, more any, query string, args ...any) error {
	var lease, now int64
	into := []any{&lease, &now}
	if more != nil {
		into = append(into, more)
	}
	began := t.clock.startSample()
	err := t.queryRow(ctx, query, storableArgs(args...)...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return loop.ErrLeaseLost
	}
	if err == nil {
		began.learn(now)
		t.extended, t.leased = true, loop.Run{ID: r.ID, LeaseUntil: fromMillis(lease)}
	}
	return err
}

// newRunTx returns the handle if the guarding statement matched the row.
func (t *Tx) newRunTx(doing string, r loop.Run, err error) (*RunTx, error) {
	rt := &RunTx{Tx: t, run: r}
	if err != nil {
		return nil, fmt.Errorf("%s run %s: %w", doing, r.ID, err)
	}
	t.announceRun(r)
	return rt, nil
}

func (t *RunTx) checkGuard(doing string, n int64, err error) error {
	if err == nil && n == 0 {
		err = loop.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("%s run %s: %w", doing, t.run.ID, err)
	}
	return nil
}
