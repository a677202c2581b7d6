-- +goose Up
-- A workspace is a repository with an id of its own, and may lie on several nodes.
ALTER TABLE workspaces RENAME COLUMN root TO old_root;                  -- the path, of one made before version 8; since then its id
ALTER TABLE workspaces ADD COLUMN repository TEXT NOT NULL DEFAULT ''; -- id of the repository: linked worktrees share it
UPDATE workspaces SET repository = id;

CREATE TABLE nodes (
  id             TEXT PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  boot           TEXT NOT NULL DEFAULT '',
  labels         TEXT NOT NULL DEFAULT '[]',
  capabilities   TEXT NOT NULL DEFAULT '[]',
  version        TEXT NOT NULL DEFAULT '',
  schema_version BIGINT NOT NULL DEFAULT 0,
  skew_ms        BIGINT NOT NULL DEFAULT 0, -- its clock minus that of the database, when it was last seen
  created_ms     BIGINT NOT NULL,
  seen_ms        BIGINT NOT NULL
);

-- Where a workspace lies: at one path on each node that has it.
CREATE TABLE placements (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  node_id      TEXT NOT NULL REFERENCES nodes (id),
  path         TEXT NOT NULL,
  remote       TEXT NOT NULL DEFAULT '', -- address of origin, without a password
  created_ms   BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, node_id)
);
CREATE UNIQUE INDEX placements_path ON placements (node_id, path);

-- How git was configured when it was last accepted, on each node. Node '': before version 8.
CREATE TABLE git_configs (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  node_id      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  hazards      TEXT NOT NULL,
  PRIMARY KEY (workspace_id, node_id)
);
INSERT INTO git_configs (workspace_id, node_id, fingerprint, hazards)
SELECT id, '', git_fingerprint, git_hazards FROM workspaces WHERE git_fingerprint <> '';
ALTER TABLE workspaces DROP COLUMN git_hazards;
ALTER TABLE workspaces DROP COLUMN git_fingerprint;

ALTER TABLE runs ADD COLUMN node_id TEXT NOT NULL DEFAULT '';                                  -- that claimed it last
ALTER TABLE runs ADD COLUMN owed BIGINT NOT NULL DEFAULT 0 CHECK (owed IN (0, 1));            -- another node ended it; its own still has to keep its work and write its files
CREATE INDEX runs_owed ON runs (node_id, workspace_id) WHERE owed = 1;
UPDATE runs SET holder = replace(holder, '"node":', '"host":') WHERE holder <> '';

-- +goose Down
DROP INDEX runs_owed;
ALTER TABLE runs DROP COLUMN owed;
ALTER TABLE runs DROP COLUMN node_id;
ALTER TABLE workspaces ADD COLUMN git_fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN git_hazards TEXT NOT NULL DEFAULT '';
DROP TABLE git_configs;
DROP TABLE placements;
DROP TABLE nodes;
ALTER TABLE workspaces DROP COLUMN repository;
ALTER TABLE workspaces RENAME COLUMN old_root TO root;
