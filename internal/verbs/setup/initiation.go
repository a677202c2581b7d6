package setup

import (
	"context"
	"slices"

	"github.com/pawl-run/pawl/internal/cycle/catalog"
	"github.com/pawl-run/pawl/internal/cycle/format"
	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/readiness"
	"github.com/pawl-run/pawl/internal/verbs/loops"
)

// Initiation is what init found, proposes and did, schema pawl.init/v1.
type Initiation struct {
	Schema   string              `json:"schema"`
	Survey   Survey              `json:"survey"`
	Loop     *loops.Scaffolded   `json:"loop"` // null if only the workspace is registered
	Estimate *readiness.CostData `json:"estimate,omitempty"`
	Missing  []string            `json:"missing"` // keys that a person has to fill in before the loop is ready
	Written  bool                `json:"written"`
	Loops    *catalog.Synced     `json:"loops,omitempty"` // of the workspace, as they are registered now
}

// AgentPrograms returns the agents whose programs a survey looks for. The caller owns
// the list.
func AgentPrograms() []string { return slices.Clone(programs) }

var programs = []string{"claude", "codex", "gemini", "opencode", "qwen", "goose"}

// NewInitiation returns an Initiation that only registers the workspace.
func NewInitiation(v Survey) Initiation {
	return Initiation{Schema: "pawl.init/v1", Survey: v, Missing: []string{}}
}

// Propose proposes a loop: it checks it like a real one and does not write it. Home is
// pawl's home, which may have prices.
func (v Survey) Propose(ctx context.Context, formats format.List, home string, r loops.ScaffoldRequest) (Initiation, error) {
	plan := NewInitiation(v)
	if len(r.Scope) == 0 {
		plan.Missing = append(plan.Missing, "scope: nothing looks like source; say it with --scope 'GLOB'")
	}
	if r.Verify == "" && r.Tier != loop.TierReport {
		plan.Missing = append(plan.Missing, "verify: no test command was found; say it with --verify 'COMMAND'")
	}
	installed := slices.ContainsFunc(v.Agents, func(a AgentView) bool { return a.Name == r.Agent })
	switch {
	case r.AgentCommand != "" || installed:
	case r.Agent == "":
		plan.Missing = append(plan.Missing, "agent: none is installed; say one with --agent-command 'PROGRAM', or install one and run pawl init again")
	case r.Agent == "command" || r.Agent == "acp":
		plan.Missing = append(plan.Missing, "agent: "+r.Agent+" starts a program of yours; say it with --agent-command 'PROGRAM'")
	case slices.Contains(programs, r.Agent):
		plan.Missing = append(plan.Missing, "agent: "+r.Agent+" is not installed; pawl agent drivers says how to get it")
	}
	r.DryRun = true
	made, err := loops.Scaffold(ctx, formats, r)
	if err != nil {
		return plan, err
	}
	plan.Loop = &made
	cost, err := EstimateFor(home, r)
	if err != nil {
		return plan, err
	}
	data := cost.Data()
	plan.Estimate = &data
	return plan, nil
}
