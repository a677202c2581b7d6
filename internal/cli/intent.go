package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/loop"
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
	return firstOf(cleanLine(b.Branch), "detached HEAD") + " at " + shortHash(b.Commit)
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

func intentOf(ctx context.Context, s *compose.Verbs, p control.Plan, req control.RunRequest) (intent, error) {
	d := p.Firing.Overrides.Apply(p.Target.Definition).WithDefaults()
	base, err := s.Repo().Base(ctx, d.Base)
	if err != nil {
		return intent{}, err
	}
	warnings := append([]string{}, p.Warnings...)
	// The memory of loops is always on its way; it is no work that a run misses.
	dirty, err := s.Repo().Dirty(ctx, ".loops")
	if err != nil {
		warnings = append(warnings, "cannot tell whether the checkout has uncommitted work, which a run does not see: "+err.Error())
	}
	return intent{
		Schema: "pawl.plan/v1", Loop: d.Name, Protocol: d.Protocol, Tier: d.Tier, Goal: d.Goal, Agent: firstOf(d.Agent, "command"),
		AgentCommand: d.AgentCommand, Model: d.Model, Request: req.Request, Base: intentBase{base.Branch, base.Commit}, Dirty: dirty,
		Scope: d.Scope, Protect: d.Protect, Sense: d.Sense, Gates: intentGates{d.Verify, d.Guard}, Env: d.Env,
		Limits:  intentLimits{d.MaxIterations, d.MaxItems, d.MaxStepTimeout.Seconds(), d.MaxWallClock.Seconds(), d.BudgetTokens},
		Sandbox: firstOf(d.Sandbox, "none"), Paused: engine.Switch(s.Root(), d.Name, d.SwitchPaths()...), Warnings: warnings,
	}, nil
}

func (i intent) agent() string { return joined(" · ", i.Agent, i.AgentCommand, i.Model) }

// dryRun says what would run.
func (a *app) dryRun(ctx context.Context, req control.RunRequest) error {
	return a.reading(ctx, func(s *compose.Verbs) error {
		p, err := s.Prepare(ctx, req)
		if err != nil {
			return err
		}
		i, err := intentOf(ctx, s, p, req)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(i)
		}
		return a.printIntent(i)
	})
}

func (a *app) printIntent(i intent) error {
	a.warn(i)
	if err := a.announce(i); err != nil {
		return err
	}
	p := printer{w: a.Out}
	p.field("  ", "request", i.Request)
	p.field("  ", "sense", i.Sense)
	p.field("  ", "scope", strings.Join(i.Scope, ", "))
	p.field("  ", "protect", strings.Join(i.Protect, ", "))
	p.field("  ", "env", strings.Join(i.Env, ", "))
	limits := fmt.Sprintf("%s, %s, %s per turn, %s per run", count(i.Limits.Iterations, "iteration"), count(i.Limits.Items, "item"),
		millis(i.Limits.StepSeconds*1000), millis(i.Limits.WallSeconds*1000))
	if i.Limits.OutputTokens > 0 {
		limits += fmt.Sprintf(", %s output tokens", number(i.Limits.OutputTokens))
	}
	p.field("  ", "limits", limits)
	if i.Paused != "" {
		p.field("  ", "paused", i.Paused+": it would not run ("+control.ResumeCommand(i.Loop, i.Paused)+")")
	}
	p.line("dry run: nothing was started, nothing was written")
	return p.err
}
