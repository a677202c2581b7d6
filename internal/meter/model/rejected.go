package model

import (
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// A provider that turned down enough calls in a row will not take the next one.
const (
	enough  = 3
	patient = 5 * time.Second  // of failures that may pass by themselves, from the first to the last
	soon    = 30 * time.Second // a limit that is lifted within it may be waited for
)

// rejections are the calls in a row that the provider turned down.
type rejections struct {
	n     int
	first time.Time
	timer *time.Timer   // of a limit that lasts
	none  bool          // nothing more is to be expected
	gone  chan struct{} // closed with none
}

// Rejected is closed when the provider has turned down three calls in a row and
// none went well since: at once for a credential, an account that is used up or
// a limit that lasts, after five seconds for what may pass by itself. A limit that
// lasts is also enough when nothing went well for five seconds: some programs
// sleep until it is lifted. Others try again for minutes without a word.
func (e *Endpoint) Rejected() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rejections.channel()
}

func (r *rejections) channel() chan struct{} {
	if r.gone == nil {
		r.gone = make(chan struct{})
	}
	return r.gone
}

// add counts a call that failed.
func (r *rejections) add(f loop.Failure, now time.Time) {
	r.timer = stopped(r.timer)
	var lasts bool
	switch f.Class {
	case loop.FailureAuth, loop.FailureQuota:
		lasts = true
	case loop.FailureRateLimit:
		lasts = f.Reset.Sub(now) > soon
	case loop.FailureServer:
	default:
		r.n = 0 // It is about this request, and the next one may be another.
		return
	}
	if r.n++; r.n == 1 {
		r.first = now
	}
	if r.n >= enough && (lasts || now.Sub(r.first) >= patient) {
		r.giveUp()
	}
}

// reset starts anew after a call that went well.
func (r *rejections) reset() {
	r.n, r.timer = 0, stopped(r.timer)
}

func (r *rejections) giveUp() {
	if !r.none {
		r.none = true
		close(r.channel())
	}
}

// giveUpUnlessLifted gives up on a limit that lasts unless a call goes well before long;
// e.mu is held.
func (e *Endpoint) giveUpUnlessLifted(f loop.Failure) {
	if f.Class != loop.FailureRateLimit || f.Reset.Sub(e.now()) <= soon {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(patient, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.rejections.timer == timer {
			e.rejections.giveUp()
		}
	})
	e.rejections.timer = timer
}

// stopped stops a timer, if there is one.
func stopped(t *time.Timer) *time.Timer {
	if t != nil {
		t.Stop()
	}
	return nil
}
