package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

type runsOptions struct {
	loop  string
	limit int
}

func newRunsCommand(a *app) *cobra.Command {
	var o runsOptions
	cmd := &cobra.Command{
		Use: "runs [LOOP]", Short: "List runs, the newest first", Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.loop = args[0]
			}
			if o.limit < 1 {
				return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid --limit %d", o.limit), Fix: "write a number above 0"}
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				views, err := api.ListRuns.Call(cmd.Context(), c, api.RunQuery{Loop: o.loop, Limit: o.limit})
				if err != nil {
					return err
				}
				return printRuns(a.printer(), views)
			})
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 20, "list at most `n`")
	return cmd
}

func printRuns(p *output.Printer, views []runs.View) error {
	return output.List[runs.View]{
		Schema: "pawl.runs/v1", Heading: []string{"RUN", "OUTCOME", "WHEN", "TOOK", "TOKENS", "RESULT"},
		Empty: "No runs yet. Start one: pawl run LOOP   (`pawl ls` lists the loops)",
		Cells: func(v runs.View) []string {
			outcome := v.State
			if v.Outcome != "" {
				outcome = styleOutcome(p.Style, v.Outcome)
			}
			took := "–" // It is known when the run has ended.
			if v.Outcome != "" {
				took = formatMillis(v.MS.Total)
			}
			return []string{
				runName(v), outcome, p.Ago(v.Started), took,
				formatNumber(loop.Usage(v.Tokens).ChargedTokens()), excerpt(cmp.Or(v.Branch, v.Summary, v.Reason.Explain(v.Detail)), 60),
			}
		},
	}.Print(p, views)
}
