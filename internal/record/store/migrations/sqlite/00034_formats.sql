-- +goose Up
-- The formats are those of the program: a row does not list them. SQLite changes a CHECK only with a
-- new table or, as its documentation allows for one that is taken away, in the text of the table.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (protocol IN (''spine'', ''spec'', ''boot'', ''tasks'', ''board''))', '')
WHERE type = 'table' AND name = 'loops';
PRAGMA writable_schema = RESET;
-- Other connections read the tables anew.
CREATE INDEX formats_changed ON workspaces (id);
DROP INDEX formats_changed;

-- +goose Down
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET    sql = replace(sql, 'protocol     TEXT NOT NULL', 'protocol     TEXT NOT NULL CHECK (protocol IN (''spine'', ''spec'', ''boot'', ''tasks'', ''board''))')
WHERE  type = 'table' AND name = 'loops';
PRAGMA writable_schema = RESET;
CREATE INDEX formats_changed ON workspaces (id);
DROP INDEX formats_changed;
