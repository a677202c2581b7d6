-- Written by a test from migrations/sqlite, by make generate
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE workspaces (
  id         TEXT PRIMARY KEY,
  old_root       TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL
, repository TEXT NOT NULL DEFAULT '', memories INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE loops (
  id           TEXT PRIMARY KEY,
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  name         TEXT NOT NULL,
  protocol     TEXT NOT NULL,
  definition   TEXT NOT NULL DEFAULT '',
  paused       INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  last_n       INTEGER NOT NULL DEFAULT 0,
  created_ms   INTEGER NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1)), deferrals INTEGER NOT NULL DEFAULT 0, source TEXT NOT NULL DEFAULT '', good TEXT NOT NULL DEFAULT '', broken TEXT NOT NULL DEFAULT '', due_ms INTEGER NOT NULL DEFAULT 0, numbered INTEGER NOT NULL DEFAULT 1 CHECK (numbered IN (0, 1)), planned_ms INTEGER NOT NULL DEFAULT 0, ticked_ms INTEGER NOT NULL DEFAULT 0, listens TEXT NOT NULL DEFAULT '', parent_id TEXT NOT NULL DEFAULT '', depth INTEGER NOT NULL DEFAULT 0 CHECK (depth BETWEEN 0 AND 3), made_by_run TEXT NOT NULL DEFAULT '', pawl_tools TEXT NOT NULL DEFAULT '' CHECK (pawl_tools IN ('', 'read', 'post')), lent TEXT NOT NULL DEFAULT '',
  UNIQUE (workspace_id, protocol, name)
) STRICT;
CREATE TABLE definitions (
  digest     TEXT PRIMARY KEY,
  loop_id    TEXT NOT NULL REFERENCES loops (id),
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE runs (
  id             TEXT PRIMARY KEY,
  loop_id        TEXT NOT NULL REFERENCES loops (id),
  n              INTEGER NOT NULL,
  run_key        TEXT NOT NULL UNIQUE,
  trigger_name   TEXT NOT NULL,
  request        TEXT NOT NULL DEFAULT '',
  state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'settling', 'ended')),
  phase          TEXT NOT NULL,
  outcome        TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'quiet', 'reported', 'proposed', 'landed', 'done', 'waiting_human',
                   'escalated', 'blocked', 'failed', 'gave_up', 'budget', 'refused', 'paused', 'interrupted')),
  reason         TEXT NOT NULL DEFAULT '',
  detail         TEXT NOT NULL DEFAULT '',
  summary        TEXT NOT NULL DEFAULT '',
  subject        TEXT NOT NULL DEFAULT '',
  definition     TEXT NOT NULL,
  overrides      TEXT NOT NULL DEFAULT '{}',
  base_commit    TEXT NOT NULL DEFAULT '',
  base_tree      TEXT NOT NULL DEFAULT '',
  branch         TEXT NOT NULL DEFAULT '',
  commit_hash    TEXT NOT NULL DEFAULT '',
  snapshot       TEXT NOT NULL DEFAULT '',
  approval       TEXT NOT NULL DEFAULT '',
  sandbox        TEXT NOT NULL DEFAULT '',
  readiness      INTEGER NOT NULL DEFAULT 100,
  usage          TEXT NOT NULL DEFAULT '{}',
  total_us       INTEGER NOT NULL DEFAULT 0,
  agent_us       INTEGER NOT NULL DEFAULT 0,
  gates_us       INTEGER NOT NULL DEFAULT 0,
  holder         TEXT NOT NULL DEFAULT '',
  fence          INTEGER NOT NULL DEFAULT 0,
  lease_until_ms INTEGER NOT NULL DEFAULT 0,
  cancel         TEXT NOT NULL DEFAULT '',
  created_ms     INTEGER NOT NULL,
  started_ms     INTEGER NOT NULL DEFAULT 0,
  ended_ms       INTEGER NOT NULL DEFAULT 0, agent TEXT NOT NULL DEFAULT '', auth TEXT NOT NULL DEFAULT '', cost TEXT NOT NULL DEFAULT '{}', workspace_id TEXT NOT NULL DEFAULT '', seq INTEGER NOT NULL DEFAULT 0, planned_ms INTEGER, event TEXT NOT NULL DEFAULT '', fired_by TEXT NOT NULL DEFAULT '{}', node_id TEXT NOT NULL DEFAULT '', owed INTEGER NOT NULL DEFAULT 0 CHECK (owed IN (0, 1)), stopped_ms INTEGER NOT NULL DEFAULT 0, lock_body TEXT NOT NULL DEFAULT '', contends_until_ms INTEGER NOT NULL DEFAULT 0, deferred_to TEXT NOT NULL DEFAULT '', node_labels TEXT NOT NULL DEFAULT '', lock_priority INTEGER NOT NULL DEFAULT 0, lock_bound INTEGER NOT NULL DEFAULT 0, cause TEXT,
  UNIQUE (loop_id, n),
  CHECK ((state IN ('settling', 'ended')) = (outcome <> '')),
  CHECK ((state IN ('running', 'settling')) = (holder <> ''))
) STRICT;
CREATE UNIQUE INDEX runs_one_live ON runs (loop_id) WHERE state IN ('running', 'settling');
CREATE TABLE steps (
  id          TEXT PRIMARY KEY,
  loop_id     TEXT NOT NULL REFERENCES loops (id),
  step_key    TEXT NOT NULL,
  kind        TEXT NOT NULL CHECK (kind IN ('work', 'reply')),
  title       TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('open', 'claimed', 'blocked', 'failed', 'waiting_human', 'escalated', 'done', 'dropped')),
  attempts    INTEGER NOT NULL DEFAULT 0,
  blocked_at  INTEGER NOT NULL DEFAULT 0,
  waits_for   TEXT NOT NULL DEFAULT '',
  snapshot    TEXT NOT NULL DEFAULT '',
  feedback    TEXT NOT NULL DEFAULT '',
  run_id      TEXT NOT NULL DEFAULT '',
  updated_ms  INTEGER NOT NULL, inputs TEXT NOT NULL DEFAULT '', tried TEXT NOT NULL DEFAULT '{}', tokens INTEGER NOT NULL DEFAULT 0, begun_ms INTEGER NOT NULL DEFAULT 0, written_by TEXT NOT NULL DEFAULT '',
  UNIQUE (loop_id, step_key),
  CHECK ((state = 'claimed') = (run_id <> ''))
) STRICT;
CREATE TABLE iterations (
  run_id     TEXT NOT NULL REFERENCES runs (id),
  n          INTEGER NOT NULL,
  step_id    TEXT NOT NULL,
  verdict    TEXT NOT NULL CHECK (verdict IN ('intended', 'pass', 'fail', 'pending')),
  tree       TEXT NOT NULL DEFAULT '',
  body       TEXT NOT NULL,
  PRIMARY KEY (run_id, n)
) STRICT;
CREATE TABLE turns (
  run_id  TEXT NOT NULL REFERENCES runs (id),
  n       INTEGER NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (run_id, n)
) STRICT;
CREATE TABLE effects (
  run_id     TEXT NOT NULL REFERENCES runs (id),
  seq        INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  effect_key TEXT NOT NULL UNIQUE,
  args       TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('requested', 'applying', 'done', 'failed', 'refused')),
  result     TEXT NOT NULL DEFAULT '{}',
  error      TEXT NOT NULL DEFAULT '', loop_id TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (run_id, seq)
) STRICT;
CREATE TABLE changes (
  run_id  TEXT NOT NULL REFERENCES runs (id),
  seq     INTEGER NOT NULL,
  loop_id TEXT NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) STRICT;
CREATE INDEX changes_pending ON changes (loop_id);
CREATE TABLE events (
  run_id TEXT NOT NULL, -- no foreign key: nine checks for every run, and only a RunTx writes here
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  phase  TEXT NOT NULL,
  kind   TEXT NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit (
  chain  TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  at_ms  INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  run_id TEXT NOT NULL DEFAULT '',
  body   TEXT NOT NULL,
  prev   TEXT NOT NULL,
  hash   TEXT NOT NULL,
  PRIMARY KEY (chain, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE chains (
  id    TEXT PRIMARY KEY,
  links INTEGER NOT NULL,
  head  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE test_counts (
  tree       TEXT NOT NULL,
  gate       TEXT NOT NULL,
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (tree, gate)
) STRICT, WITHOUT ROWID;
CREATE TABLE budgets (
  scope_kind  TEXT NOT NULL CHECK (scope_kind IN ('loop', 'agent', 'workspace', 'all')),
  scope_id    TEXT NOT NULL,
  window_name TEXT NOT NULL CHECK (window_name IN ('run', 'day', 'month')),
  body        TEXT NOT NULL,
  PRIMARY KEY (scope_kind, scope_id, window_name)
) STRICT, WITHOUT ROWID;
CREATE TABLE spending (
  scope_kind      TEXT NOT NULL CHECK (scope_kind IN ('loop', 'agent', 'workspace', 'all')),
  scope_id        TEXT NOT NULL,
  window_name     TEXT NOT NULL CHECK (window_name IN ('day', 'month')),
  start_ms        INTEGER NOT NULL,
  used_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (used_tokens >= 0),
  used_output     INTEGER NOT NULL DEFAULT 0 CHECK (used_output >= 0),
  used_micro_usd  INTEGER NOT NULL DEFAULT 0 CHECK (used_micro_usd >= 0),
  used_wall_ns    INTEGER NOT NULL DEFAULT 0 CHECK (used_wall_ns >= 0),
  used_iterations INTEGER NOT NULL DEFAULT 0 CHECK (used_iterations >= 0),
  used_items      INTEGER NOT NULL DEFAULT 0 CHECK (used_items >= 0),
  held_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (held_tokens >= 0),
  held_output     INTEGER NOT NULL DEFAULT 0 CHECK (held_output >= 0),
  held_micro_usd  INTEGER NOT NULL DEFAULT 0 CHECK (held_micro_usd >= 0),
  held_wall_ns    INTEGER NOT NULL DEFAULT 0 CHECK (held_wall_ns >= 0),
  held_iterations INTEGER NOT NULL DEFAULT 0 CHECK (held_iterations >= 0),
  held_items      INTEGER NOT NULL DEFAULT 0 CHECK (held_items >= 0),
  PRIMARY KEY (scope_kind, scope_id, window_name, start_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
  run_id     TEXT PRIMARY KEY REFERENCES runs (id),
  amount     TEXT NOT NULL,
  used       TEXT NOT NULL DEFAULT '{}',
  scopes     TEXT NOT NULL,
  settled    INTEGER NOT NULL DEFAULT 0 CHECK (settled IN (0, 1)),
  created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE holds (
  subject    TEXT PRIMARY KEY,
  until_ms   INTEGER NOT NULL DEFAULT 0,
  reason     TEXT NOT NULL DEFAULT '',
  detail     TEXT NOT NULL DEFAULT '',
  errors     INTEGER NOT NULL DEFAULT 0 CHECK (errors >= 0),
  updated_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE agents (
  id         TEXT PRIMARY KEY,
  handle     TEXT NOT NULL UNIQUE,
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE sessions (
  loop_id    TEXT NOT NULL REFERENCES loops (id),
  agent      TEXT NOT NULL,
  body       TEXT NOT NULL,
  updated_ms INTEGER NOT NULL,
  PRIMARY KEY (loop_id, agent)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX runs_in_order ON runs (seq);
CREATE INDEX runs_newest ON runs (workspace_id, seq);
CREATE INDEX runs_unfinished ON runs (workspace_id) WHERE state <> 'ended';
CREATE INDEX loops_name ON loops (workspace_id, name, protocol);
CREATE TABLE feed (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms   INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  id      TEXT NOT NULL,
  loop_id TEXT NOT NULL DEFAULT '',
  state   TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE nodes (
  id             TEXT PRIMARY KEY,
  name           TEXT NOT NULL UNIQUE,
  boot           TEXT NOT NULL DEFAULT '',
  labels         TEXT NOT NULL DEFAULT '[]',
  capabilities   TEXT NOT NULL DEFAULT '[]',
  version        TEXT NOT NULL DEFAULT '',
  schema_version INTEGER NOT NULL DEFAULT 0,
  skew_ms        INTEGER NOT NULL DEFAULT 0, -- its clock minus that of the database, when it was last seen
  created_ms     INTEGER NOT NULL,
  seen_ms        INTEGER NOT NULL
) STRICT;
CREATE TABLE placements (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  node_id      TEXT NOT NULL REFERENCES nodes (id),
  path         TEXT NOT NULL,
  remote       TEXT NOT NULL DEFAULT '', -- address of origin, without a password
  created_ms   INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, node_id)
) STRICT;
CREATE UNIQUE INDEX placements_path ON placements (node_id, path);
CREATE TABLE git_configs (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  node_id      TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  hazards      TEXT NOT NULL,
  PRIMARY KEY (workspace_id, node_id)
) STRICT;
CREATE INDEX runs_owed ON runs (node_id, workspace_id) WHERE owed = 1;
CREATE TABLE switches (
  id     TEXT PRIMARY KEY, -- of the workspace; empty for the store
  actor  TEXT NOT NULL, -- who set it
  why    TEXT NOT NULL DEFAULT '',
  set_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_locks ON runs (workspace_id) WHERE state <> 'ended' AND lock_body <> '';
CREATE INDEX workspaces_repository ON workspaces (repository);
CREATE TABLE seats (
  loop_id  TEXT PRIMARY KEY REFERENCES loops (id),
  run_id   TEXT NOT NULL REFERENCES runs (id),
  agent    TEXT NOT NULL, -- handle
  account  TEXT NOT NULL, -- '': none that pawl knows of
  login    TEXT NOT NULL, -- file of a login that one run has at a time; '': none
  since_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX seats_agent ON seats (agent);
CREATE INDEX seats_account ON seats (account);
CREATE TABLE seat_locks (
  subject TEXT PRIMARY KEY
) STRICT;
CREATE INDEX loops_due ON loops (due_ms) WHERE due_ms > 0 AND broken = '';
CREATE TABLE ticks (
  loop_id  TEXT NOT NULL REFERENCES loops (id),
  first_ms INTEGER NOT NULL,
  last_ms  INTEGER NOT NULL,
  n        INTEGER NOT NULL,
  verdict  TEXT NOT NULL CHECK (verdict IN ('ran', 'coalesced', 'skipped')),
  reason   TEXT NOT NULL DEFAULT '',
  run_id   TEXT NOT NULL DEFAULT '',
  at_ms    INTEGER NOT NULL,
  PRIMARY KEY (loop_id, first_ms)
) STRICT;
CREATE TABLE channels (
  name       TEXT PRIMARY KEY,
  kind       TEXT NOT NULL CHECK (kind IN ('command', 'webhook', 'ntfy', 'desktop')),
  node_id    TEXT NOT NULL DEFAULT '', -- the only one that delivers; empty: any
  only_kind  TEXT NOT NULL DEFAULT '' CHECK (only_kind IN ('', 'needs_you', 'information')),
  body       TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT;
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
CREATE TABLE notice_cursor (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  cursor TEXT NOT NULL
) STRICT;
CREATE INDEX loops_listening ON loops (workspace_id) WHERE listens <> '';
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
  returned      INTEGER NOT NULL DEFAULT 0, stopped INTEGER NOT NULL DEFAULT 0, -- runs that had it and were stopped before they could act on it
  PRIMARY KEY (loop_id, id),
  CHECK ((verdict = 'waits') = (run_id = ''))
) STRICT;
CREATE INDEX firing_events_waiting ON firing_events (loop_id, first_ms) WHERE verdict = 'waits';
CREATE INDEX firing_events_run ON firing_events (run_id) WHERE run_id <> '';
CREATE INDEX firing_events_decided ON firing_events (last_ms) WHERE verdict <> 'waits';
CREATE TABLE event_sources (
  loop_id TEXT NOT NULL REFERENCES loops (id),
  node_id TEXT NOT NULL,
  source  TEXT NOT NULL,
  state   TEXT NOT NULL,
  PRIMARY KEY (loop_id, node_id, source)
) STRICT;
CREATE TABLE event_cursors (
  node_id TEXT PRIMARY KEY,
  cursor  TEXT NOT NULL
) STRICT;
CREATE INDEX runs_queued ON runs (workspace_id, loop_id) WHERE state = 'queued';
CREATE TABLE specs (
  id           TEXT PRIMARY KEY, -- lp_ and 7 characters, the name of its loop
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  loop_id      TEXT NOT NULL UNIQUE REFERENCES loops (id),
  revision     INTEGER NOT NULL,
  goal         TEXT NOT NULL,
  agent        TEXT NOT NULL,
  parent_id    TEXT NOT NULL DEFAULT '', -- of the spec that spawned it
  board_entry  TEXT NOT NULL DEFAULT '', -- that it shares with others
  body         TEXT NOT NULL,            -- JSON of the newest revision
  rubric       TEXT NOT NULL DEFAULT '', -- JSON: what reviewers judge by; empty: nothing has been judged
  created_ms   INTEGER NOT NULL,
  updated_ms   INTEGER NOT NULL
) STRICT;
CREATE INDEX specs_in ON specs (workspace_id, updated_ms, id);
CREATE INDEX specs_of_entry ON specs (workspace_id, board_entry) WHERE board_entry <> '';
CREATE TABLE spec_revisions (
  spec_id  TEXT NOT NULL REFERENCES specs (id),
  revision INTEGER NOT NULL,
  body     TEXT NOT NULL,
  made_by  TEXT NOT NULL,
  at_ms    INTEGER NOT NULL,
  PRIMARY KEY (spec_id, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE memories (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  n            INTEGER NOT NULL CHECK (n > 0),
  digest       TEXT NOT NULL, -- of its text and of the loop that it is for
  loop_id      TEXT NOT NULL, -- the only loop that it is for; empty: every loop
  proposed_by  TEXT NOT NULL, -- the loop whose run proposed it; empty: none
  state        TEXT NOT NULL CHECK (state IN ('proposed', 'active', 'forgotten')),
  body         TEXT NOT NULL, -- JSON
  PRIMARY KEY (workspace_id, n),
  UNIQUE (workspace_id, digest)
) STRICT;
CREATE INDEX memories_active ON memories (workspace_id, n) WHERE state = 'active';
CREATE INDEX memories_proposed ON memories (workspace_id, proposed_by) WHERE state = 'proposed';
CREATE TABLE messages (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  recipient    TEXT NOT NULL, -- name of a loop, or of a person
  message_key  TEXT NOT NULL, -- the same one is delivered once
  sender       TEXT NOT NULL, -- name of a loop
  topic        TEXT NOT NULL, -- the matter that it is about; empty: none
  state        TEXT NOT NULL CHECK (state IN ('waits', 'taken', 'told')), -- told: to a person
  taken_by     TEXT NOT NULL DEFAULT '', -- the run that took it into the memory of its loop
  body         TEXT NOT NULL, -- JSON
  sent_ms      INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, recipient, message_key)
) STRICT;
CREATE INDEX messages_waiting ON messages (workspace_id, recipient, sent_ms) WHERE state = 'waits';
CREATE INDEX messages_topic ON messages (workspace_id, sender, sent_ms) WHERE topic <> '';
CREATE INDEX messages_told ON messages (workspace_id, sent_ms) WHERE state = 'told';
CREATE TABLE protocol_rows (
  workspace_id TEXT NOT NULL REFERENCES workspaces (id),
  row_set      TEXT NOT NULL, -- rows of one sort, such as tasks
  row_key      TEXT NOT NULL,
  scope        TEXT NOT NULL, -- what the row belongs to, such as a board; empty: nothing
  state        TEXT NOT NULL,
  owner        TEXT NOT NULL, -- who has it; empty: nobody
  run_id       TEXT NOT NULL, -- the run that holds it as long as it is live; empty: none
  version      INTEGER NOT NULL CHECK (version > 0),
  body         TEXT NOT NULL, -- JSON
  made_ms      INTEGER NOT NULL,
  moved_ms     INTEGER NOT NULL, -- when it was written last
  PRIMARY KEY (workspace_id, row_set, row_key)
) STRICT;
CREATE INDEX protocol_rows_scope ON protocol_rows (workspace_id, row_set, scope, made_ms, row_key);
CREATE INDEX protocol_rows_state ON protocol_rows (workspace_id, row_set, scope, state, made_ms, row_key);
CREATE INDEX protocol_rows_owner ON protocol_rows (workspace_id, row_set, owner, made_ms, row_key) WHERE owner <> '';
CREATE INDEX messages_about ON messages (workspace_id, topic) WHERE topic <> '';
CREATE TABLE keyed_calls (
  call_key TEXT PRIMARY KEY, -- digest of who called, where, and the key
  verb     TEXT NOT NULL,
  request  TEXT NOT NULL, -- digest of what was asked
  answer   TEXT NOT NULL DEFAULT '', -- JSON; empty: it is not known yet
  made_ms  INTEGER NOT NULL
, holder TEXT NOT NULL DEFAULT '', fence INTEGER NOT NULL DEFAULT 0, lease_until_ms INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX keyed_calls_made ON keyed_calls (made_ms);
CREATE INDEX loops_of_parent ON loops (parent_id, created_ms) WHERE parent_id <> '';
CREATE INDEX effects_done ON effects (loop_id, kind) WHERE state = 'done';
CREATE INDEX loops_broken ON loops (due_ms) WHERE due_ms > 0 AND broken <> '';
CREATE TABLE "approvals" (
  id            TEXT PRIMARY KEY,
  loop_id       TEXT NOT NULL REFERENCES loops (id),
  run_id        TEXT NOT NULL REFERENCES runs (id),
  step_id       TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('open', 'landing', 'approved', 'rejected', 'void', 'expired')),
  body          TEXT NOT NULL,
  answered_by   TEXT NOT NULL DEFAULT '',
  note          TEXT NOT NULL DEFAULT '',
  expires_ms    INTEGER NOT NULL,
  created_ms    INTEGER NOT NULL,
  answered_ms   INTEGER NOT NULL DEFAULT 0,
  kind          TEXT NOT NULL DEFAULT 'command',
  answered_from TEXT NOT NULL DEFAULT '',
  changes       INTEGER NOT NULL DEFAULT 0 CHECK (changes IN (0, 1)),
  tries         INTEGER NOT NULL DEFAULT 0, -- of the landing, since a person asked for it
  tried_ms      INTEGER NOT NULL DEFAULT 0, -- when the last of them began
  failure       TEXT NOT NULL DEFAULT '' -- why the last of them did not land
) STRICT;
CREATE INDEX approvals_open ON approvals (loop_id, state);
CREATE INDEX approvals_expire ON approvals (expires_ms) WHERE state IN ('open', 'landing');
CREATE INDEX approvals_heard ON approvals (answered_ms) WHERE state IN ('rejected', 'expired') AND kind = 'command';
CREATE TABLE acceptances (
  loop_id     TEXT NOT NULL,
  digest      TEXT NOT NULL, -- of the definition with its defaults
  how         TEXT NOT NULL CHECK (how IN ('check', 'register', 'run', 'approve', 'edit', 'template')),
  accepted_by TEXT NOT NULL, -- JSON: who did that
  accepted_ms INTEGER NOT NULL,
  PRIMARY KEY (loop_id, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (2, 1, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (3, 2, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (4, 3, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (5, 4, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (6, 5, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (7, 6, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (8, 7, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (9, 8, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (10, 9, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (11, 10, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (12, 11, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (13, 13, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (14, 14, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (15, 15, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (16, 16, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (17, 17, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (18, 18, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (19, 19, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (20, 20, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (21, 21, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (22, 22, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (23, 23, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (24, 24, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (25, 25, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (26, 26, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (27, 27, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (28, 28, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (29, 29, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (30, 30, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (31, 31, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (32, 32, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (33, 33, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (34, 34, 1);
