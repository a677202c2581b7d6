-- +goose Up
-- The role of who wrote what is to be done in a step, if it was no person.
ALTER TABLE steps ADD COLUMN written_by TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE steps DROP COLUMN written_by;
