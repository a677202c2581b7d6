package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/verbs/runs"
)

func TestEveryErrorHasOneExitStatus(t *testing.T) {
	t.Parallel()
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"no error":                         {t.Context(), nil, 0},
		"any error":                        {t.Context(), errors.New("x"), 1},
		"a fault says it itself":           {t.Context(), &loop.Fault{Exit: 14}, 14},
		"a wrapped fault too":              {t.Context(), fmt.Errorf("x: %w", &loop.Fault{Exit: 5}), 5},
		"held":                             {t.Context(), &loop.HeldError{}, 16},
		"in the way":                       {t.Context(), &loop.LockedError{}, 16},
		"a lost lease":                     {t.Context(), loop.ErrLeaseLost, 16},
		"not found":                        {t.Context(), fmt.Errorf("x: %w", loop.ErrNotFound), 3},
		"canceled":                         {t.Context(), context.Canceled, 130},
		"interrupted, whatever came of it": {interrupted, &endedError{runs.View{Outcome: loop.OutcomeInterrupted}}, 130},
		"interrupted too late to matter":   {interrupted, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := exitStatus(c.ctx, c.err); got != c.want {
				t.Errorf("exit status %d, want %d", got, c.want)
			}
		})
	}
}

func TestEveryOutcomeHasItsStatusInTheTable(t *testing.T) {
	t.Parallel()
	for _, m := range loop.Meanings {
		if m.Outcome.IsSuccess() {
			continue
		}
		if got := exitStatus(t.Context(), &endedError{runs.View{Outcome: m.Outcome}}); got != m.Exit {
			t.Errorf("%s exits with %d, want %d", m.Outcome, got, m.Exit)
		}
	}
}

func TestAFailureSaysWhatWhyAndTheFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"all three, with lines under each other": {
			&loop.Fault{What: "run x", Why: "line one\nline two\n", Fix: "do it"},
			"pawl: run x\n  why: line one\n       line two\n  fix: do it\n",
		},
		"what stands in a file is not a command to the terminal": {
			&loop.Fault{What: "run \x1b[31mx"}, "pawl: run x\n",
		},
		"the holder is named": {
			&loop.HeldError{Run: "x#1", Holder: loop.Holder{PID: 7, Host: "host"}},
			"pawl: run x#1 is held by another process\n  why: process 7 on host has it\n  fix: wait until it has ended, or stop it: pawl stop x#1\n",
		},
		"a run that is due goes first": {
			&loop.LockedError{
				Loop: "x", By: loop.Contender{Loop: "y", N: 3}, Why: loop.Deferral{Loop: "y", N: 3, Rule: loop.ReasonLockOverdue, Scope: "src/**"},
			},
			"pawl: x does not begin, because y#3 goes first\n" +
				"  why: a run that has deferred or waited long enough goes first: y#3; both may touch src/**\n  fix: `pawl run x --wait` waits for it\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			printError(&out, c.err, 1)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
