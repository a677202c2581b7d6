package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const stepColumns = `id, loop_id, step_key, kind, title, state, attempts, tokens, tried, blocked_at, waits_for, snapshot, feedback, run_id, inputs, begun_ms, updated_ms, written_by`

func scanStep(row interface{ Scan(...any) error }) (loop.Step, error) {
	var s loop.Step
	var begun, updated int64
	var tried string
	err := row.Scan(&s.ID, &s.LoopID, &s.Key, &s.Kind, &s.Title, &s.State, &s.Attempts, &s.Tokens, &tried, &s.BlockedAt,
		&s.WaitsFor, &s.Snapshot, &s.Feedback, &s.RunID, &s.Inputs, &begun, &updated, &s.By)
	if err == nil {
		err = decode("what was tried of step "+s.ID, tried, &s.Tried)
	}
	s.Begun, s.Updated = fromMillis(begun), fromMillis(updated)
	return s, err
}

const stepsOfTask = `
SELECT s.id FROM steps s JOIN loops l ON l.id = s.loop_id
WHERE  l.workspace_id = $1 AND l.protocol = '` + loop.ProtocolBoard + `' AND s.step_key = $2
ORDER  BY s.id`

// StepsOfTask lists the ids of the steps that agents of a workspace have had of one task of
// a board.
func (r *Reader) StepsOfTask(ctx context.Context, workspaceID, key string) ([]string, error) {
	return collect(ctx, r, stepsOfTask, scanID, workspaceID, key)
}

const stepsOf = `SELECT ` + stepColumns + ` FROM steps WHERE loop_id = $1 AND state <> 'dropped' ORDER BY id`

// Steps lists the steps of a loop that its memory still holds.
func (r *Reader) Steps(ctx context.Context, loopID string) ([]loop.Step, error) {
	return collect(ctx, r, stepsOf, scanStep, loopID)
}

const stepByKey = `SELECT ` + stepColumns + ` FROM steps WHERE loop_id = $1 AND step_key = $2`

// saveStep writes the whole row, but only over a state from which the table
// of states leads to the new one, and never over another run's claim.
const saveStep = `
INSERT INTO steps (` + stepColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $19)
ON CONFLICT (loop_id, step_key) DO UPDATE
SET    title = excluded.title, state = excluded.state, attempts = excluded.attempts, tokens = excluded.tokens, tried = excluded.tried, blocked_at = excluded.blocked_at, waits_for = excluded.waits_for,
       snapshot = excluded.snapshot, feedback = excluded.feedback, run_id = excluded.run_id, inputs = excluded.inputs,
       begun_ms = excluded.begun_ms, updated_ms = excluded.updated_ms, written_by = excluded.written_by
WHERE  steps.run_id IN ('', $18)`

// SaveStep creates or updates a step of the run's loop. A change of state that
// the state table does not list is refused.
func (t *RunTx) SaveStep(ctx context.Context, s loop.Step) error {
	had, err := t.storedStep(ctx, s)
	if err != nil {
		return err
	}
	if had.RunID != "" && had.RunID != t.run.ID {
		return fmt.Errorf("step %q is claimed by run %s: %w", s.Title, had.RunID, loop.ErrLeaseLost)
	}
	if had.State != s.State && !loop.StepMayBecome(had.State, s.State) {
		return fmt.Errorf("step %q: %q may not become %q", s.Title, had.State, s.State)
	}
	s.RunID = ""
	if s.State == loop.StepClaimed {
		s.RunID = t.run.ID
	}
	n, err := t.exec(ctx, saveStep, s.ID, s.LoopID, s.Key, string(s.Kind), s.Title, string(s.State), s.Attempts, s.Tokens, encode(s.Tried),
		s.BlockedAt, s.WaitsFor, s.Snapshot, s.Feedback, s.RunID, s.Inputs, millis(s.Begun), millis(t.now), t.run.ID, string(s.By))
	return t.checkGuard("save step of", n, err)
}

// ReleaseStep is SaveStep if the run has claimed the step. It changes nothing if the
// claim was never stored.
func (t *RunTx) ReleaseStep(ctx context.Context, s loop.Step) error {
	had, err := t.storedStep(ctx, s)
	if err != nil || had.RunID != t.run.ID {
		return err
	}
	return t.SaveStep(ctx, s)
}

// storedStep returns the row of a step, or the zero step if it was never stored.
func (t *RunTx) storedStep(ctx context.Context, s loop.Step) (loop.Step, error) {
	had, err := scanStep(t.queryRow(ctx, stepByKey, s.LoopID, s.Key))
	if errors.Is(err, sql.ErrNoRows) {
		return loop.Step{}, nil
	}
	if err != nil {
		return loop.Step{}, fmt.Errorf("read step %s: %w", s.Key, err)
	}
	return had, nil
}

const saveIteration = `
INSERT INTO iterations (run_id, n, step_id, verdict, tree, body) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id, n) DO UPDATE SET verdict = excluded.verdict, tree = excluded.tree, body = excluded.body
WHERE iterations.verdict = 'intended'`

// SaveIteration records an iteration. One that has a verdict is never written
// again.
func (t *RunTx) SaveIteration(ctx context.Context, it loop.Iteration) error {
	n, err := t.exec(ctx, saveIteration, t.run.ID, it.N, it.StepID, string(it.Verdict), it.Tree, encode(it))
	return t.checkGuard("save iteration of", n, err)
}

const iterationsOf = `SELECT body FROM iterations WHERE run_id = $1 ORDER BY n`

// Iterations lists the iterations of a run in order.
func (r *Reader) Iterations(ctx context.Context, runID string) ([]loop.Iteration, error) {
	return collect(ctx, r, iterationsOf, scanBody[loop.Iteration], runID)
}

const saveTurn = `
INSERT INTO turns (run_id, n, body) VALUES ($1, $2, $3)
ON CONFLICT (run_id, n) DO UPDATE SET body = excluded.body`

// SaveTurn records one invocation of an agent.
func (t *RunTx) SaveTurn(ctx context.Context, turn loop.Turn) error {
	n, err := t.exec(ctx, saveTurn, t.run.ID, turn.N, encode(turn))
	return t.checkGuard("save turn of", n, err)
}

const turnsOf = `SELECT body FROM turns WHERE run_id = $1 ORDER BY n`

// Turns lists the turns of a run in order.
func (r *Reader) Turns(ctx context.Context, runID string) ([]loop.Turn, error) {
	return collect(ctx, r, turnsOf, scanBody[loop.Turn], runID)
}

const stepTurns = `
SELECT t.body
FROM   runs r
JOIN   turns t ON t.run_id = r.id
WHERE  r.loop_id = $1 AND EXISTS (SELECT 1 FROM iterations i WHERE i.run_id = r.id AND i.step_id = $2)
ORDER BY r.n, t.n`

// StepTurns lists the turns of all runs of a loop that worked on a step, the oldest first.
func (r *Reader) StepTurns(ctx context.Context, loopID, stepID string) ([]loop.Turn, error) {
	return collect(ctx, r, stepTurns, scanBody[loop.Turn], loopID, stepID)
}

const insertEvents = `
INSERT INTO events (run_id, seq, at_ms, phase, kind, body) VALUES {rows}
ON CONFLICT (run_id, seq) DO NOTHING`

// AppendEvents adds events to the run. Their Seq continues the run's sequence;
// the holder counts, because it is the only writer. An event that exists already was
// saved by a transaction of this holder that was committed but not acknowledged; it
// is not added again.
func (t *RunTx) AppendEvents(_ context.Context, events []loop.Event) error {
	var rows [][]any
	for _, e := range events {
		rows = append(rows, []any{t.run.ID, e.Seq, millis(e.At), string(e.Phase), e.Kind, e.Text})
	}
	t.insertLast("append events of run "+t.run.ID, insertEvents, rows)
	return nil
}

const eventsAfter = `SELECT run_id, seq, at_ms, phase, kind, body FROM events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`

// Events lists events of a run after a sequence number, oldest first.
func (r *Reader) Events(ctx context.Context, runID string, after int64, limit int) ([]loop.Event, error) {
	events, err := collect(ctx, r, eventsAfter, scanTranscript, runID, after, limit)
	if err != nil {
		return nil, err
	}
	return unpackEvents(events, after, limit)
}

func scanTranscript(row interface{ Scan(...any) error }) (e loop.Event, err error) {
	var at int64
	err = row.Scan(&e.RunID, &e.Seq, &at, &e.Phase, &e.Kind, &e.Text)
	e.At = fromMillis(at)
	return e, err
}

const (
	eventOfKind = `SELECT body FROM events WHERE run_id = $1 AND kind = $2 ORDER BY seq DESC LIMIT 1`
	packedOf    = `SELECT run_id, seq, at_ms, phase, kind, body FROM events WHERE run_id = $1 AND kind = $2 ORDER BY seq`
)

// LastOf is the text of the run's newest event of a kind. If there is none the
// error is loop.ErrNotFound.
func (r *Reader) LastOf(ctx context.Context, runID, kind string) (text string, err error) {
	err = r.queryRow(ctx, eventOfKind, runID, kind).Scan(&text)
	if !errors.Is(err, sql.ErrNoRows) {
		return text, err
	}
	packed, err := collect(ctx, r, packedOf, scanTranscript, runID, packedKind)
	if err == nil {
		packed, err = unpackEvents(packed, 0, math.MaxInt)
	}
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(packed) {
		if e.Kind == kind {
			return e.Text, nil
		}
	}
	return "", loop.ErrNotFound
}

const lastEvent = `SELECT coalesce(max(seq), 0) FROM events WHERE run_id = $1`

// LastEvent is the sequence number of the run's newest event, 0 for none.
func (r *Reader) LastEvent(ctx context.Context, runID string) (seq int64, err error) {
	err = r.queryRow(ctx, lastEvent, runID).Scan(&seq)
	return seq, err
}

func scanBody[T any](row interface{ Scan(...any) error }) (v T, err error) {
	var body string
	if err := row.Scan(&body); err != nil {
		return v, err
	}
	return v, decode(fmt.Sprintf("%T", v), body, &v)
}

// storableText replaces what PostgreSQL refuses by a replacement character.
func storableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
