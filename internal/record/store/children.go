package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const saveParent = `UPDATE loops SET parent_id = $1, depth = $2, made_by_run = $3, pawl_tools = $4, lent = $5 WHERE id = $6`

// AdoptLoop records that an agent made the loop inside of a run, as its Parent, Depth,
// MadeBy, PawlTools and Lent say. The row of the parent must be locked.
func (t *Tx) AdoptLoop(ctx context.Context, l loop.Loop) error {
	if _, err := t.exec(ctx, saveParent, l.Parent, l.Depth, l.MadeBy, string(l.PawlTools), lentColumn(l.Lent), l.ID); err != nil {
		return fmt.Errorf("save the parent of loop %s: %w", l.Name, err)
	}
	t.announce(loop.FeedLoop, l.ID, l.ID, "")
	return nil
}

func lentColumn(lent loop.Amount) string {
	if lent.Zero() {
		return ""
	}
	return encode(lent)
}

const saveLent = `UPDATE loops SET lent = $1 WHERE id = $2`

// SetLent changes what a loop has of its parent's life: one that is removed gives back
// what it has not used.
func (t *Tx) SetLent(ctx context.Context, loopID string, lent loop.Amount) error {
	if _, err := t.exec(ctx, saveLent, lentColumn(lent), loopID); err != nil {
		return fmt.Errorf("save what loop %s has of its parent: %w", loopID, err)
	}
	t.announce(loop.FeedLoop, loopID, loopID, "")
	return nil
}

const childrenSince = `SELECT count(*) FROM loops WHERE parent_id = $1 AND created_ms >= $2`

// ChildrenToday is how many loops the runs of a loop have made since midnight, UTC, by the
// database's time. Those that were removed count.
func (t *Tx) ChildrenToday(ctx context.Context, loopID string) (n int, err error) {
	err = t.queryRow(ctx, childrenSince, loopID, millis(loop.WindowDay.Start(t.now))).Scan(&n)
	return n, err
}

const childrenOf = `SELECT ` + loopColumns + ` FROM loops WHERE parent_id = $1 ORDER BY created_ms, id`

// Children lists the loops that runs of a loop have made, the oldest first.
func (r *Reader) Children(ctx context.Context, loopID string) ([]loop.Loop, error) {
	return collect(ctx, r, childrenOf, scanLoop, loopID)
}

// LentToChildren is what a loop has given to its children out of its life.
func (r *Reader) LentToChildren(ctx context.Context, loopID string) (sum loop.Amount, err error) {
	list, err := r.Children(ctx, loopID)
	for _, l := range list {
		sum = sum.Add(l.Lent)
	}
	return sum, err
}

const descendants = `
WITH RECURSIVE below AS (
  SELECT id, depth FROM loops WHERE parent_id = $1
  UNION ALL
  SELECT l.id, l.depth FROM loops l JOIN below b ON l.parent_id = b.id AND l.depth > b.depth
)
SELECT ` + loopColumns + ` FROM loops WHERE id IN (SELECT id FROM below) ORDER BY depth, created_ms, id`

// Descendants lists the children of a loop, and theirs, parents before their children.
func (r *Reader) Descendants(ctx context.Context, loopID string) ([]loop.Loop, error) {
	return collect(ctx, r, descendants, scanLoop, loopID)
}

const ancestors = `
WITH RECURSIVE above AS (
  SELECT id, parent_id, depth FROM loops WHERE id = $1
  UNION ALL
  SELECT l.id, l.parent_id, l.depth FROM loops l JOIN above a ON l.id = a.parent_id AND l.depth < a.depth
)
SELECT ` + loopColumns + ` FROM loops WHERE id IN (SELECT id FROM above) AND id <> $2 ORDER BY depth DESC`

// Ancestors lists the loop whose run made a loop, that of which a run made it, and so on.
func (r *Reader) Ancestors(ctx context.Context, loopID string) ([]loop.Loop, error) {
	return collect(ctx, r, ancestors, scanLoop, loopID, loopID)
}

const liveInside = `SELECT 1 FROM runs WHERE id = $1 AND fence = $2 AND state = 'running' AND cancel = ''{for_share}`

// CheckInside is loop.ErrLeaseLost unless the run of an agent lives, with the fence that the
// agent was given, and nobody has asked it to end. On PostgreSQL that stays so until the
// transaction ends.
func (t *Tx) CheckInside(ctx context.Context, in loop.Inside) error {
	found, err := collect(ctx, &t.Reader, liveInside, func(row interface{ Scan(...any) error }) (n int, err error) {
		err = row.Scan(&n)
		return n, err
	}, in.RunID, in.Fence)
	if err == nil && len(found) == 0 {
		err = loop.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("write inside of run %s: %w", in.RunID, err)
	}
	return t.checkTreeSwitches(ctx, in.LoopID)
}

// checkTreeSwitches returns a *loop.PausedError if the switch of a loop, of its workspace or
// of the store is set.
func (t *Tx) checkTreeSwitches(ctx context.Context, loopID string) error {
	l, err := t.Loop(ctx, loopID)
	switch {
	case errors.Is(err, loop.ErrNotFound):
		return nil
	case err != nil:
		return err
	case l.Paused:
		return &loop.PausedError{By: loop.KillSwitch{Scope: loop.SwitchLoop}}
	}
	return t.checkSwitches(ctx, loopID)
}

// Inside returns the same store for the verbs that the agent of a run calls: each Update
// begins with CheckInside. It is not to be closed.
func (s *Store) Inside(in loop.Inside) *Store {
	return &Store{w: s.w, r: s.r, pool: s.pool, sql: s.sql, memory: s.memory, frozen: s.frozen, file: s.file, clock: s.clock, lease: s.lease, inside: &in}
}
