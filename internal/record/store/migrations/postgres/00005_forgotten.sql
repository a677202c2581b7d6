-- +goose Up
ALTER TABLE loops ADD COLUMN forgotten BIGINT NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1)); -- not listed until it runs again

-- +goose Down
ALTER TABLE loops DROP COLUMN forgotten;
