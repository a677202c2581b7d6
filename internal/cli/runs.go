package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
)

type runsOptions struct {
	loop  string
	limit int
}

func (a *app) cmdRuns() *cobra.Command {
	var o runsOptions
	cmd := &cobra.Command{
		Use: "runs [LOOP]", Short: "List runs, the newest first", Args: between(0, 1), ValidArgsFunction: a.completeLoops,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.loop = args[0]
			}
			if o.limit < 1 {
				return &loop.Fault{Exit: loop.ExitUsage, What: fmt.Sprintf("invalid --limit %d", o.limit), Fix: "write a number above 0"}
			}
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				views, err := s.Runs(cmd.Context(), o.loop, o.limit)
				if err != nil {
					return err
				}
				return a.printRuns(views)
			})
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 20, "list at most `n`")
	return cmd
}

func (a *app) printRuns(views []control.RunView) error {
	if a.json {
		return a.printJSON(listOf("pawl.runs/v1", views))
	}
	if len(views) == 0 {
		_, err := fmt.Fprintln(a.Out, "No runs yet. Start one: pawl run LOOP   (`pawl ls` lists the loops)")
		return err
	}
	table := [][]string{{"RUN", "OUTCOME", "WHEN", "TOOK", "TOKENS", "RESULT"}}
	for _, v := range views {
		table = append(table, []string{
			runName(v), a.outcomeOrState(v), ago(a.Now(), v.Started), millis(v.MS.Total),
			number(loop.Usage(v.Tokens).Charged()), excerpt(firstOf(v.Branch, v.Summary, v.Reason.Because(v.Detail)), 60),
		})
	}
	return a.columns(table)
}

func (a *app) outcomeOrState(v control.RunView) string {
	if v.Outcome == "" {
		return v.State
	}
	return a.style().outcome(v.Outcome)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
