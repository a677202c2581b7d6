package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const saveWorkspace = `
INSERT INTO workspaces (id, old_root, repository, created_ms) VALUES ($1, $1, $2, $3)
ON CONFLICT DO NOTHING`

// AddWorkspace registers a workspace. One that is registered stays as it is. One
// without a repository id is a repository of its own.
func (t *Tx) AddWorkspace(ctx context.Context, w loop.Workspace) error {
	if w.ID == "" {
		return fmt.Errorf("save workspace %s: it has no id", w.Root)
	}
	repository := w.Repository
	if repository == "" {
		repository = w.ID
	}
	if _, err := t.exec(ctx, saveWorkspace, w.ID, repository, millis(t.now)); err != nil {
		return fmt.Errorf("save workspace %s: %w", w.Root, err)
	}
	return nil
}

const readRepository = `SELECT repository FROM workspaces WHERE id = $1`

// Repository returns the id of the repository that a workspace belongs to, or
// ErrNotFound.
func (r *Reader) Repository(ctx context.Context, workspace string) (id string, err error) {
	err = r.queryRow(ctx, readRepository, workspace).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("workspace %s: %w", workspace, loop.ErrNotFound)
	}
	return id, err
}

const saveRepository = `UPDATE workspaces SET repository = $1 WHERE id = $2`

// SaveRepository says which repository a workspace belongs to.
func (t *Tx) SaveRepository(ctx context.Context, workspace, repository string) error {
	if _, err := t.exec(ctx, saveRepository, repository, workspace); err != nil {
		return fmt.Errorf("save the repository of workspace %s: %w", workspace, err)
	}
	return nil
}

const placementAt = `SELECT ` + placementColumns + ` FROM placements WHERE node_id = $1 AND path = $2`

// PlacementAt returns what lies at a path of a node, or the zero Placement if nothing
// does.
func (r *Reader) PlacementAt(ctx context.Context, node, path string) (loop.Placement, error) {
	p, err := scanPlacement(r.queryRow(ctx, placementAt, node, path))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return p, err
}

const workspaceAt = `SELECT id FROM workspaces WHERE old_root = $1 AND NOT EXISTS (SELECT 1 FROM placements WHERE workspace_id = id)`

// WorkspaceAt finds a workspace that was registered at a path before workspaces had
// ids of their own, and that no node has taken over since. It may be ErrNotFound.
func (r *Reader) WorkspaceAt(ctx context.Context, root string) (id string, err error) {
	err = r.queryRow(ctx, workspaceAt, root).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("workspace %s: %w", root, loop.ErrNotFound)
	}
	return id, err
}

const workspacesOn = `
SELECT w.id, p.path, w.repository FROM placements p JOIN workspaces w ON w.id = p.workspace_id WHERE p.node_id = $1 ORDER BY p.path`

// Workspaces lists the workspaces that lie on a node, by their path there.
func (r *Reader) Workspaces(ctx context.Context, node string) ([]loop.Workspace, error) {
	return collect(ctx, r, workspacesOn, func(row interface{ Scan(...any) error }) (w loop.Workspace, err error) {
		err = row.Scan(&w.ID, &w.Root, &w.Repository)
		return w, err
	}, node)
}

const nodeColumns = `id, name, boot, labels, capabilities, version, schema_version, skew_ms, created_ms, seen_ms`

func scanNode(row interface{ Scan(...any) error }) (n loop.Node, err error) {
	var labels, offers string
	var created, seen int64
	if err := row.Scan(&n.ID, &n.Name, &n.Boot, &labels, &offers, &n.Version, &n.Schema, &n.Skew, &created, &seen); err != nil {
		return n, err
	}
	n.Created, n.Seen = fromMillis(created), fromMillis(seen)
	return n, errors.Join(decode("labels", labels, &n.Labels), decode("capabilities", offers, &n.Offers))
}

const (
	insertNode = `
INSERT INTO nodes (` + nodeColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now})
ON CONFLICT DO NOTHING`
	updateNode = `
UPDATE nodes SET name = $1, boot = $2, labels = $3, capabilities = $4, version = $5, schema_version = $6, skew_ms = $7, seen_ms = {now}
WHERE  id = $8 AND NOT EXISTS (SELECT 1 FROM nodes o WHERE o.name = $1 AND o.id <> $8)`
)

// SaveNode registers a node or says anew what is known of it, and that it was seen
// now. A name that another node has is ErrNameTaken.
func (t *Tx) SaveNode(ctx context.Context, n loop.Node) error {
	labels, offers := encode(orEmpty(n.Labels)), encode(orEmpty(n.Offers))
	added, err := t.exec(ctx, insertNode, n.ID, n.Name, n.Boot, labels, offers, n.Version, n.Schema, n.Skew, millis(t.now))
	if err == nil && added == 0 {
		var changed int64
		changed, err = t.exec(ctx, updateNode, n.Name, n.Boot, labels, offers, n.Version, n.Schema, n.Skew, n.ID)
		if err == nil && changed == 0 {
			err = loop.ErrNameTaken
		}
	}
	if err != nil {
		return fmt.Errorf("save node %s: %w", n.Name, err)
	}
	return nil
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

const seeNode = `UPDATE nodes SET seen_ms = {now}, skew_ms = $1 WHERE id = $2`

// SeeNode says that a node is there, by the database's clock.
func (t *Tx) SeeNode(ctx context.Context, id string, skew time.Duration) error {
	if _, err := t.exec(ctx, seeNode, skew.Milliseconds(), id); err != nil {
		return fmt.Errorf("see node %s: %w", id, err)
	}
	return nil
}

const nodeByID = `SELECT ` + nodeColumns + ` FROM nodes WHERE id = $1`

// Node returns one node, or ErrNotFound.
func (r *Reader) Node(ctx context.Context, id string) (loop.Node, error) {
	n, err := scanNode(r.queryRow(ctx, nodeByID, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("node %s: %w", id, loop.ErrNotFound)
	}
	return n, err
}

const allNodes = `SELECT ` + nodeColumns + ` FROM nodes ORDER BY name`

// Nodes lists all nodes by name.
func (r *Reader) Nodes(ctx context.Context) ([]loop.Node, error) {
	return collect(ctx, r, allNodes, scanNode)
}

const dropNode = `DELETE FROM nodes WHERE id = $1`

// ForgetNode removes a node, its placements, and the channels on which only it delivers
// notices. Its runs stay.
func (t *Tx) ForgetNode(ctx context.Context, id string) error {
	if err := t.removeChannelsOf(ctx, id); err != nil {
		return fmt.Errorf("forget the channels of node %s: %w", id, err)
	}
	if _, err := t.exec(ctx, `DELETE FROM placements WHERE node_id = $1`, id); err != nil {
		return fmt.Errorf("forget the placements of node %s: %w", id, err)
	}
	if _, err := t.exec(ctx, dropNode, id); err != nil {
		return fmt.Errorf("forget node %s: %w", id, err)
	}
	return nil
}

const placementColumns = `workspace_id, node_id, path, remote, created_ms`

func scanPlacement(row interface{ Scan(...any) error }) (p loop.Placement, err error) {
	var created int64
	err = row.Scan(&p.WorkspaceID, &p.NodeID, &p.Path, &p.Remote, &created)
	p.Created = fromMillis(created)
	return p, err
}

const (
	clearPlace   = `DELETE FROM placements WHERE node_id = $1 AND path = $2 AND workspace_id <> $3`
	insertPlace  = `INSERT INTO placements (` + placementColumns + `) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`
	movePlace    = `UPDATE placements SET path = $1, remote = $2 WHERE workspace_id = $3 AND node_id = $4`
	adoptConfigs = `UPDATE git_configs SET node_id = $1 WHERE workspace_id = $2 AND node_id = ''`
)

// Place says where a workspace lies on a node. What lay at that path before does
// not any more, and what lay at another path has moved.
func (t *Tx) Place(ctx context.Context, p loop.Placement) error {
	if _, err := t.exec(ctx, clearPlace, p.NodeID, p.Path, p.WorkspaceID); err != nil {
		return fmt.Errorf("clear %s: %w", p.Path, err)
	}
	n, err := t.exec(ctx, insertPlace, p.WorkspaceID, p.NodeID, p.Path, p.Remote, millis(t.now))
	if err == nil && n == 0 {
		_, err = t.exec(ctx, movePlace, p.Path, p.Remote, p.WorkspaceID, p.NodeID)
	}
	if err == nil {
		_, err = t.exec(ctx, adoptConfigs, p.NodeID, p.WorkspaceID)
	}
	if err != nil {
		return fmt.Errorf("place workspace %s at %s: %w", p.WorkspaceID, p.Path, err)
	}
	return nil
}

const dropPlace = `DELETE FROM placements WHERE workspace_id = $1 AND node_id = $2`

// Unplace says that a workspace does not lie on a node any more.
func (t *Tx) Unplace(ctx context.Context, workspace, node string) error {
	if _, err := t.exec(ctx, dropPlace, workspace, node); err != nil {
		return fmt.Errorf("unplace workspace %s: %w", workspace, err)
	}
	return nil
}

const placementsOn = `SELECT ` + placementColumns + ` FROM placements ORDER BY node_id, path`

// AllPlacements lists where every workspace lies, by node and path.
func (r *Reader) AllPlacements(ctx context.Context) ([]loop.Placement, error) {
	return collect(ctx, r, placementsOn, scanPlacement)
}

const placementsOf = `SELECT ` + placementColumns + ` FROM placements WHERE workspace_id = $1 ORDER BY created_ms, node_id`

// Placements lists where a workspace lies, the oldest first.
func (r *Reader) Placements(ctx context.Context, workspace string) ([]loop.Placement, error) {
	return collect(ctx, r, placementsOf, scanPlacement, workspace)
}
