-- +goose Up
ALTER TABLE workspaces ADD COLUMN git_fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN git_hazards TEXT NOT NULL DEFAULT '';

ALTER TABLE approvals ADD COLUMN kind TEXT NOT NULL DEFAULT 'command'; -- until now nothing else was asked for
ALTER TABLE approvals ADD COLUMN answered_from TEXT NOT NULL DEFAULT '';

-- How long each chain is and where it ends, apart from its entries: a chain
-- whose last entries were removed is whole in itself.
CREATE TABLE chains (
  id    TEXT PRIMARY KEY,
  links BIGINT NOT NULL,
  head  TEXT NOT NULL
);
INSERT INTO chains (id, links, head)
SELECT a.chain, a.seq, a.hash FROM audit a
WHERE  a.seq = (SELECT max(seq) FROM audit b WHERE b.chain = a.chain);

CREATE TABLE test_counts (
  tree       TEXT NOT NULL,
  gate       TEXT NOT NULL,
  body       TEXT NOT NULL,
  created_ms BIGINT NOT NULL,
  PRIMARY KEY (tree, gate)
);

-- +goose Down
DROP TABLE test_counts;
DROP TABLE chains;
ALTER TABLE approvals DROP COLUMN answered_from;
ALTER TABLE approvals DROP COLUMN kind;
ALTER TABLE workspaces DROP COLUMN git_hazards;
ALTER TABLE workspaces DROP COLUMN git_fingerprint;
