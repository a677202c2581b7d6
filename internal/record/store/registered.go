package store

import (
	"context"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const insertRegistered = `
INSERT INTO loops (id, workspace_id, name, protocol, numbered, created_ms) VALUES {rows}
ON CONFLICT DO NOTHING`

// RegisterLoops creates loops of a workspace that has been registered, unless they
// exist. Nobody has looked up yet where the numbers of their runs go on: AddLoop says.
func (t *Tx) RegisterLoops(ctx context.Context, list []loop.Loop) error {
	rows := make([][]any, len(list))
	for i, l := range list {
		rows[i] = []any{l.ID, l.WorkspaceID, l.Name, l.Protocol, 0, millis(t.now)}
	}
	if err := t.insertRows(ctx, insertRegistered, rows); err != nil {
		return fmt.Errorf("register loops: %w", err)
	}
	for _, l := range list {
		t.announce(loop.FeedLoop, l.ID, l.ID, "")
	}
	return nil
}

const lockLoops = `SELECT ` + loopColumns + ` FROM loops WHERE id IN ({list}) ORDER BY id{for_update}`

// LockLoops returns the loops with these ids, which are sorted, and is LockLoop for each
// of them.
func (t *Tx) LockLoops(ctx context.Context, ids ...string) ([]loop.Loop, error) {
	list, err := collectInParts(ctx, &t.Reader, lockLoops, scanLoop, ids)
	if err != nil {
		return nil, fmt.Errorf("lock loops: %w", err)
	}
	return list, nil
}

const saveRegistration = `UPDATE loops SET source = $1, good = $2, broken = $3, planned_ms = $4, due_ms = $5, listens = $6 WHERE id = $7`

// SaveRegistration says what the file of a loop says. The caller has locked the loop.
func (t *Tx) SaveRegistration(ctx context.Context, loopID string, reg loop.Registration) error {
	if _, err := t.exec(ctx, saveRegistration, reg.Source, reg.Good, reg.Broken, millis(reg.Planned), millis(reg.Due), reg.Listens, loopID); err != nil {
		return fmt.Errorf("register loop %s: %w", loopID, err)
	}
	t.announce(loop.FeedLoop, loopID, loopID, "")
	return nil
}
