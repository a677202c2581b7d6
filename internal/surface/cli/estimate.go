package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/surface/api"
	"github.com/pawl-run/pawl/internal/surface/compose"
	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/loops"
	"github.com/pawl-run/pawl/internal/verbs/output"
	"github.com/pawl-run/pawl/internal/verbs/setup"
)

func newEstimateCommand(a *app) *cobra.Command {
	r := budgets.NewEstimateRequest()
	pattern, cadence, model := budgets.DefaultPattern, budgets.DefaultCadence, budgets.DefaultModel
	var runsPerDay float64
	var input, outputTokens, subagents int64
	var pricesFile string
	var listModels bool
	cmd := &cobra.Command{
		Use: "estimate [LOOP|PATH]", Short: "Say what a loop will cost before it is scheduled", Args: rangeArgs(0, 1),
		ValidArgsFunction: completeDefinitions(a),
		Long: `Say what a loop will cost: runs per day × tokens per run × price, with and without caching. It needs no repository.

With a LOOP, pattern, cadence and model come from its definition, and what its runs really used is shown beside the
estimate. Prices are dated; ` + budgets.PricesFile + ` in pawl's home overrides them, --pricing replaces them.`,
		Example: "  pawl estimate --pattern ci-watch --cadence 5m --model claude-sonnet-4-6\n  pawl estimate ci-watch\n  pawl estimate --list-models",
		RunE: func(cmd *cobra.Command, args []string) error {
			if ttls := []string{"auto", "5m", "1h"}; !slices.Contains(ttls, r.TTL) {
				return usageError(cmd, "--cache-ttl "+quoteArg(r.TTL)+": write auto, 5m or 1h")
			}
			pricing, err := a.pricing(pricesFile)
			if err != nil {
				return err
			}
			table, err := pricing.Load() // An invalid file is reported before anything else.
			if err != nil {
				return err
			}
			if listModels {
				list, err := pricing.List()
				if err != nil {
					return err
				}
				return printPrices(a.printer(), list)
			}
			if len(args) == 1 {
				if r.Loop, err = findEstimatedLoop(cmd.Context(), a, args[0]); err != nil {
					return err
				}
			}
			f := cmd.Flags()
			r.Pattern, r.Cadence, r.Model = ifGiven(f, "pattern", &pattern), ifGiven(f, "cadence", &cadence), ifGiven(f, "model", &model)
			r.RunsPerDay, r.Subagents = ifGiven(f, "runs-per-day", &runsPerDay), ifGiven(f, "subagents", &subagents)
			r.Input, r.Output = ifGiven(f, "input-tokens", &input), ifGiven(f, "output-tokens", &outputTokens)
			e, err := budgets.NewEstimate(table, r)
			if err != nil {
				return err
			}
			return printEstimate(a.printer(), e)
		},
	}
	f := cmd.Flags()
	f.StringVar(&pattern, "pattern", pattern, "a `pattern` of the catalogue")
	f.StringVar(&cadence, "cadence", cadence, "how often it fires: 10m, 6h, 1d or five cron fields")
	f.StringVar(&model, "model", model, "the `model`")
	f.IntVar(&r.Days, "days", r.Days, "the horizon")
	f.Float64Var(&runsPerDay, "runs-per-day", 0, "instead of what the cadence says")
	f.Int64Var(&input, "input-tokens", 0, "input tokens of one run, instead of the pattern's")
	f.Int64Var(&outputTokens, "output-tokens", 0, "output tokens of one run, instead of the pattern's")
	f.Int64Var(&subagents, "subagents", 0, "agents that work in one run, instead of the pattern's")
	f.Float64Var(&r.PrefixFraction, "cache-prefix-frac", r.PrefixFraction, "the part of the input that stays the same, 0 to 1")
	f.StringVar(&r.TTL, "cache-ttl", r.TTL, "how long a cached prefix is kept: auto, 5m or 1h")
	f.BoolVar(&r.NoCache, "no-cache", false, "without caching")
	f.StringVar(&pricesFile, "pricing", "", "a `file` of prices instead of pawl's")
	f.BoolVar(&listModels, "list-models", false, "list the models and their prices")
	completeFlag(cmd, "pattern", completePatterns())
	completeFlag(cmd, "model", completeModels(a))
	completeFlag(cmd, "cache-ttl", offerWords("auto", "5m", "1h"))
	return cmd
}

// findEstimatedLoop reads a definition, and what the loop's runs used.
func findEstimatedLoop(ctx context.Context, a *app, arg string) (budgets.EstimatedLoop, error) {
	found, err := loops.FindDefinitions(a.formats(), a.workDir(), arg)
	if err != nil {
		return budgets.EstimatedLoop{}, err
	}
	c, err := loops.Check(found[0])
	if err != nil {
		return budgets.EstimatedLoop{}, err
	}
	noteReading(a.printer(), c)
	doctor := setup.Doctor{Profiles: compose.Profiles()}
	l := doctor.EstimatedLoop(ctx, c)
	// Without a repository or a store there are neither a roster nor runs.
	_ = a.withReadOnlyVerbs(ctx, func(s *api.Workspace) error {
		doctor.Service = s.Setup
		l.Model = doctor.AskedModel(ctx, c.Definition)
		l.Past, err = s.Runs.TokensUsed(ctx, c.Name)
		return err
	})
	return l, nil
}

// assumedPrice says that the price of a model is assumed, and of what.
func assumedPrice(model, family string) string {
	return fmt.Sprintf("the price of %s, which has none: twice the dearest of the family %s", output.CleanLine(model), family)
}

func printEstimate(p *output.Printer, e budgets.Estimate) error {
	if p.JSON {
		return p.WriteJSON(e)
	}
	c := e.Cost
	row := func(label, text string) { p.Line("%-13s %s", label, text) }
	row("pattern:", c.Pattern)
	row("model:", c.Model)
	row("cadence:", fmt.Sprintf("%s  (%.6g runs/day)", c.Cadence, c.RunsPerDay)) // C's %g, six digits.
	row("tokens/run:", strconv.FormatInt(c.TokensPerRun, 10))
	row("cost/run:", formatMoney(c.PerRun))
	row("cost/day:", formatMoney(c.PerDay))
	row(fmt.Sprintf("cost/%dd:", c.Days), formatMoney(c.PerHorizon))
	if k := c.Caching; k != nil && k.Beneficial {
		row(fmt.Sprintf("cached/%dd:", c.Days), fmt.Sprintf("%s  (%s, -%.1f %%)", formatMoney(k.PerHorizon), k.TTL, 100*k.Savings))
	}
	if c.Assumed != "" {
		row("assumed:", assumedPrice(c.Model, c.Assumed))
	}
	if past := e.Past; past != nil {
		row("actual/run:", fmt.Sprintf("p50 %d, p95 %d tokens in %s  (%.2f × the estimate)", past.P50, past.P95, pluralize(past.Runs, "run"), past.Ratio))
	}
	p.Note("prices as of %s (%s)", e.Meta.AsOf, output.CleanLine(e.Meta.Source))
	if k := c.Caching; k != nil && !k.Beneficial {
		p.Note("caching: not beneficial, %s", k.Reason)
	}
	if e.Past != nil && e.Past.Drifted {
		p.Note("drift: the newest runs use %.1f × as many tokens as the oldest; the loop does more than it was scoped for", e.Past.Drift)
	}
	return p.Err()
}
