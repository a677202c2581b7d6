package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/control"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
)

func (a *app) cmdPrices() *cobra.Command {
	cmd := &cobra.Command{
		Use: "prices [MODEL…]", Short: "List what models cost, and add prices of your own", ValidArgsFunction: a.completeModels,
		Long: `List what models cost: the built-in table, with ` + control.PricesFile + ` of pawl's home over it. With a MODEL only that one is
listed, found as for a run: also by a dated name or with its vendor in front.

All prices are in US dollars: tokens per million, searches by the vendor's own tools per thousand. Where a model has
other prices for long input, a line below it says from where on.`,
		Example: "  pawl prices\n  pawl prices claude-opus-5-5 gpt-6.1-sol\n  pawl prices update --file mine.json",
		RunE: func(_ *cobra.Command, args []string) error {
			table, err := a.prices("")
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if table.Models, err = pricesOf(table, args); err != nil {
					return err
				}
			}
			return a.printPrices(table)
		},
	}
	cmd.AddCommand(a.cmdPricesUpdate())
	return cmd
}

// pricesOf are the models that are named.
func pricesOf(t price.Table, names []string) (found []price.Model, err error) {
	for _, name := range names {
		m, ok := t.Find(name)
		if !ok {
			return nil, &loop.Fault{
				Exit: loop.ExitNotFound, What: "price of " + quote(name), Why: "no table has it", Err: loop.ErrNotFound,
				Fix: `write {"models": {` + strconv.Quote(name) + `: {"input_per_mtok": N, "output_per_mtok": N}}} into a file F, then: pawl prices update --file F`,
			}
		}
		found = append(found, m)
	}
	return found, nil
}

func (a *app) cmdPricesUpdate() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "update --file F", Short: "Put prices of a file over your own", Args: exactly(0),
		Long: `Check the prices of a file and put them over those in ` + control.PricesFile + ` of pawl's home, which go before the built-in
ones: a model of the same name is replaced, others are added. A file that has a mistake changes nothing.

The file has pawl's own format (docs/budgets.md), or is the list of prices that the project genai-prices publishes
(data.json). Runs that start afterwards count by it.`,
		Example: "  pawl prices update --file mine.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage(cmd, "--file is missing: name the file that has the prices")
			}
			o, err := a.options()
			if err != nil {
				return err
			}
			if !filepath.IsAbs(file) {
				file = filepath.Join(a.Dir, file)
			}
			added, replaced, err := control.UpdatePrices(o.Settings.Home, file)
			if err != nil {
				return err
			}
			into := filepath.Join(o.Settings.Home, control.PricesFile)
			if a.json {
				return a.printJSON(pricesUpdate{"pawl.prices-update/v1", added, replaced, into})
			}
			p := printer{w: a.Out}
			p.line("%s, %d replaced, in %s", count(added, "price")+" added", replaced, cleanLine(into))
			return p.err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the `file` with the prices")
	return cmd
}

// pricesUpdate is what an update did.
type pricesUpdate struct {
	Schema   string `json:"schema"`
	Added    int    `json:"added"`
	Replaced int    `json:"replaced"`
	File     string `json:"file"`
}

// printPrices lists models and their prices.
func (a *app) printPrices(t price.Table) error {
	if a.json {
		return a.printJSON(struct {
			Data []price.Model `json:"data"`
			Meta costMeta      `json:"meta"`
		}{t.Models, costMeta{t.AsOf, t.Source, "pawl.pricing/v1"}})
	}
	table := [][]string{{"MODEL", "INPUT", "CACHED", "WRITE 5M", "WRITE 1H", "OUTPUT", "SEARCH/1000", "CACHED FROM"}}
	for _, m := range t.Models {
		table = append(table, priceRow(cleanLine(m.ID), m.Rates, perThousand(m.WebSearch), strconv.FormatInt(m.MinPrefix, 10)+" tokens"))
		for _, long := range m.Long {
			table = append(table, priceRow(fmt.Sprintf("  above %d", long.Above), long.Rates, "", ""))
		}
		for _, later := range m.From {
			table = append(table, priceRow("  from "+later.Date, later.Rates, "", ""))
		}
	}
	if err := a.columns(table); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Err, "US dollars per million tokens, as of %s (%s)\n", t.AsOf, cleanLine(t.Source))
	return err
}

func priceRow(name string, r price.Rates, search, from string) []string {
	return []string{name, rate(r.Input), rate(r.CacheRead), rate(r.CacheWrite5m), rate(r.CacheWrite1h), rate(r.Output), search, from}
}

func perThousand(fee *float64) string {
	if fee == nil {
		return "-"
	}
	return rate(*fee)
}

// rate is a price with at least two digits behind the point and no more than it
// has.
func rate(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if _, digits, _ := strings.Cut(text, "."); len(digits) < 2 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return text
}
