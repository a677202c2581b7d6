package engine_test

import (
	"context"
	"testing"

	"github.com/pawl-run/pawl/internal/agents/agent"
	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/ground/proc"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/policy"
	"github.com/pawl-run/pawl/internal/test/storetest"
)

func TestWhatAnAgentIsToldIsRecordedIsAskedOnceWhateverItsDriverKeeps(t *testing.T) {
	push := policy.Call{Kind: policy.CallRun, Tool: "shell", Command: "git push origin main"}
	for name, kept := range map[string][]agent.Ask{
		"nothing":         nil,
		"the same":        {{Argv: []string{"sh", "-c", push.Command}, Why: "its own words"}},
		"asked twice too": {{Argv: []string{"sh", "-c", push.Command}}, {Argv: []string{"sh", "-c", push.Command}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.SQLite(t))
			r.agent = func(ctx context.Context, req agent.Request) (agent.Result, error) {
				if a := req.Judge(ctx, push); a.Allow || !a.Ask {
					t.Errorf("the push is answered %+v", a)
				}
				return agent.Result{Ended: proc.Exited, Claims: true, Message: "waiting", Usage: loop.Usage{Input: 1, Source: loop.UsageReported}, Asks: kept}, nil
			}
			run := r.run(r.target("u", pinned{}, until("grep -q two src/a.txt", "u", []string{"src/**"})), engine.Firing{})
			if run.Outcome != loop.OutcomeWaiting || run.Approval == "" || len(r.iterations(run.ID)) != 1 {
				t.Errorf("run = %s %s, approval %q", run.Outcome, run.Detail, run.Approval)
			}
		})
	}
}
