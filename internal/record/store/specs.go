package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Spec is the row of a LoopSpec, with what became of it. Its loop has its id as name.
type Spec struct {
	ID          string
	WorkspaceID string
	LoopID      string
	Revision    int64 // of Body, from 1
	Goal        string
	Agent       string
	Parent      string // id of the spec that spawned it; empty: none did
	Entry       string // of a board, that it shares with others; empty: none
	Body        string // JSON; empty in a list
	Rubric      string // JSON; empty: nothing has been judged, and in a list
	Created     time.Time
	Updated     time.Time

	Paused  bool
	Due     time.Time    // when it is fired next; zero: no time does
	Listens string       // the events that fire it; empty: none do
	Runs    int64        // that were fired
	Outcome loop.Outcome // of the newest run; empty: it has not ended, or there is none
	Step    loop.Step    // its goal; the zero Step: nobody has worked on it
}

const insertSpec = `
INSERT INTO specs (id, workspace_id, loop_id, revision, goal, agent, parent_id, board_entry, body, rubric, created_ms, updated_ms)
VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING`

const insertRevision = `INSERT INTO spec_revisions (spec_id, revision, body, made_by, at_ms) VALUES ($1, $2, $3, $4, $5)`

// AddSpec records a new spec, whose loop is there. It reports false, and changes nothing,
// if its id is taken.
func (t *Tx) AddSpec(ctx context.Context, s Spec, by string) (bool, error) {
	n, err := t.exec(ctx, insertSpec, s.ID, s.WorkspaceID, s.LoopID, s.Goal, s.Agent, s.Parent, s.Entry, s.Body, s.Rubric, millis(t.now), millis(t.now))
	if err == nil && n == 1 {
		_, err = t.exec(ctx, insertRevision, s.ID, 1, s.Body, by, millis(t.now))
	}
	if err != nil {
		return false, fmt.Errorf("add spec %s: %w", s.ID, err)
	}
	return n == 1, nil
}

const updateSpec = `
UPDATE specs SET revision = revision + 1, goal = $1, agent = $2, board_entry = $3, body = $4, updated_ms = {now}
WHERE  id = $5 AND revision = $6`

// ReviseSpec replaces the body of a spec. If its revision is another one than s.Revision,
// the error is loop.ErrAnswered: somebody else was first.
func (t *Tx) ReviseSpec(ctx context.Context, s Spec, by string) error {
	n, err := t.exec(ctx, updateSpec, s.Goal, s.Agent, s.Entry, s.Body, s.ID, s.Revision)
	if err == nil && n == 1 {
		_, err = t.exec(ctx, insertRevision, s.ID, s.Revision+1, s.Body, by, millis(t.now))
	}
	switch {
	case err != nil:
		return fmt.Errorf("revise spec %s: %w", s.ID, err)
	case n == 0:
		return fmt.Errorf("revise spec %s: revision %d is not the newest any more: %w", s.ID, s.Revision, loop.ErrAnswered)
	}
	return nil
}

const saveRubric = `UPDATE specs SET rubric = $1, updated_ms = {now} WHERE id = $2`

// SaveRubric records what the reviewers of a spec judge by.
func (t *Tx) SaveRubric(ctx context.Context, id, rubric string) error {
	if _, err := t.exec(ctx, saveRubric, rubric, id); err != nil {
		return fmt.Errorf("save the rubric of %s: %w", id, err)
	}
	return nil
}

const (
	deleteRevisions = `DELETE FROM spec_revisions WHERE spec_id = $1`
	deleteSpec      = `DELETE FROM specs WHERE id = $1`
)

// DeleteSpec removes a spec and its revisions. Its loop keeps its runs.
func (t *Tx) DeleteSpec(ctx context.Context, id string) error {
	_, err := t.exec(ctx, deleteRevisions, id)
	if err == nil {
		_, err = t.exec(ctx, deleteSpec, id)
	}
	if err != nil {
		return fmt.Errorf("delete spec %s: %w", id, err)
	}
	return nil
}

const specState = `
       s.created_ms, s.updated_ms, l.paused, l.due_ms, l.listens, l.last_n,
       coalesce((SELECT r.outcome FROM runs r WHERE r.loop_id = s.loop_id ORDER BY r.n DESC LIMIT 1), ''), coalesce(t.id, ''), coalesce(t.state, ''), coalesce(t.attempts, 0), coalesce(t.tokens, 0),
       coalesce(t.begun_ms, 0), coalesce(t.waits_for, ''), coalesce(t.feedback, ''),
       coalesce(t.updated_ms, 0), coalesce(t.snapshot, ''), coalesce(t.tried, '{}')
FROM   specs s JOIN loops l ON l.id = s.loop_id LEFT JOIN steps t ON t.loop_id = s.loop_id AND t.step_key = 'goal'`

const specByID = `SELECT s.id, s.workspace_id, s.loop_id, s.revision, s.goal, s.agent, s.parent_id, s.board_entry, s.body, s.rubric,` + specState + ` WHERE s.id = $1`

const specsIn = `
SELECT s.id, s.workspace_id, s.loop_id, s.revision, s.goal, s.agent, s.parent_id, s.board_entry, '', '',` + specState + `
WHERE  s.workspace_id = $1 AND (s.updated_ms < $2 OR s.updated_ms = $3 AND s.id < $4)
ORDER  BY s.updated_ms DESC, s.id DESC LIMIT $5`

func scanSpec(row interface{ Scan(...any) error }) (s Spec, err error) {
	var created, updated, due, begun, moved int64
	var tried string
	err = row.Scan(&s.ID, &s.WorkspaceID, &s.LoopID, &s.Revision, &s.Goal, &s.Agent, &s.Parent, &s.Entry, &s.Body, &s.Rubric, &created, &updated, &s.Paused, &due, &s.Listens, &s.Runs, &s.Outcome,
		&s.Step.ID, &s.Step.State, &s.Step.Attempts, &s.Step.Tokens, &begun, &s.Step.WaitsFor, &s.Step.Feedback, &moved, &s.Step.Snapshot, &tried)
	if err == nil {
		err = decode("what was tried of spec "+s.ID, tried, &s.Step.Tried)
	}
	s.Created, s.Updated, s.Due, s.Step.Begun, s.Step.Updated = fromMillis(created), fromMillis(updated), fromMillis(due), fromMillis(begun), fromMillis(moved)
	s.Step.LoopID = s.LoopID
	return s, err
}

// Spec returns the spec with the id, or ErrNotFound.
func (r *Reader) Spec(ctx context.Context, id string) (Spec, error) {
	s, err := scanSpec(r.queryRow(ctx, specByID, storableText(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return s, fmt.Errorf("spec %s: %w", id, loop.ErrNotFound)
	}
	return s, err
}

// HasSpec reports whether an id is taken, in any workspace.
func (r *Reader) HasSpec(ctx context.Context, id string) (bool, error) {
	_, err := r.Spec(ctx, id)
	if errors.Is(err, loop.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

const specsOfEntry = `
SELECT s.id, s.workspace_id, s.loop_id, s.revision, s.goal, s.agent, s.parent_id, s.board_entry, '', '',` + specState + `
WHERE  s.workspace_id = $1 AND s.board_entry = $2 ORDER BY s.id`

// SpecsOfEntry lists the specs that share an entry of a board.
func (r *Reader) SpecsOfEntry(ctx context.Context, workspace, entry string) ([]Spec, error) {
	return collect(ctx, r, specsOfEntry, scanSpec, workspace, storableText(entry))
}

const specsOfLoops = `
SELECT s.id, s.workspace_id, s.loop_id, s.revision, s.goal, s.agent, s.parent_id, s.board_entry, '', '',` + specState + `
WHERE  true{among}`

// SpecsOfLoops lists the specs of loops, in no order.
func (r *Reader) SpecsOfLoops(ctx context.Context, loops []string) ([]Spec, error) {
	if len(loops) == 0 {
		return nil, nil
	}
	query, args := fillAmong(specsOfLoops, "s.loop_id", nil, loops)
	return collect(ctx, r, query, scanSpec, args...)
}

// Specs lists a page of the specs of a workspace, the newest change first: at most limit
// of those that come after one that was changed at this time. The zero time is the
// beginning of the list.
func (r *Reader) Specs(ctx context.Context, workspace string, changed time.Time, id string, limit int) ([]Spec, error) {
	before := int64(1) << 62
	if !changed.IsZero() {
		before = millis(changed)
	}
	return collect(ctx, r, specsIn, scanSpec, workspace, before, before, storableText(id), limit)
}

const reopenStep = `
UPDATE steps SET state = 'open', attempts = $1, tokens = $2, tried = $3, waits_for = '', snapshot = $4, feedback = $5, inputs = '', begun_ms = $6, updated_ms = {now}
WHERE  id = $7 AND state IN ('done', 'escalated') AND run_id = ''`

// ReopenStep opens a step again that is done or a person's, with the attempts, the feedback
// and the snapshot of s. It reports false, and changes nothing, if the step is neither.
func (t *Tx) ReopenStep(ctx context.Context, s loop.Step) (bool, error) {
	n, err := t.exec(ctx, reopenStep, s.Attempts, s.Tokens, encode(s.Tried), s.Snapshot, s.Feedback, millis(s.Begun), s.ID)
	if err != nil {
		return false, fmt.Errorf("open step %s again: %w", s.ID, err)
	}
	return n == 1, nil
}

const reopenRejected = `
UPDATE steps SET state = 'open', waits_for = '', snapshot = CASE WHEN $1 = '' THEN snapshot ELSE $1 END, feedback = $2, inputs = '',
       begun_ms = CASE WHEN begun_ms = 0 THEN 0 ELSE begun_ms + {now} - updated_ms END, updated_ms = {now}
WHERE  waits_for = $3 AND state = 'waiting_human' AND run_id = ''`

// ReopenRejected opens the steps again that waited for an approval, with what a human said
// and the work that was proposed, if there is any.
func (t *Tx) ReopenRejected(ctx context.Context, approval, snapshot, feedback string) error {
	if _, err := t.exec(ctx, reopenRejected, snapshot, feedback, approval); err != nil {
		return fmt.Errorf("open the steps again that wait for %s: %w", approval, err)
	}
	return nil
}

const waitInstead = `
UPDATE steps SET state = 'waiting_human', waits_for = $1, updated_ms = {now}
WHERE  id = $2 AND run_id = '' AND (state = 'waiting_human'
       OR state <> 'done' AND EXISTS (SELECT 1 FROM loops l WHERE l.id = steps.loop_id AND l.protocol = '` + loop.ProtocolSpec + `'))`

// WaitInstead makes a step wait for another approval, which is about a result of its own. A
// goal of a spec that is not met waits for it, too, if it has waited for none: whoever says
// yes accepts the result.
func (t *Tx) WaitInstead(ctx context.Context, stepID, approval string) error {
	if _, err := t.exec(ctx, waitInstead, approval, stepID); err != nil {
		return fmt.Errorf("make step %s wait for %s: %w", stepID, approval, err)
	}
	return nil
}

const closeQuestion = `UPDATE steps SET waits_for = '', updated_ms = {now} WHERE waits_for = $1 AND state = 'escalated' AND run_id = ''`

// CloseQuestion leaves the steps that waited for an answer to people: it was no.
func (t *Tx) CloseQuestion(ctx context.Context, approval string) error {
	if _, err := t.exec(ctx, closeQuestion, approval); err != nil {
		return fmt.Errorf("close question %s: %w", approval, err)
	}
	return nil
}

const iterationsOfLoop = `
SELECT i.body FROM iterations i JOIN runs r ON r.id = i.run_id WHERE r.loop_id = $1 ORDER BY r.n DESC, i.n DESC LIMIT $2`

// NewestIterations lists at most limit iterations of all runs of a loop, the newest first.
func (r *Reader) NewestIterations(ctx context.Context, loopID string, limit int) ([]loop.Iteration, error) {
	return collect(ctx, r, iterationsOfLoop, scanBody[loop.Iteration], loopID, limit)
}
