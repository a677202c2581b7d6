-- +goose Up
CREATE SEQUENCE runs_seq;
ALTER TABLE runs ADD COLUMN workspace_id TEXT NOT NULL DEFAULT ''; -- of its loop
ALTER TABLE runs ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;         -- order of firing, of all runs of the store
ALTER TABLE runs ADD COLUMN planned_ms BIGINT;                     -- when a trigger planned the run for; null: nobody planned it
ALTER TABLE runs ADD COLUMN event TEXT NOT NULL DEFAULT '';        -- what triggered it
ALTER TABLE runs ADD COLUMN fired_by TEXT NOT NULL DEFAULT '{}';   -- who asked for it

-- The clock may have been set back between two runs of a loop: their numbers say which came first.
UPDATE runs SET workspace_id = o.workspace_id, seq = o.seq
FROM (
  SELECT c.id, c.workspace_id, row_number() OVER (ORDER BY c.came_ms, c.loop_id, c.n) AS seq
  FROM (
    SELECT r.id, r.loop_id, r.n, l.workspace_id, max(r.created_ms) OVER (PARTITION BY r.loop_id ORDER BY r.n) AS came_ms
    FROM   runs r JOIN loops l ON l.id = r.loop_id
  ) c
) o
WHERE runs.id = o.id;
SELECT setval('runs_seq', (SELECT coalesce(max(seq), 0) + 1 FROM runs), false);

-- SQLite compares texts byte by byte; so does PostgreSQL then.
ALTER TABLE loops ALTER COLUMN name TYPE TEXT COLLATE "C", ALTER COLUMN protocol TYPE TEXT COLLATE "C";

CREATE UNIQUE INDEX runs_in_order ON runs (seq);
CREATE INDEX runs_newest ON runs (workspace_id, seq);
CREATE INDEX runs_unfinished ON runs (workspace_id) WHERE state <> 'ended';
CREATE INDEX loops_name ON loops (workspace_id, name, protocol);
CREATE INDEX approvals_expire ON approvals (expires_ms) WHERE state = 'open';

-- +goose Down
DROP INDEX approvals_expire;
DROP INDEX loops_name;
DROP INDEX runs_unfinished;
DROP INDEX runs_newest;
DROP INDEX runs_in_order;
ALTER TABLE loops ALTER COLUMN name TYPE TEXT COLLATE "default", ALTER COLUMN protocol TYPE TEXT COLLATE "default";
ALTER TABLE runs DROP COLUMN fired_by;
ALTER TABLE runs DROP COLUMN event;
ALTER TABLE runs DROP COLUMN planned_ms;
ALTER TABLE runs DROP COLUMN seq;
ALTER TABLE runs DROP COLUMN workspace_id;
DROP SEQUENCE runs_seq;
