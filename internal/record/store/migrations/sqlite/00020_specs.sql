-- +goose Up
CREATE TABLE specs (
  id           TEXT PRIMARY KEY, -- lp_ and 7 characters, the name of its loop
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  loop_id      TEXT NOT NULL UNIQUE REFERENCES loops (id),
  revision     INTEGER NOT NULL,
  goal         TEXT NOT NULL,
  agent        TEXT NOT NULL,
  parent_id    TEXT NOT NULL DEFAULT '', -- of the spec that spawned it
  board_entry  TEXT NOT NULL DEFAULT '', -- that it shares with others
  body         TEXT NOT NULL,            -- JSON of the newest revision
  rubric       TEXT NOT NULL DEFAULT '', -- JSON: what reviewers judge by; empty: nothing has been judged
  created_ms   INTEGER NOT NULL,
  updated_ms   INTEGER NOT NULL
) STRICT;
CREATE INDEX specs_in ON specs (workspace_id, updated_ms, id);
CREATE INDEX specs_of_entry ON specs (workspace_id, board_entry) WHERE board_entry <> '';

CREATE TABLE spec_revisions (
  spec_id  TEXT NOT NULL REFERENCES specs (id),
  revision INTEGER NOT NULL,
  body     TEXT NOT NULL,
  made_by  TEXT NOT NULL,
  at_ms    INTEGER NOT NULL,
  PRIMARY KEY (spec_id, revision)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE spec_revisions;
DROP TABLE specs;
