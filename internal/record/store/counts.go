package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const readCounts = `SELECT body FROM test_counts WHERE tree = $1 AND gate = $2`

// TestRecord returns what a gate reported on a base tree. Gate is the digest of
// the gate's line, which the caller makes. What was not counted yet is
// ErrNotFound.
func (r *Reader) TestRecord(ctx context.Context, tree, gate string) (c loop.TestRecord, err error) {
	var body string
	switch err := r.queryRow(ctx, readCounts, tree, gate).Scan(&body); {
	case errors.Is(err, sql.ErrNoRows):
		return c, fmt.Errorf("test counts of tree %s: %w", tree, loop.ErrNotFound)
	case err != nil:
		return c, fmt.Errorf("read test counts of tree %s: %w", tree, err)
	}
	return c, decode("test counts of tree "+tree, body, &c)
}

const saveCounts = `
INSERT INTO test_counts (tree, gate, body, created_ms) VALUES ($1, $2, $3, $4)
ON CONFLICT (tree, gate) DO UPDATE SET body = excluded.body, created_ms = excluded.created_ms`

// SaveTestRecord keeps what a gate reported on a base tree. The newest record of
// the same tree and gate stands.
func (t *Tx) SaveTestRecord(ctx context.Context, tree, gate string, c loop.TestRecord) error {
	if _, err := t.exec(ctx, saveCounts, tree, gate, encode(c), millis(t.now)); err != nil {
		return fmt.Errorf("save test counts of tree %s: %w", tree, err)
	}
	return nil
}

const readFingerprint = `
SELECT fingerprint, hazards FROM git_configs WHERE workspace_id = $1 AND node_id IN ($2, '') ORDER BY node_id DESC LIMIT 1`

// GitFingerprint returns the git configuration that a workspace was accepted with on
// a node, as a fingerprint and as what it was made of. Both are empty while nothing
// was accepted.
func (r *Reader) GitFingerprint(ctx context.Context, workspace, node string) (fingerprint, hazards string, err error) {
	err = r.queryRow(ctx, readFingerprint, workspace, node).Scan(&fingerprint, &hazards)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return fingerprint, hazards, err
}

const saveFingerprint = `
INSERT INTO git_configs (workspace_id, node_id, fingerprint, hazards)
SELECT id, $1, $2, $3 FROM workspaces WHERE id = $4
ON CONFLICT (workspace_id, node_id) DO UPDATE SET fingerprint = excluded.fingerprint, hazards = excluded.hazards`

// SaveGitFingerprint records the git configuration that a workspace was accepted
// with on a node. A workspace that is not registered is ErrNotFound.
func (t *Tx) SaveGitFingerprint(ctx context.Context, workspace, node, fingerprint, hazards string) error {
	n, err := t.exec(ctx, saveFingerprint, node, fingerprint, hazards, workspace)
	if err == nil && n == 0 {
		err = loop.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("save the git fingerprint of workspace %s: %w", workspace, err)
	}
	return nil
}
