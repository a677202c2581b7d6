package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// holdLoops makes the switch wait for claims and effects that have begun without it,
// so that nothing begins after the switch was set.
const holdLoops = `SELECT id FROM loops WHERE $1 IN ('', workspace_id) ORDER BY id{for_update}`

const insertSwitch = `INSERT INTO switches (id, actor, why, set_ms) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`

// SetSwitch sets the kill switch of a workspace, or of the whole store if the id is
// empty. It reports false if it was set before, and then leaves it as it is.
func (t *Tx) SetSwitch(ctx context.Context, by loop.Actor, workspace, why string) (bool, error) {
	_, err := collect(ctx, &t.Reader, holdLoops, scanID, workspace)
	var n int64
	if err == nil {
		n, err = t.exec(ctx, insertSwitch, workspace, encode(by), why, millis(t.now))
	}
	if err != nil {
		return false, fmt.Errorf("set the kill switch: %w", err)
	}
	if n == 1 {
		t.announceSwitch(workspace, "paused")
	}
	return n == 1, nil
}

const dropSwitch = `DELETE FROM switches WHERE id = $1`

// ClearSwitch clears the kill switch of a workspace, or of the whole store if the id is
// empty. It reports false if it was not set.
func (t *Tx) ClearSwitch(ctx context.Context, workspace string) (bool, error) {
	n, err := t.exec(ctx, dropSwitch, workspace)
	if err != nil {
		return false, fmt.Errorf("clear the kill switch: %w", err)
	}
	if n == 1 {
		t.announceSwitch(workspace, "resumed")
	}
	return n == 1, nil
}

func (t *Tx) announceSwitch(workspace, state string) {
	if workspace == "" {
		workspace = string(loop.SwitchStore)
	}
	t.announce(loop.FeedSwitch, workspace, "", state)
}

const switchesOf = `SELECT id, actor, why, set_ms FROM switches WHERE id IN ('', $1) ORDER BY id`

// Switches lists the kill switches that stop a workspace: first that of the whole
// store, then its own.
func (r *Reader) Switches(ctx context.Context, workspace string) ([]loop.Switch, error) {
	return collect(ctx, r, switchesOf, func(row interface{ Scan(...any) error }) (s loop.Switch, err error) {
		var by string
		var at int64
		if err := row.Scan(&s.Workspace, &by, &s.Why, &at); err != nil {
			return s, err
		}
		s.Scope, s.At = loop.SwitchWorkspace, fromMillis(at)
		if s.Workspace == "" {
			s.Scope = loop.SwitchStore
		}
		return s, decode("actor", by, &s.By)
	}, workspace)
}

// checkSwitches returns a *loop.PausedError if a switch of the store, or of the
// workspace of a loop, is set.
func (r *Reader) checkSwitches(ctx context.Context, loopID string) error {
	l, err := r.Loop(ctx, loopID)
	if errors.Is(err, loop.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	set, err := r.Switches(ctx, l.WorkspaceID)
	if err == nil && len(set) > 0 {
		err = &loop.PausedError{By: loop.KillSwitch{Scope: set[0].Scope}}
	}
	return err
}

const allWorkspaces = `SELECT id FROM workspaces ORDER BY id`

// WorkspaceIDs lists the ids of all workspaces of the store.
func (r *Reader) WorkspaceIDs(ctx context.Context) ([]string, error) {
	return collect(ctx, r, allWorkspaces, scanID)
}

func scanID(row interface{ Scan(...any) error }) (id string, err error) {
	err = row.Scan(&id)
	return id, err
}

const heldRuns = `
SELECT r.id, r.loop_id, l.name, r.n, r.workspace_id, r.state, r.phase, r.holder, coalesce(n.name, ''), r.stopped_ms, r.lease_until_ms, r.lease_until_ms - {now}
FROM   runs r JOIN loops l ON l.id = r.loop_id LEFT JOIN nodes n ON n.id = r.node_id
WHERE  r.state IN ('running', 'settling') AND ($1 = '' OR r.workspace_id = $1) AND ($2 = '' OR r.loop_id = $2)
ORDER  BY r.seq + 0` // Not by the index, which has every run.

// HeldRuns lists the runs that somebody holds, in the order in which they were fired:
// those of a workspace, of a loop, or all where an id is empty.
func (s *Store) HeldRuns(ctx context.Context, workspace, loopID string) (list []loop.HeldRun, err error) {
	err = s.View(ctx, func(r *Reader) error {
		list, err = collect(ctx, r, heldRuns, func(row interface{ Scan(...any) error }) (h loop.HeldRun, err error) {
			var holder string
			var stopped, until, left int64
			err = row.Scan(&h.ID, &h.LoopID, &h.Loop, &h.N, &h.Workspace, &h.State, &h.Phase, &holder, &h.Node, &stopped, &until, &left)
			if err != nil {
				return h, err
			}
			h.Stopped, h.Heard, h.Lease, h.Left = stopped > 0, fromMillis(until).Add(-s.lease), s.lease, time.Duration(left)*time.Millisecond
			if holder != "" {
				err = decode("holder", holder, &h.Holder)
			}
			return h, err
		}, workspace, loopID)
		return err
	})
	return list, err
}
