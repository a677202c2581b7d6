-- +goose Up
-- The effects of one kind that a loop has carried out are found without reading all of its runs.
ALTER TABLE effects ADD COLUMN loop_id TEXT NOT NULL DEFAULT '';
UPDATE effects SET loop_id = (SELECT r.loop_id FROM runs r WHERE r.id = effects.run_id);
CREATE INDEX effects_done ON effects (loop_id, kind) WHERE state = 'done';

-- +goose Down
DROP INDEX effects_done;
ALTER TABLE effects DROP COLUMN loop_id;
