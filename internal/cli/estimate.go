package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/loops"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/readiness"
	"github.com/pawl-run/pawl/internal/schedule"
	"github.com/pawl-run/pawl/internal/setup"
)

type estimateOptions struct {
	readiness.Workload
	input, output, subagents int64
	pricing                  string
	listModels               bool
}

func newEstimateCommand(a *app) *cobra.Command {
	o := estimateOptions{Workload: readiness.Workload{
		Pattern: readiness.DefaultPattern, Model: readiness.DefaultModel, Cadence: readiness.DefaultCadence,
		Days: readiness.DefaultDays, PrefixFraction: readiness.DefaultPrefixFraction, TTL: readiness.DefaultTTL,
	}}
	cmd := &cobra.Command{
		Use: "estimate [LOOP|PATH]", Short: "Say what a loop will cost before it is scheduled", Args: rangeArgs(0, 1),
		ValidArgsFunction: completeDefinitions(a),
		Long: `Say what a loop will cost: runs per day × tokens per run × price, with and without caching. It needs no repository.

With a LOOP, pattern, cadence and model come from its definition, and what its runs really used is shown beside the
estimate. Prices are dated; ` + budgets.PricesFile + ` in pawl's home overrides them, --pricing replaces them.`,
		Example: "  pawl estimate --pattern ci-watch --cadence 5m --model claude-sonnet-4-6\n  pawl estimate ci-watch\n  pawl estimate --list-models",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{readiness.TTLAuto, readiness.TTL5m, readiness.TTL1h}, o.TTL) {
				return usageError(cmd, "--cache-ttl "+quoteArg(o.TTL)+": write auto, 5m or 1h")
			}
			return runEstimate(cmd, a, args, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Pattern, "pattern", o.Pattern, "a `pattern` of the catalogue")
	f.StringVar(&o.Cadence, "cadence", o.Cadence, "how often it fires: 10m, 6h, 1d or five cron fields")
	f.StringVar(&o.Model, "model", o.Model, "the `model`")
	f.IntVar(&o.Days, "days", o.Days, "the horizon")
	f.Float64Var(&o.RunsPerDay, "runs-per-day", 0, "instead of what the cadence says")
	f.Int64Var(&o.input, "input-tokens", 0, "input tokens of one run, instead of the pattern's")
	f.Int64Var(&o.output, "output-tokens", 0, "output tokens of one run, instead of the pattern's")
	f.Int64Var(&o.subagents, "subagents", 0, "agents that work in one run, instead of the pattern's")
	f.Float64Var(&o.PrefixFraction, "cache-prefix-frac", o.PrefixFraction, "the part of the input that stays the same, 0 to 1")
	f.StringVar(&o.TTL, "cache-ttl", o.TTL, "how long a cached prefix is kept: auto, 5m or 1h")
	f.BoolVar(&o.NoCache, "no-cache", false, "without caching")
	f.StringVar(&o.pricing, "pricing", "", "a `file` of prices instead of pawl's")
	f.BoolVar(&o.listModels, "list-models", false, "list the models and their prices")
	completeFlag(cmd, "pattern", completePatterns())
	completeFlag(cmd, "model", completeModels(a))
	completeFlag(cmd, "cache-ttl", offerWords("auto", "5m", "1h"))
	return cmd
}

// loadPrices returns the prices of today: those of a file, or pawl's own.
func (a *app) loadPrices(file string) (price.Table, error) {
	o, err := a.composeOptions()
	if err != nil {
		return price.Table{}, err
	}
	if file != "" {
		file = a.absPath(file)
	}
	table, err := budgets.Prices(o.Settings.Home, file)
	return table.On(a.Now().UTC().Format(time.DateOnly)), err
}

func runEstimate(cmd *cobra.Command, a *app, args []string, o estimateOptions) error {
	table, err := a.loadPrices(o.pricing) // An invalid file is reported before anything else.
	if err != nil {
		return err
	}
	if o.listModels {
		return printPrices(a.printer(), table)
	}
	name := ""
	if len(args) == 1 {
		if name, err = readWorkload(cmd, a, args[0], &o.Workload); err != nil {
			return err
		}
	}
	if err := o.applyFlags(cmd, name); err != nil {
		return err
	}
	cost, err := readiness.Estimate(table, o.Workload)
	if err != nil {
		return estimateFault(err)
	}
	return printCost(a.printer(), table, cost, compareWithRuns(cmd.Context(), a, name, cost))
}

// readWorkload takes from a definition what no flag says.
func readWorkload(cmd *cobra.Command, a *app, arg string, w *readiness.Workload) (name string, err error) {
	found, err := loops.Definitions(a.workDir(), arg)
	if err != nil {
		return "", err
	}
	c, err := loops.Check(found[0])
	if err != nil {
		return "", err
	}
	noteReading(a.printer(), c)
	for _, k := range []struct {
		flag, text string
		into       *string
	}{
		{"pattern", c.Config.Pattern.Text, &w.Pattern},
		{"cadence", c.Config.Cadence.Text, &w.Cadence},
		{"model", findModel(cmd.Context(), a, c.Definition), &w.Model},
	} {
		if !cmd.Flags().Changed(k.flag) && readiness.Filled(k.text) {
			*k.into = k.text
		}
	}
	return c.Name, nil
}

// findModel returns the model that a loop's agent will ask, as far as that is known
// before a run.
func findModel(ctx context.Context, a *app, d loop.Definition) string {
	doctor := setup.Doctor{Profiles: compose.Profiles()}
	model := doctor.Asked(ctx, d)
	if model != "" || d.Agent == "" {
		return model
	}
	_ = a.withReadOnlyVerbs(ctx, func(s *compose.Verbs) error { // Without a store there is no roster.
		doctor.Service = s.Setup
		model = doctor.Asked(ctx, d)
		return nil
	})
	return model
}

// plainCadence is a cadence of --cadence. A definition may say more, like 1d12h.
var plainCadence = regexp.MustCompile(`^([0-9]+[mhd]|\S+([ \t]+\S+){4})$`)

// applyFlags turns flags that were given into overrides, and the cadence into runs
// per day. The cadence is that of the named loop unless a flag says another.
func (o *estimateOptions) applyFlags(cmd *cobra.Command, name string) error {
	for _, k := range []struct {
		flag  string
		value *int64
		into  **int64
	}{{"input-tokens", &o.input, &o.Input}, {"output-tokens", &o.output, &o.Output}, {"subagents", &o.subagents, &o.Subagents}} {
		if cmd.Flags().Changed(k.flag) {
			*k.into = k.value
		}
	}
	if cmd.Flags().Changed("runs-per-day") {
		return nil
	}
	if cmd.Flags().Changed("cadence") && !plainCadence.MatchString(o.Cadence) {
		return estimateFault(fmt.Errorf("--cadence: %s is neither an interval in m, h or d nor five cron fields; write it like 10m, 6h, 1d or 0 9 * * 1-5",
			readiness.Quote(o.Cadence)))
	}
	c, err := schedule.Parse(o.Cadence)
	if err != nil {
		from := "--cadence"
		if name != "" && !cmd.Flags().Changed("cadence") {
			from = "cadence of " + name
		}
		return estimateFault(fmt.Errorf("%s: %w", from, err))
	}
	o.RunsPerDay = c.PerDay()
	return nil
}

func estimateFault(err error) error {
	if f, ok := errors.AsType[*loop.Fault](err); ok {
		return f
	}
	return &loop.Fault{Exit: loop.ExitUnreadable, What: "estimate", Why: err.Error(), Err: err, Fix: "pawl estimate --help lists the options"}
}

// compareWithRuns compares an estimate with what the newest runs of the loop used.
// It returns nil if there is no repository, store or run.
func compareWithRuns(ctx context.Context, a *app, name string, cost readiness.Cost) *readiness.Actuals {
	if name == "" {
		return nil
	}
	const most = 200 // runs
	var totals []int64
	err := a.withReadOnlyVerbs(ctx, func(s *compose.Verbs) error {
		past, err := s.Runs.Actuals(ctx, loop.ProtocolSpine+":"+name, most)
		for _, run := range past.Runs {
			if run.Tokens > 0 {
				totals = append(totals, run.Tokens)
			}
		}
		return err
	})
	if err != nil || len(totals) == 0 {
		return nil
	}
	compared := readiness.Compare(totals, cost.TokensPerRun)
	return &compared
}

func printCost(p *output.Printer, t price.Table, c readiness.Cost, past *readiness.Actuals) error {
	if p.JSON {
		return p.WriteJSON(budgets.NewEstimate(t, c, past))
	}
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
	if past != nil {
		row("actual/run:", fmt.Sprintf("p50 %d, p95 %d tokens in %s  (%.2f × the estimate)", past.P50, past.P95, pluralize(past.Runs, "run"), past.Ratio))
	}
	p.Note("prices as of %s (%s)", t.AsOf, output.CleanLine(t.Source))
	if k := c.Caching; k != nil && !k.Beneficial {
		p.Note("caching: not beneficial, %s", k.Reason)
	}
	if past != nil && past.Drifted {
		p.Note("drift: the newest runs use %.1f × as many tokens as the oldest; the loop does more than it was scoped for", past.Drift)
	}
	return p.Err()
}
