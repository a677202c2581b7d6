package model

import (
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// A provider that has rejected several calls in a row will not accept the next one.
const (
	enoughRejections = 3
	transientWait    = 5 * time.Second  // how long temporary failures must last, from the first to the last
	soonLifted       = 30 * time.Second // a limit that is lifted within this time may be waited for
)

// rejections counts the calls in a row that the provider rejected.
type rejections struct {
	n     int
	first time.Time
	timer *time.Timer   // started by a long limit
	none  bool          // the provider is given up
	gone  chan struct{} // closed when none is set
}

// Rejected returns a channel that is closed when the provider has rejected three
// calls in a row: at once if the credential is invalid, the account is used up or
// a limit lasts long, and after five seconds for temporary failures. It is also
// closed when a long limit was followed by no success for five seconds, because
// some programs sleep until it is lifted, and others retry silently for minutes.
func (e *Endpoint) Rejected() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rejections.goneChannel()
}

func (r *rejections) goneChannel() chan struct{} {
	if r.gone == nil {
		r.gone = make(chan struct{})
	}
	return r.gone
}

// addFailure counts a failed call.
func (r *rejections) addFailure(f loop.Failure, now time.Time) {
	r.timer = stopTimer(r.timer)
	var lasts bool
	switch f.Class {
	case loop.FailureAuth, loop.FailureQuota:
		lasts = true
	case loop.FailureRateLimit:
		lasts = f.Reset.Sub(now) > soonLifted
	case loop.FailureServer:
	default:
		r.n = 0 // The failure is about this request only.
		return
	}
	if r.n++; r.n == 1 {
		r.first = now
	}
	if r.n >= enoughRejections && (lasts || now.Sub(r.first) >= transientWait) {
		r.giveUp()
	}
}

// reset starts over after a successful call.
func (r *rejections) reset() {
	r.n, r.timer = 0, stopTimer(r.timer)
}

func (r *rejections) giveUp() {
	if !r.none {
		r.none = true
		close(r.goneChannel())
	}
}

// giveUpUnlessLifted gives up on a limit that lasts long, unless a call succeeds
// soon; e.mu is held.
func (e *Endpoint) giveUpUnlessLifted(f loop.Failure) {
	if f.Class != loop.FailureRateLimit || f.Reset.Sub(e.now()) <= soonLifted {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(transientWait, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.rejections.timer == timer {
			e.rejections.giveUp()
		}
	})
	e.rejections.timer = timer
}

// stopTimer stops a timer, which may be nil, and returns nil.
func stopTimer(t *time.Timer) *time.Timer {
	if t != nil {
		t.Stop()
	}
	return nil
}
