package engine_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/plan"
	"github.com/pawl-run/pawl/internal/test/gittest"
)

func TestAPassWithoutAGateOrWithoutAChangeSaysSo(t *testing.T) {
	const noChange = `{"outcome":"done","no_change":true}`
	for name, c := range map[string]struct {
		verify, report string
		changes        bool
		outcome        loop.Outcome
		reason         loop.Reason
	}{
		"a gate and a change":       {"true", `{}`, true, loop.OutcomeProposed, loop.ReasonGatesPass},
		"no gate":                   {"", `{}`, true, loop.OutcomeProposed, loop.ReasonNoGate},
		"no gate and no change":     {"", noChange, false, loop.OutcomeDone, loop.ReasonNoChange},
		"no change":                 {"true", noChange, false, loop.OutcomeDone, loop.ReasonNoChange},
		"no change, and it is red":  {"false", noChange, false, loop.OutcomeFailed, loop.ReasonGateFailed},
		"a change that makes it so": {"false", `{}`, true, loop.OutcomeFailed, loop.ReasonGateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t)
			r.agent = func(_ context.Context, req agent.Request) (agent.Result, error) {
				if c.changes {
					gittest.WriteFile(t, filepath.Join(req.Dir, "src/a.txt"), "two\n")
				}
				return says(t, req, c.report)
			}
			run := r.run(r.worker(loop.TierAssisted, func(d *loop.Definition) { d.Verify, d.MaxIterations = c.verify, 1 }), engine.Firing{})
			if run.Outcome != c.outcome || run.Reason != c.reason {
				t.Errorf("run = %s %s %q, want %s %s", run.Outcome, run.Reason, run.Detail, c.outcome, c.reason)
			}
		})
	}
}

// unready is a memory in which no step can be begun.
type unready struct{ engine.Protocol }

type unreadySession struct{ engine.Session }

var errUnready = errors.New("the board cannot be written")

func (u unready) Open(ctx context.Context, v engine.View) (engine.Session, error) {
	s, err := u.Protocol.Open(ctx, v)
	return unreadySession{s}, err
}

func (unreadySession) Begin(plan.Choice) ([]loop.Change, engine.Brief, error) {
	return nil, engine.Brief{}, errUnready
}

func TestAStepThatTheMemoryCannotBeginStartsNoAgent(t *testing.T) {
	r := one(t)
	r.agent = func(context.Context, agent.Request) (agent.Result, error) {
		t.Error("an agent acted")
		return agent.Result{}, nil
	}
	target := r.worker(loop.TierAssisted, nil)
	target.Protocol = unready{target.Protocol}
	run := r.run(target, engine.Firing{})
	if run.Outcome != loop.OutcomeFailed || !strings.Contains(run.Detail, errUnready.Error()) {
		t.Errorf("run = %s %s %q, want failed with what was wrong", run.Outcome, run.Reason, run.Detail)
	}
}
