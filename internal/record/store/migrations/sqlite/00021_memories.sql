-- +goose Up
-- What was learned in a workspace.
CREATE TABLE memories (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  n            INTEGER NOT NULL CHECK (n > 0),
  digest       TEXT NOT NULL, -- of its text and of the loop that it is for
  loop_id      TEXT NOT NULL, -- the only loop that it is for; empty: every loop
  proposed_by  TEXT NOT NULL, -- the loop whose run proposed it; empty: none
  state        TEXT NOT NULL CHECK (state IN ('proposed', 'active', 'forgotten')),
  body         TEXT NOT NULL, -- JSON
  PRIMARY KEY (workspace_id, n),
  UNIQUE (workspace_id, digest)
) STRICT;
CREATE INDEX memories_active ON memories (workspace_id, n) WHERE state = 'active';
CREATE INDEX memories_proposed ON memories (workspace_id, proposed_by) WHERE state = 'proposed';
ALTER TABLE workspaces ADD COLUMN memories INTEGER NOT NULL DEFAULT 0; -- the highest number that was given

-- +goose Down
ALTER TABLE workspaces DROP COLUMN memories;
DROP TABLE memories;
