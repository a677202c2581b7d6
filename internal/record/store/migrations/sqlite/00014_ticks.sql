-- +goose Up
ALTER TABLE loops ADD COLUMN planned_ms INTEGER NOT NULL DEFAULT 0; -- what the cadence says of due_ms, which a jitter puts off
ALTER TABLE loops ADD COLUMN ticked_ms INTEGER NOT NULL DEFAULT 0;  -- the newest planned time that has a verdict in ticks
UPDATE loops SET planned_ms = due_ms;

-- The ledger of planned times: what became of each. A row is about one of them, or several in a row.
CREATE TABLE ticks (
  loop_id  TEXT NOT NULL REFERENCES loops (id),
  first_ms INTEGER NOT NULL,
  last_ms  INTEGER NOT NULL,
  n        INTEGER NOT NULL,
  verdict  TEXT NOT NULL CHECK (verdict IN ('ran', 'coalesced', 'skipped')),
  reason   TEXT NOT NULL DEFAULT '',
  run_id   TEXT NOT NULL DEFAULT '',
  at_ms    INTEGER NOT NULL,
  PRIMARY KEY (loop_id, first_ms)
) STRICT;
CREATE INDEX runs_queued ON runs (workspace_id) WHERE state = 'queued';

-- +goose Down
DROP INDEX runs_queued;
DROP TABLE ticks;
ALTER TABLE loops DROP COLUMN ticked_ms;
ALTER TABLE loops DROP COLUMN planned_ms;
