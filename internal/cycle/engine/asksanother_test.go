package engine

import (
	"testing"

	"github.com/pawl-run/pawl/internal/rules/loop"
)

func TestOnlyAnotherActorMakesAnotherAttemptBesideAProposal(t *testing.T) {
	t.Parallel()
	claude := loop.Overrides{Agent: "claude", AgentCommand: "claude -p", Model: "sonnet"}
	for name, c := range map[string]struct {
		now, before loop.Overrides
		want        bool
	}{
		"nobody names one":       {loop.Overrides{}, loop.Overrides{}, false},
		"nobody names one now":   {loop.Overrides{}, claude, false},
		"the same":               {claude, claude, false},
		"another agent":          {loop.Overrides{Agent: "codex"}, loop.Overrides{Agent: "claude"}, true},
		"the first agent":        {loop.Overrides{Agent: "codex"}, loop.Overrides{}, true},
		"the same agent":         {loop.Overrides{Agent: "codex"}, loop.Overrides{Agent: "codex"}, false},
		"another command":        {loop.Overrides{AgentCommand: "y"}, loop.Overrides{AgentCommand: "x"}, true},
		"the same command":       {loop.Overrides{AgentCommand: "x"}, loop.Overrides{AgentCommand: "x"}, false},
		"another model":          {loop.Overrides{Model: "opus"}, loop.Overrides{Model: "sonnet"}, true},
		"the same model":         {loop.Overrides{Model: "opus"}, loop.Overrides{Model: "opus"}, false},
		"more iterations":        {loop.Overrides{MaxIterations: 5}, loop.Overrides{}, false},
		"a model, no agent more": {loop.Overrides{Model: "opus"}, loop.Overrides{Agent: "claude", Model: "opus"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ps := &proposals{heldRun: &heldRun{run: loop.Run{Overrides: c.now}}}
			if got := ps.asksAnother(loop.Run{Overrides: c.before}); got != c.want {
				t.Errorf("asksAnother = %v, want %v", got, c.want)
			}
		})
	}
}
