-- +goose Up
-- What the file of a loop says since pawl last looked at it. All are empty for a loop without a file.
ALTER TABLE loops ADD COLUMN source TEXT NOT NULL DEFAULT ''; -- digest of the file; empty: no file was seen
ALTER TABLE loops ADD COLUMN good TEXT NOT NULL DEFAULT ''; -- digest of the newest definition in it that can run
ALTER TABLE loops ADD COLUMN broken TEXT NOT NULL DEFAULT ''; -- why the file cannot run now; empty: it can
ALTER TABLE loops ADD COLUMN due_ms BIGINT NOT NULL DEFAULT 0; -- when the next run is planned for; 0: never by time
ALTER TABLE loops ADD COLUMN numbered BIGINT NOT NULL DEFAULT 1 CHECK (numbered IN (0, 1)); -- last_n takes into account what git and the loop's memory hold
CREATE INDEX loops_due ON loops (due_ms) WHERE due_ms > 0 AND broken = '';

-- +goose Down
DROP INDEX loops_due;
ALTER TABLE loops DROP COLUMN numbered;
ALTER TABLE loops DROP COLUMN due_ms;
ALTER TABLE loops DROP COLUMN broken;
ALTER TABLE loops DROP COLUMN good;
ALTER TABLE loops DROP COLUMN source;
