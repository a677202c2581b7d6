-- +goose Up
-- The formats are those of the program: a row does not list them.
ALTER TABLE loops DROP CONSTRAINT loops_protocol_check;

-- +goose Down
ALTER TABLE loops ADD CONSTRAINT loops_protocol_check CHECK (protocol IN ('spine', 'spec', 'boot', 'tasks', 'board'));
