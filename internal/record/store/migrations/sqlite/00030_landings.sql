-- +goose Up
-- A yes to a landing stays valid until something has landed: 'landing' is between 'open' and 'approved'.
-- SQLite changes a CHECK only with a new table.
CREATE TABLE approvals_with_landings (
  id            TEXT PRIMARY KEY,
  loop_id       TEXT NOT NULL REFERENCES loops (id),
  run_id        TEXT NOT NULL REFERENCES runs (id),
  step_id       TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('open', 'landing', 'approved', 'rejected', 'void', 'expired')),
  body          TEXT NOT NULL,
  answered_by   TEXT NOT NULL DEFAULT '',
  note          TEXT NOT NULL DEFAULT '',
  expires_ms    INTEGER NOT NULL,
  created_ms    INTEGER NOT NULL,
  answered_ms   INTEGER NOT NULL DEFAULT 0,
  kind          TEXT NOT NULL DEFAULT 'command',
  answered_from TEXT NOT NULL DEFAULT '',
  changes       INTEGER NOT NULL DEFAULT 0 CHECK (changes IN (0, 1)),
  tries         INTEGER NOT NULL DEFAULT 0, -- of the landing, since a person asked for it
  tried_ms      INTEGER NOT NULL DEFAULT 0, -- when the last of them began
  failure       TEXT NOT NULL DEFAULT '' -- why the last of them did not land
) STRICT;
INSERT INTO approvals_with_landings (id, loop_id, run_id, step_id, state, body, answered_by, note, expires_ms, created_ms, answered_ms, kind, answered_from, changes)
SELECT id, loop_id, run_id, step_id, state, body, answered_by, note, expires_ms, created_ms, answered_ms, kind, answered_from, changes FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_with_landings RENAME TO approvals;
CREATE INDEX approvals_open ON approvals (loop_id, state);
CREATE INDEX approvals_expire ON approvals (expires_ms) WHERE state IN ('open', 'landing');
CREATE INDEX approvals_heard ON approvals (answered_ms) WHERE state IN ('rejected', 'expired') AND kind = 'command';

-- +goose Down
CREATE TABLE approvals_without_landings (
  id            TEXT PRIMARY KEY,
  loop_id       TEXT NOT NULL REFERENCES loops (id),
  run_id        TEXT NOT NULL REFERENCES runs (id),
  step_id       TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('open', 'approved', 'rejected', 'void', 'expired')),
  body          TEXT NOT NULL,
  answered_by   TEXT NOT NULL DEFAULT '',
  note          TEXT NOT NULL DEFAULT '',
  expires_ms    INTEGER NOT NULL,
  created_ms    INTEGER NOT NULL,
  answered_ms   INTEGER NOT NULL DEFAULT 0,
  kind          TEXT NOT NULL DEFAULT 'command',
  answered_from TEXT NOT NULL DEFAULT '',
  changes       INTEGER NOT NULL DEFAULT 0 CHECK (changes IN (0, 1))
) STRICT;
INSERT INTO approvals_without_landings
SELECT id, loop_id, run_id, step_id, CASE state WHEN 'landing' THEN 'approved' ELSE state END, body, answered_by, note, expires_ms, created_ms, answered_ms, kind, answered_from, changes
FROM approvals;
DROP TABLE approvals;
ALTER TABLE approvals_without_landings RENAME TO approvals;
CREATE INDEX approvals_open ON approvals (loop_id, state);
CREATE INDEX approvals_expire ON approvals (expires_ms) WHERE state = 'open';
CREATE INDEX approvals_heard ON approvals (answered_ms) WHERE state IN ('rejected', 'expired') AND kind = 'command';
