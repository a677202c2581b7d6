package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newNodesAcceptCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "accept [ID...]", Short: "Accept on this machine what the shared store asks it to do, or list it", Args: cobra.ArbitraryArgs,
		Long: `List what rows of a shared store ask this machine to do and nobody has accepted here, or accept some of it by its ids:
channels that run a command or use a secret of this machine, agents with a program or an address of their own, definitions that
get more than a confined copy of the tree (sandbox: none, setup, env, network ...) and that no file of the checkout has, and
places of workspaces. Until then none of it is used here: whoever can write to the database can have written it.

What you enter on this machine is accepted as you enter it (pawl notify add, agent create, run, init, approve). With SQLite
nothing has to be accepted. Each thing is a file below accepted in pawl's home; remove the file to take it back.
Without a terminal it needs --yes.`,
		Example: "  pawl nodes accept\n  pawl nodes accept channel-3f2a9c",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				asked, err := api.ListAsked.Call(cmd.Context(), c, verb.None{})
				if err != nil {
					return err
				}
				if len(args) == 0 {
					return printAsked(a.printer(), "pawl.asked/v1", asked)
				}
				return acceptAsked(cmd, a, c, asked, args, yes)
			})
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

func acceptAsked(cmd *cobra.Command, a *app, c verb.Caller, asked []nodes.Asked, ids []string, yes bool) error {
	if err := a.requireHuman(); err != nil {
		return err
	}
	p := a.printer()
	if !yes && !p.JSON {
		for _, one := range asked {
			for _, id := range ids {
				if strings.HasPrefix(one.ID, id) {
					printAccepted(p, one)
				}
			}
		}
	}
	if err := a.requireConsent(yes, "lets this machine do that", "pawl nodes accept "+strings.Join(ids, " ")); err != nil {
		return err
	}
	done, err := api.AcceptAsked.Call(cmd.Context(), c, api.AskedRefs{IDs: ids})
	if err != nil {
		return err
	}
	if p.JSON {
		return printAsked(p, "pawl.accepted/v1", done)
	}
	for _, one := range done {
		p.Line("accepted on this machine: %s %s", string(one.Kind), output.CleanLine(one.Name))
	}
	return p.Err()
}

func printAccepted(p *output.Printer, one nodes.Asked) {
	p.Line("%s %s", string(one.Kind), output.CleanLine(one.Name))
	for _, does := range one.Does {
		p.Line("  %s", output.CleanLine(does))
	}
}

func printAsked(p *output.Printer, schema string, asked []nodes.Asked) error {
	return output.List[nodes.Asked]{
		Schema: schema, Heading: []string{"ID", "KIND", "NAME", "WHAT IT DOES HERE"},
		Empty: "Nothing of the store waits to be accepted on this machine.",
		Cells: func(v nodes.Asked) []string {
			return []string{v.ID, string(v.Kind), output.CleanLine(v.Name), orDash(output.CleanLine(strings.Join(v.Does, "; ")))}
		},
	}.Print(p, asked)
}
