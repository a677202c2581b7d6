package agent_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

// slow is a decoder that takes its time with each line, as one does that asks a
// person.
type slow struct{ wait time.Duration }

func (d slow) DecodeLine(line []byte) ([]agent.Event, bool) {
	time.Sleep(d.wait)
	return []agent.Event{{Kind: agent.EventText, Text: string(line)}, {Kind: agent.EventEnd}}, true
}

func (slow) Finish(*agent.Result, string) {}

func TestAPersonWhoIsAskedMayTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := agenttest.NewRequest(t, &agenttest.Recording{Stdout: []byte("done\n")})
		r.Silence, r.OnEvent, r.Output = time.Minute, func(agent.Event) {}, t.Output()
		res, err := agent.RunStream(t.Context(), r, agent.Program{Argv: []string{"x"}, Stdin: new(agent.Input)}, slow{time.Hour})
		if err != nil || res.Failure != nil || res.Message != "done" {
			t.Errorf("Stream = %+v, %v; want no hang", res, err)
		}
	})
}

func TestAProgramOfWhichNothingIsHeardHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := agenttest.NewRequest(t, silent{})
		r.Silence, r.OnEvent, r.Output = time.Minute, func(agent.Event) {}, t.Output()
		start := time.Now()
		res, err := agent.RunStream(t.Context(), r, agent.Program{Argv: []string{"x"}}, slow{})
		if err != nil || res.Failure == nil || res.Failure.Class != loop.FailureHang || time.Since(start) != time.Minute {
			t.Errorf("Stream = %+v, %v after %s; want a hang after a minute", res, err, time.Since(start))
		}
	})
}

// silent is a program that says nothing until it is ended.
type silent struct{}

func (silent) Run(ctx context.Context, _ proc.Spec) (proc.Result, error) {
	<-ctx.Done()
	return proc.Result{Exit: 143, Ended: proc.Canceled}, nil
}

// On a slow host a program that was ended for its time took longer to go than a
// program may whose turn is over, and its time limit was forgotten.
func TestAProgramThatComplainsOfItsEndAndThenLingersWasOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := agenttest.NewRequest(t, complaining{})
		r.Timeout, r.OnEvent, r.Output = time.Minute, func(agent.Event) {}, t.Output()
		res, err := agent.RunStream(t.Context(), r, agent.Program{Argv: []string{"x"}, Stdin: new(agent.Input)}, failing{})
		if err != nil || res.Ended != proc.TimedOut {
			t.Errorf("Stream = %+v, %v; want the end of its time", res, err)
		}
	})
}

// complaining is a program that says something when its time is over, and goes
// on until it is killed.
type complaining struct{}

func (complaining) Run(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	time.Sleep(spec.Timeout)
	_, _ = io.WriteString(spec.Stdout, "cancelled\n")
	<-ctx.Done()
	return proc.Result{Exit: 137, Ended: proc.TimedOut}, nil
}

// failing is a decoder for which each line is the bad end of a turn.
type failing struct{}

func (failing) DecodeLine(line []byte) ([]agent.Event, bool) {
	failure := &loop.Failure{Class: loop.FailureMalformed, Text: string(line)}
	return []agent.Event{{Kind: agent.EventError, Failure: failure}, {Kind: agent.EventEnd}}, true
}

func (failing) Finish(*agent.Result, string) {}
