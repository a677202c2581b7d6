package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/waiting"
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

// runProgram carries s from start to end with whatever start provides.
func runProgram(ctx context.Context, s Spec, find func(Spec) (program, error), start starter) (Result, error) {
	notStarted := Result{Exit: -1, Ended: NotStarted}
	p, err := find(s)
	if err != nil {
		return notStarted, err
	}
	ctx, cancel := boundContext(ctx, s.Timeout)
	defer cancel(nil)
	exceed := func(l Limit) { cancel(exceeded{l}) }
	std, err := openStreams(s, exceed)
	if err != nil {
		return notStarted, fmt.Errorf("start %s: %w", s.Argv[0], err)
	}
	c, err := startPatiently(ctx, start, p, std.child)
	std.closeChild()
	if err != nil {
		std.closeOwn()
		return notStarted, err
	}
	began := time.Now()
	std.startCopying()
	looking := startWatching(c, exceed)
	res := superviseChild(ctx, c, s.Grace)
	looking.Wait()
	end := c.reap()
	std.waitForCopying()
	res.setEnd(c, end, std.meter.isPassed())
	res.Took = time.Since(began)
	return res, nil
}

// boundContext adds the bounds that Run itself keeps. What ends the context is the cause.
func boundContext(ctx context.Context, timeout time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if timeout <= 0 {
		return ctx, cancel
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, exceeded{TimeLimit})
	return ctx, func(cause error) {
		cancel(cause)
		stop()
	}
}

// startPatiently tries again while the program is open for writing. A script
// that pawl has just written is, for as long as a process forked at that moment
// by another goroutine has not yet reached its own exec.
func startPatiently(ctx context.Context, start starter, p program, stdio [3]*os.File) (child, error) {
	const tries = 8
	defer waiting.For(ctx, "the start of "+p.argv[0], nil)()
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

// superviseChild waits until c is done, and makes it so when ctx ends.
func superviseChild(ctx context.Context, c child, grace time.Duration) Result {
	select {
	case <-c.done():
		return Result{Ended: Exited}
	case <-ctx.Done():
	}
	if isClosed(c.done()) {
		return Result{Ended: Exited}
	}
	res := endedBy(ctx)
	if grace > 0 && res.Ended != Limited {
		c.term()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.done():
			return res
		case <-timer.C:
		}
	}
	c.kill()
	<-c.done()
	return res
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// endedBy says which bound ended ctx.
func endedBy(ctx context.Context) Result {
	e, ok := errors.AsType[exceeded](context.Cause(ctx))
	switch {
	case !ok:
		return Result{Ended: Canceled}
	case e.limit == TimeLimit:
		return Result{Ended: TimedOut, Limit: e.limit}
	default:
		return Result{Ended: Limited, Limit: e.limit}
	}
}
