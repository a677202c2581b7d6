package store

import (
	"testing"
	"time"
	"unsafe"
)

// host is the clock of a host whose wall clock somebody may set and which may be
// suspended, when its monotonic clock stands still.
type host struct {
	begin     time.Time
	elapsed   time.Duration // by its monotonic clock
	wallAhead time.Duration // by which its wall clock was set, in seconds
}

// now has the seconds of the wall clock above 30 bits of nanoseconds in its first word,
// as every time with a monotonic reading.
func (h *host) now() time.Time {
	t := h.begin.Add(h.elapsed)
	*(*uint64)(unsafe.Pointer(&t)) += uint64(h.wallAhead/time.Second) << 30
	return t
}

// said tells the clock the time of a database that is ahead of the host's first time.
func (h *host) said(c *databaseClock, took time.Duration, ahead time.Duration) {
	began := c.startSample()
	h.elapsed += took
	began.learn(h.begin.Add(h.elapsed - took/2 + ahead).UnixMilli())
}

func newHost() *host { return &host{begin: time.Now()} }

func wantNear(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if (got - want).Abs() > 2*time.Millisecond {
		t.Errorf("%s = %s, want %s", what, got, want)
	}
}

func TestTheClockFollowsTheDatabaseAndNotTheHost(t *testing.T) {
	for _, ahead := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute} {
		h := newHost()
		c := newDatabaseClock(Options{Now: h.now}, false)
		h.said(c, 10*time.Millisecond, ahead)
		first := c.now()
		wantNear(t, "the database is ahead", first.Round(0).Sub(h.now().Round(0)), ahead)
		wantNear(t, "the host is ahead", c.skew(), -ahead)
		h.wallAhead = 2 * time.Hour
		h.elapsed += time.Second
		if got := c.now().Round(0).Sub(first.Round(0)); got != time.Second {
			t.Errorf("the wall clock of the host was set, and the time moved by %s, want 1s", got)
		}
		wantNear(t, "the host is ahead now", c.skew(), 2*time.Hour-ahead)
	}
}

func TestTheClockOfSQLiteIsThatOfItsHost(t *testing.T) {
	h := newHost()
	c := newDatabaseClock(Options{Now: h.now}, true)
	h.said(c, 10*time.Millisecond, 0)
	first := c.now()
	h.wallAhead, h.elapsed = -2*time.Hour, h.elapsed+time.Second
	now := c.now()
	if wall, mono := now.Round(0).Sub(first.Round(0)), now.Sub(first); wall != time.Second-2*time.Hour || mono != time.Second {
		t.Errorf("the time moved by %s, and %s has passed; want -1h59m59s and 1s", wall, mono)
	}
	if c.skew() != 0 {
		t.Errorf("skew = %s", c.skew())
	}
}

// A wall clock that is set during the query must not count as the difference of two
// clocks of one host.
func TestAClockThatIsSetDuringTheQueryIsNoDifference(t *testing.T) {
	for name, after := range map[string]bool{"before the answer": false, "after it": true} {
		for _, by := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
			h := newHost()
			c := newDatabaseClock(Options{Now: h.now}, true)
			began := c.startSample()
			if !after {
				h.wallAhead = by
			}
			said := h.now().UnixMilli()
			h.wallAhead = by
			began.learn(said)
			if c.offset != 0 {
				t.Errorf("set by %s %s: corrected by %s", by, name, c.offset)
			}
		}
	}
}

func TestAnAnswerCorrectsOnlyWhatIsCertainlyWrong(t *testing.T) {
	h := newHost()
	c := newDatabaseClock(Options{Now: h.now}, false)
	h.said(c, 10*time.Millisecond, time.Minute)
	exact := c.offset
	h.said(c, 20*time.Second, time.Minute+3*time.Second) // Too slow to tell.
	if c.offset != exact {
		t.Errorf("a slow answer has corrected it by %s", c.offset-exact)
	}
	h.said(c, 10*time.Millisecond, time.Minute+3*time.Second)
	wantNear(t, "a fast one has corrected it to", c.offset, time.Minute+3*time.Second)
	began := c.startSample()
	began.learn(0) // The query failed.
	wantNear(t, "no answer has corrected it to", c.offset, time.Minute+3*time.Second)
}

func TestTheDatabaseIsAskedAgainWhenTheClockMayBeWrong(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*host)
		want    bool
	}{
		"nothing":                 {func(*host) {}, false},
		"a while":                 {func(h *host) { h.elapsed += maxAge }, false},
		"a long time":             {func(h *host) { h.elapsed += maxAge + time.Millisecond }, true},
		"it is set ahead":         {func(h *host) { h.wallAhead = 2 * time.Second }, true},
		"it is set back":          {func(h *host) { h.wallAhead = -2 * time.Second }, true},
		"the host was suspended":  {func(h *host) { h.wallAhead = time.Hour }, true},
		"it is set back for long": {func(h *host) { h.elapsed, h.wallAhead = time.Hour, -time.Hour }, true},
	} {
		h := newHost()
		dc := newDatabaseClock(Options{Now: h.now}, false)
		if !dc.isOld() {
			t.Error("it is not asked at first")
		}
		h.said(dc, time.Millisecond, 0)
		c.happens(h)
		if got := dc.isOld(); got != c.want {
			t.Errorf("%s: asked again %v, want %v", name, got, c.want)
		}
	}
}
