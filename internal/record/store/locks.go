package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// contendTime is how long others give way to a queued run that nobody tries to claim:
// its loop may be paused, or nothing may be there that executes it.
const contendTime = 10 * time.Minute

// lockColumn is how a lock is stored; empty if it excludes nobody.
func lockColumn(l loop.Lock) string {
	if l.IsZero() {
		return ""
	}
	return encode(l)
}

const contenders = `
SELECT r.id, r.loop_id, l.name, r.n, r.seq, r.lock_body, r.state, l.deferrals, {now} - r.created_ms, r.started_ms, r.holder
FROM   workspaces w JOIN runs r ON r.workspace_id = w.id JOIN loops l ON l.id = r.loop_id
WHERE  w.repository = $1 AND r.lock_body <> '' AND r.state <> 'ended'
AND    (r.state <> 'queued' OR ({ahead}r.contends_until_ms >= {now} AND l.paused = 0
        AND NOT EXISTS (SELECT 1 FROM switches s WHERE s.id IN ('', r.workspace_id))))
ORDER  BY r.seq`

// Each claim in a repository with many queued runs would read all of them.
var (
	allContenders   = strings.ReplaceAll(contenders, "{ahead}", "")
	contendersAhead = strings.ReplaceAll(contenders, "{ahead}", "(r.seq < $2 OR r.lock_priority > $3 OR r.created_ms <= {now} - $4 OR l.deferrals >= r.lock_bound) AND ")
)

// Contenders lists the runs of a repository that have a lock, in all workspaces that
// are linked worktrees of it, and the queued ones that wait for one: oldest first.
func (r *Reader) Contenders(ctx context.Context, repository string) ([]loop.Contender, error) {
	return collect(ctx, r, allContenders, scanContender, repository)
}

func scanContender(row interface{ Scan(...any) error }) (c loop.Contender, err error) {
	var lock, state, holder string
	var age, started int64
	if err := row.Scan(&c.Run, &c.LoopID, &c.Loop, &c.N, &c.Seq, &lock, &state, &c.Deferrals, &age, &started, &holder); err != nil {
		return c, err
	}
	c.Live, c.Age, c.Started = loop.RunState(state) != loop.RunQueued, time.Duration(age)*time.Millisecond, fromMillis(started)
	err = decode("lock", lock, &c.Lock)
	if holder != "" {
		err = errors.Join(err, decode("holder", holder, &c.Holder))
	}
	return c, err
}

// lockDomain keeps a second claim in one repository waiting until the first has ended.
// On SQLite there is one writer anyway.
const lockDomain = `SELECT pg_advisory_xact_lock(hashtextextended($1, 10))`

// LockContenders is Contenders for a transaction that is about to claim a run: until
// it ends no other one gets the same list. Of those that are queued it lists the ones that
// may go first.
func (t *Tx) LockContenders(ctx context.Context, repository string, may loop.Ahead) ([]loop.Contender, error) {
	if t.native.postgres != nil {
		if _, err := t.exec(ctx, lockDomain, repository); err != nil {
			return nil, fmt.Errorf("lock repository %s: %w", repository, err)
		}
	}
	return collect(ctx, &t.Reader, contendersAhead, scanContender, repository, may.Before, may.Above, may.Age.Milliseconds())
}

// Asking is a run that asks to begin.
type Asking struct {
	loop.Contender // without what the row of its loop says

	State      loop.RunState
	Contends   time.Duration // for which others still give way to it
	LoopIsLive bool          // somebody holds a run of its loop
	Definition loop.Definition
}

const askingRun = `
SELECT r.loop_id, r.n, r.seq, r.state, r.lock_body, {now} - r.created_ms, r.contends_until_ms - {now}, r.definition, coalesce(d.body, ''),
       (SELECT count(*) FROM runs v WHERE v.loop_id = r.loop_id AND v.state IN ('running', 'settling'))
FROM   runs r LEFT JOIN definitions d ON d.digest = r.definition WHERE r.id = $1`

// Asking returns all that decides whether a run may begin, but its loop and the other
// contenders, or ErrNotFound.
func (r *Reader) Asking(ctx context.Context, run string) (a Asking, err error) {
	var lock, digest, definition string
	var age, contends int64
	a.Run = run
	err = r.queryRow(ctx, askingRun, run).Scan(&a.LoopID, &a.N, &a.Seq, &a.State, &lock, &age, &contends, &digest, &definition, &a.LoopIsLive)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return a, fmt.Errorf("run %s: %w", run, loop.ErrNotFound)
	case err != nil:
		return a, fmt.Errorf("read what run %s asks for: %w", run, err)
	case definition == "":
		return a, fmt.Errorf("definition %s: %w", digest, loop.ErrNotFound)
	}
	a.Age, a.Contends = time.Duration(age)*time.Millisecond, time.Duration(contends)*time.Millisecond
	if lock != "" {
		err = decode("lock", lock, &a.Lock)
	}
	return a, errors.Join(err, decode("definition "+digest, definition, &a.Definition))
}

const contend = `UPDATE runs SET contends_until_ms = {now} + $1 WHERE id = $2 AND state = 'queued'`

// Contend says that a queued run still waits for its lock: others go on giving way to it.
func (t *Tx) Contend(ctx context.Context, run string) error {
	if _, err := t.exec(ctx, contend, contendTime.Milliseconds(), run); err != nil {
		return fmt.Errorf("contend for run %s: %w", run, err)
	}
	return nil
}

// ContendAgain is how much of its time a queued run may have left before Contend is
// called again.
const ContendAgain = contendTime / 2

const (
	deferRun   = `UPDATE runs SET deferred_to = $1, lock_body = '' WHERE id = $2 AND fence = $3 AND state = 'running'`
	countDefer = `UPDATE loops SET deferrals = deferrals + 1 WHERE id = $1`
)

// DeferTo says that the run, which was claimed by this transaction, gives way to
// another one: it has no lock, and its loop has deferred once more.
func (t *RunTx) DeferTo(ctx context.Context, d loop.Deferral) error {
	n, err := t.exec(ctx, deferRun, encode(d), t.run.ID, t.run.Fence)
	if err := t.checkGuard("defer", n, err); err != nil {
		return err
	}
	if _, err := t.exec(ctx, countDefer, t.run.LoopID); err != nil {
		return fmt.Errorf("defer run %s: %w", t.run.ID, err)
	}
	t.announceRun(t.run)
	t.announce(loop.FeedLoop, t.run.LoopID, t.run.LoopID, "")
	return nil
}

const clearDeferrals = `UPDATE loops SET deferrals = 0 WHERE id = $1 AND deferrals <> 0`

// ClearDeferrals says that the loop goes now.
func (t *Tx) ClearDeferrals(ctx context.Context, loopID string) error {
	n, err := t.exec(ctx, clearDeferrals, loopID)
	if err != nil {
		return fmt.Errorf("clear the deferrals of loop %s: %w", loopID, err)
	}
	if n == 1 {
		t.announce(loop.FeedLoop, loopID, loopID, "")
	}
	return nil
}

const takeLock = `
UPDATE runs SET lock_body = '', fence = fence + 1
WHERE  id = $1 AND fence = $2 AND lock_body <> '' AND state IN ('running', 'settling') AND (lease_until_ms < {now} OR holder = $3)
RETURNING loop_id, state, fence`

// TakeLock takes its lock from a run whose lease is over or whose holder, if dead is not
// zero, the caller has proven dead. The run stays as it is until somebody recovers it, and
// its holder cannot write to it any more. It reports false if the run has been extended
// or taken by another process.
func (t *Tx) TakeLock(ctx context.Context, run loop.Run, dead loop.Holder) (bool, error) {
	gone := "-"
	if dead != (loop.Holder{}) {
		gone = encode(dead)
	}
	now := loop.Run{ID: run.ID}
	err := t.queryRow(ctx, takeLock, run.ID, run.Fence, gone).Scan(&now.LoopID, &now.State, &now.Fence)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take the lock of run %s: %w", run.ID, err)
	}
	t.announceRun(now)
	return true, nil
}
