-- +goose Up
-- What changed. Numbers are not committed in their order: a reader goes by
-- transaction and then by number, up to the oldest transaction that is not over.
CREATE TABLE feed (
  xact    XID8 NOT NULL DEFAULT pg_current_xact_id(),
  seq     BIGINT GENERATED ALWAYS AS IDENTITY,
  at_ms   BIGINT NOT NULL,
  kind    TEXT NOT NULL,
  id      TEXT NOT NULL,
  loop_id TEXT NOT NULL DEFAULT '',
  state   TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (xact, seq)
);

-- +goose Down
DROP TABLE feed;
