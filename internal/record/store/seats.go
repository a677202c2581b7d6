package store

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	lockSeats = `INSERT INTO seat_locks (subject) VALUES ($1) ON CONFLICT (subject) DO UPDATE SET subject = excluded.subject`
	// dropLapsedSeats takes seats from runs that did not extend their lease: one that
	// goes on all the same finds its seat gone.
	dropLapsedSeats = `
DELETE FROM seats
WHERE  loop_id <> $1 AND (agent = $2 AND agent <> '' OR account = $3 AND account <> '')
AND    NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = seats.run_id AND r.state IN ('running', 'settling') AND r.lease_until_ms >= {now})`
	saveSeat = `
INSERT INTO seats (loop_id, run_id, agent, account, login, since_ms) VALUES ($1, $2, $3, $4, $5, {now})
ON CONFLICT (loop_id) DO UPDATE
SET    run_id = excluded.run_id, agent = excluded.agent, account = excluded.account, login = excluded.login, since_ms = excluded.since_ms`
)

// TakeSeat gives the run its seat, which is free again when the run has ended or its
// lease is over. While an agent or an account has as many live runs as the wish allows
// it is a *loop.SeatError, and the transaction must not be committed.
func (t *RunTx) TakeSeat(ctx context.Context, w loop.SeatWish) error {
	if w.Limited() {
		if err := t.checkSeats(ctx, w); err != nil {
			return err
		}
	}
	if _, err := t.exec(ctx, saveSeat, t.run.LoopID, t.run.ID, w.Agent, w.Account, w.Login); err != nil {
		return fmt.Errorf("take the seat of run %s: %w", t.run.ID, err)
	}
	return nil
}

// checkSeats refuses the wish if nothing is free. Nobody else takes a seat of the same
// agent or account under a limit before the transaction ends.
func (t *RunTx) checkSeats(ctx context.Context, w loop.SeatWish) error {
	agent, account := "", ""
	if w.AccountRuns > 0 {
		account = w.Account
	}
	if w.AgentRuns > 0 {
		agent = w.Agent
	}
	for _, l := range []struct{ kind, name string }{{"account:", account}, {"agent:", agent}} { // All lock in this order.
		if l.name == "" {
			continue
		}
		if _, err := t.exec(ctx, lockSeats, l.kind+l.name); err != nil {
			return fmt.Errorf("lock the seats of %s%s: %w", l.kind, l.name, err)
		}
	}
	others, err := t.OtherSeats(ctx, t.run.LoopID, w)
	if err != nil {
		return err
	}
	if refused := w.Refusal(others); refused != nil {
		return refused
	}
	// After they were counted: the clock of the database goes on, and a seat that is not
	// counted must be gone.
	if _, err := t.exec(ctx, dropLapsedSeats, t.run.LoopID, agent, account); err != nil {
		return fmt.Errorf("free seats: %w", err)
	}
	return nil
}

const takenSeats = `
SELECT s.run_id, l.name, r.n, s.agent, s.account, s.login, coalesce(n.name, r.node_id), r.holder, s.since_ms
FROM   seats s
JOIN   runs r ON r.id = s.run_id AND r.state IN ('running', 'settling') AND r.lease_until_ms >= {now}
JOIN   loops l ON l.id = s.loop_id
LEFT   JOIN nodes n ON n.id = r.node_id`

func scanSeat(row interface{ Scan(...any) error }) (s loop.Seat, err error) {
	var holder string
	var since int64
	if err := row.Scan(&s.RunID, &s.Loop, &s.N, &s.Agent, &s.Account, &s.Login, &s.Node, &holder, &since); err != nil {
		return s, err
	}
	s.Since = fromMillis(since)
	return s, decode("holder", holder, &s.Holder)
}

const allSeats = takenSeats + ` ORDER BY s.since_ms, s.run_id`

// Seats lists the seats that are taken, the oldest first.
func (r *Reader) Seats(ctx context.Context) ([]loop.Seat, error) {
	return collect(ctx, r, allSeats, scanSeat)
}

const otherSeats = takenSeats + `
WHERE  s.loop_id <> $1 AND (s.agent = $2 OR s.account = $3 AND s.account <> '')
ORDER  BY s.since_ms, s.run_id`

// OtherSeats lists the seats that are taken with the agent or the account of a wish by
// runs of other loops than this one, the oldest first.
func (r *Reader) OtherSeats(ctx context.Context, loopID string, w loop.SeatWish) ([]loop.Seat, error) {
	seats, err := collect(ctx, r, otherSeats, scanSeat, loopID, storableText(w.Agent), storableText(w.Account))
	if err != nil {
		return nil, fmt.Errorf("read the seats of @%s: %w", w.Agent, err)
	}
	return seats, nil
}

const hasSeat = `SELECT count(*) FROM seats WHERE loop_id = $1 AND run_id = $2`

// HasSeat reports whether nobody has taken the seat of a live run.
func (r *Reader) HasSeat(ctx context.Context, run loop.Run) (bool, error) {
	var n int
	if err := r.queryRow(ctx, hasSeat, run.LoopID, run.ID).Scan(&n); err != nil {
		return false, fmt.Errorf("read the seat of run %s: %w", run.ID, err)
	}
	return n == 1, nil
}
