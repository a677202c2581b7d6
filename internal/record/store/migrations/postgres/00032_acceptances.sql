-- +goose Up
-- Definitions that were accepted: agents may fire a loop as long as its definition has one of these digests.
CREATE TABLE acceptances (
  loop_id     TEXT NOT NULL,
  digest      TEXT NOT NULL, -- of the definition with its defaults
  how         TEXT NOT NULL CHECK (how IN ('check', 'register', 'run', 'approve', 'edit', 'template')),
  accepted_by TEXT NOT NULL, -- JSON: who did that
  accepted_ms BIGINT NOT NULL,
  PRIMARY KEY (loop_id, digest)
);
-- What people have run before this table was there, and the definitions that only verbs change.
INSERT INTO acceptances (loop_id, digest, how, accepted_by, accepted_ms)
SELECT loop_id, definition, 'run', MIN(fired_by), MIN(created_ms) FROM runs
WHERE  fired_by::json ->> 'role' = 'human' AND definition <> '' GROUP BY loop_id, definition;
INSERT INTO acceptances (loop_id, digest, how, accepted_by, accepted_ms)
SELECT id, good, 'edit', '{}', created_ms FROM loops WHERE protocol IN ('spec', 'board') AND good <> ''
ON CONFLICT DO NOTHING;

-- +goose Down
DROP TABLE acceptances;
