package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

// dryRun says what would run.
func dryRun(ctx context.Context, a *app, req runs.StartRequest) error {
	return a.withCaller(ctx, nil, func(c verb.Caller) error {
		i, err := api.PlanRun.Call(ctx, c, req)
		if err != nil {
			return err
		}
		return printIntent(a.printer(), i)
	})
}

func printIntent(p *output.Printer, i runs.Plan) error {
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
		p.Field("  ", "paused", i.Paused+": it would not run ("+i.PausedBy.ClearedBy(i.Loop).String()+")")
	}
	p.Line("dry run: nothing was started, nothing was written")
	return p.Err()
}
