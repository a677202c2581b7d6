package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/budgets"
	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/output"
	"github.com/pawl-run/pawl/internal/price"
)

func newPricesCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prices [MODEL…]", Short: "List what models cost, and add prices of your own", ValidArgsFunction: completeModels(a),
		Long: `List what models cost: the built-in table, with ` + budgets.PricesFile + ` of pawl's home over it. With a MODEL only that one is
listed, found as for a run: also by a dated name or with its vendor in front.

All prices are in US dollars: tokens per million, searches by the vendor's own tools per thousand. Where a model has
other prices for long input, a line below it says from where on.`,
		Example: "  pawl prices\n  pawl prices claude-opus-5-5 gpt-6.1-sol\n  pawl prices update --file mine.json",
		RunE: func(_ *cobra.Command, args []string) error {
			table, err := a.loadPrices("")
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if table.Models, err = findModels(table, args); err != nil {
					return err
				}
			}
			return printPrices(a.printer(), table)
		},
	}
	cmd.AddCommand(newPricesUpdateCommand(a))
	return cmd
}

// findModels returns the models of the given names.
func findModels(t price.Table, names []string) (found []price.Model, err error) {
	for _, name := range names {
		m, ok := t.Find(name)
		if !ok {
			return nil, &loop.Fault{
				Exit: loop.ExitNotFound, What: "price of " + quoteArg(name), Why: "no table has it", Err: loop.ErrNotFound,
				Fix: `write {"models": {` + strconv.Quote(name) + `: {"input_per_mtok": N, "output_per_mtok": N}}} into a file F, then: pawl prices update --file F`,
			}
		}
		found = append(found, m)
	}
	return found, nil
}

func newPricesUpdateCommand(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "update --file F", Short: "Put prices of a file over your own", Args: exactArgs(0),
		Long: `Check the prices of a file and put them over those in ` + budgets.PricesFile + ` of pawl's home, which go before the built-in
ones: a model of the same name is replaced, others are added. A file that has a mistake changes nothing.

The file has pawl's own format (docs/budgets.md), or is the list of prices that the project genai-prices publishes
(data.json). Runs that start afterwards count by it.`,
		Example: "  pawl prices update --file mine.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usageError(cmd, "--file is missing: name the file that has the prices")
			}
			o, err := a.composeOptions()
			if err != nil {
				return err
			}
			u, err := budgets.UpdatePrices(o.Settings.Home, a.absPath(file))
			if err != nil {
				return err
			}
			p := a.printer()
			if p.JSON {
				return p.WriteJSON(u)
			}
			p.Line("%s, %d replaced, in %s", pluralize(u.Added, "price")+" added", u.Replaced, output.CleanLine(u.File))
			return p.Err()
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the `file` with the prices")
	return cmd
}

// printPrices lists models and their prices.
func printPrices(p *output.Printer, t price.Table) error {
	if p.JSON {
		return p.WriteJSON(budgets.NewPriceList(t))
	}
	table := [][]string{{"MODEL", "INPUT", "CACHED", "WRITE 5M", "WRITE 1H", "OUTPUT", "SEARCH/1000", "CACHED FROM"}}
	addRow := func(name string, r price.Rates, search, from string) {
		table = append(table, []string{
			name, formatRate(r.Input), formatRate(r.CacheRead), formatRate(r.CacheWrite5m), formatRate(r.CacheWrite1h), formatRate(r.Output), search, from,
		})
	}
	for _, m := range t.Models {
		search := "-"
		if m.WebSearch != nil {
			search = formatRate(*m.WebSearch)
		}
		addRow(output.CleanLine(m.ID), m.Rates, search, strconv.FormatInt(m.MinPrefix, 10)+" tokens")
		for _, long := range m.Long {
			addRow(fmt.Sprintf("  above %d", long.Above), long.Rates, "", "")
		}
		for _, later := range m.From {
			addRow("  from "+later.Date, later.Rates, "", "")
		}
	}
	if err := p.Table(table); err != nil {
		return err
	}
	p.Note("US dollars per million tokens, as of %s (%s)", t.AsOf, output.CleanLine(t.Source))
	return nil
}

// formatRate is a price with at least two digits after the point and no trailing
// zeros beyond them.
func formatRate(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if _, digits, _ := strings.Cut(text, "."); len(digits) < 2 {
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return text
}
