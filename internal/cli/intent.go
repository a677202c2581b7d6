package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/output"
)

// intent is what would run, schema pawl.plan/v1.
type intent struct {
	Schema       string       `json:"schema"`
	Loop         string       `json:"loop"`
	Protocol     string       `json:"protocol"`
	Tier         loop.Tier    `json:"tier"`
	Goal         string       `json:"goal"`
	Agent        string       `json:"agent"`
	AgentCommand string       `json:"agent_command"`
	Model        string       `json:"model,omitempty"`
	Request      string       `json:"request,omitempty"`
	Base         intentBase   `json:"base"`
	Dirty        bool         `json:"dirty"` // uncommitted work, which is not seen
	Scope        []string     `json:"scope"`
	Protect      []string     `json:"protect,omitempty"`
	Sense        string       `json:"sense,omitempty"`
	Gates        intentGates  `json:"gates"`
	Limits       intentLimits `json:"limits"`
	Env          []string     `json:"env,omitempty"`
	Sandbox      string       `json:"sandbox"`
	Paused       string       `json:"paused,omitempty"` // the switch that would keep it from running
	Warnings     []string     `json:"warnings"`
}

type intentBase struct {
	Branch string `json:"branch"` // empty: HEAD is detached
	Commit string `json:"commit"`
}

func (b intentBase) String() string {
	return cmp.Or(output.CleanLine(b.Branch), "detached HEAD") + " at " + shortHash(b.Commit)
}

type intentGates struct {
	Verify string `json:"verify"`
	Guard  string `json:"guard"`
}

type intentLimits struct {
	Iterations   int     `json:"iterations"`
	Items        int     `json:"items"`
	StepSeconds  float64 `json:"step_seconds"`
	WallSeconds  float64 `json:"wall_seconds"`
	OutputTokens int64   `json:"output_tokens,omitempty"`
}

// newIntent says what a prepared run would do.
func newIntent(ctx context.Context, s *compose.Verbs, p control.Plan, req control.RunRequest) (intent, error) {
	d := p.Firing.Overrides.Apply(p.Target.Definition).WithDefaults()
	base, err := s.Repo().Base(ctx, d.Base)
	if err != nil {
		return intent{}, err
	}
	warnings := append([]string{}, p.Warnings...)
	// The memory of loops changes all the time; a run does not miss it.
	dirty, err := s.Repo().Dirty(ctx, ".loops")
	if err != nil {
		warnings = append(warnings, "cannot tell whether the checkout has uncommitted work, which a run does not see: "+err.Error())
	}
	return intent{
		Schema: "pawl.plan/v1", Loop: d.Name, Protocol: d.Protocol, Tier: d.Tier, Goal: d.Goal, Agent: cmp.Or(d.Agent, "command"),
		AgentCommand: d.AgentCommand, Model: d.Model, Request: req.Request, Base: intentBase{base.Branch, base.Commit}, Dirty: dirty,
		Scope: d.Scope, Protect: d.Protect, Sense: d.Sense, Gates: intentGates{d.Verify, d.Guard}, Env: d.Env,
		Limits:  intentLimits{d.MaxIterations, d.MaxItems, d.MaxStepTimeout.Seconds(), d.MaxWallClock.Seconds(), d.BudgetTokens},
		Sandbox: cmp.Or(d.Sandbox, "none"), Paused: engine.Switch(s.Root(), d.Name, d.SwitchPaths()...), Warnings: warnings,
	}, nil
}

// dryRun says what would run.
func dryRun(ctx context.Context, a *app, req control.RunRequest) error {
	return a.withReadOnlyVerbs(ctx, func(s *compose.Verbs) error {
		plan, err := s.Prepare(ctx, req)
		if err != nil {
			return err
		}
		i, err := newIntent(ctx, s, plan, req)
		if err != nil {
			return err
		}
		return printIntent(a.printer(), i)
	})
}

func printIntent(p *output.Printer, i intent) error {
	if p.JSON {
		return p.WriteJSON(i)
	}
	noteWarnings(p, i)
	printIntentHead(p, i)
	p.Field("  ", "request", i.Request)
	p.Field("  ", "sense", i.Sense)
	p.Field("  ", "scope", strings.Join(i.Scope, ", "))
	p.Field("  ", "protect", strings.Join(i.Protect, ", "))
	p.Field("  ", "env", strings.Join(i.Env, ", "))
	limits := fmt.Sprintf("%s, %s, %s per turn, %s per run", pluralize(i.Limits.Iterations, "iteration"), pluralize(i.Limits.Items, "item"),
		formatMillis(i.Limits.StepSeconds*1000), formatMillis(i.Limits.WallSeconds*1000))
	if i.Limits.OutputTokens > 0 {
		limits += fmt.Sprintf(", %s output tokens", formatNumber(i.Limits.OutputTokens))
	}
	p.Field("  ", "limits", limits)
	if i.Paused != "" {
		p.Field("  ", "paused", i.Paused+": it would not run ("+control.ResumeCommand(i.Loop, i.Paused)+")")
	}
	p.Line("dry run: nothing was started, nothing was written")
	return p.Err()
}
