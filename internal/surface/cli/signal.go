package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/daemon"
)

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// cancelOnInterrupt returns a context that the first interrupt cancels, so that a
// run can be concluded and its work kept. The second interrupt ends the process at
// once. The returned function stops listening.
func (a *app) cancelOnInterrupt(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it to go on.
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() { a.listenForInterrupts(signals, done, cancel) })
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		listening.Wait()
		cancel(nil)
	}
}

// sameInterrupt is the time within which signals count as one. timeout(1), npm and
// others signal the process and then its whole group, for one request; a person who
// presses twice takes longer.
const sameInterrupt = 500 * time.Millisecond

func (a *app) listenForInterrupts(signals <-chan os.Signal, done <-chan struct{}, cancel context.CancelCauseFunc) {
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
		case now.Sub(first) < sameInterrupt:
			continue
		default:
			a.Exit(loop.ExitInterrupted)
		}
		cancel(errInterrupted)
		if a.running.Load() {
			a.printer().Note("pawl: stopping; a second interrupt ends it at once")
		}
	}
}

// surviveClosedPipe keeps the process alive when nobody reads its output any more, as
// in `pawl run x | head`. The signal is caught and not ignored, because agents and
// gates would inherit that.
func surviveClosedPipe() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}

// listenForReloads returns a channel that gets something when this process is asked to
// read the definitions again.
func listenForReloads() (asked <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	if list := daemon.ReloadSignals(); len(list) > 0 { // None would be all.
		signal.Notify(signals, list...)
	}
	return signals, func() { signal.Stop(signals) }
}
