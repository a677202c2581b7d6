// Package clock is the machine's clock: the only place outside the composition
// root that asks what time it is.
//
// It declares no interface. A package that needs the time declares one with
// the methods it calls, and System has them. It never decides anything from
// the time, keeps no state and leaves no goroutine or timer behind.
package clock

import (
	"context"
	"time"
)

// System is the machine's clock. The zero value is ready to use.
type System struct{}

// Now returns the current time with its monotonic reading, so that the
// difference of two results is right even when somebody sets the wall clock
// between them.
func (System) Now() time.Time { return time.Now() }

// Sleep blocks for d, or until ctx ends. It returns nil after the whole of d
// and the cause of ctx otherwise. When d is zero or negative it only looks at
// ctx.
func (System) Sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Every calls do once per period d, for the first time after d, and blocks
// until ctx ends; it returns the cause of that. Calls never overlap: periods
// that pass during a slow call are left out, and the next call keeps to the
// original rhythm. It panics if d is not positive.
func (System) Every(ctx context.Context, d time.Duration, do func()) error {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		// A tick and the end may be ready together; the end wins.
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		do()
	}
}
