-- +goose Up
ALTER TABLE loops ADD COLUMN listens TEXT NOT NULL DEFAULT ''; -- the key on of the newest definition in its file, a JSON list; empty: no event fires the loop
CREATE INDEX loops_listening ON loops (workspace_id) WHERE listens <> '';

-- The ledger of events that fire loops: what became of each. Those of one source that happen before a run
-- can begin are one row.
CREATE TABLE firing_events (
  loop_id       TEXT NOT NULL REFERENCES loops (id),
  id            TEXT NOT NULL,
  source        TEXT NOT NULL,
  payload       TEXT NOT NULL DEFAULT '',
  times         INTEGER NOT NULL DEFAULT 1,
  first_ms      INTEGER NOT NULL,
  last_ms       INTEGER NOT NULL,
  not_before_ms INTEGER NOT NULL DEFAULT 0,
  verdict       TEXT NOT NULL DEFAULT 'waits' CHECK (verdict IN ('waits', 'ran', 'coalesced')),
  reason        TEXT NOT NULL DEFAULT '',
  run_id        TEXT NOT NULL DEFAULT '',
  returned      INTEGER NOT NULL DEFAULT 0, -- runs that had it and were stopped before they could act on it
  PRIMARY KEY (loop_id, id),
  CHECK ((verdict = 'waits') = (run_id = ''))
) STRICT;
CREATE INDEX firing_events_waiting ON firing_events (loop_id, first_ms) WHERE verdict = 'waits';
CREATE INDEX firing_events_run ON firing_events (run_id) WHERE run_id <> '';
CREATE INDEX firing_events_decided ON firing_events (last_ms) WHERE verdict <> 'waits';

-- How a source looked on a node when it was last looked at.
CREATE TABLE event_sources (
  loop_id TEXT NOT NULL REFERENCES loops (id),
  node_id TEXT NOT NULL,
  source  TEXT NOT NULL,
  state   TEXT NOT NULL,
  PRIMARY KEY (loop_id, node_id, source)
) STRICT;

-- How far a node has read the feed for the ends of runs.
CREATE TABLE event_cursors (
  node_id TEXT PRIMARY KEY,
  cursor  TEXT NOT NULL
) STRICT;

-- Answers that a run may have to take up.
CREATE INDEX approvals_rejected ON approvals (answered_ms) WHERE state = 'rejected' AND kind = 'command';

-- +goose Down
DROP INDEX approvals_rejected;
DROP TABLE event_cursors;
DROP TABLE event_sources;
DROP TABLE firing_events;
DROP INDEX loops_listening;
ALTER TABLE loops DROP COLUMN listens;
