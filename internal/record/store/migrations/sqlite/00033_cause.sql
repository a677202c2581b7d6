-- +goose Up
-- What the outcome of a run is about, as data. Rows from before have none, and their words are read.
ALTER TABLE runs ADD COLUMN cause TEXT; -- JSON

-- +goose Down
ALTER TABLE runs DROP COLUMN cause;
