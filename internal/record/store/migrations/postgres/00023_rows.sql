-- +goose Up
-- Rows of protocols, which the loops of a workspace share: boards, their tasks and agents.
CREATE TABLE protocol_rows (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  row_set      TEXT NOT NULL, -- rows of one sort, such as tasks
  row_key      TEXT NOT NULL,
  scope        TEXT NOT NULL, -- what the row belongs to, such as a board; empty: nothing
  state        TEXT NOT NULL,
  owner        TEXT NOT NULL, -- who has it; empty: nobody
  run_id       TEXT NOT NULL, -- the run that holds it as long as it is live; empty: none
  version      BIGINT NOT NULL CHECK (version > 0),
  body         TEXT NOT NULL, -- JSON
  made_ms      BIGINT NOT NULL,
  moved_ms     BIGINT NOT NULL, -- when it was written last
  PRIMARY KEY (workspace_id, row_set, row_key)
);
CREATE INDEX protocol_rows_scope ON protocol_rows (workspace_id, row_set, scope, made_ms, row_key);
CREATE INDEX protocol_rows_state ON protocol_rows (workspace_id, row_set, scope, state, made_ms, row_key);
CREATE INDEX protocol_rows_owner ON protocol_rows (workspace_id, row_set, owner, made_ms, row_key) WHERE owner <> '';
CREATE INDEX messages_about ON messages (workspace_id, topic) WHERE topic <> '';

-- +goose Down
DROP INDEX messages_about;
DROP TABLE protocol_rows;
