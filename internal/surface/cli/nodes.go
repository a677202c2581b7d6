package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/record/node"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/nodes"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newNodesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the machines that share the store, and what each still has to do", Args: exactArgs(0),
		Long: `List the machines, with one home of pawl each, that share the store. A node is idle, working, lost (it did not extend the
lease of a run), or differs (its pawl does not know the tables, so that it takes no work). The run of a lost node is ended by
another one, so that its loop is free; when the lost node is back, it keeps the work and writes the run log.`,
		Example: "  pawl nodes\n  pawl nodes set --name build1 --label gpu\n  pawl nodes forget build2 --yes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				all, err := api.ListNodes.Call(cmd.Context(), c, verb.None{})
				if err != nil {
					return err
				}
				return printNodes(a.printer(), all)
			})
		},
	}
	cmd.AddCommand(newNodesSetCommand(a), newNodesAcceptCommand(a), newNodesForgetCommand(a))
	return cmd
}

func printNodes(p *output.Printer, all []nodes.View) error {
	return output.List[nodes.View]{
		Schema: "pawl.nodes/v1", Heading: []string{"NODE", "STATE", "SEEN", "PAWL", "LABELS", "WORKSPACES", "UNFINISHED"},
		Empty: "No node is registered yet: the first command that writes registers this one.",
		Cells: func(v nodes.View) []string {
			name := output.CleanLine(v.Name)
			if v.Here {
				name += " (here)"
			}
			var lies, open []string
			for _, w := range v.Lies {
				lies = append(lies, output.CleanLine(w.Workspace)+" "+output.CleanLine(w.Path))
			}
			for _, run := range v.Runs {
				open = append(open, describeUnfinished(run))
			}
			return []string{
				name, v.State, p.Ago(&v.Seen), output.CleanLine(v.Version), orDash(output.CleanLine(strings.Join(v.Labels, " "))), orDash(strings.Join(lies, ", ")), orDash(strings.Join(open, ", ")),
			}
		},
		Below: func() { printSkews(p, all) },
	}.Print(p, all)
}

// printSkews names the nodes whose clock is wrong.
func printSkews(p *output.Printer, all []nodes.View) {
	for _, v := range all {
		if skew := time.Duration(v.Skew) * time.Millisecond; skew.Abs() > node.MostSkew {
			p.Line("the clock of %s is %s, whose clock decides (set it: timedatectl set-ntp true)", output.CleanLine(v.Name), node.DescribeSkew(skew))
		}
	}
}

func describeUnfinished(run nodes.Run) string {
	if run.Owed {
		return output.CleanLine(run.Run) + " owes its files"
	}
	return fmt.Sprintf("%s in %s", output.CleanLine(run.Run), run.Phase)
}

func newNodesSetCommand(a *app) *cobra.Command {
	var name string
	var labels []string
	cmd := &cobra.Command{
		Use: "set", Short: "Name this node, or give it labels", Args: exactArgs(0),
		Example: "  pawl nodes set --name build1\n  pawl nodes set --label gpu --label linux",
		RunE: func(cmd *cobra.Command, _ []string) error {
			newName, newLabels := ifGiven(cmd.Flags(), "name", &name), ifGiven(cmd.Flags(), "label", &labels)
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				n, err := api.SetNode.Call(cmd.Context(), c, api.NodeChange{Name: newName, Labels: newLabels})
				if err != nil {
					return err
				}
				p := a.printer()
				if p.JSON {
					return p.WriteJSON(n)
				}
				p.Line("this node is %s (labels: %s)", output.CleanLine(n.Name), cmp.Or(output.CleanLine(strings.Join(n.Labels, " ")), "none"))
				return p.Err()
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name`, which no other node of the store has; empty: the name of the host")
	cmd.Flags().StringArrayVar(&labels, "label", nil, "`label` instead of those it has (repeat it)")
	return cmd
}

func newNodesForgetCommand(a *app) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "forget NODE", Short: "Remove a node that is gone for good, and give up what it still had to do", Args: exactArgs(1),
		Long: `Remove a node that does not come back. Its live runs are ended as interrupted. The work of runs that only it has, and
their lines in its run log, are given up. The channels of notices that only it delivers on (command, desktop) are removed. Its
clones no longer belong to their workspaces: if one comes back after all, it is refused until pawl init --join or --new-id.
Without a terminal it needs --yes.`,
		Example: "  pawl nodes forget build2\n  pawl nodes forget build2 --yes",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error { return forgetNode(cmd.Context(), a, c, args[0], yes) })
		},
	}
	addYesFlag(cmd, &yes)
	return cmd
}

func forgetNode(ctx context.Context, a *app, c verb.Caller, name string, yes bool) error {
	plan, err := api.ShowForgotten.Call(ctx, c, api.NodeRef{Node: name})
	if err != nil {
		return err
	}
	p := a.printer()
	if !yes && !p.JSON {
		printForgotten(p, plan)
	}
	what := "gives up what " + name + " still had to do"
	if err := a.requireConsent(yes, what, "pawl nodes forget "+name); err != nil {
		return err
	}
	f, err := api.ForgetNode.Call(ctx, c, api.NodeRef{Node: name})
	if err != nil {
		return err
	}
	if p.JSON {
		return p.WriteJSON(f)
	}
	if yes {
		printForgotten(p, f)
	}
	p.Line("node %s is forgotten", output.CleanLine(f.Node.Name))
	return p.Err()
}

// printForgotten says what is given up with a node.
func printForgotten(p *output.Printer, f nodes.Forgotten) {
	for _, run := range f.Runs {
		p.Field("  ", "given up", output.CleanLine(run.Run)+": its work on that node, and its line in that run log")
	}
	for _, w := range f.Workspaces {
		p.Field("  ", "no place", output.CleanLine(w.Path)+" of workspace "+output.CleanLine(w.Workspace))
	}
}
