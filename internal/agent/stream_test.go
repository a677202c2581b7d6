package agent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-run/pawl/internal/agent"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/proc"
	"github.com/pawl-run/pawl/internal/test/agenttest"
)

// slow is a decoder that takes its time with each line, as one does that asks a
// person.
type slow struct{ wait time.Duration }

func (d slow) Line(line []byte) ([]agent.Event, bool) {
	time.Sleep(d.wait)
	return []agent.Event{{Kind: agent.EventText, Text: string(line)}, {Kind: agent.EventEnd}}, true
}

func (slow) Finish(*agent.Result, string) {}

func TestAPersonWhoIsAskedMayTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := agenttest.Request(t, &agenttest.Recording{Stdout: []byte("done\n")})
		r.Silence, r.On, r.Output = time.Minute, func(agent.Event) {}, t.Output()
		res, err := agent.Stream(t.Context(), r, agent.Program{Argv: []string{"x"}, Stdin: new(agent.Input)}, slow{time.Hour})
		if err != nil || res.Failure != nil || res.Message != "done" {
			t.Errorf("Stream = %+v, %v; want no hang", res, err)
		}
	})
}

func TestAProgramOfWhichNothingIsHeardHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := agenttest.Request(t, silent{})
		r.Silence, r.On, r.Output = time.Minute, func(agent.Event) {}, t.Output()
		start := time.Now()
		res, err := agent.Stream(t.Context(), r, agent.Program{Argv: []string{"x"}}, slow{})
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
