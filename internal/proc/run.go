package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// child is a started program as the common path sees it. Only the goroutine
// that called run uses it, and reap comes last, so no signal is ever sent to a
// pid that may have been given away.
type child interface {
	done() <-chan struct{} // closed when nothing is left to wait for but reap
	term()                 // asks the program to end
	kill()                 // ends everything that the method can reach
	reap() status          // collects what is left; after done
}

// status is how the program itself ended.
type status struct {
	exit     int
	signaled bool
}

// starter starts p with the three standard streams. When ctx ends before the
// program runs, it cleans up and returns the cause.
type starter func(ctx context.Context, p program, stdio [3]*os.File) (child, error)

// run carries s from start to end with whatever start provides.
func run(ctx context.Context, s Spec, start starter) (Result, error) {
	began := time.Now()
	notStarted := Result{Exit: -1, Ended: NotStarted}
	p, err := resolve(s)
	if err != nil {
		return notStarted, err
	}
	ctx, cancel := bound(ctx, s.Timeout)
	defer cancel()
	std, err := openStreams(s)
	if err != nil {
		return notStarted, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	c, err := startPatiently(ctx, start, p, std.child)
	std.closeChild()
	if err != nil {
		std.closeOwn()
		return notStarted, err
	}
	std.pump()
	ended := supervise(ctx, c, s.Grace)
	end := c.reap()
	std.settle()
	if ended == Exited && end.signaled {
		ended = Signaled
	}
	return Result{Exit: end.exit, Ended: ended, Took: time.Since(began)}, nil
}

func bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, errTimeout)
}

// startPatiently tries again while the program is open for writing. A script
// that pawl has just written is, for as long as a process forked at that moment
// by another goroutine has not yet reached its own exec.
func startPatiently(ctx context.Context, start starter, p program, stdio [3]*os.File) (child, error) {
	const tries = 8
	for wait := time.Millisecond; ; wait *= 2 {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("start %s: %w", p.argv[0], context.Cause(ctx))
		}
		c, err := start(ctx, p, stdio)
		if !errors.Is(err, syscall.ETXTBSY) || wait > time.Millisecond<<tries {
			return c, err
		}
		pause(ctx, wait)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// supervise waits until c is done, and makes it so when ctx ends.
func supervise(ctx context.Context, c child, grace time.Duration) Ended {
	select {
	case <-c.done():
		return Exited
	case <-ctx.Done():
	}
	if isClosed(c.done()) {
		return Exited
	}
	if grace > 0 {
		c.term()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.done():
			return cut(ctx)
		case <-timer.C:
		}
	}
	c.kill()
	<-c.done()
	return cut(ctx)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// cut says which bound ended ctx.
func cut(ctx context.Context) Ended {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return TimedOut
	}
	return Canceled
}
