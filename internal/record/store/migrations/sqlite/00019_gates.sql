-- +goose Up
ALTER TABLE steps ADD COLUMN tried TEXT NOT NULL DEFAULT '{}'; -- JSON: what its attempts came to, for the rules by which it is given up
UPDATE steps SET tried = json_object('gates', json_object(streak_gate, json_object('failed', streak, 'tree', streak_tree, 'same_tree', streak)))
WHERE  streak > 0 AND streak_gate <> '';
ALTER TABLE steps ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN begun_ms INTEGER NOT NULL DEFAULT 0; -- 0: no iteration has begun
ALTER TABLE approvals ADD COLUMN changes INTEGER NOT NULL DEFAULT 0 CHECK (changes IN (0, 1)); -- rejected so that the step goes on with the note
ALTER TABLE steps DROP COLUMN streak_gate;
ALTER TABLE steps DROP COLUMN streak_tree;
ALTER TABLE steps DROP COLUMN streak;

-- +goose Down
ALTER TABLE steps ADD COLUMN streak_gate TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN streak_tree TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN streak INTEGER NOT NULL DEFAULT 0;
ALTER TABLE steps DROP COLUMN tried;
ALTER TABLE steps DROP COLUMN tokens;
ALTER TABLE steps DROP COLUMN begun_ms;
ALTER TABLE approvals DROP COLUMN changes;
