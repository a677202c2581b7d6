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

	"github.com/pawl-run/pawl/internal/loop"
)

// Between two tries the holder of a run waits ever longer, so that a server that
// starts is not kept busy by those who wait for it.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Holding is the store as the holder of a run uses it. While the database is away
// (a server that restarts, a connection that is cut), each call is tried again for
// as long as the lease of the run lasts, so that an outage of seconds does not cost
// the work of hours. The lease counts from the last extension that the database
// confirmed.
//
// Its methods may be called concurrently. Functions that are passed to it may be
// called several times: see Store.Update.
type Holding struct {
	store *Store
	run   loop.Run
	waits func(error)

	updating sync.Mutex // held for the length of an Update, tries included
	lease    int64      // column of the row as the last commit left it, 0 if that is not known; guarded by updating

	mu        sync.Mutex
	confirmed time.Time // when the transaction began that last extended the lease
}

// Holding makes the view of the holder of a run that was claimed at the given
// time; id and fence of the run are enough. Waits, which may be nil, is told why a
// call has to wait, once for each call.
func (s *Store) Holding(run loop.Run, claimed time.Time, waits func(error)) *Holding {
	return &Holding{store: s, run: run, waits: waits, confirmed: claimed}
}

// Left is how much of the lease is left; it is not positive when it is over.
func (h *Holding) Left() time.Duration { return h.Lease() - h.Age() }

// Lease is how long the lease is when it was just extended.
func (h *Holding) Lease() time.Duration { return h.store.lease }

// Age is how long ago the lease was last extended.
func (h *Holding) Age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.store.now().Sub(h.confirmed)
}

// Update is Store.Update, tried again while the database is away. One runs at a
// time. Where a connection is lost while it commits, the next try first looks
// whether the transaction was committed, and then does not repeat it.
//
// When the lease is over, the error is a *loop.Fault that says so.
func (h *Holding) Update(ctx context.Context, fn func(*Tx) error) error {
	h.updating.Lock()
	defer h.updating.Unlock()
	t := h.tries()
	return h.again(ctx, t, func() error { return h.try(ctx, t, fn) })
}

// TryUpdate is Update for whoever comes back soon anyway: it tries once, and does
// nothing while another Update runs, which extends the lease itself. It may be
// committed although it returns an error: fn must not mind being repeated.
func (h *Holding) TryUpdate(ctx context.Context, fn func(*Tx) error) (tried bool, err error) {
	if !h.updating.TryLock() {
		return false, nil
	}
	defer h.updating.Unlock()
	return true, h.gone(h.try(ctx, h.tries(), fn))
}

// View is Store.View, tried again while the database is away.
func (h *Holding) View(ctx context.Context, fn func(*Reader) error) error {
	return h.again(ctx, newTries(), func() error { return h.store.View(ctx, fn) })
}

// TryView is View for whoever comes back soon anyway: it tries once.
func (h *Holding) TryView(ctx context.Context, fn func(*Reader) error) error {
	return h.gone(h.store.View(ctx, fn))
}

func (h *Holding) tries() *tries {
	t := newTries()
	t.commit.run, t.commit.before = h.run, h.lease
	return t
}

func (h *Holding) try(ctx context.Context, t *tries, fn func(*Tx) error) error {
	began := h.store.now()
	err := h.store.try(ctx, t, fn)
	if err == nil {
		// Whoever deleted the file meanwhile has deleted what was just committed.
		err = h.store.present()
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
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confirmed = began
	return nil
}

// again calls try until it comes to something, or the lease is over.
func (h *Holding) again(ctx context.Context, t *tries, try func() error) error {
	said := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := try()
		if !away(err) && !victim(err) || ctx.Err() != nil {
			return h.gone(err)
		}
		if t.commit.unknown && !t.commit.known {
			return err // Nobody could tell whether it was committed.
		}
		left := h.Left()
		if left <= 0 {
			return h.over(t, err)
		}
		if !said && h.waits != nil {
			said = true
			h.waits(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(min(pause, left)):
		}
	}
}

func (h *Holding) over(t *tries, err error) error {
	why := fmt.Sprintf("it did not answer for as long as the lease of the run lasts (%s): %s", h.Lease(), err)
	if t.commit.unknown {
		why += "; whether the last transaction was committed is not known"
	}
	return &loop.Fault{
		Exit: loop.ExitError, What: "use the " + h.store.sql.name, Why: why, Err: err,
		Fix: "when the database answers again, `pawl recover` concludes the run with what was recorded of it",
	}
}

// gone turns the errors of a database that lacks what was there when the run began.
func (h *Holding) gone(err error) error {
	const noDatabase, noTable = "3D000", "42P01"
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || e.Code != noDatabase && e.Code != noTable {
		return err
	}
	return goneFault(h.store.sql, e.Message)
}

// commit is how a transaction finds out, on a new connection, whether an earlier
// try of it was committed although nobody acknowledged that: each transaction of a
// holder writes a lease into the row of its run that was not there before.
type commit struct {
	run     loop.Run // of whose holder; zero: nothing is looked up
	before  int64    // lease in the row before; 0 until it is known
	lease   int64    // that the try has written
	known   bool     // lease is set
	unknown bool     // the connection was lost during the commit
}

const (
	readLease = `SELECT lease_until_ms FROM runs WHERE id = $1`
	pushLease = `UPDATE runs SET lease_until_ms = lease_until_ms + 1 WHERE id = $1`
	lockLease = `SELECT fence, lease_until_ms FROM runs WHERE id = $1{alone}`
)

// note reads what the transaction leaves in the row of its run.
func (c *commit) note(ctx context.Context, tx *Tx) error {
	c.known = false
	if c.run.ID == "" || !tx.extended {
		return nil
	}
	err := tx.row(ctx, readLease, c.run.ID).Scan(&c.lease)
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

// wasMade reports whether the try before was committed. It waits for a transaction
// of a connection whose loss the server has not noticed yet, which may still be
// committed until then.
func (c *commit) wasMade(ctx context.Context, tx *Tx) (bool, error) {
	if c.run.ID == "" || !c.unknown && c.before != 0 {
		return false, nil
	}
	var fence, lease int64
	err := tx.row(ctx, lockLease, c.run.ID).Scan(&fence, &lease)
	if !c.unknown {
		// The claim may have been in this very millisecond, with the lease that this try would write.
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

// away tells whether an error is that of a PostgreSQL that cannot be reached at
// this moment, or of a connection to it that was lost.
func away(err error) bool {
	if err == nil || errors.Is(err, loop.ErrStoreGone) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		const tooMany, adminShutdown, crashShutdown, starting, idleTooLong = "53300", "57P01", "57P02", "57P03", "57P05"
		return strings.HasPrefix(e.Code, "08") || slices.Contains([]string{tooMany, adminShutdown, crashShutdown, starting, idleTooLong}, e.Code)
	}
	_, refused := errors.AsType[*pgconn.ConnectError](err)
	_, network := errors.AsType[*net.OpError](err)
	return refused || network || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed)
}
