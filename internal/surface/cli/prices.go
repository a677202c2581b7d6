package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/verbs/budgets"
	"github.com/pawl-run/pawl/internal/verbs/output"
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
			pricing, err := a.pricing("")
			if err != nil {
				return err
			}
			list, err := pricing.List(args...)
			if err != nil {
				return err
			}
			return printPrices(a.printer(), list)
		},
	}
	cmd.AddCommand(newPricesUpdateCommand(a))
	return cmd
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
			pricing, err := a.pricing(file)
			if err != nil {
				return err
			}
			u, err := budgets.UpdatePrices(pricing.Home, pricing.File)
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
func printPrices(p *output.Printer, l budgets.PriceList) error {
	if p.JSON {
		return p.WriteJSON(l)
	}
	table := [][]string{{"MODEL", "INPUT", "CACHED", "WRITE 5M", "WRITE 1H", "OUTPUT", "SEARCH/1000", "CACHED FROM"}}
	var assumed []string
	for _, m := range l.Data {
		search := "-"
		if m.WebSearch != nil {
			search = formatRate(*m.WebSearch)
		}
		name, from := output.CleanLine(m.ID), strconv.FormatInt(m.MinPrefix, 10)+" tokens"
		addRow := func() {
			table = append(table, []string{
				name, formatRate(m.Input), formatRate(m.CacheRead), formatRate(m.CacheWrite5m), formatRate(m.CacheWrite1h), formatRate(m.Output), search, from,
			})
		}
		addRow()
		search, from = "", ""
		if m.Assumed != "" {
			assumed = append(assumed, assumedPrice(m.ID, m.Assumed))
		}
		for _, long := range m.Long {
			name, m.Rates = fmt.Sprintf("  above %d", long.Above), long.Rates
			addRow()
		}
		for _, later := range m.From {
			name, m.Rates = "  from "+later.Date, later.Rates
			addRow()
		}
	}
	if err := p.Table(table); err != nil {
		return err
	}
	for _, line := range assumed {
		p.Note("assumed: %s", line)
	}
	p.Note("US dollars per million tokens, as of %s (%s)", l.Meta.AsOf, output.CleanLine(l.Meta.Source))
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
