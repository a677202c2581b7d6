package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/agents/agent/command"
	"github.com/pawl-run/pawl/internal/agents/turn"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAProgramWithoutAnEndpointIsEndedAtItsCap(t *testing.T) {
	for name, script := range map[string]string{
		"that has not worked yet":       "head -c 200000000 /dev/zero; echo two > src/a.txt",
		"that has worked":               "echo two > src/a.txt; head -c 200000000 /dev/zero; sleep 300",
		"that does not want to end":     "trap '' TERM; echo two > src/a.txt; while :; do head -c 1000000 /dev/zero; done",
		"whose child prints":            "echo two > src/a.txt; (setsid head -c 200000000 /dev/zero) & wait; sleep 300",
		"that prints to standard error": "head -c 200000000 /dev/zero >&2; sleep 300",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := one(t)
			r.deps.Drivers = map[string]turn.Driver{"command": command.Driver{}}
			r.engine = engine.New(r.deps)
			began := time.Now()
			run := r.run(r.worker(loop.TierAssisted, func(d *loop.Definition) { d.AgentCommand, d.BudgetTokens = script, 200_000 }), engine.Firing{})
			if run.Outcome != loop.OutcomeBudget || run.Reason != loop.ReasonBudget || !strings.Contains(run.Detail, "of 200000 output tokens") {
				t.Errorf("run = %s %s %q, want budget", run.Outcome, run.Reason, run.Detail)
			}
			if run.Usage.Output <= 200_000 || run.Usage.Output > 210_000 || run.Usage.Source != loop.UsageEstimated {
				t.Errorf("used %+v, want the cap and little more", run.Usage)
			}
			if strings.Contains(script, "echo two") && !strings.HasPrefix(script, "head") && gittest.Run(t, r.root, "show", run.Snapshot+":src/a.txt") != "two" {
				t.Error("the work is not kept")
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestTheCapOfAProgramWithoutAnEndpointIsThatOfTheWholeRun(t *testing.T) {
	r := one(t)
	r.deps.Drivers = map[string]turn.Driver{"command": command.Driver{}}
	r.engine = engine.New(r.deps)
	run := r.run(r.worker(loop.TierAssisted, func(d *loop.Definition) {
		d.AgentCommand, d.BudgetTokens, d.MaxIterations = "date +%N > src/a.txt; head -c 300000 /dev/zero; sleep 1", 200_000, 5
		d.Verify = "false"
	}), engine.Firing{})
	if its := r.iterations(run.ID); run.Outcome != loop.OutcomeBudget || len(its) != 3 || run.Usage.Output > 210_000 {
		t.Errorf("run = %s %q after %d iterations with %d tokens, want its third cut", run.Outcome, run.Detail, len(its), run.Usage.Output)
	}
}

// unsigned is a driver of which no endpoint counts the calls, and whose program says
// its usage as it goes.
type unsigned struct{}

func (unsigned) Profile() agent.Profile { return agent.Profile{Name: "command", Program: "sh"} }

func (unsigned) Turn(ctx context.Context, r agent.Request) (agent.Result, error) {
	res, err := agent.RunStream(ctx, r, agent.Program{Argv: []string{"/bin/sh", "-c", r.Command}}, lines{})
	return res, err
}

// lines is a decoder for which each line is what a model said.
type lines struct{}

func (lines) DecodeLine(line []byte) ([]agent.Event, bool) {
	return []agent.Event{{Kind: agent.EventText, Text: string(line)}}, true
}
func (lines) Finish(*agent.Result, string) {}
func (lines) DecodeExit(int) []agent.Event { return []agent.Event{{Kind: agent.EventEnd}} }

func TestADriverThatReadsLinesIsEndedAtItsCapToo(t *testing.T) {
	r := one(t)
	r.deps.Drivers = map[string]turn.Driver{"command": unsigned{}}
	r.engine = engine.New(r.deps)
	run := r.run(r.worker(loop.TierAssisted, func(d *loop.Definition) {
		d.AgentCommand, d.BudgetTokens = "echo two > src/a.txt; yes some words of a model | head -c 200000000; sleep 300", 200_000
	}), engine.Firing{})
	if run.Outcome != loop.OutcomeBudget || run.Usage.Output <= 200_000 || run.Usage.Output > 210_000 {
		t.Errorf("run = %s %q, used %+v, want budget", run.Outcome, run.Detail, run.Usage)
	}
}
