package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Between two attempts the holder of a run waits ever longer, so that a server that
// starts is not kept busy by its clients.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Holding is the store as the holder of a run uses it. While the database cannot be
// reached (the server restarts, the connection is lost), each call is repeated until
// the lease of the run ends, so that an outage of seconds does not cost the work of
// hours. The lease counts from the last extension that the database confirmed.
//
// Its methods may be called concurrently. Functions that are passed to it may be
// called several times: see Store.Update.
type Holding struct {
	store  *Store
	run    loop.Run
	onWait func(error)

	updating sync.Mutex // held during an Update with all its attempts
	lease    int64      // the column after the last commit, 0 if unknown; guarded by updating

	mu        sync.Mutex
	confirmed time.Time // when the transaction began that last extended the lease, by clock.elapsing
}

// Holding returns the store for the holder of a run that was claimed at the given
// time of Now; id and fence of the run are enough, and its lease saves reading it. If onWait is not nil, it is called once
// for each call that has to wait, with the reason.
func (s *Store) Holding(run loop.Run, claimed time.Time, onWait func(error)) *Holding {
	return &Holding{store: s, run: run, lease: millis(run.LeaseUntil), onWait: onWait, confirmed: s.clock.elapsing().Add(claimed.Sub(s.Now()))}
}

// Left is how much of the lease is left; it is not positive when it is over.
func (h *Holding) Left() time.Duration { return h.Lease() - h.Age() }

// Lease is how long the lease is when it was just extended.
func (h *Holding) Lease() time.Duration { return h.store.lease }

// Age is how long ago the lease was last extended.
func (h *Holding) Age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store.clock.elapsing().Sub(h.confirmed)
}

// Update is Store.Update, repeated while the database cannot be reached. One runs at
// a time. If a connection is lost during a commit, the next attempt first looks
// whether the transaction was committed, and then does not repeat it.
//
// When the lease is over, the error is a *loop.Fault that says so.
func (h *Holding) Update(ctx context.Context, fn func(*Tx) error) error {
	h.updating.Lock()
	defer h.updating.Unlock()
	t := h.newAttempts()
	return h.retry(ctx, t, func() error { return h.tryOnce(ctx, t, fn) })
}

// TryUpdate is Update for a caller that repeats it anyway: it tries once, and does
// nothing while another Update runs, which extends the lease itself. It may be
// committed although it returns an error: fn must be idempotent.
func (h *Holding) TryUpdate(ctx context.Context, fn func(*Tx) error) (tried bool, err error) {
	if !h.updating.TryLock() {
		return false, nil
	}
	defer h.updating.Unlock()
	return true, h.store.explainGone(h.tryOnce(ctx, h.newAttempts(), fn))
}

// View is Store.View, repeated while the database cannot be reached.
func (h *Holding) View(ctx context.Context, fn func(*Reader) error) error {
	return h.retry(ctx, newAttempts(), func() error { return h.store.View(ctx, fn) })
}

func (h *Holding) newAttempts() *attempts {
	t := newAttempts()
	t.commit.run, t.commit.before = h.run, h.lease
	return t
}

func (h *Holding) tryOnce(ctx context.Context, t *attempts, fn func(*Tx) error) error {
	began := h.store.clock.elapsing()
	err := h.store.tryUpdate(ctx, t, fn)
	if err == nil {
		// If the file was deleted meanwhile, so was what was just committed.
		err = h.store.checkFile()
	}
	switch {
	case err == nil && t.commit.known:
		h.lease = t.commit.lease
	case t.commit.unknown:
		h.lease = 0
	}
	if err != nil || !t.extended {
		return err
	}
	h.confirm(began)
	return nil
}

// confirm notes that a transaction which began at that time has extended the lease.
func (h *Holding) confirm(began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confirmed = began
}

// retry calls try until it succeeds, fails for good, or the lease is over.
func (h *Holding) retry(ctx context.Context, t *attempts, try func() error) error {
	said := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		if !isAway(err) && !isSerializationFailure(err) || ctx.Err() != nil {
			return h.store.explainGone(err)
		}
		if t.commit.unknown && !t.commit.known {
			return err // Nobody could tell whether it was committed.
		}
		left := h.Left()
		if left <= 0 {
			return h.leaseOverFault(t, err)
		}
		if !said && h.onWait != nil {
			said = true
			h.onWait(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(pause, left)):
		}
	}
}

func (h *Holding) leaseOverFault(t *attempts, err error) error {
	why := fmt.Sprintf("it did not answer for as long as the lease of the run lasts (%s): %s", h.Lease(), err)
	if t.commit.unknown {
		why += "; whether the last transaction was committed is not known"
	}
	return &loop.Fault{
		Exit: loop.ExitError, What: "use the " + h.store.sql.name, Why: why, Err: err,
		Fix: "when the database answers again, {1} concludes the run with what was recorded of it", Actions: []loop.Command{loop.PawlCommand("recover")},
	}
}

// explainGone recognises that the database or its tables were removed during the run.
func (s *Store) explainGone(err error) error {
	const noDatabase, noTable = "3D000", "42P01"
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != noDatabase && e.Code != noTable {
		return err
	}
	return goneFault(s.sql, e.Message)
}

// commit finds out on a new connection whether an earlier attempt of a transaction
// was committed but not acknowledged: each transaction of a holder writes into the
// row of its run a lease that differs from the one before.
type commit struct {
	run     loop.Run // of the holder; if it is zero, nothing is looked up
	before  int64    // the lease in the row before; 0 until it is known
	lease   int64    // the lease that the attempt has written
	known   bool     // lease is set
	unknown bool     // the connection was lost during the commit
}

const (
	readLease = `SELECT lease_until_ms, {now} FROM runs WHERE id = $1`
	pushLease = `UPDATE runs SET lease_until_ms = lease_until_ms + 1 WHERE id = $1`
	lockLease = `SELECT fence, lease_until_ms FROM runs WHERE id = $1{for_update}`
)

// recordLease reads the lease that the transaction leaves in the row of its run.
func (c *commit) recordLease(ctx context.Context, tx *Tx) error {
	c.known = false
	if c.run.ID == "" || !tx.extended {
		return nil
	}
	var now int64
	var err error
	if c.lease = millis(tx.leased.LeaseUntil); tx.leased.ID != c.run.ID {
		began := tx.clock.startSample()
		err = tx.queryRow(ctx, readLease, c.run.ID).Scan(&c.lease, &now)
		began.learn(now)
	}
	if err == nil && c.lease == c.before { // Two transactions within a millisecond.
		c.lease++
		_, err = tx.exec(ctx, pushLease, c.run.ID)
	}
	if err != nil {
		return fmt.Errorf("read the lease of run %s: %w", c.run.ID, err)
	}
	c.known = true
	return nil
}

// wasCommitted reports whether the previous attempt was committed. It waits for the
// transaction of a connection whose loss the server has not noticed yet, because that
// may still be committed.
func (c *commit) wasCommitted(ctx context.Context, tx *Tx) (bool, error) {
	if c.run.ID == "" || !c.unknown && c.before != 0 {
		return false, nil
	}
	var fence, lease int64
	err := tx.queryRow(ctx, lockLease, c.run.ID).Scan(&fence, &lease)
	if !c.unknown {
		// The claim may be of this millisecond, with the lease that this attempt would write.
		if c.before = lease; errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return false, err
	}
	if errors.Is(err, sql.ErrNoRows) || err == nil && fence != c.run.Fence {
		err = loop.ErrLeaseLost
	}
	if err != nil {
		return false, fmt.Errorf("look whether a transaction of run %s was committed: %w", c.run.ID, err)
	}
	c.unknown, c.before = false, lease
	return lease == c.lease, nil
}

// isAway reports whether PostgreSQL cannot be reached at the moment, or a connection
// to it was lost.
func isAway(err error) bool {
	if err == nil || errors.Is(err, loop.ErrStoreGone) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		const tooMany, adminShutdown, crashShutdown, starting, idleTooLong, stoodStill = "53300", "57P01", "57P02", "57P03", "57P05", "25P03"
		return strings.HasPrefix(e.Code, "08") || slices.Contains([]string{tooMany, adminShutdown, crashShutdown, starting, idleTooLong, stoodStill}, e.Code)
	}
	_, refused := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[*net.OpError](err)
	return refused || network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed)
}
