-- +goose Up
-- Kill switches of a workspace and of the whole store. That of a loop is a column of it.
CREATE TABLE switches (
  id     TEXT PRIMARY KEY, -- of the workspace; empty for the store
  actor  TEXT NOT NULL, -- who set it
  why    TEXT NOT NULL DEFAULT '',
  set_ms INTEGER NOT NULL
) STRICT;

ALTER TABLE runs ADD COLUMN stopped_ms INTEGER NOT NULL DEFAULT 0; -- its holder has said that no program of it is left

-- +goose Down
ALTER TABLE runs DROP COLUMN stopped_ms;
DROP TABLE switches;
