package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

const approvalColumns = `body, state, answered_by, answered_from, note, changes, answered_ms`

func scanApproval(row interface{ Scan(...any) error }) (a loop.Approval, err error) {
	var body, by, from, note string
	var state loop.ApprovalState
	var changes, answered int64
	if err := row.Scan(&body, &state, &by, &from, &note, &changes, &answered); err != nil {
		return a, err
	}
	if err := decode("approval", body, &a); err != nil {
		return a, err
	}
	a.State, a.By, a.From, a.Note, a.Changes, a.Answered = state, by, from, note, changes != 0, fromMillis(answered)
	return a, nil
}

const insertApproval = `
INSERT INTO approvals (id, loop_id, run_id, step_id, kind, state, body, expires_ms, created_ms) VALUES ($1, $2, $3, $4, $5, 'open', $6, $7, $8)`

// AskApproval records an open approval, as a link in the audit chain of its
// loop.
func (t *Tx) AskApproval(ctx context.Context, a loop.Approval) error {
	_, err := t.exec(ctx, insertApproval, a.ID, a.LoopID, a.RunID, a.StepID, a.Action.Kind, encode(a), millis(a.Expires), millis(t.now))
	if err != nil {
		return fmt.Errorf("ask approval %s: %w", a.ID, err)
	}
	t.announce(loop.FeedApproval, a.ID, a.LoopID, string(a.State))
	body := map[string]string{"id": a.ID, "hash": a.Hash, "state": string(a.State), "kind": a.Action.Kind}
	return t.Link(ctx, a.LoopID, loop.LinkApproval, a.RunID, body)
}

const approvalByID = `SELECT ` + approvalColumns + ` FROM approvals WHERE id = $1`

// Approval returns one approval, or ErrNotFound.
func (r *Reader) Approval(ctx context.Context, id string) (loop.Approval, error) {
	a, err := scanApproval(r.queryRow(ctx, approvalByID, id))
	if errors.Is(err, sql.ErrNoRows) {
		return a, fmt.Errorf("approval %s: %w", id, loop.ErrNotFound)
	}
	return a, err
}

const approvalsIn = `
SELECT ` + approvalColumns + `
FROM   approvals
WHERE  loop_id IN (SELECT id FROM loops WHERE id = $1 OR workspace_id = $1){among}
ORDER  BY created_ms DESC, id DESC`

// Approvals lists the approvals of a loop or of a workspace, by its id, that
// are in one of the states, newest first. No state means every state. An open
// one may have run out: compare its Expires, or call ExpireApprovals before.
func (r *Reader) Approvals(ctx context.Context, in string, states ...loop.ApprovalState) ([]loop.Approval, error) {
	query, args := fillAmong(approvalsIn, "state", []any{in}, states)
	return collect(ctx, r, query, scanApproval, args...)
}

// ApprovalsOfSteps lists the approvals of a loop that are about one of the steps, newest
// first.
func (r *Reader) ApprovalsOfSteps(ctx context.Context, loopID string, steps ...string) ([]loop.Approval, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	query, args := fillAmong(approvalsIn, "step_id", []any{loopID}, steps)
	return collect(ctx, r, query, scanApproval, args...)
}

// fillAmong fills in {among}: the column holds one of the values, if there are any.
func fillAmong[T ~string](query, column string, args []any, values []T) (string, []any) {
	var marks []string
	for _, v := range values {
		args = append(args, string(v))
		marks = append(marks, fmt.Sprintf("$%d", len(args)))
	}
	clause := ""
	if len(marks) > 0 {
		clause = " AND " + column + " IN (" + strings.Join(marks, ", ") + ")"
	}
	return strings.ReplaceAll(query, "{among}", clause), args
}

// answerApproval changes only an open row whose time has not run out: of many
// answers at once one wins.
const answerApproval = `
UPDATE approvals SET state = $1, answered_by = $2, answered_from = $3, note = $4, changes = $5, answered_ms = {now}
WHERE  id = $6 AND state = 'open' AND expires_ms > {now}
RETURNING loop_id`

// AnswerApproval records a human's answer. An approval that is not open, or
// whose time is over, is a *loop.Fault that exits with 16 and says who was
// first; its cause is a *loop.AnsweredError. One that does not exist is
// ErrNotFound.
func (t *Tx) AnswerApproval(ctx context.Context, id string, answer loop.Answer) error {
	to, changes := loop.ApprovalRejected, 0
	switch {
	case answer.Yes:
		to = loop.ApprovalApproved
	case answer.Changes:
		changes = 1
	}
	var loopID string
	err := t.queryRow(ctx, answerApproval, string(to), storableText(answer.By), storableText(answer.From), storableText(answer.Note), changes, id).Scan(&loopID)
	if err == nil {
		t.announce(loop.FeedApproval, id, loopID, string(to))
		err = t.endAnswerWait(ctx, loopID)
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("answer approval %s: %w", id, err)
	}
	a, err := t.Approval(ctx, id)
	if err != nil {
		return fmt.Errorf("answer approval %s: %w", id, err)
	}
	answered := &loop.AnsweredError{Approval: a}
	return &loop.Fault{
		Exit: loop.ExitHeld, What: "approval " + id + " is not open", Why: answered.Error(), Err: answered,
		Fix: "nothing is left to answer; {1} says what it was about", Actions: []loop.Command{loop.PawlCommand("show", a.RunID)},
	}
}

const voidProposals = `
UPDATE approvals SET state = 'void', note = $1, answered_ms = {now}
WHERE  loop_id = $2 AND id <> $3 AND state = 'open' AND kind <> '` + loop.ActionCommand + `'{among}
RETURNING ` + approvalColumns

// VoidProposals makes void, for the reason why, the open approvals of proposals of
// these steps of a loop, all but one, and returns them. Each is a link in the loop's
// audit chain. What still waits for one of them is opened again, as by VoidApproval.
func (t *Tx) VoidProposals(ctx context.Context, loopID string, steps []string, except, why string) ([]loop.Approval, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	query, args := fillAmong(voidProposals, "step_id", []any{storableText(why), loopID, except}, steps)
	list, err := t.closeVoid(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("void proposals of %s: %w", loopID, err)
	}
	return list, nil
}

const voidApproval = `
UPDATE approvals SET state = 'void', note = $1, answered_ms = {now} WHERE id = $2 AND state = 'open' RETURNING ` + approvalColumns

// VoidApproval makes one open approval void for the reason why, as a link in the
// loop's audit chain. It reports false if it was not open. A step whose result was asked
// about is open again and begins anew, and one that waits for the answer to a question is left to people:
// nothing waits for an answer that nobody can give.
func (t *Tx) VoidApproval(ctx context.Context, id, why string) (bool, error) {
	list, err := t.closeVoid(ctx, voidApproval, storableText(why), id)
	if err != nil {
		return false, fmt.Errorf("void approval %s: %w", id, err)
	}
	return len(list) == 1, nil
}

func (t *Tx) closeVoid(ctx context.Context, query string, args ...any) ([]loop.Approval, error) {
	list, err := t.closeApprovals(ctx, query, args...)
	for _, a := range list {
		err = errors.Join(err, t.ReopenRejected(ctx, a.ID, "", a.Note), t.CloseQuestion(ctx, a.ID))
	}
	return list, err
}

const unheardAnswers = `
SELECT ` + approvalColumns + ` FROM approvals a
WHERE  state IN ('rejected', 'expired') AND kind = 'command' AND answered_ms > 0 AND answered_ms <= $2
AND    EXISTS (SELECT 1 FROM loops l WHERE l.id = a.loop_id AND l.broken = '' AND l.forgotten = 0 AND l.paused = 0 AND l.` + placedHere + `)
AND    EXISTS (SELECT 1 FROM steps s WHERE s.id = a.step_id AND s.state = 'waiting_human' AND s.waits_for = a.id)
AND    NOT EXISTS (SELECT 1 FROM runs r WHERE r.run_key = 'approval/' || a.id)
ORDER  BY answered_ms, id LIMIT $3`

// UnheardAnswers lists approvals of loops on a node to which somebody has said no by a time,
// or whose time has run out by then, without a run that takes up the step that waits for
// it: whoever answered could not start one.
func (r *Reader) UnheardAnswers(ctx context.Context, node string, by time.Time, limit int) ([]loop.Approval, error) {
	return collect(ctx, r, unheardAnswers, scanApproval, node, millis(by), limit)
}

const overdueApprovals = `SELECT EXISTS (SELECT 1 FROM approvals WHERE state = 'open' AND expires_ms <= $1)`

// OverdueApprovals reports whether the time of an open approval of the store has
// run out.
func (r *Reader) OverdueApprovals(ctx context.Context, now time.Time) (overdue bool, err error) {
	err = r.queryRow(ctx, overdueApprovals, millis(now)).Scan(&overdue)
	return overdue, err
}

const expireApprovals = `
UPDATE approvals SET state = 'expired', answered_ms = {now}
WHERE  state = 'open' AND expires_ms <= {now}
RETURNING ` + approvalColumns

// ExpireApprovals closes every open approval of the store whose time has run
// out by the database's clock, and returns them. Each is a link in the audit
// chain of its loop. A step whose result was asked about is open again, and one that waits
// for the answer to a question is left to people.
func (t *Tx) ExpireApprovals(ctx context.Context) ([]loop.Approval, error) {
	list, err := t.closeApprovals(ctx, expireApprovals)
	if err != nil {
		return nil, fmt.Errorf("expire approvals: %w", err)
	}
	for _, a := range list {
		switch a.Action.Kind {
		case loop.ActionCommand: // A run takes its step up, and is told.
		case loop.ActionQuestion:
			err = t.CloseQuestion(ctx, a.ID)
		default:
			err = t.ReopenRejected(ctx, a.ID, a.Action.BranchRef(), "nobody answered in time whether the result is accepted")
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (t *Tx) closeApprovals(ctx context.Context, query string, args ...any) ([]loop.Approval, error) {
	list, err := collect(ctx, &t.Reader, query, scanApproval, args...)
	if err != nil {
		return nil, err
	}
	// Several chains are always locked in one order.
	slices.SortFunc(list, func(a, b loop.Approval) int { return cmp.Or(cmp.Compare(a.LoopID, b.LoopID), cmp.Compare(a.ID, b.ID)) })
	for _, a := range list {
		t.announce(loop.FeedApproval, a.ID, a.LoopID, string(a.State))
		body := map[string]string{"id": a.ID, "hash": a.Hash, "state": string(a.State), "why": a.Note}
		if err := t.Link(ctx, a.LoopID, loop.LinkApproval, a.RunID, body); err != nil {
			return nil, err
		}
		if err := t.endAnswerWait(ctx, a.LoopID); err != nil {
			return nil, err
		}
	}
	return list, nil
}
