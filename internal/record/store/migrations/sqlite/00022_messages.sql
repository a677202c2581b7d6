-- +goose Up
-- What loops send each other, and people.
CREATE TABLE messages (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  recipient    TEXT NOT NULL, -- name of a loop, or of a person
  message_key  TEXT NOT NULL, -- the same one is delivered once
  sender       TEXT NOT NULL, -- name of a loop
  topic        TEXT NOT NULL, -- the matter that it is about; empty: none
  state        TEXT NOT NULL CHECK (state IN ('waits', 'taken', 'told')), -- told: to a person
  taken_by     TEXT NOT NULL DEFAULT '', -- the run that took it into the memory of its loop
  body         TEXT NOT NULL, -- JSON
  sent_ms      INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, recipient, message_key)
) STRICT;
CREATE INDEX messages_waiting ON messages (workspace_id, recipient, sent_ms) WHERE state = 'waits';
CREATE INDEX messages_topic ON messages (workspace_id, sender, sent_ms) WHERE topic <> '';
CREATE INDEX messages_told ON messages (workspace_id, sent_ms) WHERE state = 'told';

-- +goose Down
DROP TABLE messages;
