package plan

import (
	"slices"

	"github.com/pawl-run/pawl/internal/loop"
	"github.com/pawl-run/pawl/internal/price"
)

// Cost prices what models were used for. Where every call was priced by itself, as
// a meter does, that counts; a sum of calls is priced by the table. It returns the
// list with MicroUSD and Priced of each model filled in, and the sum with the
// prices that it is made of. A model without a price is named and costs nothing
// here: the caller must not take that for free. Neither argument changes.
func Cost(models []loop.ModelUsage, t price.Table) ([]loop.ModelUsage, loop.Cost) {
	models = slices.Clone(models)
	cost := loop.Cost{AsOf: t.AsOf}
	for i, m := range models {
		p, ok := t.Find(m.Model)
		switch {
		case m.Priced:
		case ok:
			models[i].MicroUSD, models[i].Priced = p.CostOfMany(priced(m.Usage)), true
		default:
			// What some of its calls cost is known, if any was priced.
			cost.Unpriced = unpriced(cost.Unpriced, m, m.Model)
		}
		sum := loop.Amount{MicroUSD: cost.MicroUSD}.Add(loop.Amount{MicroUSD: models[i].MicroUSD})
		cost.MicroUSD = sum.MicroUSD
		if !models[i].Priced {
			continue
		}
		if ok && !p.Covers(priced(m.Usage)) {
			cost.Unpriced = unpriced(cost.Unpriced, m, "searches of "+m.Model)
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

func unpriced(all []string, m loop.ModelUsage, what string) []string {
	if m.Zero() || slices.Contains(all, what) {
		return all
	}
	return append(all, what)
}

// CallCost is what one call costs, in millionths of a US dollar, and whether its
// model has a price.
func CallCost(model string, u loop.Usage, t price.Table) (microUSD int64, known bool) {
	p, ok := t.Find(model)
	if !ok {
		return 0, false
	}
	return p.Cost(priced(u)), true
}

func modelPrice(p price.Model) loop.ModelPrice {
	used := loop.ModelPrice{
		Model: p.ID, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h,
	}
	if p.WebSearch != nil {
		used.WebSearch = *p.WebSearch
	}
	if p.FileSearch != nil {
		used.FileSearch = *p.FileSearch
	}
	return used
}

// priced takes the writes to a cache apart by how long they are kept, because
// they cost differently. A long part that is more than the whole is believed:
// it is the dearer one.
func priced(u loop.Usage) price.Usage {
	return price.Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead,
		CacheWrite5m: max(0, u.CacheWrite-u.CacheWrite1h), CacheWrite1h: u.CacheWrite1h,
		Reasoning: u.Reasoning, WebSearches: u.WebSearches, FileSearches: u.FileSearches,
	}
}
