package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/plan"
)

func (a *app) cmdBudget() *cobra.Command {
	cmd := &cobra.Command{
		Use: "budget", Short: "Show and set what may be spent", Args: exactly(0),
		Long: `A budget caps what a loop, an agent, a workspace or everything may spend in one run, a day or a month.
Days and months are those of UTC. A run reserves what it needs before it acts, in every budget that applies, and is
refused with exit status 12 if one of them cannot fund it. What other runs have reserved counts as spent.

A loop's own definition sets caps, too (budget_usd_day, budget_tokens_day, budget_tokens). The tightest cap counts.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.cmdBudgetShow(), a.cmdBudgetSet())
	return cmd
}

// budgetTarget adds the flags that say whose budget it is.
func budgetTarget(cmd *cobra.Command, t *control.BudgetTarget) {
	cmd.Flags().StringVar(&t.Agent, "agent", "", "what the agent `name` spends, in every workspace")
	cmd.Flags().BoolVar(&t.Workspace, "whole-workspace", false, "what all loops of this workspace spend")
	cmd.Flags().BoolVar(&t.All, "all", false, "what everything spends")
}

// fillTarget refuses two targets.
func fillTarget(cmd *cobra.Command, args []string, t *control.BudgetTarget) (given bool, err error) {
	n := len(args)
	t.Loop = strings.Join(args, "")
	for _, set := range []bool{cmd.Flags().Changed("agent"), t.Workspace, t.All} {
		if set {
			n++
		}
	}
	switch {
	case n > 1:
		return false, usage(cmd, "one budget at a time: a loop, --agent, --whole-workspace or --all")
	case cmd.Flags().Changed("agent") && strings.TrimPrefix(t.Agent, "@") == "":
		return false, usage(cmd, "--agent needs a name")
	}
	return n == 1, nil
}

func (a *app) cmdBudgetShow() *cobra.Command {
	var t control.BudgetTarget
	cmd := &cobra.Command{
		Use: "show [LOOP|--agent A|--whole-workspace|--all]", Short: "Show what is used, reserved and left", Args: between(0, 1),
		ValidArgsFunction: a.completeLoops,
		Long: `Show what is used, reserved and left of every budget, and when its next window opens. For a loop these are all the
budgets that bound it: its own, its agent's, the workspace's and that of everything.`,
		Example: "  pawl budget show\n  pawl budget show ci-watch\n  pawl budget show --all --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := fillTarget(cmd, args, &t); err != nil {
				return err
			}
			if _, err := a.prices(""); err != nil {
				return err // No run that these budgets bound would start.
			}
			return a.reading(cmd.Context(), func(s *compose.Verbs) error {
				rows, err := s.Budgets(cmd.Context(), t)
				if err != nil {
					return err
				}
				return a.printBudgets(rows)
			})
		},
	}
	budgetTarget(cmd, &t)
	return cmd
}

func (a *app) cmdBudgetSet() *cobra.Command {
	var c control.BudgetChange
	var o answerOptions
	caps := map[string]*string{}
	cmd := &cobra.Command{
		Use: "set LOOP|--agent A|--whole-workspace|--all", Short: "Set or remove caps", Args: between(0, 1), ValidArgsFunction: a.completeLoops,
		Long: `Set caps of one budget. A cap that is not named stays as it is, and none removes it. A change is recorded in the audit
chain, and counts for the next reservation: a run that holds more goes on with what it holds.`,
		Example: "  pawl budget set ci-watch --usd 2.50 --tokens 2M\n  pawl budget set --all --window month --usd 100\n" +
			"  pawl budget set --agent claude --wall 8h --iterations 200\n  pawl budget set ci-watch --usd none",
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := fillTarget(cmd, args, &c.Target)
			if err != nil {
				return err
			}
			if !given {
				return usage(cmd, "whose budget? Name a loop, --agent, --whole-workspace or --all")
			}
			c.Caps, c.By = map[string]string{}, a.actor(o.by)
			for name, text := range caps {
				if cmd.Flags().Changed(name) {
					c.Caps[name] = *text
				}
			}
			return a.settingBudget(cmd, c)
		},
	}
	budgetTarget(cmd, &c.Target)
	cmd.Flags().StringVar(&c.Window, "window", string(loop.WindowDay), "`run`, day or month")
	cmd.Flags().StringVar(&o.by, "by", "", "`who` sets it (default: $USER)")
	for name, what := range map[string]string{
		"usd": "US `dollars`: 5, 2.50", "tokens": "a `number` of tokens of input, cache writes and output: 500k, 2M", "output": "a `number` of output tokens",
		"wall": "`time` of agents: 45m, 8h", "iterations": "a `number` of iterations", "items": "a `number` of finished items",
	} {
		caps[name] = cmd.Flags().String(name, "", what+", or none")
	}
	return cmd
}

func (a *app) settingBudget(cmd *cobra.Command, c control.BudgetChange) error {
	if err := a.human(); err != nil {
		return err
	}
	return a.writing(cmd.Context(), nil, func(s *compose.Verbs) error {
		rows, err := s.SetBudget(cmd.Context(), c)
		if err != nil {
			return err
		}
		return a.printBudgets(rows)
	})
}

func (a *app) printBudgets(rows []control.BudgetRow) error {
	if a.json {
		return a.printJSON(listOf("pawl.budget/v1", rows))
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.Out, "no cap is set here: pawl budget set LOOP --usd 5 sets one for a day")
		return err
	}
	table := [][]string{{"SCOPE", "WINDOW", "CAP", "USED", "RESERVED", "LEFT", "OPENS", "BY"}}
	for _, b := range rows {
		count := func(n int64) string { return amount(b.What, n) }
		if b.Opens == nil { // A run has spent nothing before it runs.
			table = append(table, []string{cleanLine(b.Whose()), string(b.Window), count(b.Cap), "–", "–", "–", "–", cleanLine(b.By)})
			continue
		}
		table = append(table, []string{
			cleanLine(b.Whose()), string(b.Window), count(b.Cap), count(b.Used), count(b.Reserved), count(b.Left), opens(*b.Opens), cleanLine(b.By),
		})
	}
	return a.columns(table)
}

// amount is so much of a dimension, with what is counted in groups of thousands.
func amount(what string, n int64) string {
	text := plan.Count(what, n)
	if unit, counted := strings.CutPrefix(text, strconv.FormatInt(n, 10)+" "); counted {
		return number(n) + " " + unit
	}
	return text
}

func opens(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// burnDown is a budget in one line; a run's cap has nothing to burn down.
func burnDown(b control.BudgetRow) string {
	if b.Opens == nil {
		return ""
	}
	count := func(n int64) string { return amount(b.What, n) }
	return fmt.Sprintf("%s of %s: %s left of %s; %s used, %s reserved; opens %s",
		b.Window, b.Whose(), count(b.Left), count(b.Cap), count(b.Used), count(b.Reserved), opens(*b.Opens))
}
