package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestARunThatEndsBecauseTheStoreWasAwaySaysSo(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range map[string]struct {
		err error
		fix string
	}{
		"an error without a fix": {refused, "see that the database is reachable"},
		"one that says its own":  {&loop.Fault{What: "connect", Why: refused.Error(), Fix: "start the server"}, "start the server"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(&awayError{21 * time.Second, c.err})
			end := stopEnding(ctx)
			if end == nil || end.reason != loop.ReasonStoreAway || end.outcome != loop.OutcomeInterrupted {
				t.Fatalf("ended %+v", end)
			}
			for _, want := range []string{"the store did not answer for 21s", refused.Error(), c.fix} {
				if !strings.Contains(end.detail, want) {
					t.Errorf("detail = %q, want %q in it", end.detail, want)
				}
			}
			if !errors.Is(context.Cause(ctx), loop.ErrLeaseLost) {
				t.Error("the lease counts as held")
			}
		})
	}
}

func TestATakeoverSaysWhetherTheProcessMayLive(t *testing.T) {
	one, two := loop.Holder{PID: 1, Host: "a"}, loop.Holder{PID: 2, Host: "b"}
	for name, c := range map[string]struct {
		takeover
		reason           loop.Reason
		detail, sentence string
	}{
		"dead":      {takeover{one, two, loop.HolderDead}, loop.ReasonHolderDied, "process 1 died in act", "died in act (its process is gone)"},
		"stopped":   {takeover{one, two, loop.HolderStopped}, loop.ReasonHolderDied, "process 2 on b ended it and took the run over", "process 1 on a had been stopped for longer than its lease"},
		"elsewhere": {takeover{one, two, loop.HolderElsewhere}, loop.ReasonTakenOver, "process 1 on a did not extend its lease", "process 2 on b took the run over"},
		"our own":   {takeover{one, one, loop.HolderRunning}, loop.ReasonHolderDied, "this process could not conclude it", "was taken over in act"},
	} {
		t.Run(name, func(t *testing.T) {
			detail, sentence := c.takeover.detail(loop.PhaseAct), c.takeover.sentence(loop.PhaseAct)
			if !strings.Contains(detail, c.detail) || !strings.Contains(sentence, c.sentence) || c.takeover.reason() != c.reason {
				t.Errorf("%s: %q, %q", c.takeover.reason(), detail, sentence)
			}
			if name != "dead" && strings.Contains(detail+sentence, "gone") {
				t.Errorf("a process that may live is gone: %q, %q", detail, sentence)
			}
		})
	}
}
