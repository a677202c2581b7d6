-- +goose Up
ALTER TABLE runs ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN auth TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN cost TEXT NOT NULL DEFAULT '{}';

CREATE TABLE budgets (
  scope_kind  TEXT NOT NULL CHECK (scope_kind IN ('loop', 'agent', 'workspace', 'all')),
  scope_id    TEXT NOT NULL,
  window_name TEXT NOT NULL CHECK (window_name IN ('run', 'day', 'month')),
  body        TEXT NOT NULL,
  PRIMARY KEY (scope_kind, scope_id, window_name)
) STRICT, WITHOUT ROWID;

-- What was used in each window, and what runs that are not settled hold of it.
-- A row is there for every scope that spent something, capped or not: a cap
-- that is set at noon counts from midnight.
CREATE TABLE spending (
  scope_kind      TEXT NOT NULL CHECK (scope_kind IN ('loop', 'agent', 'workspace', 'all')),
  scope_id        TEXT NOT NULL,
  window_name     TEXT NOT NULL CHECK (window_name IN ('day', 'month')),
  start_ms        INTEGER NOT NULL,
  used_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (used_tokens >= 0),
  used_output     INTEGER NOT NULL DEFAULT 0 CHECK (used_output >= 0),
  used_micro_usd  INTEGER NOT NULL DEFAULT 0 CHECK (used_micro_usd >= 0),
  used_wall_ns    INTEGER NOT NULL DEFAULT 0 CHECK (used_wall_ns >= 0),
  used_iterations INTEGER NOT NULL DEFAULT 0 CHECK (used_iterations >= 0),
  used_items      INTEGER NOT NULL DEFAULT 0 CHECK (used_items >= 0),
  held_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (held_tokens >= 0),
  held_output     INTEGER NOT NULL DEFAULT 0 CHECK (held_output >= 0),
  held_micro_usd  INTEGER NOT NULL DEFAULT 0 CHECK (held_micro_usd >= 0),
  held_wall_ns    INTEGER NOT NULL DEFAULT 0 CHECK (held_wall_ns >= 0),
  held_iterations INTEGER NOT NULL DEFAULT 0 CHECK (held_iterations >= 0),
  held_items      INTEGER NOT NULL DEFAULT 0 CHECK (held_items >= 0),
  PRIMARY KEY (scope_kind, scope_id, window_name, start_ms)
) STRICT, WITHOUT ROWID;

-- A run's reservation, and after it is settled what was charged. scopes are the
-- rows of spending that it is in, whatever the time is when it ends.
CREATE TABLE reservations (
  run_id     TEXT PRIMARY KEY REFERENCES runs (id),
  amount     TEXT NOT NULL,
  used       TEXT NOT NULL DEFAULT '{}',
  scopes     TEXT NOT NULL,
  settled    INTEGER NOT NULL DEFAULT 0 CHECK (settled IN (0, 1)),
  created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holds (
  subject    TEXT PRIMARY KEY,
  until_ms   INTEGER NOT NULL DEFAULT 0,
  reason     TEXT NOT NULL DEFAULT '',
  detail     TEXT NOT NULL DEFAULT '',
  errors     INTEGER NOT NULL DEFAULT 0 CHECK (errors >= 0),
  updated_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
  id         TEXT PRIMARY KEY,
  handle     TEXT NOT NULL UNIQUE,
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  loop_id    TEXT NOT NULL REFERENCES loops (id),
  agent      TEXT NOT NULL,
  body       TEXT NOT NULL,
  updated_ms INTEGER NOT NULL,
  PRIMARY KEY (loop_id, agent)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE sessions;
DROP TABLE agents;
DROP TABLE holds;
DROP TABLE reservations;
DROP TABLE spending;
DROP TABLE budgets;
ALTER TABLE runs DROP COLUMN cost;
ALTER TABLE runs DROP COLUMN auth;
ALTER TABLE runs DROP COLUMN agent;
