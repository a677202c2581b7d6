package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/runs"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newRerunCommand(a *app) *cobra.Command {
	r := api.RerunRequest{}
	cmd := &cobra.Command{
		Use: "rerun RUN", Short: "Work the last step of a run again, from the same base, with a hint", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Work the last step of a run again: from the commit that it started from, by the definition as it is now. The agent
is told your hint first, and the step is worked however it ended before. If the run proposed something that
waits for an answer, the new proposal takes its place.

If the base has moved since, the new proposal is for the old base; approving it makes the change again on the new one.`,
		Example: "  pawl rerun keep-tests-green#3 --hint 'the fixture is wrong, not the parser'\n  pawl rerun ci-watch",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Run = args[0]
			return runLoop(cmd.Context(), a, runOptions{}, func(ctx context.Context, c verb.Caller) (runs.View, error) { return api.RerunRun.Call(ctx, c, r) })
		},
	}
	cmd.Flags().StringVar(&r.Hint, "hint", "", "what the agent is told, as `text`")
	return cmd
}
