-- +goose Up
-- What the outcome of a run is about, as data. Older rows have no cause; it is read from their words.
ALTER TABLE runs ADD COLUMN cause TEXT; -- JSON

-- +goose Down
ALTER TABLE runs DROP COLUMN cause;
