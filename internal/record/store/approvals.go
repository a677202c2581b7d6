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

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const approvalColumns = `body, state, answered_by, answered_from, note, changes, answered_ms, tries, tried_ms, failure`

func scanApproval(row interface{ Scan(...any) error }) (a loop.Approval, err error) {
	var body, by, from, note, failure string
	var state loop.ApprovalState
	var changes, answered, tries, tried int64
	if err := row.Scan(&body, &state, &by, &from, &note, &changes, &answered, &tries, &tried, &failure); err != nil {
		return a, err
	}
	if err := decode("approval", body, &a); err != nil {
		return a, err
	}
	a.State, a.By, a.From, a.Note, a.Changes, a.Answered = state, by, from, note, changes != 0, fromMillis(answered)
	a.Tries, a.Tried, a.Failure = int(tries), fromMillis(tried), failure
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
// are in one of the states, newest first. No state means every state. The time of one
// whose state is not final may have run out: see loop.Approval.Pending.
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
var answerApproval = `
UPDATE approvals
SET    state = CASE WHEN $1 = 'approved' AND kind IN ('` + strings.Join(loop.LandingKinds(), "', '") + `') THEN 'landing' ELSE $1 END,
       answered_by = $2, answered_from = $3, note = $4, changes = $5, answered_ms = {now}
WHERE  id = $6 AND state = 'open' AND expires_ms > {now}
RETURNING loop_id, state`

// takeBack changes a yes to a landing into a no, while no run is live that may be carrying
// it out. A try that begins meanwhile is later than the one that was read.
const takeBack = `
UPDATE approvals SET state = 'rejected', answered_by = $1, answered_from = $2, note = $3, changes = $4, answered_ms = {now}
WHERE  id = $5 AND state = 'landing' AND expires_ms > {now} AND tried_ms = $6 AND NOT ` + loopIsLive + `
RETURNING loop_id, state`

// loopIsLive holds for an approval that a run may be carrying out at this moment.
const loopIsLive = `EXISTS (SELECT 1 FROM runs r WHERE r.loop_id = approvals.loop_id AND r.state IN ('running', 'settling'))`

// AnswerApproval records a human's answer. A yes to a landing makes it landing, until
// Landed; a no takes such a yes back, unless a run of the loop is live. An approval that is not open, or
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
	var loopID, became string
	by, from, note := storableText(answer.By), storableText(answer.From), storableText(answer.Note)
	err := t.queryRow(ctx, answerApproval, string(to), by, from, note, changes, id).Scan(&loopID, &became)
	if errors.Is(err, sql.ErrNoRows) && !answer.Yes {
		a, readErr := t.Approval(ctx, id)
		if readErr != nil {
			return fmt.Errorf("answer approval %s: %w", id, readErr)
		}
		err = t.queryRow(ctx, takeBack, by, from, note, changes, id, millis(a.Tried)).Scan(&loopID, &became)
	}
	if err == nil {
		t.announce(loop.FeedApproval, id, loopID, became)
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
WHERE  loop_id = $2 AND id <> $3 AND state IN ('open', 'landing') AND kind <> '` + loop.ActionCommand + `'{among}
RETURNING ` + approvalColumns

// VoidProposals makes void, for the reason why, the approvals of proposals whose state is
// not final, of these steps of a loop, all but one, and returns them. Each is a link in the loop's
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
UPDATE approvals SET state = 'void', note = $1, answered_ms = {now} WHERE id = $2 AND state IN ('open', 'landing') RETURNING ` + approvalColumns

// VoidApproval makes one approval void for the reason why, as a link in the
// loop's audit chain. It reports false if its state was final. A step whose result was asked
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

const tryLanding = `
UPDATE approvals SET tries = $1, tried_ms = $2, failure = ''
WHERE  id = $3 AND state = 'landing' AND expires_ms > {now}`

// TryLanding counts a try to land what a person said yes to, before it begins: a is the
// approval as it is from then on. A yes that was taken back, or whose time has run out, is
// loop.ErrAnswered, and nothing may land by it.
func (t *RunTx) TryLanding(ctx context.Context, a loop.Approval) error {
	n, err := t.exec(ctx, tryLanding, a.Tries, millis(a.Tried), a.ID)
	if err == nil && n == 0 {
		if a, err = t.Approval(ctx, a.ID); err == nil {
			err = &loop.AnsweredError{Approval: a}
		}
	}
	if err != nil {
		return fmt.Errorf("try the landing of approval %s: %w", a.ID, err)
	}
	t.announce(loop.FeedApproval, a.ID, t.run.LoopID, string(loop.ApprovalLanding))
	return nil
}

const failLanding = `UPDATE approvals SET failure = $1 WHERE id = $2 AND state = 'landing'`

// FailLanding records why the last try to land something did not. The yes stays valid.
func (t *RunTx) FailLanding(ctx context.Context, id, why string) error {
	n, err := t.exec(ctx, failLanding, storableText(why), id)
	if err != nil {
		return fmt.Errorf("record why approval %s did not land: %w", id, err)
	}
	if n > 0 {
		t.announce(loop.FeedApproval, id, t.run.LoopID, string(loop.ApprovalLanding))
	}
	return nil
}

const landed = `UPDATE approvals SET state = 'approved', failure = '' WHERE id = $1 AND state = 'landing' RETURNING ` + approvalColumns

// Landed records that what a person said yes to has landed: the question is answered. It
// is a link in the audit chain of the loop.
func (t *RunTx) Landed(ctx context.Context, id string) error {
	if _, err := t.closeApprovals(ctx, landed, id); err != nil {
		return fmt.Errorf("record that approval %s has landed: %w", id, err)
	}
	return nil
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

const overdueApprovals = `SELECT EXISTS (SELECT 1 FROM approvals WHERE state IN ('open', 'landing') AND expires_ms <= $1)`

// OverdueApprovals reports whether the time of an approval of the store has run out whose
// state is not final.
func (r *Reader) OverdueApprovals(ctx context.Context, now time.Time) (overdue bool, err error) {
	err = r.queryRow(ctx, overdueApprovals, millis(now)).Scan(&overdue)
	return overdue, err
}

const expireApprovals = `
UPDATE approvals SET state = 'expired', answered_ms = {now}
WHERE  expires_ms <= {now} AND (state = 'open' OR state = 'landing' AND NOT ` + loopIsLive + `)
RETURNING ` + approvalColumns

// ExpireApprovals closes every approval of the store whose state is not final and whose
// time has run out by the database's clock, and returns them. One that a live run may be
// landing at this moment is left until that has ended. Each is a link in the audit
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
			feedback := "nobody answered in time whether the result is accepted"
			if a.By != "" {
				feedback = fmt.Sprintf("%s said yes to the result, and it did not land in time", a.By)
			}
			err = t.ReopenRejected(ctx, a.ID, a.Action.BranchRef(), feedback)
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
