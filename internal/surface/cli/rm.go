package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newRmCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm LOOP", Short: "Forget a loop", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Forget a loop: pawl ls does not list it any more, and its open approvals are closed.

Its branches, its snapshots, its files below .loops and its audit log stay. A loop whose folder is there is found
again until you remove the folder. If a loop of that name runs again, its runs are numbered on. A loop with a live
run is refused. Without a terminal --yes is required.`,
		Example: "  pawl rm until-1tenrrv\n  pawl rm words --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			does := "forgets the loop " + args[0] + " and closes its open approvals"
			if err := a.requireConsent(yes, does, "pawl rm "+args[0]); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				f, err := api.ForgetLoop.Call(cmd.Context(), c, api.LoopRef{Loop: args[0]})
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(f)
				}
				p.Line("✓ %s is forgotten; its branches, snapshots and audit log stay", output.CleanLine(f.Loop))
				if len(f.Closed) > 0 {
					p.Line("  closed: %s", strings.Join(f.Closed, ", "))
				}
				if f.Folder != "" {
					folder := output.CleanLine(f.Folder)
					p.Line("  its folder %s stays: while it is there, its definition and its kill switch count. Remove it with rm -r %s", folder, folder)
				}
				return p.Err()
			})
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}
