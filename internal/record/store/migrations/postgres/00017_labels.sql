-- +goose Up
ALTER TABLE runs ADD COLUMN node_labels TEXT NOT NULL DEFAULT ''; -- JSON list: a node must have them to execute it; empty: none

-- +goose Down
ALTER TABLE runs DROP COLUMN node_labels;
