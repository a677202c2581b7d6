-- +goose Up
CREATE TABLE workspaces (
  id         TEXT PRIMARY KEY,
  root       TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE loops (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name         TEXT NOT NULL,
  protocol     TEXT NOT NULL CHECK (protocol IN ('spine', 'spec', 'boot', 'tasks', 'board')),
  definition   TEXT NOT NULL DEFAULT '',
  paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  last_n       INTEGER NOT NULL DEFAULT 0,
  created_ms   INTEGER NOT NULL,
  UNIQUE (workspace_id, protocol, name)
) STRICT;

CREATE TABLE definitions (
  digest     TEXT PRIMARY KEY,
  loop_id    TEXT NOT NULL REFERENCES loops (id),
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
  id             TEXT PRIMARY KEY,
  loop_id        TEXT NOT NULL REFERENCES loops (id),
  n              INTEGER NOT NULL,
  run_key        TEXT NOT NULL UNIQUE,
  trigger_name   TEXT NOT NULL,
  request        TEXT NOT NULL DEFAULT '',
  state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'settling', 'ended')),
  phase          TEXT NOT NULL,
  outcome        TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'quiet', 'reported', 'proposed', 'landed', 'done', 'waiting_human',
                   'escalated', 'blocked', 'failed', 'gave_up', 'budget', 'refused', 'paused', 'interrupted')),
  reason         TEXT NOT NULL DEFAULT '',
  detail         TEXT NOT NULL DEFAULT '',
  summary        TEXT NOT NULL DEFAULT '',
  subject        TEXT NOT NULL DEFAULT '',
  definition     TEXT NOT NULL,
  overrides      TEXT NOT NULL DEFAULT '{}',
  base_commit    TEXT NOT NULL DEFAULT '',
  base_tree      TEXT NOT NULL DEFAULT '',
  branch         TEXT NOT NULL DEFAULT '',
  commit_hash    TEXT NOT NULL DEFAULT '',
  snapshot       TEXT NOT NULL DEFAULT '',
  approval       TEXT NOT NULL DEFAULT '',
  sandbox        TEXT NOT NULL DEFAULT '',
  readiness      INTEGER NOT NULL DEFAULT 100,
  usage          TEXT NOT NULL DEFAULT '{}',
  total_us       INTEGER NOT NULL DEFAULT 0,
  agent_us       INTEGER NOT NULL DEFAULT 0,
  gates_us       INTEGER NOT NULL DEFAULT 0,
  holder         TEXT NOT NULL DEFAULT '',
  fence          INTEGER NOT NULL DEFAULT 0,
  lease_until_ms INTEGER NOT NULL DEFAULT 0,
  cancel         TEXT NOT NULL DEFAULT '',
  created_ms     INTEGER NOT NULL,
  started_ms     INTEGER NOT NULL DEFAULT 0,
  ended_ms       INTEGER NOT NULL DEFAULT 0,
  UNIQUE (loop_id, n),
  CHECK ((state IN ('settling', 'ended')) = (outcome <> '')),
  CHECK ((state IN ('running', 'settling')) = (holder <> ''))
) STRICT;
CREATE UNIQUE INDEX runs_one_live ON runs (loop_id) WHERE state IN ('running', 'settling');

CREATE TABLE steps (
  id          TEXT PRIMARY KEY,
  loop_id     TEXT NOT NULL REFERENCES loops (id),
  step_key    TEXT NOT NULL,
  kind        TEXT NOT NULL CHECK (kind IN ('work', 'reply')),
  title       TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('open', 'claimed', 'blocked', 'failed', 'waiting_human', 'escalated', 'done', 'dropped')),
  attempts    INTEGER NOT NULL DEFAULT 0,
  streak_gate TEXT NOT NULL DEFAULT '',
  streak_tree TEXT NOT NULL DEFAULT '',
  streak      INTEGER NOT NULL DEFAULT 0,
  blocked_at  INTEGER NOT NULL DEFAULT 0,
  waits_for   TEXT NOT NULL DEFAULT '',
  snapshot    TEXT NOT NULL DEFAULT '',
  feedback    TEXT NOT NULL DEFAULT '',
  run_id      TEXT NOT NULL DEFAULT '',
  updated_ms  INTEGER NOT NULL,
  UNIQUE (loop_id, step_key),
  CHECK ((state = 'claimed') = (run_id <> ''))
) STRICT;

CREATE TABLE iterations (
  run_id     TEXT NOT NULL REFERENCES runs (id),
  n          INTEGER NOT NULL,
  step_id    TEXT NOT NULL,
  verdict    TEXT NOT NULL CHECK (verdict IN ('intended', 'pass', 'fail', 'pending')),
  tree       TEXT NOT NULL DEFAULT '',
  body       TEXT NOT NULL,
  PRIMARY KEY (run_id, n)
) STRICT;

CREATE TABLE turns (
  run_id  TEXT NOT NULL REFERENCES runs (id),
  n       INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (run_id, n)
) STRICT;

CREATE TABLE effects (
  run_id     TEXT NOT NULL REFERENCES runs (id),
  seq        INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  effect_key TEXT NOT NULL UNIQUE,
  args       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('requested', 'applying', 'done', 'failed', 'refused')),
  result     TEXT NOT NULL DEFAULT '{}',
  error      TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, seq)
) STRICT;

CREATE TABLE changes (
  run_id  TEXT NOT NULL REFERENCES runs (id),
  seq     INTEGER NOT NULL,
  loop_id TEXT NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) STRICT;
CREATE INDEX changes_pending ON changes (loop_id);

CREATE TABLE approvals (
  id          TEXT PRIMARY KEY,
  loop_id     TEXT NOT NULL REFERENCES loops (id),
  run_id      TEXT NOT NULL REFERENCES runs (id),
  step_id     TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'void', 'expired')),
  body        TEXT NOT NULL,
  answered_by TEXT NOT NULL DEFAULT '',
  note        TEXT NOT NULL DEFAULT '',
  expires_ms  INTEGER NOT NULL,
  created_ms  INTEGER NOT NULL,
  answered_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX approvals_open ON approvals (loop_id, state);

CREATE TABLE events (
  run_id TEXT NOT NULL, -- no foreign key: nine checks for every run, and only a RunTx writes here
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  phase  TEXT NOT NULL,
  kind   TEXT NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
  chain  TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  run_id TEXT NOT NULL DEFAULT '',
  body   TEXT NOT NULL,
  prev   TEXT NOT NULL,
  hash   TEXT NOT NULL,
  PRIMARY KEY (chain, seq)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE audit;
DROP TABLE events;
DROP TABLE approvals;
DROP TABLE changes;
DROP TABLE effects;
DROP TABLE turns;
DROP TABLE iterations;
DROP TABLE steps;
DROP TABLE runs;
DROP TABLE definitions;
DROP TABLE loops;
DROP TABLE workspaces;
