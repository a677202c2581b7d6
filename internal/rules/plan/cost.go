package plan

import (
	"slices"

	"github.com/pawl-run/pawl/internal/rules/loop"
	"github.com/pawl-run/pawl/internal/rules/price"
)

// PriceModels prices the usage of models. If every call of a model was priced
// already, as the meter does, that price counts; otherwise the table prices the sum of
// its calls. It returns the list with MicroUSD and Priced filled in, and the total
// with the prices that were used. A model without a price is listed as unpriced and
// adds nothing: the caller must not take it for free. Neither argument changes.
func PriceModels(models []loop.ModelUsage, t price.Table) ([]loop.ModelUsage, loop.Cost) {
	models = slices.Clone(models)
	cost := loop.Cost{AsOf: t.AsOf}
	for i, m := range models {
		p, ok := t.PriceOf(m.Model)
		switch {
		case m.Priced:
		case ok:
			models[i].MicroUSD, models[i].Priced = p.CostOfMany(priceUsage(m.Usage)), true
		default:
			// MicroUSD is what those of its calls cost that were priced.
			cost.Unpriced = addUnpriced(cost.Unpriced, m, m.Model)
		}
		sum := loop.Amount{MicroUSD: cost.MicroUSD}.Add(loop.Amount{MicroUSD: models[i].MicroUSD})
		cost.MicroUSD = sum.MicroUSD
		if !models[i].Priced {
			continue
		}
		if ok && !p.Covers(priceUsage(m.Usage)) {
			cost.Unpriced = addUnpriced(cost.Unpriced, m, "searches of "+m.Model)
		}
		if !ok {
			p = price.Model{ID: m.Model}
		}
		if used := modelPrice(p); !slices.Contains(cost.Prices, used) {
			cost.Prices = append(cost.Prices, used)
		}
	}
	if len(models) == 0 {
		return models, loop.Cost{}
	}
	return models, cost
}

func addUnpriced(all []string, m loop.ModelUsage, what string) []string {
	if m.Zero() || slices.Contains(all, what) {
		return all
	}
	return append(all, what)
}

// CallCost returns what one call costs, in millionths of a US dollar, and whether
// its model has a price.
func CallCost(model string, u loop.Usage, t price.Table) (microUSD int64, known bool) {
	p, ok := t.PriceOf(model)
	if !ok {
		return 0, false
	}
	return p.Cost(priceUsage(u)), true
}

func modelPrice(p price.Model) loop.ModelPrice {
	used := loop.ModelPrice{
		Model: p.ID, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h, Assumed: p.Assumed,
	}
	if p.WebSearch != nil {
		used.WebSearch = *p.WebSearch
	}
	if p.FileSearch != nil {
		used.FileSearch = *p.FileSearch
	}
	return used
}

// priceUsage splits the writes to a cache by how long they are kept, because their
// prices differ. If the part kept for an hour is more than the whole, it counts: it
// is the dearer one.
func priceUsage(u loop.Usage) price.Usage {
	return price.Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead,
		CacheWrite5m: max(0, u.CacheWrite-u.CacheWrite1h), CacheWrite1h: u.CacheWrite1h,
		Reasoning: u.Reasoning, WebSearches: u.WebSearches, FileSearches: u.FileSearches,
	}
}
