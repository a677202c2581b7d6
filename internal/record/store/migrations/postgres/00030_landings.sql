-- +goose Up
-- A yes to a landing stays valid until something has landed: 'landing' is between 'open' and 'approved'.
ALTER TABLE approvals DROP CONSTRAINT approvals_state_check;
ALTER TABLE approvals ADD CONSTRAINT approvals_state_check CHECK (state IN ('open', 'landing', 'approved', 'rejected', 'void', 'expired'));
ALTER TABLE approvals ADD COLUMN tries INTEGER NOT NULL DEFAULT 0; -- of the landing, since a person asked for it
ALTER TABLE approvals ADD COLUMN tried_ms BIGINT NOT NULL DEFAULT 0; -- when the last of them began
ALTER TABLE approvals ADD COLUMN failure TEXT NOT NULL DEFAULT ''; -- why the last of them did not land
DROP INDEX approvals_expire;
CREATE INDEX approvals_expire ON approvals (expires_ms) WHERE state IN ('open', 'landing');

-- +goose Down
UPDATE approvals SET state = 'approved' WHERE state = 'landing';
DROP INDEX approvals_expire;
CREATE INDEX approvals_expire ON approvals (expires_ms) WHERE state = 'open';
ALTER TABLE approvals DROP COLUMN failure;
ALTER TABLE approvals DROP COLUMN tried_ms;
ALTER TABLE approvals DROP COLUMN tries;
ALTER TABLE approvals DROP CONSTRAINT approvals_state_check;
ALTER TABLE approvals ADD CONSTRAINT approvals_state_check CHECK (state IN ('open', 'approved', 'rejected', 'void', 'expired'));
