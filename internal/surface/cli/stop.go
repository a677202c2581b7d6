package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newStopCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "stop RUN", Short: "End one run and keep its work", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Ask the process that holds a run to end it, and wait until it has. The work of the run is kept under
refs/pawl/snapshots; the loop may run again. A run that has ended already is left as it is.

A RUN is a run id, LOOP#N, or LOOP for its newest run.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			began := a.Now()
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				view, err := api.StopRun.Call(cmd.Context(), c, api.StopRequest{Run: args[0], Why: "pawl stop"})
				if err != nil {
					return err
				}
				start := a.rowTime().Add(-a.Now().Sub(began)).Truncate(time.Millisecond) // as the store keeps times
				if view.Ended != nil && view.Ended.Before(start) {
					a.printer().Note("pawl: %s had ended already; nothing was stopped", output.CleanLine(runName(view)))
				}
				return printRun(a.printer(), view)
			})
		},
	}
}
