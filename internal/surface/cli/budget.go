package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/verb"
)

func newBudgetCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "budget", Short: "Show and set what may be spent", Args: exactArgs(0),
		Long: `A budget caps what a loop, an agent, a workspace or everything may spend in one run, a day or a month.
Days and months are those of UTC. A run reserves what it needs before it acts, in every budget that applies, and is
refused with exit status 12 if one of them cannot fund it. What other runs have reserved counts as spent.

A loop's own definition sets caps, too (budget_usd_day, budget_tokens_day, budget_tokens). The tightest cap counts.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBudgetShowCommand(a), newBudgetSetCommand(a))
	return cmd
}

// addBudgetTarget adds the flags that say whose budget it is.
func addBudgetTarget(cmd *cobra.Command, t *budgets.Target) {
	cmd.Flags().StringVar(&t.Agent, "agent", "", "what the agent `name` spends, in every workspace")
	cmd.Flags().BoolVar(&t.Workspace, "whole-workspace", false, "what all loops of this workspace spend")
	cmd.Flags().BoolVar(&t.All, "all", false, "what everything spends")
}

// readBudgetTarget takes the loop from the arguments and reports whether any target
// is given. Two targets are an error.
func readBudgetTarget(cmd *cobra.Command, args []string, t *budgets.Target) (given bool, err error) {
	n := len(args)
	t.Loop = strings.Join(args, "")
	for _, set := range []bool{cmd.Flags().Changed("agent"), t.Workspace, t.All} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return false, usageError(cmd, "one budget at a time: a loop, --agent, --whole-workspace or --all")
	case cmd.Flags().Changed("agent") && strings.TrimPrefix(t.Agent, "@") == "":
		return false, usageError(cmd, "--agent needs a name")
	}
	return n == 1, nil
}

func newBudgetShowCommand(a *app) *cobra.Command {
	var t budgets.Target
	cmd := &cobra.Command{
		Use: "show [LOOP|--agent A|--whole-workspace|--all]", Short: "Show what is used, reserved and left", Args: rangeArgs(0, 1),
		ValidArgsFunction: completeLoops(a),
		Long: `Show what is used, reserved and left of every budget, and when its next window opens. For a loop these are all the
budgets that bound it: its own, its agent's, the workspace's and that of everything.`,
		Example: "  pawl budget show\n  pawl budget show ci-watch\n  pawl budget show --all --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := readBudgetTarget(cmd, args, &t); err != nil {
				return err
			}
			pricing, err := a.pricing("")
			if err == nil {
				_, err = pricing.Load()
			}
			if err != nil {
				return err // No run that these budgets bound would start.
			}
			return a.withCaller(cmd.Context(), nil, func(c verb.Caller) error {
				rows, err := api.ShowBudgets.Call(cmd.Context(), c, t)
				if err != nil {
					return err
				}
				return printBudgets(a.printer(), rows)
			})
		},
	}
	addBudgetTarget(cmd, &t)
	return cmd
}

func newBudgetSetCommand(a *app) *cobra.Command {
	var change budgets.Change
	var o answerOptions
	caps := map[string]*string{}
	cmd := &cobra.Command{
		Use: "set LOOP|--agent A|--whole-workspace|--all", Short: "Set or remove caps", Args: rangeArgs(0, 1), ValidArgsFunction: completeLoops(a),
		Long: `Set caps of one budget. A cap that is not named stays as it is, and none removes it. A change is recorded in the audit
chain, and counts for the next reservation: a run that holds more goes on with what it holds.`,
		Example: "  pawl budget set ci-watch --usd 2.50 --tokens 2M\n  pawl budget set --all --window month --usd 100\n" +
			"  pawl budget set --agent claude --wall 8h --iterations 200\n  pawl budget set ci-watch --usd none",
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := readBudgetTarget(cmd, args, &change.Target)
			if err != nil {
				return err
			}
			if !given {
				return usageError(cmd, "whose budget? Name a loop, --agent, --whole-workspace or --all")
			}
			change.Caps = map[string]string{}
			for name, text := range caps {
				if cmd.Flags().Changed(name) {
					change.Caps[name] = *text
				}
			}
			if err := a.requireHuman(); err != nil {
				return err
			}
			return a.withCallerAs(cmd.Context(), a.actor(o.by), a.printProgress, func(c verb.Caller) error {
				rows, err := api.SetBudget.Call(cmd.Context(), c, change)
				if err != nil {
					return err
				}
				return printBudgets(a.printer(), rows)
			})
		},
	}
	addBudgetTarget(cmd, &change.Target)
	cmd.Flags().StringVar(&change.Window, "window", string(loop.WindowDay), "`run`, day or month")
	cmd.Flags().StringVar(&o.by, "by", "", "`who` sets it (default: $USER)")
	for name, what := range map[string]string{
		"usd": "US `dollars`: 5, 2.50", "tokens": "a `number` of tokens of input, cache writes and output: 500k, 2M", "output": "a `number` of output tokens",
		"wall": "`time` of agents: 45m, 8h", "iterations": "a `number` of iterations", "items": "a `number` of finished items",
	} {
		caps[name] = cmd.Flags().String(name, "", what+", or none")
	}
	return cmd
}

func printBudgets(p *output.Printer, rows []budgets.Row) error {
	return output.List[budgets.Row]{
		Schema: "pawl.budget/v1", Heading: []string{"SCOPE", "WINDOW", "CAP", "USED", "RESERVED", "LEFT", "OPENS", "BY"},
		Empty: "no cap is set here: pawl budget set LOOP --usd 5 sets one for a day",
		Cells: func(b budgets.Row) []string {
			cells := []string{output.CleanLine(b.Whose()), string(b.Window), formatAmount(b.What, b.Cap), "–", "–", "–", "–", output.CleanLine(b.By)}
			if b.Opens != nil { // A cap per run has no window, so nothing is spent between runs.
				cells[3], cells[4], cells[5] = formatAmount(b.What, b.Used), formatAmount(b.What, b.Reserved), formatAmount(b.What, b.Left)
				cells[6] = formatMinute(*b.Opens)
			}
			return cells
		},
	}.Print(p, rows)
}

// formatAmount is an amount of what a budget counts, with thousands in groups.
func formatAmount(what string, n int64) string {
	text := loop.FormatAmount(what, n)
	if unit, counted := strings.CutPrefix(text, strconv.FormatInt(n, 10)+" "); counted {
		return formatNumber(n) + " " + unit
	}
	return text
}

// describeBudget describes a budget in one line. A cap per run has no window, and
// its text is empty.
func describeBudget(b budgets.Row) string {
	if b.Opens == nil {
		return ""
	}
	return fmt.Sprintf("%s of %s: %s left of %s; %s used, %s reserved; opens %s", b.Window, b.Whose(), formatAmount(b.What, b.Left),
		formatAmount(b.What, b.Cap), formatAmount(b.What, b.Used), formatAmount(b.What, b.Reserved), formatMinute(*b.Opens))
}
