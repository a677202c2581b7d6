package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	// insertAgent leaves every conflict to the update: PostgreSQL looks at each
	// unique column, and two that commit together may meet at either.
	insertAgent = `INSERT INTO agents (id, handle, body, created_ms, updated_ms) VALUES ($1, $2, $3, $4, $4) ON CONFLICT DO NOTHING`
	// changeAgent changes no row of another agent: a handle that is taken matches none.
	changeAgent = `
UPDATE agents SET handle = $1, body = $2, updated_ms = $3
WHERE  id = $4 AND NOT EXISTS (SELECT 1 FROM agents WHERE handle = $1 AND id <> $4)`
)

// SaveAgent creates or changes an entry of the roster by its ID. A handle that
// another entry has is a *loop.Fault.
func (t *Tx) SaveAgent(ctx context.Context, a loop.Agent) error {
	n, err := t.exec(ctx, insertAgent, a.ID, a.Handle, encode(a), millis(t.now))
	if err == nil && n == 0 {
		n, err = t.exec(ctx, changeAgent, a.Handle, encode(a), millis(t.now), a.ID)
	}
	if err != nil {
		return fmt.Errorf("save agent @%s: %w", a.Handle, err)
	}
	if n == 0 {
		return &loop.Fault{
			Exit: loop.ExitMissing, What: "save agent @" + a.Handle, Why: "another agent has this handle",
			Fix: "choose another handle, or change that agent",
		}
	}
	t.announce(loop.FeedAgent, a.ID, "", "")
	return nil
}

const agentColumns = `body, created_ms, updated_ms`

func scanAgent(row interface{ Scan(...any) error }) (a loop.Agent, err error) {
	var body string
	var created, updated int64
	if err := row.Scan(&body, &created, &updated); err != nil {
		return a, err
	}
	err = decode("agent", body, &a)
	a.Created, a.Updated = fromMillis(created), fromMillis(updated)
	return a, err
}

const agentByHandle = `SELECT ` + agentColumns + ` FROM agents WHERE handle = $1`

// Agent returns the entry with the handle, or ErrNotFound. Entries that drivers
// have by themselves are not in the store.
func (r *Reader) Agent(ctx context.Context, handle string) (loop.Agent, error) {
	return r.agent(ctx, agentByHandle, handle)
}

// AgentToChange is Agent that locks the row until the transaction ends, so that of
// two changes none is lost.
func (t *Tx) AgentToChange(ctx context.Context, handle string) (loop.Agent, error) {
	return t.agent(ctx, agentByHandle+`{for_update}`, handle)
}

func (r *Reader) agent(ctx context.Context, query, handle string) (loop.Agent, error) {
	a, err := scanAgent(r.queryRow(ctx, query, handle))
	if errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrNotFound
	}
	if err != nil {
		return a, fmt.Errorf("agent @%s: %w", handle, err)
	}
	return a, nil
}

const allAgents = `SELECT ` + agentColumns + ` FROM agents ORDER BY handle`

// Agents lists the roster by handle.
func (r *Reader) Agents(ctx context.Context) ([]loop.Agent, error) {
	return collect(ctx, r, allAgents, scanAgent)
}

const saveSession = `
INSERT INTO sessions (loop_id, agent, body, updated_ms) VALUES ($1, $2, $3, $4)
ON CONFLICT (loop_id, agent) DO UPDATE SET body = excluded.body, updated_ms = excluded.updated_ms`

// SaveSession keeps the conversation that a later turn of the agent in this loop can
// continue.
func (t *RunTx) SaveSession(ctx context.Context, agent string, s loop.Session) error {
	if _, err := t.exec(ctx, saveSession, t.run.LoopID, agent, encode(s), millis(t.now)); err != nil {
		return fmt.Errorf("save the session of %s: %w", agent, err)
	}
	return nil
}

const dropSession = `DELETE FROM sessions WHERE loop_id = $1 AND agent = $2`

// DropSession makes the agent's next turn in this loop start a new conversation.
func (t *RunTx) DropSession(ctx context.Context, agent string) error {
	if _, err := t.exec(ctx, dropSession, t.run.LoopID, agent); err != nil {
		return fmt.Errorf("drop the session of %s: %w", agent, err)
	}
	return nil
}

const readSession = `SELECT body FROM sessions WHERE loop_id = $1 AND agent = $2`

// Session returns the conversation of an agent in a loop, or ErrNotFound.
func (r *Reader) Session(ctx context.Context, loopID, agent string) (loop.Session, error) {
	s, err := scanBody[loop.Session](r.queryRow(ctx, readSession, loopID, agent))
	if errors.Is(err, sql.ErrNoRows) {
		err = loop.ErrNotFound
	}
	if err != nil {
		return s, fmt.Errorf("session of %s: %w", agent, err)
	}
	return s, nil
}
