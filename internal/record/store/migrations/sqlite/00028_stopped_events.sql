-- +goose Up
-- How many runs that had the event were stopped. The other runs that returned it could not act on it yet.
ALTER TABLE firing_events ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE firing_events DROP COLUMN stopped;
