package runs

import (
	"cmp"
	"context"

	"github.com/pawl-run/pawl/internal/cycle/engine"
	"github.com/pawl-run/pawl/internal/definitions/definition"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// Plan is what would run, schema pawl.plan/v1.
type Plan struct {
	Schema       string          `json:"schema"`
	Loop         string          `json:"loop"`
	Protocol     string          `json:"protocol"`
	Tier         loop.Tier       `json:"tier"`
	Goal         string          `json:"goal"`
	Agent        string          `json:"agent"`
	AgentCommand string          `json:"agent_command"`
	Model        string          `json:"model,omitempty"`
	Request      string          `json:"request,omitempty"`
	Base         PlanBase        `json:"base"`
	Dirty        bool            `json:"dirty"` // uncommitted work, which is not seen
	Scope        []string        `json:"scope"`
	Protect      []string        `json:"protect,omitempty"`
	Sense        string          `json:"sense,omitempty"`
	Gates        PlanGates       `json:"gates"`
	Limits       PlanLimits      `json:"limits"`
	Env          []string        `json:"env,omitempty"`
	Sandbox      string          `json:"sandbox"`
	Paused       string          `json:"paused,omitempty"`   // the switch that would keep it from running
	PausedBy     loop.KillSwitch `json:"paused_by,omitzero"` // the same as a value
	Warnings     []string        `json:"warnings"`
}

// PlanBase is what a run starts from.
type PlanBase struct {
	Branch string `json:"branch"` // empty: HEAD is detached
	Commit string `json:"commit"`
}

// PlanGates are what judges.
type PlanGates struct {
	Verify string      `json:"verify"`
	Guard  string      `json:"guard"`
	Others []loop.Gate `json:"others,omitempty"`
}

// PlanLimits bound the run.
type PlanLimits struct {
	Iterations   int     `json:"iterations"`
	Items        int     `json:"items"`
	StepSeconds  float64 `json:"step_seconds"`
	WallSeconds  float64 `json:"wall_seconds"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
}

// Plan describes a prepared run, with what a person should know before it starts.
func (s *Service) Plan(ctx context.Context, p Prepared) (Plan, error) {
	d := p.Firing.Overrides.Apply(p.Target.Definition).WithDefaults()
	base, err := s.ws.Repo.Base(ctx, d.Base)
	if err != nil {
		return Plan{}, err
	}
	warnings := append([]string{}, p.Warnings...)
	// The memory of loops is always on its way; it is no work that a run misses.
	own := []string{definition.LoopsDir}
	if memory := s.ws.Formats.Of(d.Protocol).Memory; memory != nil {
		own = append(own, memory(s.ws.Root)...)
	}
	dirty, err := s.ws.Repo.Dirty(ctx, own...)
	if err != nil {
		warnings = append(warnings, "cannot tell whether the checkout has uncommitted work, which a run does not see: "+err.Error())
	}
	paused, err := s.ws.Paused(ctx)
	if err != nil {
		return Plan{}, err
	}
	paused = cmp.Or(paused, engine.Switch(s.ws.Root, d.Name, d.SwitchPaths()...))
	return Plan{
		Schema: "pawl.plan/v1", Loop: d.Name, Protocol: d.Protocol, Tier: d.Tier, Goal: d.Goal, Agent: cmp.Or(d.Agent, "command"),
		AgentCommand: d.AgentCommand, Model: d.Model, Request: p.Firing.Request, Base: PlanBase{base.Branch, base.Commit}, Dirty: dirty,
		Scope: d.Scope, Protect: d.Protect, Sense: d.Sense, Gates: PlanGates{d.Verify, d.Guard, d.Gates}, Env: d.Env,
		Limits:  PlanLimits{d.MaxIterations, d.MaxItems, d.MaxStepTimeout.Seconds(), d.MaxWallClock.Seconds(), d.BudgetTokens},
		Sandbox: cmp.Or(d.Sandbox, "none"), Paused: paused.String(), PausedBy: paused, Warnings: warnings,
	}, nil
}
