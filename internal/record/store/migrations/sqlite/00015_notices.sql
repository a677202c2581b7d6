-- +goose Up
-- Where notices are sent. Secrets are never in the store: only the name of a variable or a file.
CREATE TABLE channels (
  name       TEXT PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('command', 'webhook', 'ntfy', 'desktop')),
  node_id    TEXT NOT NULL DEFAULT '', -- the only one that delivers; empty: any
  only_kind  TEXT NOT NULL DEFAULT '' CHECK (only_kind IN ('', 'needs_you', 'information')),
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;

-- What people are told: once while a matter lasts, and once when it is over.
CREATE TABLE notices (
  seq      INTEGER PRIMARY KEY AUTOINCREMENT,
  id       TEXT NOT NULL UNIQUE,
  key      TEXT NOT NULL,
  is_over  INTEGER NOT NULL DEFAULT 0 CHECK (is_over IN (0, 1)), -- it says that a matter is over
  lasts    INTEGER NOT NULL DEFAULT 0 CHECK (lasts IN (0, 1)), -- its matter has an end, which is told too
  body     TEXT NOT NULL,
  at_ms    INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL DEFAULT 0 -- when the matter was over; 0: it lasts
) STRICT;
CREATE INDEX notices_lasting ON notices (seq) WHERE is_over = 0 AND ended_ms = 0 AND lasts = 1;
CREATE UNIQUE INDEX notices_last ON notices (key) WHERE is_over = 0 AND ended_ms = 0;

-- A notice on its way through a channel. A try moves due_ms into the future, so that nobody
-- else tries meanwhile, and counts in tries: who finds another number there was too late.
CREATE TABLE deliveries (
  notice_id TEXT NOT NULL REFERENCES notices (id),
  channel   TEXT NOT NULL,
  state     TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'gave_up', 'dropped')),
  tries     INTEGER NOT NULL DEFAULT 0,
  due_ms    INTEGER NOT NULL DEFAULT 0,
  error     TEXT NOT NULL DEFAULT '',
  asked_ms  INTEGER NOT NULL,
  ended_ms  INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (notice_id, channel)
) STRICT;
CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE state = 'pending';
CREATE INDEX deliveries_channel ON deliveries (channel, asked_ms);

-- How far the feed was read for notices.
CREATE TABLE notice_cursor (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  cursor TEXT NOT NULL
) STRICT;

-- +goose Down
DROP TABLE notice_cursor;
DROP TABLE deliveries;
DROP TABLE notices;
DROP TABLE channels;
