package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/loop"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that ends with the first interrupt, so that a
// run can be concluded and its work kept. The second ends the process at once.
// The second value stops listening.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it to go on.
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() { a.listen(signals, done, cancel) })
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
		cancel(nil)
	}
}

// together is how near to each other signals count as one. timeout(1), npm and
// others signal the process and then its whole group, and who started them asked
// once; what a person presses twice is further apart.
const together = 500 * time.Millisecond

func (a *app) listen(signals <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc) {
	var first time.Time
	for {
		select {
		case <-done:
			return
		case <-signals:
		}
		now := a.Now()
		switch {
		case first.IsZero():
			first = now
		case now.Sub(first) < together:
			continue
		default:
			a.Exit(loop.ExitInterrupted)
		}
		cancel(errInterrupted)
		if a.running.Load() {
			_, _ = fmt.Fprintln(a.Err, "pawl: stopping; a second interrupt ends it at once")
		}
	}
}

// unheard lets the process live when nobody reads its output any more, as in
// `pawl run x | head`. The signal is caught and not ignored, because agents and
// gates would inherit that.
func unheard() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
