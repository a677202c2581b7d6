package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/output"
)

func newWorkerCommand(a *app) *cobra.Command {
	workers := 8
	var labels []string
	cmd := &cobra.Command{
		Use: "worker", Short: "Execute queued runs for the machines that share a PostgreSQL store, until it is ended", Args: exactArgs(0),
		Long: `Execute runs of the workspaces that lie on this machine, and fire their loops when they are due and when events happen,
beside other machines that share a PostgreSQL store. A run goes to a machine on which its workspace lies and that has all
labels which its loop asks for with node_labels. Clones are made known by pawl init --join.

It does what pawl up does, except that it registers no repository, sends no notices, receives no webhooks (--listen) and
serves no agents (--mcp): at least one machine should have a pawl up. An interrupt, SIGTERM or pawl down ends it in the
same way. One of the two works for a store on each machine.`,
		Example: "  pawl worker --database postgres://pawl@db.example.com/pawl --labels gpu,linux\n  PAWL_DATABASE=postgres://pawl@db.example.com/pawl pawl worker --workers 2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWorkers(workers); err != nil {
				return err
			}
			o, err := a.composeOptions()
			if err != nil {
				return err
			}
			if !strings.HasPrefix(o.Settings.Database, "postgres") {
				return &loop.Fault{
					Exit: loop.ExitUsage, What: "pawl worker needs a PostgreSQL store", Why: "machines cannot share the file " + o.Settings.Database,
					Fix: "name one with --database or PAWL_DATABASE, or use {1}, which works on this machine alone", Actions: []loop.Command{loop.PawlCommand("up")},
				}
			}
			return a.openParts(cmd.Context(), o, func(parts *compose.Parts) error {
				return runWorker(cmd.Context(), a, parts, ifGiven(cmd.Flags(), "labels", &labels), workers)
			})
		},
	}
	cmd.Flags().StringVar(&a.database, "database", "", "`URL` of the store, postgres://…; empty: PAWL_DATABASE")
	cmd.Flags().StringSliceVar(&labels, "labels", nil, "`labels` of this machine, separated by commas, instead of those it has")
	cmd.Flags().IntVar(&workers, "workers", workers, "how many runs are executed at once, at most `N`")
	return cmd
}

func runWorker(ctx context.Context, a *app, parts *compose.Parts, labels *[]string, workers int) error {
	n, err := parts.Nodes().Set(ctx, nil, labels)
	if err != nil {
		return err
	}
	a.printer().Line("this node is %s (labels: %s)", output.CleanLine(n.Name), cmp.Or(output.CleanLine(strings.Join(n.Labels, " ")), "none"))
	return runDaemon(ctx, a, parts, compose.DaemonOptions{Workers: workers}, nil)
}
