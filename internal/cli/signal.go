package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/pawl-run/pawl/internal/loop"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that ends with the first interrupt, so that a
// run can be concluded and its work kept. The second ends the process at once.
// The second value stops listening.
func (a *app) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it to go on.
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n > 1 {
				a.Exit(loop.ExitInterrupted)
			}
			cancel(errInterrupted)
			if a.running.Load() {
				_, _ = fmt.Fprintln(a.Err, "pawl: stopping; a second interrupt ends it at once")
			}
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
		cancel(nil)
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
