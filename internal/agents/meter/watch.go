package meter

import (
	"context"
	"errors"
	"time"
)

var (
	errQuiet = errors.New("nothing was sent for too long")
	errOld   = errors.New("the connection was open for too long")
)

// watch ends the context of a connection that is idle for too long or too old.
type watch struct {
	quiet *time.Timer
	idle  time.Duration
	end   func()
}

// watchConn returns a context for one connection. Until the first activity, the
// limit for opening applies.
func watchConn(ctx context.Context, l Limits) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	quiet := time.AfterFunc(l.Opening, func() { cancel(errQuiet) })
	old := time.AfterFunc(l.Age, func() { cancel(errOld) })
	return ctx, &watch{quiet: quiet, idle: l.Idle, end: func() {
		quiet.Stop()
		old.Stop()
		cancel(nil)
	}}
}

// noteActivity restarts the limit for idle time.
func (w *watch) noteActivity() { w.quiet.Reset(w.idle) }

// endAfter ends the connection after d unless there is activity.
func (w *watch) endAfter(d time.Duration) { w.quiet.Reset(d) }
