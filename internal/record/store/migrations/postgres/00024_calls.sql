-- +goose Up
-- Calls to which callers gave a key, so that each is carried out once.
CREATE TABLE keyed_calls (
  call_key TEXT PRIMARY KEY, -- digest of who called, where, and the key
  verb     TEXT NOT NULL,
  request  TEXT NOT NULL, -- digest of what was asked
  answer   TEXT NOT NULL DEFAULT '', -- JSON; empty: it is not known yet
  made_ms  BIGINT NOT NULL
);
CREATE INDEX keyed_calls_made ON keyed_calls (made_ms);

-- +goose Down
DROP TABLE keyed_calls;
