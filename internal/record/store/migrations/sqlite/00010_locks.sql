-- +goose Up
ALTER TABLE runs ADD COLUMN lock_body TEXT NOT NULL DEFAULT '';           -- what it keeps others from touching while it is live; empty: nothing
ALTER TABLE runs ADD COLUMN contends_until_ms INTEGER NOT NULL DEFAULT 0; -- of a queued run: until then others give way to it
ALTER TABLE runs ADD COLUMN deferred_to TEXT NOT NULL DEFAULT '';         -- the run to which it deferred; empty: it did not
ALTER TABLE loops ADD COLUMN deferrals INTEGER NOT NULL DEFAULT 0;        -- since the loop last went
CREATE INDEX runs_locks ON runs (workspace_id) WHERE state <> 'ended' AND lock_body <> '';
CREATE INDEX workspaces_repository ON workspaces (repository);

-- +goose Down
DROP INDEX workspaces_repository;
DROP INDEX runs_locks;
ALTER TABLE loops DROP COLUMN deferrals;
ALTER TABLE runs DROP COLUMN deferred_to;
ALTER TABLE runs DROP COLUMN contends_until_ms;
ALTER TABLE runs DROP COLUMN lock_body;
