package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

const (
	insertChange = `INSERT INTO changes (run_id, seq, loop_id, body) VALUES ($1, $2, $3, $4)`
	lastChange   = `SELECT coalesce(max(seq), 0) FROM changes WHERE run_id = $1`
)

// RecordChanges makes file changes durable before they are applied. They stay
// pending until Applied. Each is returned once, even if Update calls its function
// again.
func (t *RunTx) RecordChanges(ctx context.Context, changes []loop.Change) ([]loop.PendingChange, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	var seq int
	if err := t.queryRow(ctx, lastChange, t.run.ID).Scan(&seq); err != nil {
		return nil, fmt.Errorf("number changes of run %s: %w", t.run.ID, err)
	}
	var pending []loop.PendingChange
	for _, c := range changes {
		seq++
		if _, err := t.exec(ctx, insertChange, t.run.ID, seq, t.run.LoopID, encode(c)); err != nil {
			return nil, fmt.Errorf("record change of %s: %w", c.Path, err)
		}
		if c.Kind == loop.ChangeAppend {
			t.appended = append(t.appended, line{c.Path, c.Content})
		}
		if id := (changeID{t.run.ID, seq}); !t.returned[id] {
			t.returned[id] = true
			pending = append(pending, loop.PendingChange{RunID: t.run.ID, Seq: seq, Change: c})
		}
	}
	return pending, nil
}

// Runs end in another order than that of their numbers. One that is live was the last to
// record anything.
const pendingChanges = `
SELECT c.run_id, c.seq, c.body
FROM   changes c JOIN runs r ON r.id = c.run_id
WHERE  c.loop_id = $1 AND r.node_id IN ($2, '')
ORDER  BY CASE r.ended_ms WHEN 0 THEN 1 ELSE 0 END, r.ended_ms, r.n, c.seq`

// Pending lists the file changes of a loop that are for a node and not known to be
// applied there, in the order in which they must be.
func (r *Reader) Pending(ctx context.Context, loopID, node string) ([]loop.PendingChange, error) {
	return collect(ctx, r, pendingChanges, scanPending, loopID, node)
}

func scanPending(row interface{ Scan(...any) error }) (p loop.PendingChange, err error) {
	var body string
	if err := row.Scan(&p.RunID, &p.Seq, &body); err != nil {
		return p, err
	}
	return p, decode("change", body, &p.Change)
}

const dropChange = `DELETE FROM changes WHERE run_id = $1 AND seq = $2`

// Applied forgets changes whose files are written and synced.
func (t *Tx) Applied(ctx context.Context, changes []loop.PendingChange) error {
	for _, c := range changes {
		if _, err := t.exec(ctx, dropChange, c.RunID, c.Seq); err != nil {
			return fmt.Errorf("forget change of %s: %w", c.Path, err)
		}
	}
	return nil
}

const insertEffect = `
INSERT INTO effects (run_id, seq, kind, effect_key, args, state, loop_id)
SELECT $1, coalesce(max(seq), 0) + 1, $2, $3, $4, 'requested', $5 FROM effects WHERE run_id = $1
ON CONFLICT (effect_key) DO NOTHING`

// RequestEffect puts an effect into the outbox. A key that is there already
// is not asked for again.
func (t *RunTx) RequestEffect(ctx context.Context, e loop.EffectRequest) error {
	if e.Args == nil {
		e.Args = map[string]string{}
	}
	if _, err := t.exec(ctx, insertEffect, t.run.ID, e.Kind, e.Key, encode(e.Args), t.run.LoopID); err != nil {
		return fmt.Errorf("request %s: %w", e.Key, err)
	}
	return nil
}

// loopPaused makes a change of the switch wait for the end of the transaction,
// so that nothing begins after the switch was set.
const loopPaused = `SELECT paused FROM loops WHERE id = $1{for_share}`

// A switch of the workspace or the store is set while all of its loops are locked: a
// statement after loopPaused sees it.
const moveEffect = `
UPDATE effects SET state = $1, result = $2, error = $3
WHERE  run_id = $4 AND seq = $5 AND state = $6
AND    ($1 <> 'applying' OR $7 <> '' OR NOT EXISTS (SELECT 1 FROM switches s JOIN runs r ON r.id = $4 WHERE s.id IN ('', r.workspace_id)))`

// SaveEffect moves an effect from the state it was read in to e.State. None
// begins to be applied while a switch in the store is set for the loop, unless it has
// loop.ArgAccount: that is a *loop.PausedError, and nothing is written.
func (t *RunTx) SaveEffect(ctx context.Context, from loop.EffectState, e loop.Effect) error {
	if !slices.Contains(loop.SourceStates("effect", e.State), from) {
		return fmt.Errorf("effect %s: %s may not become %s", e.Key, from, e.State)
	}
	account := e.Args[loop.ArgAccount]
	if e.State == loop.EffectApplying && account == "" {
		var paused bool
		if err := t.queryRow(ctx, loopPaused, t.run.LoopID).Scan(&paused); err != nil {
			return fmt.Errorf("read the switch of loop %s: %w", t.run.LoopID, err)
		}
		if paused {
			return fmt.Errorf("apply %s: %w", e.Key, &loop.PausedError{By: loop.KillSwitch{Scope: loop.SwitchLoop}})
		}
	}
	if e.Result == nil {
		e.Result = map[string]string{}
	}
	n, err := t.exec(ctx, moveEffect, string(e.State), encode(e.Result), e.Error, t.run.ID, e.Seq, string(from), account)
	if err == nil && n == 0 && e.State == loop.EffectApplying {
		if err := t.checkSwitches(ctx, t.run.LoopID); err != nil {
			return fmt.Errorf("apply %s: %w", e.Key, err)
		}
	}
	return t.checkGuard("save effect of", n, err)
}

// The row of another run of the same loop: that run has ended, and nobody else
// writes it.
const amendEffect = `
UPDATE effects SET result = $1
WHERE  run_id = $2 AND seq = $3 AND state = 'done' AND loop_id = $4`

// AmendEffect replaces the result of an effect that is done, of any run of the loop:
// what became of it was learned later.
func (t *RunTx) AmendEffect(ctx context.Context, e loop.Effect) error {
	n, err := t.exec(ctx, amendEffect, encode(e.Result), e.RunID, e.Seq, t.run.LoopID)
	return t.checkGuard("amend effect "+e.Key+" by", n, err)
}

const effectColumns = `e.run_id, e.seq, e.kind, e.effect_key, e.args, e.state, e.result, e.error`

func scanEffect(row interface{ Scan(...any) error }) (e loop.Effect, err error) {
	var args, result string
	if err := row.Scan(&e.RunID, &e.Seq, &e.Kind, &e.Key, &args, &e.State, &result, &e.Error); err != nil {
		return e, err
	}
	return e, errors.Join(decode("effect", args, &e.Args), decode("effect", result, &e.Result))
}

const effectsOf = `SELECT ` + effectColumns + ` FROM effects e WHERE run_id = $1 ORDER BY seq`

// Effects lists the effects of a run in the order in which they are applied.
func (r *Reader) Effects(ctx context.Context, runID string) ([]loop.Effect, error) {
	return collect(ctx, r, effectsOf, scanEffect, runID)
}

const effectsDone = `
SELECT ` + effectColumns + `
FROM   effects e JOIN runs r ON r.id = e.run_id
WHERE  e.loop_id = $1 AND e.kind = $2 AND e.state = 'done'
ORDER  BY r.n DESC, e.seq DESC`
