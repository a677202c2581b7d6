package cli

import (
	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newGateCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "gate", Short: "Try the gates of a loop", Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGateTryCommand(a))
	return cmd
}

func newGateTryCommand(a *app) *cobra.Command {
	var r api.GateRef
	cmd := &cobra.Command{
		Use: "try LOOP", Short: "Show a canary to a reviewer, which must not let it pass", Args: exactArgs(1), ValidArgsFunction: completeLoops(a),
		Long: `Show a reviewer of a loop work that no goal can want: it claims that all is done, and has done nothing. A reviewer that lets it pass
would let everything pass: then the exit status is 11, and 13 if the reviewer decides nothing. The review costs tokens, which are those of
a run of its own; nothing of the loop changes.`,
		Example: "  pawl gate try docs-review\n  pawl gate try lp_k3f9a2b --gate readable",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Loop = args[0]
			return a.withCaller(cmd.Context(), nil, func(ask verb.Caller) error {
				t, err := api.TryGate.Call(cmd.Context(), ask, r)
				if err != nil {
					return err
				}
				p := a.printer()
				switch {
				case p.JSON:
					err = p.WriteJSON(t)
				case t.Caught:
					p.Line("✓ %s does not let the canary pass (%s tokens)", output.CleanLine(t.Gate), formatNumber(t.Tokens))
					p.QuotedField("  ", "it says", t.Answer)
					err = p.Err()
				}
				switch {
				case err != nil || t.Caught:
					return err
				case t.Open:
					return &loop.Fault{Exit: loop.ExitWaiting, What: t.Gate + " decided nothing about the canary", Why: t.Why, Fix: "mend what it says; until then a human decides about each result"}
				}
				return &loop.Fault{
					Exit: loop.ExitNoSuccess, What: t.Gate + " lets the canary pass", Why: "it says: " + t.Answer,
					Fix: "write criteria that can fail, or let another model review; a result that this reviewer passes proves nothing",
				}
			})
		},
	}
	cmd.Flags().StringVar(&r.Gate, "gate", "", "the `name` of the reviewer; without it the first one")
	return cmd
}
