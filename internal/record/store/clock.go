package store

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// databaseClock tells the time of the database without asking it: the clock of this
// process, corrected by how much it differs. Whenever a query brings the time of the
// database along, the correction is looked at again.
type databaseClock struct {
	local   func() time.Time // of this process
	virtual func() time.Time // instead of the database's time; nil: it has its own
	onHost  bool             // the database asks the clock of this host, also for its changes

	mu      sync.Mutex
	began   time.Time     // by local, when it was first read
	offset  time.Duration // time of the database minus what reading returns
	learned time.Time     // by local, when offset was last looked at; zero: never
}

const (
	// maxAge is how old a correction may become in a process that only waits: clocks
	// drift, and that of the database may be set.
	maxAge = time.Minute
	// mostJump is how far the wall clock may move against the monotonic one before it
	// counts as set. A host that was suspended looks the same: its monotonic clock stood.
	mostJump = time.Second
)

func newDatabaseClock(o Options, onHost bool) *databaseClock {
	return &databaseClock{local: o.Now, virtual: o.Virtual, onHost: onHost, began: o.Now()}
}

// now is the time of the database. It has the monotonic reading of the local clock, so
// that a difference of two is right when somebody sets the clock of this host between
// them.
func (c *databaseClock) now() time.Time {
	if c.virtual != nil {
		return c.virtual()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading().Add(c.offset)
}

// reading is the local clock, to be corrected. If the database has a clock of its
// own, setting that of this host does not move it: only the monotonic clock counts.
func (c *databaseClock) reading() time.Time {
	t := c.local()
	if c.onHost {
		return t
	}
	return c.began.Add(t.Sub(c.began))
}

// elapsing is a clock whose differences are how long something took: no correction
// shortens or lengthens them.
func (c *databaseClock) elapsing() time.Time {
	if c.virtual != nil {
		return c.virtual()
	}
	return c.local()
}

// skew is by how much the wall clock of this host is ahead of the database.
func (c *databaseClock) skew() time.Duration {
	if c.virtual != nil {
		return 0
	}
	host := c.local()
	return host.Round(0).Sub(c.now().Round(0))
}

// sample is the beginning of a query that brings the time of the database along.
type sample struct {
	clock *databaseClock
	began time.Time
}

func (c *databaseClock) startSample() sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sample{c, c.reading()}
}

// learn compares the clock with the time that the database said at some moment of the
// query. It is corrected only if it is certainly wrong: a slow answer must not make
// a clock worse that a fast one has set.
func (s sample) learn(saidMS int64) {
	c := s.clock
	if c.virtual != nil || saidMS == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	said := time.UnixMilli(saidMS)
	atStart, atEnd := said.Sub(s.began.Round(0)), said.Sub(c.reading().Round(0))
	low, high := min(atStart, atEnd)-time.Millisecond, max(atStart, atEnd)+time.Millisecond // It is rounded to one.
	if c.offset < low || c.offset > high {
		c.offset = low + (high-low)/2
	}
	c.learned = c.local()
}

// isOld reports whether the database has to be asked: the correction has become old, or
// the clock of this host was set or stood still.
func (c *databaseClock) isOld() bool {
	if c.virtual != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.local()
	elapsed, byWall := now.Sub(c.learned), now.Round(0).Sub(c.learned.Round(0))
	return c.learned.IsZero() || elapsed > maxAge || (elapsed-byWall).Abs() > mostJump
}

const readTime = `SELECT {now}`

// refresh asks the database for its time if what is known of it is old.
func (c *databaseClock) refresh(ctx context.Context, r *Reader) error {
	if !c.isOld() {
		return nil
	}
	var said int64
	began := c.startSample()
	if err := r.queryRow(ctx, readTime).Scan(&said); err != nil {
		return fmt.Errorf("read the time of the database: %w", err)
	}
	began.learn(said)
	return nil
}

// Now is the time of the database, as this process knows it: nothing is asked. All
// decisions and all stamps of rows use it, so that a wrong clock of this host decides
// nothing. Where a lease is at stake, compare {now} in SQL.
func (s *Store) Now() time.Time { return s.clock.now() }

// Skew is by how much the clock of this host is ahead of that of the database.
func (s *Store) Skew() time.Duration { return s.clock.skew() }
