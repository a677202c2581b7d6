-- +goose Up
-- What the live run of a loop acts with. A row stays when its run has ended, and is then
-- that of the next: only the seat of a run that is live, with a lease that lasts, is taken.
CREATE TABLE seats (
  loop_id  TEXT PRIMARY KEY REFERENCES loops (id),
  run_id   TEXT NOT NULL REFERENCES runs (id),
  agent    TEXT NOT NULL, -- handle
  account  TEXT NOT NULL, -- '': none that pawl knows of
  login    TEXT NOT NULL, -- file of a login that one run has at a time; '': none
  since_ms BIGINT NOT NULL
);
CREATE INDEX seats_agent ON seats (agent);
CREATE INDEX seats_account ON seats (account);

-- An agent or an account that has a limit: whoever wants a seat of it locks its row.
CREATE TABLE seat_locks (
  subject TEXT PRIMARY KEY
);

-- +goose Down
DROP TABLE seat_locks;
DROP TABLE seats;
