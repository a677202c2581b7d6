-- +goose Up
-- Of the lock of a run what decides whether it goes before others.
ALTER TABLE runs ADD COLUMN lock_priority BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN lock_bound BIGINT NOT NULL DEFAULT 0; -- after so many deferrals in a row it goes first
UPDATE runs SET lock_priority = CAST(lock_body::json ->> 'priority' AS BIGINT), lock_bound = CAST(lock_body::json ->> 'bound' AS BIGINT) WHERE lock_body <> '' AND state <> 'ended';
DROP INDEX runs_queued;
CREATE INDEX runs_queued ON runs (workspace_id, loop_id) WHERE state = 'queued';

-- Answers that a run may have to take up, and those that nobody gave.
DROP INDEX approvals_rejected;
CREATE INDEX approvals_heard ON approvals (answered_ms) WHERE state IN ('rejected', 'expired') AND kind = 'command';

-- +goose Down
DROP INDEX approvals_heard;
CREATE INDEX approvals_rejected ON approvals (answered_ms) WHERE state = 'rejected' AND kind = 'command';
DROP INDEX runs_queued;
CREATE INDEX runs_queued ON runs (workspace_id) WHERE state = 'queued';
ALTER TABLE runs DROP COLUMN lock_bound;
ALTER TABLE runs DROP COLUMN lock_priority;
