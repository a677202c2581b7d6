-- +goose Up
ALTER TABLE steps ADD COLUMN inputs TEXT NOT NULL DEFAULT ''; -- digest of what the step was last worked on

-- +goose Down
ALTER TABLE steps DROP COLUMN inputs;
