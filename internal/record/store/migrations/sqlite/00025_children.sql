-- +goose Up
-- Loops that agents made inside of runs.
ALTER TABLE loops ADD COLUMN parent_id TEXT NOT NULL DEFAULT ''; -- the loop whose run made it; empty: people did
ALTER TABLE loops ADD COLUMN depth INTEGER NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 3);
ALTER TABLE loops ADD COLUMN made_by_run TEXT NOT NULL DEFAULT '';
ALTER TABLE loops ADD COLUMN pawl_tools TEXT NOT NULL DEFAULT '' CHECK (pawl_tools IN ('', 'read', 'post')); -- that its agent has inherited
ALTER TABLE loops ADD COLUMN lent TEXT NOT NULL DEFAULT ''; -- JSON: what of its budget was taken out of its parent's life; empty: nothing
CREATE INDEX loops_of_parent ON loops (parent_id, created_ms) WHERE parent_id <> '';

-- +goose Down
DROP INDEX loops_of_parent;
ALTER TABLE loops DROP COLUMN lent;
ALTER TABLE loops DROP COLUMN pawl_tools;
ALTER TABLE loops DROP COLUMN made_by_run;
ALTER TABLE loops DROP COLUMN depth;
ALTER TABLE loops DROP COLUMN parent_id;
