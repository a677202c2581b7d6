-- +goose Up
-- Who carries a call with a key out: others that make the same call wait for its answer.
ALTER TABLE keyed_calls ADD COLUMN holder TEXT NOT NULL DEFAULT ''; -- JSON, as in runs; empty: nobody carries it out
ALTER TABLE keyed_calls ADD COLUMN fence INTEGER NOT NULL DEFAULT 0; -- counts the claims: an older one keeps no answer
ALTER TABLE keyed_calls ADD COLUMN lease_until_ms INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE keyed_calls DROP COLUMN lease_until_ms;
ALTER TABLE keyed_calls DROP COLUMN fence;
ALTER TABLE keyed_calls DROP COLUMN holder;
