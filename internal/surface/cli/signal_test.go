package cli

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

// timeout(1) and wrappers signal the process and its group: the second copy of
// one request once ended pawl before the run was concluded.
func TestTwoSignalsAtOnceAreOneInterrupt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var exits []int
	a := &app{Env: Env{Err: &bytes.Buffer{}, Now: func() time.Time { return now }, Exit: func(status int) { exits = append(exits, status) }}}
	signals, done, over := make(chan os.Signal), make(chan struct{}), make(chan struct{})
	var cause error
	go func() {
		defer close(over)
		a.listenForInterrupts(signals, done, func(err error) { cause = err })
	}()
	signals <- os.Interrupt
	signals <- os.Interrupt
	close(done)
	<-over
	if len(exits) != 0 || !errors.Is(cause, errInterrupted) {
		t.Errorf("two signals at once: exits %v, cause %v; want the run to be concluded", exits, cause)
	}
}

func TestAnInterruptThatIsRepeatedEndsTheProcess(t *testing.T) {
	t.Parallel()
	times := make(chan time.Time, 2)
	times <- time.Unix(100, 0)
	times <- time.Unix(101, 0)
	status := make(chan int, 1)
	a := &app{Env: Env{Err: &bytes.Buffer{}, Now: func() time.Time { return <-times }, Exit: func(code int) { status <- code }}}
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signals <- os.Interrupt
	signals <- os.Interrupt
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.listenForInterrupts(signals, done, func(error) {})
	}()
	if got := <-status; got != loop.ExitInterrupted {
		t.Errorf("exit status %d, want %d", got, loop.ExitInterrupted)
	}
	close(done)
	<-over
}
