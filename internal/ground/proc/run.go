package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/ground/waiting"
)

// child is a started program. Only the goroutine that called runProgram uses it, and
// reap is called last, so that no signal is ever sent to a pid that may belong to
// another process by then.
type child interface {
	done() <-chan struct{} // closed when the program has ended
	term()                 // asks the program to end
	kill()                 // kills everything that the method can reach
	reap() status          // reaps the program, after done
}

// status is how the program itself ended.
type status struct {
	exit     int
	signaled bool
}

// starter starts p with the three standard streams. If ctx ends before the program
// runs, it cleans up and returns the cause.
type starter func(ctx context.Context, p program, stdio [3]*os.File) (child, error)

// runProgram looks up the program of s by find, starts it by start and waits for its
// end.
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
	var watching sync.WaitGroup
	if l, ok := c.(limited); ok {
		watching.Go(func() { l.watchLimits(exceed) })
	}
	res := superviseChild(ctx, c, s.Grace)
	watching.Wait()
	end := c.reap()
	std.waitForCopying()
	res.setEnd(c, end, std.meter.isPassed())
	if res.Ended == Signaled && s.Guard.hasKilled(s.Tag) {
		res.Ended = Canceled
	}
	res.Took = time.Since(began)
	return res, nil
}

// boundContext adds the timeout to ctx. The context can also be ended with a cause,
// such as another limit.
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

// startPatiently starts p, and tries again for a while if its file is open for
// writing. A script that pawl has just written may be: a process that another
// goroutine forked at that moment has it open until its own exec.
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
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// superviseChild waits until c is done. When ctx ends, it ends c.
func superviseChild(ctx context.Context, c child, grace time.Duration) Result {
	select {
	case <-c.done():
		return Result{Ended: Exited}
	case <-ctx.Done():
	}
	select {
	case <-c.done(): // Both were ready.
		return Result{Ended: Exited}
	default:
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

// endedBy returns a result that says why ctx ended.
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
