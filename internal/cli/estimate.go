package cli

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/compose"
	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
	"github.com/pawl-run/pawl/internal/readiness"
	"github.com/pawl-run/pawl/internal/schedule"
)

type estimateOptions struct {
	readiness.Workload
	input, output, subagents int64
	pricing                  string
	listModels               bool
}

func (a *app) cmdEstimate() *cobra.Command {
	o := estimateOptions{Workload: readiness.Workload{
		Pattern: readiness.DefaultPattern, Model: readiness.DefaultModel, Cadence: readiness.DefaultCadence,
		Days: readiness.DefaultDays, PrefixFraction: readiness.DefaultPrefixFraction, TTL: readiness.DefaultTTL,
	}}
	cmd := &cobra.Command{
		Use: "estimate [LOOP|PATH]", Short: "Say what a loop will cost before it is scheduled", Args: between(0, 1),
		ValidArgsFunction: a.completeDefinitions,
		Long: `Say what a loop will cost: runs per day × tokens per run × price, with and without caching. It needs no repository.

With a LOOP, pattern, cadence and model come from its definition, and what its runs really used is shown beside the
estimate. Prices are dated; ` + control.PricesFile + ` in pawl's home overrides them, --pricing replaces them.`,
		Example: "  pawl estimate --pattern ci-watch --cadence 5m --model claude-sonnet-4-6\n  pawl estimate ci-watch\n  pawl estimate --list-models",
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{readiness.TTLAuto, readiness.TTL5m, readiness.TTL1h}, o.TTL) {
				return usage(cmd, "--cache-ttl "+quote(o.TTL)+": write auto, 5m or 1h")
			}
			return a.estimate(cmd, args, o)
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
	complete(cmd, "pattern", completePatterns())
	complete(cmd, "model", a.completeModels)
	complete(cmd, "cache-ttl", among("auto", "5m", "1h"))
	return cmd
}

func (a *app) completeModels(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	table, err := a.prices("")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, m := range table.Models {
		names = append(names, m.ID)
	}
	return among(names...)(cmd, args, prefix)
}

// prices is the table that counts.
func (a *app) prices(file string) (price.Table, error) {
	o, err := a.options()
	if err != nil {
		return price.Table{}, err
	}
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(a.Dir, file)
	}
	table, err := control.Prices(o.Settings.Home, file)
	return table.On(a.Now().UTC().Format(time.DateOnly)), err
}

// estimate looks at the file of prices before anything else.
func (a *app) estimate(cmd *cobra.Command, args []string, o estimateOptions) error {
	table, err := a.prices(o.pricing)
	if err != nil {
		return err
	}
	if o.listModels {
		return a.printPrices(table)
	}
	name := ""
	if len(args) == 1 {
		if name, err = a.workloadOf(cmd, args[0], &o.Workload); err != nil {
			return err
		}
	}
	if err := o.fill(cmd, name); err != nil {
		return err
	}
	cost, err := readiness.Estimate(table, o.Workload)
	if err != nil {
		return estimateFault(err)
	}
	return a.printCost(table, cost, a.actuals(cmd.Context(), name, cost))
}

// workloadOf takes from a definition what no flag says.
func (a *app) workloadOf(cmd *cobra.Command, arg string, w *readiness.Workload) (name string, err error) {
	all, err := control.Definitions(a.dir(), arg)
	if err != nil {
		return "", err
	}
	c, err := control.Check(all[0])
	if err != nil {
		return "", err
	}
	a.notice(c)
	asked := a.asked(cmd.Context(), c.Definition)
	for _, k := range []struct {
		flag, text string
		into       *string
	}{{"pattern", c.Config.Pattern.Text, &w.Pattern}, {"cadence", c.Config.Cadence.Text, &w.Cadence}, {"model", asked, &w.Model}} {
		if !cmd.Flags().Changed(k.flag) && readiness.Filled(k.text) {
			*k.into = k.text
		}
	}
	return c.Name, nil
}

// asked is the model that a loop's agent asks, as far as that is known before.
func (a *app) asked(ctx context.Context, d loop.Definition) string {
	look := control.Doctor{Profiles: compose.Profiles()}
	model := look.Asked(ctx, d)
	if model != "" || d.Agent == "" {
		return model
	}
	_ = a.reading(ctx, func(s *compose.Verbs) error { // Without a store there is no roster to look into.
		look.Service = s.Service
		model = look.Asked(ctx, d)
		return nil
	})
	return model
}

// plainCadence is what every reader of the format can count. A definition may
// say more, like 1d12h.
var plainCadence = regexp.MustCompile(`^([0-9]+[mhd]|\S+([ \t]+\S+){4})$`)

// fill turns flags that were given into overrides, and the cadence into runs
// per day. The cadence is that of the named loop unless a flag says another.
func (o *estimateOptions) fill(cmd *cobra.Command, name string) error {
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
	return &loop.Fault{Exit: loop.ExitUnreadable, What: "estimate", Why: err.Error(), Err: err, Fix: "pawl estimate --help lists the options"}
}

// mostActuals is how many runs an estimate is compared with.
const mostActuals = 200

// actuals compares with the past, where there is one. Without a repository, a
// store or a run there is none, which is no error.
func (a *app) actuals(ctx context.Context, name string, cost readiness.Cost) *readiness.Actuals {
	if name == "" {
		return nil
	}
	var totals []int64
	err := a.reading(ctx, func(s *compose.Verbs) error {
		past, err := s.Actuals(ctx, loop.ProtocolSpine+":"+name, mostActuals)
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

func (a *app) printCost(t price.Table, c readiness.Cost, past *readiness.Actuals) error {
	if a.json {
		return a.printJSON(costReport{costData{c.Data(), actualJSON(past)}, costMeta{t.AsOf, t.Source, "pawl.estimate/v1"}})
	}
	p := printer{w: a.Out}
	row := func(label, text string) { p.line("%-13s %s", label, text) }
	row("pattern:", c.Pattern)
	row("model:", c.Model)
	row("cadence:", fmt.Sprintf("%s  (%.6g runs/day)", c.Cadence, c.RunsPerDay)) // C's %g, six digits.
	row("tokens/run:", strconv.FormatInt(c.TokensPerRun, 10))
	row("cost/run:", readiness.Money(c.PerRun))
	row("cost/day:", readiness.Money(c.PerDay))
	row(fmt.Sprintf("cost/%dd:", c.Days), readiness.Money(c.PerHorizon))
	if k := c.Caching; k != nil && k.Beneficial {
		row(fmt.Sprintf("cached/%dd:", c.Days), fmt.Sprintf("%s  (%s, -%.1f %%)", readiness.Money(k.PerHorizon), k.TTL, 100*k.Savings))
	}
	if past != nil {
		row("actual/run:", fmt.Sprintf("p50 %d, p95 %d tokens in %s  (%.2f × the estimate)", past.P50, past.P95, count(past.Runs, "run"), past.Ratio))
	}
	_, _ = fmt.Fprintf(a.Err, "prices as of %s (%s)\n", t.AsOf, cleanLine(t.Source))
	if k := c.Caching; k != nil && !k.Beneficial {
		_, _ = fmt.Fprintf(a.Err, "caching: not beneficial, %s\n", k.Reason)
	}
	if past != nil && past.Drifted {
		_, _ = fmt.Fprintf(a.Err, "drift: the newest runs use %.1f × as many tokens as the oldest; the loop does more than it was scoped for\n", past.Drift)
	}
	return p.err
}

type costReport struct {
	Data costData `json:"data"`
	Meta costMeta `json:"meta"`
}

type costData struct {
	readiness.CostData
	Actual *actualData `json:"actual,omitempty"` // absent without runs that used tokens
}

// actualData is a readiness.Actuals as JSON has it.
type actualData struct {
	Runs       int     `json:"runs"`
	P50        int64   `json:"p50_tokens"`
	P95        int64   `json:"p95_tokens"`
	OfEstimate float64 `json:"of_estimate"`
	Drift      float64 `json:"drift"`
	Drifted    bool    `json:"drifted"`
}

func actualJSON(past *readiness.Actuals) *actualData {
	if past == nil {
		return nil
	}
	return &actualData{past.Runs, past.P50, past.P95, decimals(past.Ratio), decimals(past.Drift), past.Drifted}
}

// decimals keeps four of them.
func decimals(x float64) float64 { return math.Round(x*1e4) / 1e4 }

type costMeta struct {
	AsOf   string `json:"as_of"`
	Source string `json:"source,omitempty"`
	Schema string `json:"schema"`
}
