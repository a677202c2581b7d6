package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const eventColumns = `loop_id, id, source, payload, times, first_ms, last_ms, not_before_ms, verdict, reason, run_id, returned`

func scanEvent(row interface{ Scan(...any) error }) (e loop.FiringEvent, err error) {
	var first, last, notBefore int64
	err = row.Scan(&e.LoopID, &e.ID, &e.Source, &e.Payload, &e.Times, &first, &last, &notBefore, &e.Verdict, &e.Reason, &e.RunID, &e.Returned)
	e.First, e.Last, e.NotBefore = fromMillis(first), fromMillis(last), fromMillis(notBefore)
	return e, err
}

const (
	insertEvent = `
INSERT INTO firing_events (loop_id, id, source, payload, times, first_ms, last_ms, not_before_ms) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
ON CONFLICT (loop_id, id) DO NOTHING`
	joinEvent = `
UPDATE firing_events SET times = times + $1, payload = $2, last_ms = $3, reason = CASE reason WHEN 'answer' THEN '' ELSE reason END
WHERE  loop_id = $4 AND id = $5 AND verdict = 'waits' AND last_ms <= $3 AND times = $6`
	waitingEventOf = `
SELECT ` + eventColumns + ` FROM firing_events WHERE loop_id = $1 AND source = $2 AND verdict = 'waits' AND not_before_ms = 0 ORDER BY first_ms, id LIMIT 1`
)

// AddEvent records an event that fires its loop. If an event of its source waits already
// and join is not nil, they become one, with what join returns for their payloads. It
// reports false if the event was recorded before.
func (t *Tx) AddEvent(ctx context.Context, e loop.FiringEvent, join func(before, now string) string) (bool, error) {
	e.Times = max(e.Times, 1)
	if join != nil {
		before, err := scanEvent(t.queryRow(ctx, waitingEventOf, e.LoopID, storableText(e.Source)))
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, wrapEvent("read", e, err)
		}
		if err == nil {
			n, err := t.exec(ctx, joinEvent, e.Times, join(before.Payload, e.Payload), millis(t.now), e.LoopID, before.ID, before.Times)
			if err != nil || n == 1 {
				return n == 1, wrapEvent("join", e, err)
			}
			// Another node has joined one meanwhile, or it has fired: this one is an event of its own.
		}
	}
	n, err := t.exec(ctx, insertEvent, e.LoopID, e.ID, e.Source, e.Payload, e.Times, millis(t.now), millis(e.NotBefore))
	if n == 1 {
		t.announce(loop.FeedLoop, e.LoopID, e.LoopID, "")
	}
	return n == 1, wrapEvent("add", e, err)
}

func wrapEvent(doing string, e loop.FiringEvent, err error) error {
	if err != nil {
		err = fmt.Errorf("%s event %s of loop %s: %w", doing, e.ID, e.LoopID, err)
	}
	return err
}

const loopsWithEvents = `
SELECT ` + loopColumns + ` FROM loops
WHERE  ` + placedHere + ` AND broken = '' AND good <> '' AND source <> '' AND id > $3
AND    id IN (SELECT loop_id FROM firing_events WHERE verdict = 'waits' AND reason <> 'answer' AND not_before_ms <= $2) ORDER BY id LIMIT $4`

// LoopsWithEvents lists loops of workspaces that lie on a node and for which events wait
// whose time has come by now, by id: those after an id. Events that wait for an answer alone
// are not a reason to look at their loop.
func (r *Reader) LoopsWithEvents(ctx context.Context, node string, now time.Time, after string, limit int) ([]loop.Loop, error) {
	return collect(ctx, r, loopsWithEvents, scanLoop, node, millis(now), after, limit)
}

const nextEvent = `
SELECT coalesce(min(not_before_ms), 0) FROM firing_events
WHERE  verdict = 'waits' AND not_before_ms > $2 AND EXISTS (
  SELECT 1 FROM loops WHERE loops.id = firing_events.loop_id AND broken = '' AND good <> '' AND source <> '' AND ` + loopPlacedHere + `)`

// NextEvent returns when the time of the next event comes that waits for one, of the loops
// on a node. The zero time means never.
func (r *Reader) NextEvent(ctx context.Context, node string, now time.Time) (time.Time, error) {
	var at int64
	err := r.queryRow(ctx, nextEvent, node, millis(now)).Scan(&at)
	return fromMillis(at), err
}

const waitingEvents = `
SELECT ` + eventColumns + ` FROM firing_events WHERE loop_id = $1 AND verdict = 'waits' AND not_before_ms <= $2 ORDER BY first_ms, id`

// WaitingEvents lists the events of a loop that wait and whose time has come by now, the
// oldest first.
func (r *Reader) WaitingEvents(ctx context.Context, loopID string, now time.Time) ([]loop.FiringEvent, error) {
	return collect(ctx, r, waitingEvents, scanEvent, loopID, millis(now))
}

const waitingOf = `SELECT ` + eventColumns + ` FROM firing_events WHERE loop_id = $1 AND verdict = 'waits' ORDER BY not_before_ms, first_ms, id`

// WaitingOf lists all events of a loop that wait, those first whose time comes first.
func (r *Reader) WaitingOf(ctx context.Context, loopID string) ([]loop.FiringEvent, error) {
	return collect(ctx, r, waitingOf, scanEvent, loopID)
}

const countWaiting = `SELECT count(*) FROM firing_events WHERE loop_id = $1 AND source = $2 AND verdict = 'waits' AND reason <> 'answer'`

// CountWaiting returns how many events of a source wait for a loop, without those that wait
// for an answer: that may take days.
func (r *Reader) CountWaiting(ctx context.Context, loopID, source string) (n int, err error) {
	err = r.queryRow(ctx, countWaiting, loopID, storableText(source)).Scan(&n)
	return n, err
}

const decideEvent = `UPDATE firing_events SET verdict = $1, reason = $2, run_id = $3 WHERE loop_id = $4 AND id = $5 AND verdict = 'waits'`

// DecideEvents records what became of events that waited for a locked loop.
func (t *Tx) DecideEvents(ctx context.Context, list []loop.FiringEvent) error {
	for _, e := range list {
		if _, err := t.exec(ctx, decideEvent, string(e.Verdict), e.Reason, e.RunID, e.LoopID, e.ID); err != nil {
			return wrapEvent("decide", e, err)
		}
	}
	return nil
}

const queuedByEvent = `
SELECT id FROM runs
WHERE  workspace_id IN (SELECT l.workspace_id FROM loops l WHERE l.id = $1) AND loop_id = $1 AND state = 'queued' AND event <> '' ORDER BY seq`

// QueuedByEvent returns the id of a run of a locked loop that an event has fired and that
// nobody has claimed yet; empty if no such run is queued.
func (t *Tx) QueuedByEvent(ctx context.Context, loopID string) (id string, err error) {
	if err = t.queryRow(ctx, queuedByEvent, loopID).Scan(&id); errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return id, err
}

const runEvents = `SELECT ` + eventColumns + ` FROM firing_events WHERE run_id = $1 AND run_id <> '' ORDER BY first_ms, id`

// RunEvents lists the events that a run was fired for or has taken in, the oldest first.
func (r *Reader) RunEvents(ctx context.Context, runID string) ([]loop.FiringEvent, error) {
	return collect(ctx, r, runEvents, scanEvent, runID)
}

const eventsOf = `SELECT ` + eventColumns + ` FROM firing_events WHERE loop_id = $1 ORDER BY last_ms DESC, id LIMIT $2`

// LoopEvents lists the newest events of a loop and what became of them, the newest first.
func (r *Reader) LoopEvents(ctx context.Context, loopID string, limit int) ([]loop.FiringEvent, error) {
	return collect(ctx, r, eventsOf, scanEvent, loopID, limit)
}

const returnEvents = `
UPDATE firing_events SET verdict = 'waits', reason = $1, run_id = '', not_before_ms = $2, returned = returned + 1
WHERE  run_id = $3 AND run_id <> '' AND source <> 'rest' AND source <> 'budget'`

// ReturnEvents makes the events of a run that could not act on them wait again, until a time.
// The ends of rests and budgets are not returned: the loop is given new ones.
func (t *RunTx) ReturnEvents(ctx context.Context, notBefore time.Time, why string) error {
	if _, err := t.exec(ctx, returnEvents, why, millis(notBefore), t.run.ID); err != nil {
		return fmt.Errorf("return the events of run %s: %w", t.run.ID, err)
	}
	return nil
}

const returnStopped = `
UPDATE firing_events SET verdict = 'waits', reason = $1, run_id = '', returned = returned + 1, stopped = stopped + 1
WHERE  run_id = $2 AND run_id <> '' AND stopped < $3`

// returnStopped makes the events of a run that was stopped wait again: each event
// MaxStopped times, because what it fires may be what stops the run.
func (t *RunTx) returnStopped(ctx context.Context, why loop.Outcome) error {
	if _, err := t.exec(ctx, returnStopped, string(why), t.run.ID, loop.MaxStopped); err != nil {
		return fmt.Errorf("return the events of run %s: %w", t.run.ID, err)
	}
	return nil
}

const (
	// Nobody can answer meanwhile without seeing that events wait for that.
	lockOpenApprovals = `SELECT id FROM approvals WHERE loop_id = $1 AND state IN ('open', 'landing') ORDER BY id{for_share}`
	returnUntilAnswer = `
UPDATE firing_events SET verdict = 'waits', reason = 'answer', run_id = '', returned = returned + 1 WHERE run_id = $1 AND run_id <> ''`
)

// ReturnUntilAnswer makes the events of a run wait until an approval of its loop is answered,
// landed or closed, or until another event fires the loop. If no approval is open, it does nothing.
func (t *RunTx) ReturnUntilAnswer(ctx context.Context) error {
	open, err := collect(ctx, &t.Reader, lockOpenApprovals, scanID, t.run.LoopID)
	if err == nil && len(open) > 0 {
		_, err = t.exec(ctx, returnUntilAnswer, t.run.ID)
	}
	if err != nil {
		return fmt.Errorf("keep the events of run %s until an answer: %w", t.run.ID, err)
	}
	return nil
}

const endAnswerWait = `UPDATE firing_events SET reason = '' WHERE loop_id = $1 AND verdict = 'waits' AND reason = 'answer'`

// endAnswerWait makes the events of a loop that wait for an answer fire it.
func (t *Tx) endAnswerWait(ctx context.Context, loopID string) error {
	n, err := t.exec(ctx, endAnswerWait, loopID)
	if err == nil && n > 0 {
		t.announce(loop.FeedLoop, loopID, loopID, "woken")
	}
	return err
}

const endRest = `UPDATE firing_events SET not_before_ms = 0, reason = '' WHERE loop_id = $1 AND verdict = 'waits' AND not_before_ms > {now} AND reason <> $2 AND source <> $2`

// EndRest makes the events of a loop that wait for the end of its rest wait no longer. What
// waits for a budget goes on waiting.
func (t *Tx) EndRest(ctx context.Context, loopID string) error {
	n, err := t.exec(ctx, endRest, loopID, loop.OnBudget)
	if err != nil {
		return fmt.Errorf("end the rest of loop %s: %w", loopID, err)
	}
	if n > 0 {
		t.announce(loop.FeedLoop, loopID, loopID, "woken")
	}
	return nil
}

const forgetEvents = `DELETE FROM firing_events WHERE loop_id = $1 AND verdict <> 'waits' AND last_ms < $2`

// ForgetEvents removes events of a loop of which it was decided what became of them, and
// that are older than a time.
func (t *Tx) ForgetEvents(ctx context.Context, loopID string, before time.Time) error {
	_, err := t.exec(ctx, forgetEvents, loopID, millis(before))
	return err
}

const listeningLoops = `SELECT ` + loopColumns + ` FROM loops WHERE ` + placedHere + ` AND listens <> '' AND broken = '' AND good <> '' AND source <> '' ORDER BY id`

// ListeningLoops lists the loops of workspaces that lie on a node and that events fire.
func (r *Reader) ListeningLoops(ctx context.Context, node string) ([]loop.Loop, error) {
	return collect(ctx, r, listeningLoops, scanLoop, node)
}

const readSource = `SELECT state FROM event_sources WHERE loop_id = $1 AND node_id = $2 AND source = $3`

// SourceState returns how a source of a loop looked on a node when it was last looked at,
// and false if it never was.
func (r *Reader) SourceState(ctx context.Context, loopID, node, source string) (state string, known bool, err error) {
	err = r.queryRow(ctx, readSource, loopID, node, storableText(source)).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return state, err == nil, err
}

const (
	startSource = `INSERT INTO event_sources (loop_id, node_id, source, state) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	moveSource  = `UPDATE event_sources SET state = $1 WHERE loop_id = $2 AND node_id = $3 AND source = $4 AND state = $5`
)

// StartSource records how a source looks that nobody has looked at.
func (t *Tx) StartSource(ctx context.Context, loopID, node, source, state string) error {
	_, err := t.exec(ctx, startSource, loopID, node, source, state)
	return err
}

// MoveSource records that a source looks otherwise than before. It reports false if it did
// not look as before by then: somebody else has recorded it.
func (t *Tx) MoveSource(ctx context.Context, loopID, node, source, before, now string) (bool, error) {
	n, err := t.exec(ctx, moveSource, now, loopID, node, source, before)
	return n == 1, err
}

const (
	readEventCursor = `SELECT cursor FROM event_cursors WHERE node_id = $1`
	saveEventCursor = `
INSERT INTO event_cursors (node_id, cursor) VALUES ($1, $2) ON CONFLICT (node_id) DO UPDATE SET cursor = excluded.cursor`
)

// EventCursor returns how far a node has read the feed for the ends of runs, and false if
// it never has.
func (r *Reader) EventCursor(ctx context.Context, node string) (c loop.Cursor, known bool, err error) {
	var text string
	switch err = r.queryRow(ctx, readEventCursor, node).Scan(&text); {
	case errors.Is(err, sql.ErrNoRows):
		return c, false, nil
	case err == nil:
		err = c.UnmarshalText([]byte(text))
	}
	return c, err == nil, err
}

// SaveEventCursor records how far a node has read the feed for the ends of runs.
func (t *Tx) SaveEventCursor(ctx context.Context, node string, c loop.Cursor) error {
	_, err := t.exec(ctx, saveEventCursor, node, c.String())
	return err
}
