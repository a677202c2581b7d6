-- +goose Up
-- What changed, in the order of the commits. AUTOINCREMENT: a number never comes back.
CREATE TABLE feed (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms   INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  id      TEXT NOT NULL,
  loop_id TEXT NOT NULL DEFAULT '',
  state   TEXT NOT NULL DEFAULT ''
) STRICT;

-- +goose Down
DROP TABLE feed;
