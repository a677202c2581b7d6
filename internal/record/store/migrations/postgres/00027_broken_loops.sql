-- +goose Up
-- The loops that should have fired are found without reading all loops of the store, also those whose definition broke.
CREATE INDEX loops_broken ON loops (due_ms) WHERE due_ms > 0 AND broken <> '';

-- +goose Down
DROP INDEX loops_broken;
